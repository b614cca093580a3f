"""`check` finds what is wrong, each kind of it, and finds nothing in a sound file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import Clock, make_source, open_desk

SOURCES = [
    make_source("Bikes are red.", doc_id="rule-v1", effective_from="2024-01-01"),
    make_source("Bikes are blue.", doc_id="rule-v2", effective_from="2025-01-01"),
]


def test_a_sound_file_has_no_problems() -> None:
    with open_desk(sources=SOURCES, embedder="toy") as desk:
        report = desk.check()
        assert report.ok
        assert report.facts["documents"] == "1 current, 1 superseded"
        assert report.facts["chunks"] == "2"
        assert "toy" in report.facts["embedder"]
        assert report.facts["sqlite-vec"] == "loaded"


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        ("UPDATE documents SET valid_to = NULL WHERE doc_id = 'rule-v1'", "wrong validity"),
        ("UPDATE documents SET status = 'expired' WHERE doc_id = 'rule-v2'", "wrong status"),
        ("UPDATE chunks SET line_start = 1, line_end = 2", "lines do not hold the text"),
        ("UPDATE chunks SET text = 'Bikes are green.'", "lines do not hold the text"),
        ("UPDATE lexical_postings SET frequency = frequency + 1", "postings differ from the text"),
        ("DELETE FROM lexical_postings", "postings differ from the text"),
        ("UPDATE lexical_terms SET chunks_in_force = chunks_in_force + 1 WHERE term = 'blue'", "BM25 term differs"),
        ("UPDATE lexical_totals SET chunks_in_force = 7", "BM25 totals differ"),
        ("DELETE FROM vectors", "vectors missing"),
        ("UPDATE vectors SET embedding = zeroblob(1024)", "vector damaged"),
        ("UPDATE vectors SET embedding = x'00'", "vector damaged"),
        ("DROP VIEW current_chunks", "view missing"),
        ("DROP INDEX ux_documents_one_current", "index missing"),
        ("PRAGMA foreign_keys = OFF; DELETE FROM documents WHERE doc_id = 'rule-v1'", "dangling reference"),
    ],
)
def test_each_kind_of_damage_is_found(damage: str, kind: str) -> None:
    """BR-35: derived rows out of step with the text are found, whatever integrity_check says."""
    with open_desk(sources=SOURCES, embedder="toy") as desk:
        with desk.engine.connect() as sql:
            sql.connection.driver_connection.executescript(damage)
        report = desk.check()
        assert not report.ok
        assert kind in {problem.kind for problem in report.problems}
        assert all(problem.next_step for problem in report.problems)


def test_what_has_only_come_due_is_no_problem() -> None:
    clock = Clock(datetime(2024, 6, 1, tzinfo=UTC))
    with open_desk(sources=SOURCES, clock=clock) as desk:
        clock.advance(days=365)
        assert desk.check().problems == ()


def test_a_damaged_page_is_a_typed_error_or_a_problem(tmp_path: Path) -> None:
    from evidencedesk.errors import DeskDamaged

    path = tmp_path / "desk.db"
    with open_desk(path, SOURCES):
        pass
    data = bytearray(path.read_bytes())
    for start in range(8192, len(data), 8192):
        data[start : start + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(DeskDamaged, match="Restore a backup"), open_desk(path) as desk:
        desk.check()
