"""`check` finds what is wrong, each kind of it, and finds nothing in a sound file."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import Clock, make_source, open_desk, write_source

from evidencedesk import Desk, ToyEmbedder, inspection
from evidencedesk.bm25 import segments
from evidencedesk.errors import DeskDamaged, EmbedderMismatch, EmbedderUnavailable
from evidencedesk.models import Base
from evidencedesk.vectors import memory, search, upkeep

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


RESTORE, COMPACT, EMBED = inspection._RESTORE, inspection._COMPACT, inspection._EMBED


@pytest.mark.parametrize(
    ("damage", "kind", "next_step"),
    [
        ("UPDATE documents SET valid_to = NULL WHERE doc_id = 'rule-v1'", "wrong validity", COMPACT),
        ("UPDATE documents SET status = 'expired' WHERE doc_id = 'rule-v2'", "wrong status", COMPACT),
        ("UPDATE desk SET next_change_at = NULL", "wrong next change", COMPACT),
        ("UPDATE desk SET next_change_at = '2099-01-01 00:00:00.000000'", "wrong next change", COMPACT),
        ("UPDATE documents SET content_hash = 'x'", "content differs from its hash", RESTORE),
        ("UPDATE documents SET title = 'x'", "content differs from its hash", RESTORE),
        ("UPDATE chunks SET line_start = 1, line_end = 2", "lines do not hold the text", RESTORE),
        ("UPDATE chunks SET text = 'Bikes are green.'", "lines do not hold the text", RESTORE),
        ("UPDATE chunks SET text_hash = 'x'", "hash differs from the text", COMPACT),
        ("UPDATE chunks SET term_count = 99", "postings differ from the text", COMPACT),
        (
            "UPDATE lexical_unpacked SET term_keys = zeroblob(length(term_keys))",
            "postings differ from the text",
            COMPACT,
        ),
        ("UPDATE lexical_unpacked SET frequencies = x'0100'", "postings differ from the text", COMPACT),
        ("DELETE FROM lexical_unpacked", "postings differ from the text", COMPACT),
        ("UPDATE lexical_changes SET change = change + 1", "BM25 term differs", COMPACT),
        (
            "UPDATE lexical_terms SET chunks_in_force = chunks_in_force + 1 WHERE term = 'blue'",
            "BM25 term differs",
            COMPACT,
        ),
        ("UPDATE lexical_totals SET chunks_in_force = 7", "BM25 totals differ", COMPACT),
        ("DELETE FROM vectors", "vectors missing", EMBED),
        ("UPDATE vectors SET embedding = zeroblob(1024)", "vector damaged", EMBED),
        ("UPDATE vectors SET embedding = x'00'", "vector damaged", EMBED),
        ("DROP VIEW current_chunks", "view missing", COMPACT),
        (
            "DROP VIEW current_documents; CREATE VIEW current_documents AS SELECT * FROM documents",
            "view missing",
            COMPACT,
        ),
        ("UPDATE documents SET version_sort = '9' WHERE doc_id = 'rule-v1'", "wrong version order", RESTORE),
        ("UPDATE documents SET valid_from = 12345", "damaged", RESTORE),
        ("UPDATE vectors SET embedding = 5", "damaged", RESTORE),
        ("DELETE FROM lexical_totals", "damaged", RESTORE),
        ("DROP TABLE vectors", "damaged", RESTORE),
        ("DELETE FROM desk", "damaged", RESTORE),
        ("DELETE FROM state", "damaged", RESTORE),
        ("UPDATE state SET change_number = 1", "wrong state", RESTORE),
        ("UPDATE state SET generation = 'x'", "wrong state", RESTORE),
        ("DELETE FROM recent_states; UPDATE documents SET change_number = 999", "wrong state", RESTORE),
        ("UPDATE chunks SET heading = 'Other'", "heading differs", RESTORE),
        ("UPDATE chunks SET ordinal = 7", "chunk missing", RESTORE),
        ("DELETE FROM chunks WHERE doc_key = 1", "chunk missing", RESTORE),
        (
            "PRAGMA foreign_keys = OFF; INSERT INTO lexical_unpacked VALUES (999, x'01000000', x'01000000')",
            "postings without a chunk",
            COMPACT,
        ),
        (
            "PRAGMA foreign_keys = OFF; INSERT INTO vectors (embedder_key, text_hash, embedding) VALUES (9, 'x', x'00')",
            "dangling reference",
            RESTORE,
        ),
        ("DROP INDEX ux_documents_one_current", "index missing", COMPACT),
        ("DROP INDEX ix_chunks_text_hash", "index missing", COMPACT),
        (
            "DROP INDEX ux_documents_one_current; UPDATE documents SET status = 'current'",
            "outdated but current",
            COMPACT,
        ),
        ("PRAGMA foreign_keys = OFF; DELETE FROM documents WHERE doc_id = 'rule-v1'", "dangling reference", RESTORE),
    ],
)
def test_each_kind_of_damage_is_found_and_the_next_step_mends_it(
    tmp_path: Path, damage: str, kind: str, next_step: str
) -> None:
    """BR-35: derived rows out of step with the text are found, whatever integrity_check says."""
    for version, start in (("1", "2024-01-01"), ("2", "2025-01-01"), ("3", "2027-01-01")):
        body = {"1": "Bikes are red.", "2": "Bikes are blue.", "3": "Bikes are gone."}[version]
        write_source(tmp_path / "docs", f"{version}.md", body, doc_id="rule", version=version, effective_from=start)
    with open_desk(tmp_path / "desk.db", embedder="toy") as desk:
        desk.ingest(tmp_path / "docs")
        assert desk.check().ok
        with desk.engine.connect() as sql:
            sql.connection.driver_connection.executescript(damage)
        found = {problem.kind: problem.next_step for problem in desk.check().problems}
        assert found.get(kind) == next_step
        if next_step != RESTORE:
            desk.compact()
            if next_step == EMBED:
                assert desk.ingest(tmp_path / "docs").embedded == 3
            assert desk.check().problems == ()
            assert desk.ingest(tmp_path / "docs").unchanged == ("rule-v1", "rule-v2", "rule-v3")


def test_vectors_of_texts_that_no_chunk_has_are_told_and_no_problem() -> None:
    """A correction leaves the former text's vector, which serves again should the text come back."""
    with open_desk(sources=[make_source("Bikes are red."), make_source("Bikes are blue.")], embedder="toy") as desk:
        report = desk.check()
        assert report.facts["vectors"] == "2, 1 of them of texts that no chunk has; compact drops them"
        assert report.ok
        desk.compact()
        assert desk.check().facts["vectors"] == "1"


