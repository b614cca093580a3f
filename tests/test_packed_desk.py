"""A desk whose two indexes are packed: what is not committed is searched as it is, and `compact` mends both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from builders import make_source, open_desk

from evidencedesk import Desk, RagCase, ToyEmbedder, bm25, vectors
from evidencedesk.bm25 import segments
from evidencedesk.errors import IndexOutOfStep
from evidencedesk.evaluation.gate import Gate
from evidencedesk.records import SourceDocument
from evidencedesk.store import Snapshot
from evidencedesk.text import tokens
from evidencedesk.vectors import memory, search, upkeep

COLOURS = ["red", "blue", "green", "amber", "violet", "ochre", "teal", "ivory", "coral", "khaki"]
PARTS = ["saddle", "bell", "chain", "spoke", "tyre", "pedal", "brake", "lamp", "basket", "fender", "axle", "helmet"]
MODES = ("keyword", "vector", "hybrid")
OLD = "You can return a new bike within 30 days of delivery."
NEW = "Every umbrella that leaks is repaired by the workshop without charge."
ABOUT_OLD = "Within how many days can you return a new bike?"
ABOUT_NEW = "Is an umbrella that leaks repaired without charge?"


def rule(text: str, **front: object) -> SourceDocument:
    return make_source(text, **{"doc_id": "shop-v1", "heading": "Rule", **front})


def case(question: str) -> RagCase:
    return RagCase(id="rule", question=question, expected_doc_ids=("shop",), answerable=True)


@pytest.fixture(autouse=True)
def packed_from_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "DELTA_CHUNKS", 6)
    monkeypatch.setattr(upkeep, "FEWEST", 100)
    monkeypatch.setattr(upkeep, "BLOCK", 32)
    monkeypatch.setattr(memory, "NARROW", 20)
    monkeypatch.setattr(search, "_CODED_FOR_EACH", 1)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Some 120 chunks of other documents and the rule, all packed; searched once, so that everything is in memory."""
    others = [
        make_source(
            "\n\n".join(f"## The {part}\n\nOur {colour} {part} is kept in the {colour} store." for part in PARTS),
            doc_id=f"{colour}-v1", heading=None, path=f"{colour}.md",
        )
        for colour in COLOURS
    ]  # fmt: skip
    with open_desk(tmp_path / "desk.db", [*others, rule(OLD)], embedder="toy") as opened:
        opened.compact()
        assert answers(opened, ABOUT_OLD) == [OLD] * 3
        with opened.store.read() as snapshot:
            assert_indexes_are_packed(snapshot)
        yield opened


def assert_indexes_are_packed(snapshot: Snapshot) -> None:
    assert sum(segment.chunk_count for segment in segments.segments(snapshot.connection)) > 100
    picture = memory.picture_of(snapshot, snapshot.settings.embedder_key)
    assert picture is not None
    assert picture.selection(snapshot.connection, snapshot.scope()).eligible > 100


def answers(desk: Desk, question: str) -> list[str]:
    """The best hit's text in every mode, empty where nothing is found."""
    return ["".join(hit.chunk.text for hit in desk.search(question, mode=mode, k=1)) for mode in MODES]


def ranks(desk: Desk, run_id: int | None) -> tuple[int | None, ...]:
    """Where each leg found the rule in the only case of a run."""
    with desk.store.read() as snapshot:
        query = "SELECT keyword_rank, vector_rank, hybrid_rank FROM run_cases WHERE run_key = ?"
        return tuple(snapshot.connection.exec_driver_sql(query, (run_id,)).one())


@pytest.mark.parametrize("front", [{}, {"doc_id": "shop-v2", "version": "v2"}], ids=["corrected", "superseded"])
def test_a_change_is_judged_by_its_new_text_in_every_leg(desk: Desk, front: dict[str, object]) -> None:
    """The cases are asked of the state that the change would make true, though no other reader sees it yet."""
    report = desk.update_document(rule(NEW, **front), gate=Gate((case(ABOUT_NEW),)))
    assert report.gate.accepted
    assert ranks(desk, report.gate.run_id) == (1, 1, 1)
    assert answers(desk, ABOUT_NEW) == [NEW] * 3
    assert OLD not in answers(desk, ABOUT_OLD)
    assert desk.check().problems == ()


