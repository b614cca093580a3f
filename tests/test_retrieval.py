"""Search: any text is a query, filters are inside, every part of a score is exact and named."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

import numpy as np
import pytest
from builders import Clock, found, make_source, open_desk
from hypothesis import given
from hypothesis import strategies as st

from evidencedesk import BM25, CallableEmbedder, Desk
from evidencedesk.records import Chunk, Location
from evidencedesk.retrieval import instant, label, reciprocal_rank_fusion, scaled, weighted_sum

ODD_QUERIES = [
    "state-of-the-art", "a:b", 'an "unclosed quote', "AND", "OR", "NEAR(a b)", "don't", "C++", "*", "(", "^x", "{title}: x",
    "-foo", "x\0y", "%_", "'; DROP TABLE documents; --", "word " * 2000, "😀", "…?!", "\u202e", "\ud7ff", "১", "।", " ",
]  # fmt: skip


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("query", ["", *ODD_QUERIES])
def test_any_text_is_a_legal_query(query: str, mode: str) -> None:
    """BR-33 and BR-39: never an exception, and what holds no word says so instead of ranking at random."""
    with open_desk(sources=[make_source("Tables drop a foo.")], embedder="toy") as desk:
        hits = desk.search(query, mode=mode)
        if not any(c.isalnum() for c in query):
            assert (len(hits), hits.reason) == (0, "no_terms")


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("as_of", [None, "2026-06-01"])
def test_a_hit_says_what_share_of_the_questions_idf_weight_it_holds(mode: str, as_of: str | None) -> None:
    bodies = ["Red bike.", "Blue bike.", "Red helmet."]
    sources = [make_source(body, doc_id=f"d{n}-v1", title="", heading=None) for n, body in enumerate(bodies)]
    with open_desk(sources=sources, embedder="toy") as desk:
        desk_bm25 = BM25(desk)
        red, bike, scooter = (desk_bm25.idf(word) for word in ("red", "bike", "scooter"))
        share_of = {hit.chunk.doc_id: hit.idf_share for hit in desk.search("red bike scooter", mode=mode, as_of=as_of)}
    total = red + bike + scooter
    assert share_of == pytest.approx(
        {"d0-v1": (red + bike) / total, "d1-v1": bike / total, "d2-v1": red / total}, rel=1e-12
    )


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_a_hit_says_whether_it_is_in_another_script_than_the_question(mode: str) -> None:
    sources = [
        make_source("RD2-24 leaks.", doc_id="en-v1"),
        make_source("RD2-24 ফুটো।", doc_id="bn-v1-bn", lang="bn"),
        make_source("RD2-24.", doc_id="un-v1", lang="und"),
    ]
    with open_desk(sources=sources, embedder="toy") as desk:
        foreign = {hit.chunk.lang: hit.foreign for hit in desk.search("Does RD2-24 leak?", mode=mode)}
    assert foreign == {"en": False, "bn": True, "und": False}


@pytest.mark.parametrize(
    "literal",
    [
        "38.101",
        "TODO: fix the pump",
        "v2.1.3",
        "ISO-9001:2015",
        "foo_bar",
        "user@example.org",
        "/etc/hosts",
        "RD2-24",
        "5,120",
    ],
)
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
def test_a_literal_finds_its_document_first(literal: str, mode: str) -> None:
    """BR-34."""
    bodies = [
        f"The entry is {literal} here.",
        "38 and 101, 2 1 3, ISO 2015.",
        "Fix the bar, user: org, hosts etc.",
        "RD2 or 24? 5 and 120.",
    ]
    sources = [make_source(body, doc_id=f"d{n}-v1") for n, body in enumerate(bodies)]
    with open_desk(sources=sources, embedder="toy") as desk:
        assert found(desk, literal, mode=mode)[0] == "d0-v1:c0"


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "5", None])
def test_nonsense_for_k_is_named(k: object) -> None:
    """BR-10."""
    with open_desk(sources=[make_source()]) as desk, pytest.raises(ValueError, match="k must be a whole number"):
        desk.search("bikes", k=k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fuzzy"}, "mode must be one of hybrid, keyword, vector, not 'fuzzy'"),
        ({"fusion": "max"}, "fusion must be one of weighted, rrf"),
        ({"as_of": "15/01/2024"}, "as_of: not an ISO date"),
        ({"as_of": 2024}, "as_of must be"),
    ],
)
def test_nonsense_for_the_other_parameters_is_named(options: dict[str, object], message: str) -> None:
    with open_desk(sources=[make_source()]) as desk, pytest.raises(ValueError, match=message):
        desk.search("bikes", **options)


@pytest.mark.parametrize("mode", ["keyword", "hybrid", "vector"])
def test_an_empty_result_says_why(mode: str) -> None:
    """BR-36: nothing stored, nothing in force, nothing that passes or matches."""
    clock = Clock()
    with open_desk(embedder="toy", clock=clock) as desk:
        assert desk.search("bikes", mode=mode).reason == "nothing_in_force"
        desk.update_document(make_source(effective_from="2026-07-01"))
        assert desk.search("bikes", mode=mode).reason == "nothing_in_force"
        clock.advance(days=60)
        assert desk.search("bikes", mode=mode).reason is None
        assert desk.search("bikes", mode=mode, lang="fr").reason == "nothing_matches"
        assert desk.search("bikes", mode=mode, family="none").reason == "nothing_matches"
        assert desk.search("bikes", mode=mode, as_of="2020-01-01").reason == "nothing_in_force"
    with open_desk(sources=[make_source()]) as desk:
        assert desk.search("zebra", mode="keyword").reason == "nothing_matches"


def test_a_plain_date_means_the_last_instant_of_its_day() -> None:
    end = datetime(2024, 1, 15, 23, 59, 59, 999999, tzinfo=UTC)
    assert instant("2024-01-15") == instant(date(2024, 1, 15)) == end
    assert (
        instant(datetime.fromisoformat("2024-01-15T10:00"))
        == instant("2024-01-15T10:00")
        == datetime(2024, 1, 15, 10, tzinfo=UTC)
    )


def test_a_search_as_of_a_day_finds_what_was_in_force_then() -> None:
    sources = [
        make_source(f"Bikes, text {year}.", doc_id=f"rule-v{n}", effective_from=f"{year}-03-01") for n, year in enumerate([2021, 2022, 2023], 1)
    ]  # fmt: skip
    with open_desk(sources=sources, embedder="toy") as desk:
        for mode in ("keyword", "vector", "hybrid"):
            assert found(desk, "bikes", mode=mode, as_of="2021-02-28") == []
            assert found(desk, "bikes", mode=mode, as_of="2021-03-01") == ["rule-v1:c0"]
            assert found(desk, "bikes", mode=mode, as_of="2022-02-28") == ["rule-v1:c0"]
            assert found(desk, "bikes", mode=mode, as_of="2022-03-01T00:00:00Z") == ["rule-v2:c0"]
            assert found(desk, "bikes", mode=mode) == ["rule-v3:c0"]


def test_the_clock_alone_never_lets_an_outdated_text_answer() -> None:
    """No write has happened since; reads know that something has come due."""
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    sources = [
        make_source("Bikes, old.", doc_id="rule-v1", effective_from="2025-01-01"),
        make_source("Bikes, new.", doc_id="rule-v2", effective_from="2026-02-01"),
        make_source("Bikes, sale.", doc_id="sale-v1", effective_from="2025-01-01", effective_to="2026-02-01"),
    ]
    with open_desk(sources=sources, clock=clock, embedder="toy") as desk:
        assert found(desk, "bikes") == ["rule-v1:c0", "sale-v1:c0"]
        clock.advance(days=45)
        for mode in ("keyword", "vector", "hybrid"):
            assert found(desk, "bikes", mode=mode) == ["rule-v2:c0"]
        changes = {(c.doc_id, c.before, c.after) for c in desk.promote()}
        assert changes == {
            ("rule-v1", "current", "superseded"), ("rule-v2", "scheduled", "current"), ("sale-v1", "current", "expired"),
        }  # fmt: skip
        assert found(desk, "bikes") == ["rule-v2:c0"]
        assert desk.promote() == ()
        assert desk.check().ok


def test_every_write_first_applies_what_has_come_due() -> None:
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    sources = [make_source(doc_id="rule-v1"), make_source("New.", doc_id="rule-v2", effective_from="2026-02-01")]
    with open_desk(sources=sources, clock=clock) as desk:
        clock.advance(days=45)
        report = desk.update_document(make_source("Other.", doc_id="other-v1"))
        assert report.superseded == ("rule-v1",)
        assert [d.doc_id for d in desk.documents(status="current")] == ["other-v1", "rule-v2"]


def test_a_language_takes_its_regions() -> None:
    """RFC 4647, basic filtering."""
    sources = [make_source(doc_id=f"d{n}-v1", lang=lang) for n, lang in enumerate(["en", "en-GB", "enm", "und"])]
    with open_desk(sources=sources) as desk:
        assert found(desk, "bikes", lang="en") == ["d0-v1:c0", "d1-v1:c0"]
        assert found(desk, "bikes", lang="EN-gb") == ["d1-v1:c0"]
        assert found(desk, "bikes", lang="und") == ["d3-v1:c0"]


def test_each_part_of_a_hit_is_exact_whichever_leg_found_it() -> None:
    """BR-42: bm25, cosine, both ranks and the fused score stand apart under their own names, whatever the mode."""
    sources = [
        make_source(f"Text {n} about {word}.", doc_id=f"d{n:02d}-v1")
        for n, word in enumerate(["bikes", "helmets", "bells"] * 5)
    ]
    with open_desk(sources=sources, embedder="toy") as desk:
        keyword = {hit.chunk.id: hit for hit in desk.search("text about helmets", mode="keyword", k=100)}
        vector = {hit.chunk.id: hit for hit in desk.search("text about helmets", mode="vector", k=100)}
        hybrid = desk.search("text about helmets", k=100)
        assert len(hybrid) == 15
        for hit in hybrid:
            assert hit.cosine == vector[hit.chunk.id].cosine
            assert hit.bm25 == vector[hit.chunk.id].bm25 == BM25(desk).score("text about helmets", hit.chunk.id)
            assert hit.keyword_rank == keyword[hit.chunk.id].keyword_rank
            assert hit.vector_rank == vector[hit.chunk.id].vector_rank
            assert keyword[hit.chunk.id].cosine is None
        assert [hit.score for hit in hybrid] == sorted((hit.score for hit in hybrid), reverse=True)
        assert all(0 <= hit.score <= 1 for hit in hybrid)


def by_word(texts: Sequence[str]) -> np.ndarray:
    """A tiny meaning: what is about returning, in either language, points one way."""
    return np.array([[1.0, 0.1] if "return" in t or "ফেরত" in t else [0.1, 1.0] for t in texts], dtype=np.float32)


def test_common_bangla_words_do_not_bury_the_english_text_that_answers() -> None:
    """The lexical part counts for chunks in the question's language only, save codes and numbers."""
    sources = [
        make_source("You may return it. Model RD2-24.", doc_id="answer-v1"),
        make_source("বাইক কেনার পর কী করতে হবে তা এখানে আছে।", doc_id="noise-v1-bn", lang="bn", heading="বাইক", title="বাইক"),
        make_source("Another thing about bikes.", doc_id="other-v1"),
    ]
    embedder = CallableEmbedder(by_word, name="x", dimension=2)
    with open_desk(sources=sources, embedder=embedder) as desk:
        assert found(desk, "বাইক ফেরত")[0] == "answer-v1:c0"
        code = desk.search("RD2-24 ফেরত")[0]
        assert (code.chunk.id, code.score) == (
            "answer-v1:c0",
            1.0,
        )  # best in both parts: the code counts in English too