def test_a_vector_of_another_text_is_found_by_embedding_again() -> None:
    sources = [make_source(f"{word} are sold.", doc_id=f"{word.lower()}-v1") for word in ("Bikes", "Helmets", "Lamps")]
    with open_desk(sources=sources, embedder="toy") as desk:
        assert desk.check(vectors=True).ok
        swap = (
            "UPDATE vectors SET embedding = (SELECT embedding FROM vectors WHERE vector_key = 2) WHERE vector_key = 1"
        )
        with desk.engine.connect() as sql:
            sql.connection.driver_connection.execute(swap)
        assert desk.check().ok
        (problem,) = desk.check(vectors=True).problems
        with desk.store.read() as snapshot:
            text_hash = snapshot.text_hashes(1)[0]
        assert (problem.kind, problem.subject) == ("vector of another text", text_hash)
        desk.reembed(None)
        desk.reembed("toy")
        assert desk.check(vectors=True).ok
        with pytest.raises(EmbedderMismatch):
            inspection.check(desk.store, ToyEmbedder(64))


def test_vectors_are_compared_only_where_their_embedder_is(tmp_path: Path) -> None:
    with open_desk(tmp_path / "desk.db", SOURCES, embedder="toy"):
        pass
    with open_desk(tmp_path / "desk.db") as desk, pytest.raises(EmbedderUnavailable):
        desk.check(vectors=True)


