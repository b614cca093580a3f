"""BM25: the hand figures, exact statistics of what is in force, and the laws that every collection obeys."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from builders import Clock, make_source, open_desk
from hypothesis import given, settings
from hypothesis import strategies as st

from evidencedesk import BM25, Desk
from evidencedesk import bm25 as bm25_module
from evidencedesk.bm25 import K1, B
from evidencedesk.errors import NotFound
from evidencedesk.text import tokens

BIKES = {"d1": "red bike", "d2": "blue bike", "d3": "red helmet"}


def test_figures_by_hand() -> None:
    ranking = BM25.over(BIKES)
    assert round(ranking.idf("red"), 4) == 0.4700
    assert round(ranking.score("red", "d1"), 4) == 0.2136
    assert ranking.score("red", "d3") == ranking.score("red", "d1")
    ((found, score),) = ranking.search("helmet")
    assert (found, round(score, 4)) == ("d3", 0.4458)


def test_the_parts_of_a_score_add_up_to_it() -> None:
    ranking = BM25.over(BIKES)
    parts = ranking.explain("a red helmet, please", "d3")
    assert set(parts) == {"red", "helmet"}
    assert (
        sum(parts.values()) == ranking.score("a red helmet, please", "d3") == dict(ranking.search("red helmet"))["d3"]
    )


def test_ties_are_broken_by_id_and_allowed_leaves_the_statistics_alone() -> None:
    ranking = BM25.over(BIKES)
    assert [name for name, _ in ranking.search("red")] == ["d1", "d3"]
    assert ranking.search("red", allowed=["d3"]) == [ranking.search("red")[1]]
    assert ranking.search("red", k=1) == ranking.search("red")[:1]


def test_what_is_not_there_is_said() -> None:
    ranking = BM25.over(BIKES)
    assert ranking.score("green", "d1") == 0.0
    assert ranking.search("green") == []
    assert ranking.search("the") == []
    with pytest.raises(NotFound, match="chunk 'd9'"):
        ranking.score("red", "d9")
    with pytest.raises(ValueError, match="no search term"):
        ranking.idf("the")
    with pytest.raises(ValueError, match="k must be"):
        ranking.search("red", k=0)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_match_scores_above_zero_in_the_smallest_collections(count: int) -> None:
    """BR-38: a term in one, in half and in all of a few texts."""
    ranking = BM25.over({f"d{n}": f"bike number{n}" + (" half" if n % 2 else "") for n in range(count)})
    assert len(ranking.search("bike")) == count
    assert all(score > 0 for _, score in ranking.search("bike half number0"))


@pytest.mark.parametrize("texts", [{}, {"d1": "—"}, {"d1": "the"}])
def test_nothing_indexed_is_no_error(texts: dict[str, str]) -> None:
    """BR-36 and BR-37: no division by a zero average."""
    ranking = BM25.over(texts)
    assert ranking.search("bike") == []
    assert ranking.idf("bike") >= 0


def reference(texts: dict[str, str], query: str) -> dict[str, float]:
    """The formula, written out over plain lists."""
    terms_of = {name: tokens(text) for name, text in texts.items()}
    average = sum(map(len, terms_of.values())) / len(texts)
    scores = {}
    for name, terms in terms_of.items():
        score = 0.0
        for term in sorted(set(tokens(query))):
            n = sum(term in others for others in terms_of.values())
            tf = terms.count(term)
            if tf:
                idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
                score += idf * tf / (tf + K1 * (1 - B + B * len(terms) / average))
        if score > 0:
            scores[name] = score
    return scores


words = st.lists(st.sampled_from(["red", "bike", "helmet", "RD2-24", "বাইক", "৩০", "the"]), max_size=8).map(" ".join)


@settings(max_examples=25, deadline=None)
@given(st.lists(words, min_size=1, max_size=6), words)
def test_every_score_is_the_formulas(texts: list[str], query: str) -> None:
    named = {f"d{n}": text for n, text in enumerate(texts)}
    expected = reference(named, query) if any(tokens(text) for text in texts) else {}
    assert dict(BM25.over(named).search(query, k=100)) == pytest.approx(expected, rel=1e-12)


def test_superseded_chunks_never_shift_todays_scores() -> None:
    """Statistics are those of what is in force: a hundred old versions change nothing."""
    rule = "Red bikes come back within thirty days."
    with open_desk(
        sources=[make_source(rule, doc_id="rule-v101"), make_source("Blue helmets.", doc_id="hat-v1")]
    ) as desk:
        before = desk.search("red bikes", mode="keyword")
        for number in range(1, 101):
            desk.update_document(make_source(f"Red red bikes, old text {number}.", doc_id=f"rule-v{number}"))
        assert desk.search("red bikes", mode="keyword") == before
        assert BM25(desk).idf("red") == math.log(1 + 1.5 / 1.5)


def test_statistics_can_be_read_in_sql() -> None:
    with open_desk(sources=[make_source("red bike", title="t", heading="h")]) as desk, desk.engine.connect() as sql:
        assert sql.exec_driver_sql('SELECT "N", total_length, avg_len, k1, b FROM bm25_stats').one() == (
            1,
            4,
            4.0,
            1.2,
            0.75,
        )
        assert sql.exec_driver_sql("SELECT term, n FROM bm25_terms ORDER BY term").all() == [
            ("bike", 1), ("h", 1), ("red", 1), ("t", 1),
        ]  # fmt: skip


def test_an_as_of_search_counts_what_was_in_force_then() -> None:
    """As-of scores equal those of a desk that only ever held that day's documents."""
    old = make_source("Red bikes, old.", doc_id="rule-v1", effective_from="2024-01-01")
    new = make_source("Blue bikes only, no red at all today.", doc_id="rule-v2", effective_from="2025-01-01")
    other = make_source("A helmet is red.", doc_id="hat-v1", effective_from="2023-01-01")
    with open_desk(sources=[old, new, other]) as desk, open_desk(sources=[old, other]) as of_that_day:
        then = [(hit.chunk.id, hit.score) for hit in desk.search("red bikes", mode="keyword", as_of="2024-06-01")]
        assert then == [(hit.chunk.id, hit.score) for hit in of_that_day.search("red bikes", mode="keyword")]


