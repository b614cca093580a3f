"""The vector index: float32 vectors in a plain table, and compact codes of them that make large files fast.

The vectors are the truth, and every cosine that is reported is computed from them in double precision. Codes are
derived: `upkeep` keeps them in step inside the transaction that changes a vector, `memory` holds them for each state
that is searched, `scan` finds candidates among them. Small files and narrow scopes are scanned exactly and use none of
it.
"""

from evidencedesk.vectors.search import nearest
from evidencedesk.vectors.truth import (
    cosine,
    cosines,
    counts,
    damaged,
    drop_damaged,
    drop_unused,
    insert,
    missing,
    stored,
    to_blob,
)
from evidencedesk.vectors.upkeep import code_problems, put, rebuild

__all__ = [
    "code_problems",
    "cosine",
    "cosines",
    "counts",
    "damaged",
    "drop_damaged",
    "drop_unused",
    "insert",
    "missing",
    "nearest",
    "put",
    "rebuild",
    "stored",
    "to_blob",
]