# ---------------------------------------------------------------- packed indexes


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose postings and vectors are packed, with two versions of a rule, and what came after the packing."""
    monkeypatch.setattr(segments, "DELTA_CHUNKS", 6)
    monkeypatch.setattr(upkeep, "FEWEST", 100)
    monkeypatch.setattr(upkeep, "BLOCK", 32)
    monkeypatch.setattr(memory, "NARROW", 20)
    monkeypatch.setattr(search, "_CODED_FOR_EACH", 1)
    shop = [
        make_source(
            "\n\n".join(f"## The {part}\n\nOur {colour} {part} is kept in the {colour} store." for part in "abcdefghijklmnopqrstuvwx"),
            doc_id=f"{colour}-v1", heading=None,
        )
        for colour in ("red", "blue", "green", "amber", "teal")
    ]  # fmt: skip
    with open_desk(tmp_path / "desk.db", [*shop, *SOURCES], embedder="toy") as desk:
        desk.compact()
        desk.update_document(make_source("Late bells are red.", doc_id="late-v1"))
        assert desk.check().ok
        with desk.store.read() as snapshot:
            assert memory.picture_of(snapshot, snapshot.settings.embedder_key) is not None
    return tmp_path / "desk.db"


@pytest.mark.parametrize(
    ("damage", "kind", "names"),
    [
        # A length decides a score, a document what a filter lets through, a bound what a search looks at.
        ("UPDATE lexical_segments SET lengths = CAST(x'ffffff7f' || substr(lengths, 5) AS BLOB)", "postings differ", "red-v1:c0"),
        ("UPDATE lexical_segments SET document_keys = CAST(x'02000000' || substr(document_keys, 5) AS BLOB)", "postings differ", "red-v1:c0"),
        ("UPDATE lexical_segments SET last_key = last_key + 5", "postings damaged", "segment"),
        (
            "UPDATE lexical_packed SET best_frequency = 0 WHERE term_key = (SELECT term_key FROM lexical_terms WHERE term = 'amber')",
            "postings damaged",
            "term amber",
        ),
        (
            "UPDATE lexical_packed SET shortest_length = 999 WHERE term_key = (SELECT term_key FROM lexical_terms WHERE term = 'amber')",
            "postings damaged",
            "term amber",
        ),
        ("UPDATE lexical_marks SET in_force = CAST(x'00' || substr(in_force, 2) AS BLOB)", "marks differ", "8 chunks, first 1"),
        ("UPDATE lexical_marks SET removed = CAST(x'01' || substr(removed, 2) AS BLOB)", "postings differ", "red-v1:c0"),
        ("UPDATE vector_codes SET codes = CAST(x'ff' || substr(codes, 2) AS BLOB)", "vector codes differ", "block"),
        ("UPDATE vector_rosters SET documents = CAST(substr(documents, 1, 28) || x'00' || substr(documents, 30) AS BLOB)", "vector codes differ", "roster"),
        ("DELETE FROM vectors WHERE vector_key = 3", "vector codes differ", "block"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_packed_index_is_named_and_made_anew(
    packed: Path, damage: str, kind: str, names: str
) -> None:
    with open_desk(packed, embedder="toy") as desk:
        with desk.engine.connect() as sql:
            sql.connection.driver_connection.execute(damage)
        found = [problem for problem in desk.check().problems if problem.kind.startswith(kind)]
        assert names in " ".join(f"{problem.subject} {problem.detail}" for problem in found)
        desk.compact()
        assert not [problem for problem in desk.check().problems if problem.kind.startswith(kind)]


TRUTH = ("documents", "chunks", "answers", "answer_citations", "desk", "embedders")


def rows_of(desk: Desk, tables: tuple[str, ...], without: str = "") -> list[object]:
    with desk.engine.connect() as sql:
        return [
            sorted(map(str, sql.exec_driver_sql(f"SELECT {', '.join(columns)} FROM {table}").all()))
            for table in tables
            for columns in [[c.name for c in Base.metadata.tables[table].columns if c.name not in without.split()]]
        ]


def kept_terms(desk: Desk) -> list[tuple[object, ...]]:
    with desk.engine.connect() as sql:
        return [tuple(row) for row in sql.exec_driver_sql("SELECT term, n FROM bm25_terms ORDER BY term")]


def test_making_anew_changes_only_what_is_derived(packed: Path) -> None:
    derived = "status valid_from valid_to next_change_at change_number text_hash term_count"
    with open_desk(packed, embedder="toy") as desk:
        desk.ask("Which colour have bikes?", record=True)
        before = rows_of(desk, TRUTH, derived)
        exact = (rows_of(desk, (*TRUTH, "lexical_totals"), "change_number"), kept_terms(desk))
        for damage in (
            "UPDATE documents SET valid_to = NULL",
            "UPDATE chunks SET term_count = 1 WHERE chunk_key = 2",
            "DELETE FROM lexical_packed",
            "UPDATE lexical_terms SET chunks_in_force = 1",
            "DROP VIEW current_chunks",
        ):
            with desk.engine.connect() as sql:
                sql.connection.driver_connection.execute(damage)
        report = desk.check()
        assert inspection.can_be_made_anew(report)
        desk.compact()
        assert desk.check().ok
        assert rows_of(desk, TRUTH, derived) == before
        assert (rows_of(desk, (*TRUTH, "lexical_totals"), "change_number"), kept_terms(desk)) == exact


def test_what_has_only_come_due_is_no_problem() -> None:
    clock = Clock(datetime(2024, 6, 1, tzinfo=UTC))
    with open_desk(sources=SOURCES, clock=clock) as desk:
        clock.advance(days=365)
        assert desk.check().problems == ()


def test_a_clock_that_was_set_back_is_no_problem() -> None:
    """What came in and superseded another by the faster clock has done so; nothing waits to happen again."""
    clock = Clock(datetime(2026, 6, 1, 12, tzinfo=UTC))
    with open_desk(sources=SOURCES, clock=clock) as desk:
        desk.update_document(make_source("Helmets.", doc_id="hat-v1"))
        clock.advance(seconds=-1)
        assert desk.check().problems == ()
        desk.update_document(make_source("Gloves.", doc_id="glove-v1"))
        clock.advance(minutes=-5)
        assert desk.check().problems == ()


def test_a_damaged_page_is_a_typed_error_or_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, SOURCES):
        pass
    data = bytearray(path.read_bytes())
    for start in range(8192, len(data), 8192):
        data[start : start + 64] = b"\xff" * 64
    path.write_bytes(data)
    try:
        with open_desk(path) as desk:
            kinds = {problem.kind for problem in desk.check().problems}
    except DeskDamaged as error:
        assert "Restore a backup" in str(error)  # noqa: PT017 - either way is right, silence is not
    else:
        assert kinds == {"damaged"}
