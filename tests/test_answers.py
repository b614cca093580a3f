"""Recorded answers: what was answered from what outlives the documents, and one query names what went stale."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import MOMENT, Clock, make_source, open_desk, write_source

from evidencedesk import Desk
from evidencedesk.errors import ReadOnlyDesk
from evidencedesk.records import Answer, Assessment, Citation, Claim, StaleCitation, Support, Thresholds
from evidencedesk.store import put_answer

VALUES = Thresholds(0.3, 0.05, "a test")
SUPPORT = Support((), 1.0, True, "supported", "It says so.")
SENTENCE = "Bikes come back within 30 days."


def record(
    desk: Desk, chunk_id: str, quote: str = SENTENCE, *, as_of: datetime | None = None, abstained: bool = False,
    verdict: str = "retrieved",
) -> int:  # fmt: skip
    """Record an answer that rests on one sentence of one chunk."""
    chunk = desk.chunk(chunk_id)
    label = f"Shop rules (Rule, line 6) [{chunk_id}]"
    claim = Claim(quote, (Citation("1", verdict, chunk, label, SUPPORT, quote),), "supported", "It says so.")
    hits = desk.search("bikes", as_of=as_of)
    answer = Answer(
        f"{quote} [{chunk_id}]", claim.citations, abstained, "ok", hits, (claim,), "How long?", "All holds.",
        Assessment("ok", 0.9, 0.4, "cosine", VALUES), "quoting", MOMENT, as_of,
    )  # fmt: skip
    with desk.store.write("recording") as transaction:
        return put_answer(transaction, answer, checker="rules", code_version="0")


def stale_of(desk: Desk) -> list[tuple[StaleCitation, ...]]:
    return [answer.stale for answer in desk.answers(stale=True)]


def test_an_answer_is_kept_with_a_copy_of_the_text_it_cites() -> None:
    source = make_source(f"{SENTENCE} Bring the invoice.", doc_id="shop-v1")
    with open_desk(sources=[source]) as desk:
        record(desk, "shop-v1:c0")
        desk.update_document(make_source("Nothing of it.", doc_id="shop-v1"))
        (answer,) = desk.answers()
    (citation,) = answer.citations
    assert (answer.answer_id, answer.question, answer.text) == (1, "How long?", f"{SENTENCE} [shop-v1:c0]")
    assert (citation.text, citation.quote) == (f"{SENTENCE} Bring the invoice.", SENTENCE)
    assert (citation.cited, citation.verdict, citation.label) == (
        "1",
        "retrieved",
        "Shop rules (Rule, line 6) [shop-v1:c0]",
    )


def test_an_answer_goes_stale_when_its_text_is_superseded() -> None:
    clock = Clock()
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1")], clock=clock) as desk:
        record(desk, "shop-v1:c0")
        assert stale_of(desk) == []
        clock.advance(days=1)
        report = desk.update_document(make_source("Bikes come back within 45 days.", doc_id="shop-v2", version="v2"))
        assert report.stale_answers == 1
        assert stale_of(desk) == [
            (StaleCitation("shop-v1:c0", "shop-v1", "shop-v2", "superseded", SENTENCE, sentence_changed=True),)
        ]


def test_a_sentence_that_stands_in_the_new_version_however_it_is_wrapped_has_not_changed() -> None:
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1")]) as desk:
        record(desk, "shop-v1:c0")
        body = "Helmets too.\nBikes come back\nwithin 30 days."
        desk.update_document(make_source(body, doc_id="shop-v2", version="v2"))
        ((stale,),) = stale_of(desk)
    assert (stale.why, stale.sentence_changed) == ("superseded", False)


@pytest.mark.parametrize(
    ("new_text", "expected"),
    [
        ("Bikes come back within 45 days.", [("corrected", "shop-v1", True)]),
        (f"{SENTENCE} And more.", [("corrected", "shop-v1", False)]),
        (SENTENCE, []),
    ],
)
def test_an_answer_goes_stale_when_its_text_is_corrected_in_place(new_text: str, expected: list[object]) -> None:
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1")]) as desk:
        record(desk, "shop-v1:c0")
        report = desk.update_document(make_source(new_text, doc_id="shop-v1"))
        found = [(stale.why, stale.new_doc_id, stale.sentence_changed) for (stale,) in stale_of(desk)]
    assert (found, report.stale_answers) == (expected, len(expected))


def test_an_answer_goes_stale_when_its_document_is_withdrawn() -> None:
    clock = Clock()
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1")], clock=clock) as desk:
        record(desk, "shop-v1:c0")
        clock.advance(days=1)
        desk.withdraw("shop-v1", reason="no longer sold")
        assert stale_of(desk) == [
            (StaleCitation("shop-v1:c0", "shop-v1", None, "withdrawn: no longer sold", SENTENCE, None),)
        ]


def test_an_answer_goes_stale_by_the_clock_alone() -> None:
    """Its text expires, or another version comes due, with no write in between."""
    clock = Clock()
    ends = make_source(SENTENCE, doc_id="sale-v1", effective_from="2026-01-01", effective_to="2026-07-01")
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1"), ends], clock=clock) as desk:
        begins = make_source("Other.", doc_id="shop-v2", version="v2", effective_from="2026-07-01")
        report = desk.update_document(begins)
        record(desk, "shop-v1:c0")
        record(desk, "sale-v1:c0")
        assert (report.stale_answers, stale_of(desk)) == (0, [])
        clock.advance(days=60)
        assert [stale.why for (stale,) in stale_of(desk)] == ["expired", "superseded"]
        assert desk.update_document(make_source("More.", doc_id="else-v1")).stale_answers == 0


def test_an_answer_as_of_a_past_day_stands_while_that_day_is_known_as_it_was() -> None:
    clock = Clock()
    old = make_source(SENTENCE, doc_id="shop-v1", effective_from="2024-01-01")
    new = make_source("Bikes stay.", doc_id="shop-v2", version="v2", effective_from="2025-01-01")
    with open_desk(sources=[old, new], clock=clock) as desk:
        record(desk, "shop-v1:c0", as_of=datetime(2024, 6, 1, tzinfo=UTC))
        desk.withdraw("shop-v2", reason="a mistake")
        assert stale_of(desk) == []
        earlier = make_source("Bikes stay.", doc_id="shop-v3", version="v3", effective_from="2024-05-01")
        assert desk.update_document(earlier).stale_answers == 1
        assert [(stale.why, stale.new_doc_id) for (stale,) in stale_of(desk)] == [("superseded", "shop-v3")]


def test_what_was_not_given_as_an_answer_is_not_stale() -> None:
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1")]) as desk:
        record(desk, "shop-v1:c0", abstained=True)
        record(desk, "shop-v1:c0", verdict="outside")
        desk.update_document(make_source("Other.", doc_id="shop-v2", version="v2"))
        assert (stale_of(desk), len(desk.answers())) == ([], 2)


def test_a_document_that_moves_to_another_family_takes_its_answers_along() -> None:
    clock = Clock()
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1")], clock=clock) as desk:
        record(desk, "shop-v1:c0")
        desk.update_document(make_source(SENTENCE, doc_id="shop-v1", family="sales"))
        assert stale_of(desk) == []
        clock.advance(days=1)
        desk.update_document(make_source("Other.", doc_id="shop-v2", version="v2", family="sales"))
        assert [(stale.why, stale.new_doc_id) for (stale,) in stale_of(desk)] == [("superseded", "shop-v2")]


def test_another_line_leaves_an_answer_alone() -> None:
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1")]) as desk:
        record(desk, "shop-v1:c0")
        bangla = desk.update_document(make_source("নিয়ম।", doc_id="shop-v2-bn", version="v2", lang="bn"))
        assert (bangla.stale_answers, stale_of(desk)) == (0, [])


def test_a_run_names_each_stale_answer_once(tmp_path: Path) -> None:
    write_source(tmp_path / "docs", "a.md", SENTENCE, doc_id="a-v1")
    write_source(tmp_path / "docs", "b.md", SENTENCE, doc_id="b-v1")
    with open_desk() as desk:
        assert desk.ingest(tmp_path / "docs").stale_answers == 0
        record(desk, "a-v1:c0")
        record(desk, "a-v1:c0")
        record(desk, "b-v1:c0")
        write_source(tmp_path / "docs", "a2.md", "Other.", doc_id="a-v2", version="v2")
        (tmp_path / "docs" / "b.md").unlink()
        rehearsed = desk.ingest(tmp_path / "docs", prune=True, prune_limit=1, dry_run=True)
        assert (rehearsed.stale_answers, stale_of(desk)) == (3, [])
        report = desk.ingest(tmp_path / "docs", prune=True, prune_limit=1)
        assert (report.superseded, report.withdrawn, report.stale_answers) == (("a-v1",), ("b-v1",), 3)
        assert desk.ingest(tmp_path / "docs").stale_answers == 0


def test_stale_answers_in_plain_sql(tmp_path: Path) -> None:
    """The view judges by SQLite's own clock and needs no extension."""
    path = tmp_path / "desk.db"
    with Desk.open(path, embedder="none") as desk:
        desk.update_document(make_source(SENTENCE, doc_id="shop-v1"))
        record(desk, "shop-v1:c0")
        desk.update_document(make_source("Bikes come back within 45 days.", doc_id="shop-v2", version="v2"))
    query = (
        "SELECT answer_id, question, old_doc_id, new_doc_id, old_version, new_version, why, cited_sentence, "
        "sentence_changed, line_start FROM stale_answers"
    )
    code = f"import json, sqlite3; print(json.dumps(sqlite3.connect({str(path)!r}).execute({query!r}).fetchall()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[1, "How long?", "shop-v1", "shop-v2", "1", "v2", "superseded", SENTENCE, 1, 8]]