def test_an_embedder_that_does_not_know_the_language_is_left_out() -> None:
    embedder = CallableEmbedder(by_word, name="english-only", dimension=2, languages=frozenset({"en"}))
    with open_desk(sources=[make_source("বাইক ফেরত।", lang="bn", doc_id="a-v1-bn")], embedder=embedder) as desk:
        hits = desk.search("বাইক")
        assert (hits.mode, len(hits)) == ("keyword", 1)
        assert "english-only does not know the question's language" in hits.notes[0]
        assert desk.search("bike", mode="vector").mode == "vector"


def test_hybrid_without_an_embedder_is_keyword_search_and_says_so() -> None:
    with open_desk(sources=[make_source()]) as desk:
        hits = desk.search("bikes")
        assert (hits.mode, hits.notes) == ("keyword", ("this desk has no embedder; searched by keyword",))


def test_agreement_beats_one_first_place_in_rank_fusion() -> None:
    """BR-44: with the constant 60, ranks 3 and 3 win against a first place alone."""
    fused = reciprocal_rank_fusion([1, 2], [{1: 1, 2: 3}, {2: 3}])
    assert fused == {1: 1 / 61, 2: 2 / 63}
    with open_desk(sources=[make_source()], embedder="toy") as desk:
        (hit,) = desk.search("bikes", fusion="rrf")
        assert hit.score == 2 / 61