def test_filters_leave_statistics_alone() -> None:
    english, bangla = make_source("red bike"), make_source("red bike", doc_id="shop-v1-bn", lang="bn")
    with open_desk(sources=[english, bangla]) as desk:
        everything = {hit.chunk.id: hit.bm25 for hit in desk.search("red", mode="keyword")}
        (hit,) = desk.search("red", mode="keyword", lang="bn")
        assert everything[hit.chunk.id] == hit.bm25


def test_the_clock_alone_changes_what_bm25_counts() -> None:
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    sources = [
        make_source("red", doc_id="rule-v1", effective_from="2025-01-01"),
        make_source("blue", doc_id="rule-v2", effective_from="2026-02-01"),
    ]
    with open_desk(sources=sources, clock=clock) as desk:
        assert [name for name, _ in BM25(desk).search("red blue")] == ["rule-v1:c0"]
        clock.advance(days=60)
        assert [name for name, _ in BM25(desk).search("red blue")] == ["rule-v2:c0"]
        desk.promote()
        assert [name for name, _ in BM25(desk).search("red blue")] == ["rule-v2:c0"]


def terms_in(desk: Desk, table: str) -> set[str]:
    with desk.engine.connect() as sql:
        return {row[0] for row in sql.exec_driver_sql(f"SELECT term FROM {table}")}


def test_removed_words_leave_the_vocabulary() -> None:
    """At once what counts; from the file with the next `compact`."""
    with open_desk(sources=[make_source("secret bike")]) as desk:
        desk.update_document(make_source("public bike"))
        assert terms_in(desk, "bm25_terms") == {"rule", "shop", "public", "bike"}
        desk.compact()
        assert terms_in(desk, "lexical_terms") == {"rule", "shop", "public", "bike"}
        with desk.store.read() as snapshot:
            assert bm25_module.kept_statistics(snapshot.connection) == bm25_module.rebuilt_statistics(
                snapshot.connection
            )


def test_another_implementation_gives_the_same_scores() -> None:
    """bm25s computes the same formula under the name `lucene`, in single precision."""
    bm25s = pytest.importorskip("bm25s")
    texts = ["red bike and red bell", "blue bike", "a helmet is red", "brakes, brakes and a bell for the bike"]
    other = bm25s.BM25(method="lucene", k1=K1, b=B, idf_method="lucene")
    other.index([tokens(text) for text in texts], show_progress=False)
    for query in ("red bike", "bell", "brakes helmet"):
        ours = dict(BM25.over({str(n): text for n, text in enumerate(texts)}).search(query))
        assert [ours.get(str(n), 0.0) for n in range(4)] == pytest.approx(other.get_scores(tokens(query)), rel=1e-5)