def test_answers_are_forgotten_by_number_and_by_age() -> None:
    with open_desk(sources=[make_source(SENTENCE, doc_id="shop-v1")]) as desk:
        for _ in range(4):
            record(desk, "shop-v1:c0")
        assert desk.forget([1, 3, 99]) == 2
        assert [answer.answer_id for answer in desk.answers()] == [4, 2]
        assert desk.forget(before="2026-06-01") == 0
        assert desk.forget(before="2026-06-02") == 2
        with desk.store.read() as snapshot:
            for table in ("answers", "answer_hits", "answer_claims", "answer_citations"):
                assert snapshot.connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0
        assert record(desk, "shop-v1:c0") == 5, "a number is never used again"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((), {}, "say which answers to forget"),
        (([0],), {}, "answer_ids must be a whole number of at least 1"),
        ((), {"before": "yesterday"}, "before: not an ISO date"),
    ],
)
def test_nonsense_to_forget_is_named(arguments: tuple, options: dict, message: str) -> None:
    with open_desk() as desk, pytest.raises(ValueError, match=message):
        desk.forget(*arguments, **options)


def test_a_desk_opened_for_reading_forgets_nothing(tmp_path: Path) -> None:
    with open_desk(tmp_path / "desk.db"):
        pass
    with Desk.open(tmp_path / "desk.db", read_only=True) as desk, pytest.raises(ReadOnlyDesk):
        desk.forget([1])


def test_a_forgotten_question_is_no_longer_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source(SENTENCE, doc_id="shop-v1")]) as desk:
        secret = "XYZZYSECRET"
        for number in range(40):
            record(desk, "shop-v1:c0", secret + "x" * number * 20)
        assert desk.forget(range(1, 41)) == 40
    # Closing the last connection empties the write-ahead log into the file.
    assert secret.encode() not in path.read_bytes()