@pytest.mark.parametrize("front", [{}, {"doc_id": "shop-v2", "version": "v2"}], ids=["corrected", "superseded"])
def test_after_a_refusal_the_former_state_answers_from_every_cache(desk: Desk, front: dict[str, object]) -> None:
    before = [desk.search(question, mode=mode, k=20) for question in (ABOUT_OLD, ABOUT_NEW) for mode in MODES]
    for gate in (Gate((case(ABOUT_OLD),)), Gate((case(ABOUT_NEW),), fail_under={"turned_away": 1})):
        report = desk.update_document(rule(NEW, **front), gate=gate)
        assert not report.gate.accepted
        found_by = ranks(desk, report.gate.run_id)
        assert found_by == ((1, 1, 1) if gate.fail_under else (None, *found_by[1:]))
        after = [desk.search(question, mode=mode, k=20) for question in (ABOUT_OLD, ABOUT_NEW) for mode in MODES]
        assert after == before
        assert desk.check().problems == ()
    desk.update_document(rule(NEW, **front))
    assert answers(desk, ABOUT_NEW) == [NEW] * 3


def test_what_a_failed_part_of_a_transaction_wrote_is_found_no_more(desk: Desk) -> None:
    """A part that is undone takes what was remembered of it along; the rest of the transaction goes on."""
    question = ToyEmbedder().embed_queries([ABOUT_OLD])[0]
    question /= np.linalg.norm(question)
    with desk.store.write("testing") as transaction:
        inside = desk.store.within(transaction)
        key = transaction.chunk_key("shop-v1:c0")

        def best() -> list[int]:
            """The best chunk's key of either leg."""
            with inside.read() as snapshot:
                scope, embedder = snapshot.scope(), snapshot.settings.embedder_key
                lexical = bm25.best(snapshot, tokens(ABOUT_OLD), scope, 1)
                return [found for found, _ in [*lexical, *vectors.nearest(snapshot, embedder, scope, question, 1)]]

        assert best() == [key, key]
        with pytest.raises(RuntimeError, match="stop"), inside.write("withdrawing") as part:  # noqa: PT012
            document = part.stored("shop-v1")
            bm25.leave_force(part.connection, document.doc_key)
            part.withdraw(document.doc_key, "testing", pruned=False)
            assert key not in best()
            raise RuntimeError("stop")
        assert best() == [key, key]
    assert answers(desk, ABOUT_OLD) == [OLD] * 3
    assert desk.check().problems == ()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE lexical_marks SET in_force = removed", "marks differ"),
        ("DELETE FROM lexical_packed WHERE term_key % 2", "postings differ from the text"),
        ("UPDATE lexical_terms SET chunks_in_force = 1", "BM25 term differs"),
        ("DELETE FROM vector_codes WHERE first_key > 40", "vector codes differ"),
        ("UPDATE vector_rosters SET chunks = zeroblob(length(chunks))", "vector codes differ"),
        ("UPDATE vectors SET embedding = zeroblob(8) WHERE vector_key = 50", "vector damaged"),
    ],
)
def test_check_names_what_is_damaged_in_either_index_and_upkeep_mends_it(desk: Desk, damage: str, problem: str) -> None:
    before = [desk.search(ABOUT_OLD, mode=mode, k=20) for mode in MODES]
    with desk.store.database.write("testing") as connection:
        connection.exec_driver_sql(damage)
    assert problem in {found.kind for found in desk.check().problems}
    desk.compact()
    desk.reembed("toy")
    assert desk.check().problems == ()
    with desk.store.read() as snapshot:
        assert_indexes_are_packed(snapshot)
    assert [desk.search(ABOUT_OLD, mode=mode, k=20) for mode in MODES] == before


def test_another_embedder_takes_its_codes_and_leaves_the_postings(desk: Desk) -> None:
    before = desk.search(ABOUT_OLD, mode="keyword", k=20)
    desk.reembed(ToyEmbedder(64))
    assert answers(desk, ABOUT_OLD) == [OLD] * 3
    assert [(hit.chunk, hit.score) for hit in desk.search(ABOUT_OLD, mode="keyword", k=20)] == [
        (hit.chunk, hit.score) for hit in before
    ]
    assert desk.check().problems == ()
    with desk.store.read() as snapshot:
        assert_indexes_are_packed(snapshot)