@given(st.dictionaries(st.integers(), st.floats(-10, 10), max_size=6))
def test_scaling_keeps_the_order_and_stays_within_bounds(values: dict[int, float]) -> None:
    result = scaled(values)
    assert all(0 <= value <= 1 for value in result.values())
    assert all(result[a] <= result[b] for a in values for b in values if values[a] <= values[b])


def test_the_weighted_sum_by_hand() -> None:
    assert weighted_sum([1, 2, 3], {1: 2.0, 2: 0.0, 3: 1.0}, {1: 0.8, 2: 0.9, 3: 0.8}) == {1: 0.4, 2: 0.6, 3: 0.2}


def test_a_chunk_in_another_script_is_judged_by_its_raised_cosine_in_both_parts() -> None:
    """Key 2 is foreign: its cosine counts as 0.9, the highest, and nine tenths of that stand in for its BM25."""
    lexical, cosine = {1: 2.0}, {1: 0.8, 2: 0.8, 3: 0.7}
    fused = weighted_sum([1, 2, 3], lexical, cosine, {2}, 0.4, 0.1)
    assert fused == pytest.approx({1: 0.4 + 0.6 * 0.5, 2: 0.4 * 0.9 + 0.6, 3: 0.0})
    assert weighted_sum([1, 2, 3], lexical, cosine, {2}, 0.4, None) == weighted_sum([1, 2, 3], lexical, cosine)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (
            Location("r.md", "Returning a bike", 11, 12),
            "Returns policy (Returning a bike, lines 11-12) [kc-returns-v3:c0]",
        ),
        (
            Location("r.md", "How refunds are paid", 18, 18),
            "Returns policy (How refunds are paid, line 18) [kc-returns-v3:c0]",
        ),
        (Location("r.md", "", 3, 9), "Returns policy (lines 3-9) [kc-returns-v3:c0]"),
    ],
)
def test_labels(location: Location, expected: str) -> None:
    chunk = Chunk("kc-returns-v3:c0", "kc-returns-v3", "v3", "en", "current", "", "", location)
    assert label(chunk, "Returns policy") == expected


