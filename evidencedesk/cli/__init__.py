"""The command line: a thin door onto Desk. It opens the file, calls one verb, prints, and sets the exit code.

What is asked for goes to stdout: words for people, or the records as JSON. Everything else (notes, the
progress bar, errors) goes to stderr.
"""

from evidencedesk.cli import asking, trust, upkeep
from evidencedesk.cli.program import app, main

__all__ = ["app", "asking", "main", "trust", "upkeep"]