# ---------------------------------------------------------------- rows changed by hand

WITHDRAWN = "status = 'withdrawn', withdrawn_at = '2026-06-01 00:00:00.000000', withdrawn_reason = 'wrong'"


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("UPDATE documents SET status = 'superseded' WHERE doc_id = 'shop-v1'", OLD),
        ("UPDATE documents SET status = 'expired' WHERE doc_id = 'shop-v1'", OLD),
        ("UPDATE documents SET status = 'scheduled' WHERE doc_id = 'shop-v1'", OLD),
        (f"UPDATE documents SET {WITHDRAWN} WHERE doc_id = 'shop-v1'", None),
        ("DELETE FROM documents WHERE doc_id = 'shop-v1'", None),
        ("DELETE FROM chunks WHERE doc_key = (SELECT doc_key FROM documents WHERE doc_id = 'shop-v1')", None),
    ],
)
def test_text_that_was_taken_out_of_force_by_hand_is_never_a_hit(desk: Desk, statement: str, after: str | None) -> None:
    """The indexes do not follow such a row, so the search refuses; `check` names it, and `compact` mends it.

    In the process that searched before and in a new one. What the rule then says of the document holds: a status is
    derived, a withdrawal is not.
    """
    with desk.engine.connect() as sql:
        sql.connection.driver_connection.execute(statement)
    with open_desk(desk.store.database.path, embedder="toy") as again:
        for opened in (desk, again):
            for mode in MODES:
                with pytest.raises(IndexOutOfStep, match=r"(shop-v1:c0, which is|which is gone).*evidencedesk compact"):
                    opened.search(ABOUT_OLD, mode=mode, k=1)
            with pytest.raises(IndexOutOfStep):
                opened.ask(ABOUT_OLD)
            kinds = {problem.kind for problem in opened.check().problems}
            assert {"marks differ", "BM25 totals differ", "vector codes differ"} <= kinds
        again.compact()
        for opened in (desk, again):
            # A document whose chunks are gone stays damaged: only a backup has its text.
            assert {problem.kind for problem in opened.check().problems} <= {"chunk missing"}
            for answer in answers(opened, ABOUT_OLD):
                assert (answer == OLD) == (after == OLD)


def test_a_document_put_into_force_by_hand_is_named_and_the_rule_takes_it_out_again(desk: Desk) -> None:
    desk.update_document(rule(NEW, doc_id="shop-v2", version="v2"))
    desk.compact()
    with desk.engine.connect() as sql:
        sql.connection.driver_connection.execute("DROP INDEX ux_documents_one_current")
        sql.connection.driver_connection.execute("UPDATE documents SET status = 'current' WHERE doc_id = 'shop-v1'")
    kinds = {problem.kind for problem in desk.check().problems}
    assert {"outdated but current", "marks differ", "BM25 totals differ", "vector codes differ"} <= kinds
    desk.compact()
    assert desk.check().problems == ()
    assert OLD not in answers(desk, ABOUT_OLD)


@pytest.mark.parametrize("table", ["lexical_totals", "state"])
def test_a_table_whose_one_row_is_gone_is_named(desk: Desk, table: str) -> None:
    with desk.engine.connect() as sql:
        sql.connection.driver_connection.execute(f"DELETE FROM {table}")
    (problem,) = desk.check().problems
    assert (problem.kind, f"the row of {table} is gone" in problem.detail) == ("damaged", True)
    with pytest.raises(LookupError, match=f"the row of {table} is gone"):
        with open_desk(desk.store.database.path, embedder="toy") as again:
            again.search(ABOUT_OLD)


def test_compact_makes_the_totals_anew_though_their_row_is_gone(desk: Desk) -> None:
    with desk.engine.connect() as sql:
        sql.connection.driver_connection.execute("DELETE FROM lexical_totals")
    desk.compact()
    assert desk.check().problems == ()
    assert answers(desk, ABOUT_OLD) == [OLD] * 3