def test_hits_are_a_sequence(desk_with_three: Desk) -> None:
    hits = desk_with_three.search("bikes")
    assert len(hits) == 3
    assert [hit.chunk.id for hit in hits] == [hits[n].chunk.id for n in range(3)]
    assert hits[:2] == hits.hits[:2]
    assert bool(hits)
    assert not desk_with_three.search("")


@pytest.fixture
def desk_with_three() -> Desk:
    with open_desk(sources=[make_source(doc_id=f"d{n}-v1") for n in range(3)]) as desk:
        yield desk


@pytest.mark.parametrize("k", [10**30, np.int64(3)])
def test_any_whole_number_is_a_legal_k(k: int) -> None:
    with open_desk(sources=[make_source()], embedder="toy") as desk:
        for mode in ("keyword", "vector", "hybrid"):
            assert len(desk.search("bikes", mode=mode, k=k)) == 1


def test_text_that_utf8_cannot_hold_is_no_error() -> None:
    from evidencedesk.errors import NotFound

    with open_desk(sources=[make_source()], embedder="toy") as desk:
        assert desk.search("bikes \ud800", lang="\ud800").reason == "nothing_matches"
        assert desk.search("bikes", family="\ud800").reason == "nothing_matches"
        for look_up in (desk.document, desk.history, desk.chunk):
            with pytest.raises(NotFound):
                look_up("\ud800")


@pytest.mark.parametrize(
    "name", ["x", "shop-v1", "shop-v1:c", "shop-v1:c01", "shop-v1:c-1", "shop-v1:c" + "9" * 5000, ":c0"]
)
def test_what_is_no_chunk_is_not_found(name: str) -> None:
    from evidencedesk.errors import NotFound

    with open_desk(sources=[make_source()]) as desk, pytest.raises(NotFound, match="no chunk"):
        desk.chunk(name)


