"""The views answer in a plain sqlite3 that knows no extension of ours."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders import make_source, open_desk

from evidencedesk import schema

CODE = """
import json, sqlite3, sys
sql = sqlite3.connect(sys.argv[1])
print(json.dumps([sql.execute(query).fetchall() for query in sys.argv[2:]]))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("views") / "desk.db"
    sources = [
        make_source("Old.", doc_id="rule-v1", effective_from="2024-01-01", title="Rule, first"),
        make_source("New.", doc_id="rule-v2", effective_from="2025-01-01", title="Rule"),
        make_source("Soon.", doc_id="rule-v3", effective_from="2027-01-01", title="Rule, next"),
        make_source("নিয়ম।", doc_id="rule-v2-bn", lang="bn"),
    ]
    with open_desk(target, sources, embedder="toy"):
        pass
    return target


def plain(path: Path, *queries: str) -> list[list[list[object]]]:
    """Rows by the standard library's sqlite3, in a process of its own: two SQLite libraries in one process do not mix."""
    done = subprocess.run([sys.executable, "-c", CODE, str(path), *queries], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_every_view_and_table_answers_without_an_extension(path: Path) -> None:
    """BR-02."""
    names = plain(path, "SELECT name FROM sqlite_master WHERE type IN ('view', 'table') AND name NOT LIKE 'sqlite_%'")[
        0
    ]
    assert {name for (name,) in names} >= schema.view_names()
    for rows in plain(path, *(f"SELECT count(*) FROM {name}" for (name,) in names)):
        assert isinstance(rows[0][0], int)
    assert plain(path, "PRAGMA integrity_check") == [[["ok"]]]


def test_what_was_superseded_when_by_what_and_why(path: Path) -> None:
    (rows,) = plain(
        path, "SELECT old_doc_id, new_doc_id, old_title, new_title, superseded_at, why FROM superseded_documents"
    )
    assert rows == [["rule-v1", "rule-v2", "Rule, first", "Rule", "2025-01-01 00:00:00.000000", "rule-v2 took effect"]]


def test_history_and_what_is_in_force(path: Path) -> None:
    history, current, chunks = plain(
        path,
        "SELECT doc_id, status, date(valid_from), date(valid_to), line_position FROM document_history WHERE lang = 'en' ORDER BY line_position",
        "SELECT doc_id FROM current_documents ORDER BY doc_id",
        "SELECT chunk_id, heading, line_start, line_end, text FROM current_chunks ORDER BY chunk_id",
    )
    assert history == [
        ["rule-v1", "superseded", "2024-01-01", "2025-01-01", 1],
        ["rule-v2", "current", "2025-01-01", "2027-01-01", 2],
        ["rule-v3", "scheduled", "2027-01-01", None, 3],
    ]
    assert current == [["rule-v2"], ["rule-v2-bn"]]
    assert chunks == [["rule-v2-bn:c0", "Rule", 8, 8, "নিয়ম।"], ["rule-v2:c0", "Rule", 9, 9, "New."]]


def test_gaps_are_listed(path: Path, tmp_path: Path) -> None:
    assert plain(path, "SELECT * FROM index_gaps") == [[]]
    copy = tmp_path / "copy.db"
    shutil.copy(path, copy)
    (gaps,) = plain(copy, "SELECT 1 WHERE 0")
    assert gaps == []
    subprocess.run(
        [sys.executable, "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('DELETE FROM vectors'); c.commit()", str(copy)],
        check=True,
    )  # fmt: skip
    (gaps,) = plain(copy, "SELECT chunk_id, gap FROM index_gaps ORDER BY chunk_id")
    assert gaps == [[f"rule-{name}:c0", "no vector"] for name in ("v1", "v2-bn", "v2", "v3")]
