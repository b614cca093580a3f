"""A process that writes may be killed at any moment: the file is whole, and the next run completes.

Thousands of kills are the harness's affair (`python -m benchmarks.crash`); here it kills fifty times, and is shown to
find what it looks for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
OPERATIONS = (
    "first ingest", "ingest", "prune", "update", "withdraw", "gated ingest, accepted", "gated ingest, refused",
    "reembed", "compact", "backup", "upgrade from 0001",
)  # fmt: skip

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the harness forks")


def crash(arguments: list[str], *, sabotage: str = "") -> subprocess.CompletedProcess[str]:
    """Run the harness in a process of its own, since forking this one would take pytest's threads along."""
    code = f"import sys\nfrom benchmarks.crash import __main__ as command\n{sabotage}\nsys.exit(command.main({arguments!r}))"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )


def test_whatever_is_killed_leaves_whole_documents_and_the_next_run_completes() -> None:
    """BR-83: fifty kills, three of four just before or after a write statement, over every operation that writes."""
    done = crash(["--kills", "50", "--operations", *OPERATIONS])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n50 kills, 0 faults, " in done.stdout
    assert all(f"\n| {name} | " in done.stdout for name in OPERATIONS)


def test_the_harness_finds_a_commit_in_the_middle_of_a_document() -> None:
    sabotage = """
from evidencedesk import bm25
real = bm25.add_chunks
def too_early(connection, terms_of):
    connection.exec_driver_sql("COMMIT")
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    real(connection, terms_of)
bm25.add_chunks = too_early
"""
    done = crash(["--kills", "2", "--operations", "update"], sabotage=sabotage)
    assert done.returncode == 1
    assert "- update, undisturbed: state 1: check: postings differ from the text" in done.stdout


def test_the_harness_finds_a_next_run_that_does_not_complete() -> None:
    sabotage = """
from dataclasses import replace
command.OPERATIONS = [replace(operation, again=lambda folder: None) for operation in command.OPERATIONS]
"""
    done = crash(["--kills", "2", "--operations", "update"], sabotage=sabotage)
    assert done.returncode == 1
    assert "the next run ends in another state than an undisturbed one" in done.stdout


def test_the_harness_finds_a_state_that_no_reader_was_to_see() -> None:
    """A killed run that goes on: what it leaves is the state of another point than that of the kill."""
    sabotage = """
from benchmarks.crash import killing
killing.kill_at = lambda operation, folder, number, answer: operation.run(folder)
"""
    done = crash(["--kills", "2", "--operations", "withdraw"], sabotage=sabotage)
    assert done.returncode == 1
    assert "the file is in state 1, and 0 was committed" in done.stdout


@pytest.mark.parametrize("arguments", [["--operations", "updat"], ["--kills", "3"]])
def test_a_wrong_option_is_named(arguments: list[str]) -> None:
    done = crash(arguments)
    assert done.returncode == 2
    assert "error: " in done.stderr