@pytest.mark.parametrize("vector", [[np.nan, 1.0], [1.0, 0.0, 0.0]])
def test_a_bad_vector_of_the_question_is_an_error_and_no_silent_keyword_search(vector: list[float]) -> None:
    from evidencedesk.errors import BadVectors

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([vector if text == "bikes?" else [1.0, 0.0] for text in texts], dtype=np.float32)

    with open_desk(sources=[make_source()], embedder=CallableEmbedder(embed, name="x", dimension=2)) as desk:
        with pytest.raises(BadVectors, match="the question"):
            desk.search("bikes?")


def test_a_vector_search_without_vectors_says_what_to_do() -> None:
    from evidencedesk.errors import NoVectors

    with open_desk(sources=[make_source()]) as desk, pytest.raises(NoVectors, match="--mode keyword"):
        desk.search("bikes", mode="vector")


def test_verbs_agree_with_search_on_what_is_in_force_now() -> None:
    """While something is due and nobody has written, every verb has the status of its own instant."""
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    sources = [
        make_source("Old.", doc_id="rule-v1", effective_from="2025-01-01"),
        make_source("New.", doc_id="rule-v2", effective_from="2026-02-01"),
    ]
    with open_desk(sources=sources, clock=clock) as desk:
        clock.advance(days=45)
        assert desk.document("rule").doc_id == "rule-v2"
        assert [d.status for d in desk.documents()] == ["superseded", "current"]
        assert desk.chunk("rule-v1:c0").status == "superseded"
        assert desk.search("new")[0].chunk.status == "current"
        assert [(stale.doc_id, stale.problem) for stale in desk.staleness()] == [("rule-v1", "superseded")]


class ByLength:
    """A reranker that likes long texts."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked.append(len(texts))
        return [float(len(text)) for text in texts]


def test_a_hosts_reranker_orders_the_best_hits_anew() -> None:
    sources = [make_source("Bikes." + " More bikes." * n, doc_id=f"d{n}-v1") for n in range(6)]
    with open_desk(sources=sources, embedder="toy") as desk:
        reranker = ByLength()
        hits = desk.search("bikes", k=2, reranker=reranker)
        assert [hit.chunk.id for hit in hits] == ["d5-v1:c0", "d4-v1:c0"]
        assert [hit.rerank for hit in hits] == [len(hit.chunk.indexed_text) for hit in hits]
        plain = {hit.chunk.id: hit for hit in desk.search("bikes", k=6)}
        assert all(hit.score == plain[hit.chunk.id].score for hit in hits)
        assert len(desk.search("bikes", k=2, reranker=reranker, rerank_depth=3)) == 2
        assert reranker.asked == [6, 3]
        assert desk.search("", reranker=reranker).reason == "no_terms"


@pytest.mark.parametrize("scores", [[], [1.0, 2.0], [float("nan")], ["x"], None])
def test_a_reranker_that_fails_is_a_typed_error(scores: object) -> None:
    from evidencedesk.errors import RerankerError

    class Broken:
        def rerank(self, question: str, texts: Sequence[str]) -> object:
            return scores

    with open_desk(sources=[make_source()]) as desk, pytest.raises(RerankerError, match="reranker failed"):
        desk.search("bikes", reranker=Broken())


class Bilingual:
    """Two languages in one space, the other one a little farther away, as multilingual models have it."""

    name, dimension, fingerprint, languages, language_gap = "bilingual", 2, "1", None, 0.05

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[1.0, 0.62] if "return" in t else [1.0, 0.5] if "ফেরত" in t else [1.0, 0.9] for t in texts])

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([[1.0, 0.4] for _ in texts])


def test_a_text_in_another_language_answers_unless_it_stands_in_the_questions_own() -> None:
    english = make_source("You may return it.", doc_id="returns-v1")
    bangla = make_source("এটি ফেরত দেওয়া যায়।", doc_id="returns-v1-bn", lang="bn")
    noise = make_source("বাইক কেনার নিয়ম।", doc_id="noise-v1-bn", lang="bn")
    question = "বাইক বদলানোর নিয়ম কী?"
    with open_desk(sources=[english, noise], embedder=Bilingual()) as desk:
        assert found(desk, question)[0] == "returns-v1:c0"
    with open_desk(sources=[english, bangla, noise], embedder=Bilingual()) as desk:
        ranked = found(desk, question)
        assert ranked.index("returns-v1-bn:c0") < ranked.index("returns-v1:c0")
