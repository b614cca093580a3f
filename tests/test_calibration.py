"""A guard that is fitted on cases: what it reads, what it promises, whom it judges for, and when it can promise nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import MOMENT, make_source, open_desk, write_source
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import trust
from evidencedesk import CallableEmbedder, Desk, RagCase, ToyEmbedder
from evidencedesk.errors import CalibrationOutdated, EmbedderMismatch
from evidencedesk.evaluation.calibration import CalibrationReport, calibrate, fitted
from evidencedesk.evaluation.logistic import folds_of
from evidencedesk.evaluation.metrics import Rate
from evidencedesk.evaluation.report import CaseResult, EvaluationReport, guarded_run
from evidencedesk.guard import KEYWORD_THRESHOLDS, assess, explain, kept
from evidencedesk.guard.calibrated import IDF_MARGIN_BOUND, SIGNALS, probability, signals_of
from evidencedesk.records import CalibratedGuard, Chunk, EmbedderIdentity, Hit, Hits, Location

CHECKOUT = Path(__file__).resolve().parent.parent
CORPUS, CASES = CHECKOUT / "corpus", CHECKOUT / "data" / "rag_cases.jsonl"
TOY = EmbedderIdentity("toy", 256, "1")


def make_hit(cosine: float | None = 0.9, doc_id: str = "shop-v1", place: int = 0, **given: object) -> Hit:
    chunk = Chunk(
        id=f"{doc_id}:c{place}", doc_id=doc_id, version=given.pop("version", "1"), lang="en", status="current",
        text="Bikes are red.", indexed_text="Bikes are red.", location=Location("shop.md", "Rule", 1, 1),
        family=given.pop("family", doc_id.rpartition("-")[0]),
    )  # fmt: skip
    parts = {"score": 1.0, "bm25": 1.0, "keyword_rank": 1, "vector_rank": 1, "idf_share": 1.0}
    return Hit(chunk=chunk, label="", cosine=cosine, **{**parts, **given})


def make_result(
    name: str, *hits: Hit, right: bool = True, answerable: bool | None = None, outcome: str = "right"
) -> CaseResult:
    """A case whose first hit is of the expected document, or is not."""
    answerable = right if answerable is None else answerable
    expected = (hits[0].chunk.doc_id if right and hits else "other-v1",) if answerable else ()
    candidates = Hits(hits, None if hits else "nothing_matches", "hybrid") if outcome != "error" else None
    return CaseResult(
        name, f"{name}?", (), answerable, None, expected, {}, candidates, "ok", "", (), outcome, model_called=False
    )  # type: ignore[arg-type]  # fmt: skip


def make_report(results: Sequence[CaseResult], embedder: EmbedderIdentity | None = TOY) -> EvaluationReport:
    return EvaluationReport(
        run_id=None, started_at=MOMENT, cases_hash="0123456789abcdef", k=10, embedder=embedder, values=None,
        generation="g", documents_in_force=1, code_version="1", model="quoting", checker="rules", retrieval=(),
        sweep=(), guarded=guarded_run(results), separation="", cases=tuple(results),
    )  # fmt: skip


def separable(right: int, wrong: int) -> EvaluationReport:
    """Right first candidates have cosines of 0.8 to 0.9, the others of 0.4 to 0.5."""
    results = [make_result(f"right {n}", make_hit(0.8 + 0.1 * n / right)) for n in range(right)]
    results += [make_result(f"wrong {n}", make_hit(0.4 + 0.1 * n / wrong), right=False) for n in range(wrong)]
    return make_report(results)


def noisy(count: int = 120, seed: int = 3, spread: float = 0.06) -> EvaluationReport:
    """Right and wrong ones overlap in each of the signals."""
    random = np.random.default_rng(seed)
    results = []
    for n in range(count):
        right = bool(random.random() < 0.6)
        cosine, share = random.normal([0.7, 0.7] if right else [0.6, 0.4], [spread, 0.2])
        rival = make_hit(cosine - random.normal(0.06 if right else 0.0, 0.03), "rival-v1", idf_share=0.3)
        first = make_hit(float(cosine), idf_share=float(np.clip(share, 0, 1)))
        results.append(make_result(f"case {n}", first, rival, right=right))
    return make_report(results)


# ---------------------------------------------------------------- what is read


def test_the_signals_are_read_from_the_hits() -> None:
    hits = [
        make_hit(0.75, idf_share=0.5),
        make_hit(0.5, "a-v1", idf_share=0.125),
        make_hit(0.625, "b-v1", idf_share=0.25),
    ]
    assert signals_of(hits) == {"top": 0.75, "margin": 0.125, "idf_share": 0.5, "idf_margin": 0.25, "sole": 0.0}


def test_a_rival_that_is_better_gives_negative_margins() -> None:
    found = signals_of([make_hit(0.5, idf_share=0.25), make_hit(0.75, "a-v1", idf_share=0.5)])
    assert (found["margin"], found["idf_margin"]) == (-0.25, -0.25)


def test_the_idf_margin_is_bounded_on_both_sides() -> None:
    best, none = make_hit(0.75, idf_share=1.0), make_hit(0.5, "a-v1", idf_share=0.0)
    assert signals_of([best, none])["idf_margin"] == IDF_MARGIN_BOUND
    assert signals_of([none, best])["idf_margin"] == -IDF_MARGIN_BOUND


def test_places_of_one_document_and_languages_of_one_text_are_no_rivals() -> None:
    bangla = make_hit(0.74, "shop-v1-bn", family="shop")
    found = signals_of([make_hit(0.75), make_hit(0.75, place=1), bangla])
    assert (found["margin"], found["idf_margin"], found["sole"]) == (None, None, 1.0)
    assert signals_of([make_hit(0.75)])["sole"] is None


def test_words_of_another_script_say_nothing() -> None:
    found = signals_of([make_hit(0.75, foreign=True, idf_share=0.0), make_hit(0.5, "a-v1", idf_share=0.5)])
    assert found == {"top": 0.75, "margin": 0.25, "idf_share": None, "idf_margin": None, "sole": 0.0}
    found = signals_of([make_hit(0.75, idf_share=0.5), make_hit(0.5, "a-v1", foreign=True, idf_share=0.0)])
    assert (found["idf_share"], found["idf_margin"]) == (0.5, None)


def test_without_vectors_the_words_are_the_measure() -> None:
    found = signals_of([make_hit(None, idf_share=0.75), make_hit(None, "a-v1", idf_share=0.5)])
    assert found == {"top": 0.75, "margin": 0.25, "idf_share": None, "idf_margin": None, "sole": 0.0}


def test_without_hits_there_is_nothing_to_read() -> None:
    with pytest.raises(ValueError, match="no candidate"):
        signals_of([])


def test_what_the_hits_are_ordered_by_is_never_read() -> None:
    """BR-42: rank scores of 0.016, BM25 of 30 and a reranker's 9 change neither the fit nor a judgement."""
    report = noisy()

    def rescored(result: CaseResult) -> CaseResult:
        hits = tuple(
            replace(hit, score=0.0164 / (at + 1), bm25=30.0, rerank=9.0, keyword_rank=None, vector_rank=7)
            for at, hit in enumerate(result.candidates or ())
        )
        return replace(result, candidates=Hits(hits, None, "hybrid"))

    fused = replace(report, cases=tuple(map(rescored, report.cases)))
    assert calibrate(fused) == calibrate(report)
    guard = calibrate(report).guard
    for one, other in zip(report.cases, fused.cases, strict=True):
        assert assess(tuple(one.candidates or ()), guard) == assess(tuple(other.candidates or ()), guard)


# ---------------------------------------------------------------- the model


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([-0.1, 0.0, 0.1]))
def test_no_signal_may_speak_against_an_answer(seed: int, shift: float) -> None:
    """Even where the right ones happen to have the lower cosines: a better text is never a worse answer."""
    random = np.random.default_rng(seed)
    results = []
    for n in range(24):
        right = n % 2 == 0
        cosine, share, rival = random.normal([0.6 + (shift if right else 0), 0.5, 0.5], 0.1)
        hits = (make_hit(float(cosine), idf_share=float(share)), make_hit(float(rival), "rival-v1", idf_share=0.4))
        results.append(make_result(f"case {n}", *hits, right=right))
    guard = calibrate(make_report(results)).guard
    assert all(weight >= 0 for weight in guard.weights)
    better = [make_hit(0.9, idf_share=0.9), make_hit(0.3, "rival-v1", idf_share=0.1)]
    worse = [make_hit(0.5, idf_share=0.4), make_hit(0.5, "rival-v1", idf_share=0.4)]
    assert probability(guard, signals_of(better)) >= probability(guard, signals_of(worse))


def test_a_signal_that_is_upside_down_weighs_nothing() -> None:
    results = [make_result(f"right {n}", make_hit(0.4 + n / 100)) for n in range(10)]
    results += [make_result(f"wrong {n}", make_hit(0.8 + n / 100), right=False) for n in range(10)]
    guard = calibrate(make_report(results)).guard
    assert dict(zip(guard.signals, guard.weights, strict=True)) == dict.fromkeys(SIGNALS, 0.0)
    assert assess([make_hit(0.99)], guard).probability == pytest.approx(0.5)


def test_the_probability_is_that_of_the_formula() -> None:
    """log-odds 1 + 2 (0.8 - 0.6) / 0.1 + 0.5 (0.25 - 0.5) / 0.25, a signal that is not said left out."""
    guard = CalibratedGuard(
        ("top", "idf_share", "margin"), (0.6, 0.5, 0.1), (0.1, 0.25, 0.1), (2.0, 0.5, 3.0), 1.0, 0.5, "cosine", "a test"
    )
    found = assess([make_hit(0.8, idf_share=0.25)], guard)
    assert found.probability == pytest.approx(1 / (1 + np.exp(-(1 + 4 - 0.5))))
    assert (found.state, found.top, found.margin, found.measure, found.values) == ("ok", 0.8, 0.8, "cosine", guard)


# ---------------------------------------------------------------- states and sentences


GUARD = CalibratedGuard(
    ("top", "margin"), (0.6, 0.1), (0.1, 0.1), (2.0, 2.0), 0.0, 0.8, "cosine", "12 cases; a promise"
)


def test_from_the_threshold_on_it_is_ok_and_below_it_weak() -> None:
    found = assess([make_hit(0.7), make_hit(0.5, "rival-v1")], GUARD)
    assert (found.state, round(found.probability, 2)) == ("ok", 0.98)
    assert (
        explain(found)
        == "The first passage is right with a probability of 0.98; needed are 0.80 (calibrated: 12 cases; a promise)."
    )
    found = assess([make_hit(0.5), make_hit(0.4, "rival-v1")], GUARD)
    assert (found.state, round(found.probability, 2)) == ("weak", 0.12)
    assert explain(found) == (
        "The first passage is right with a probability of 0.12, below the 0.80 that an answer needs "
        "(calibrated: 12 cases; a promise)."
    )


def test_where_only_a_rival_is_in_the_way_it_is_ambiguous() -> None:
    found = assess([make_hit(0.7), make_hit(0.7, "rival-v1")], GUARD)
    assert (found.state, round(found.probability, 2), found.margin) == ("ambiguous", 0.5, 0.0)
    assert explain(found) == (
        "The first passage is right with a probability of 0.50, below the 0.80 that is needed, because another text "
        "competes (calibrated: 12 cases; a promise)."
    )
    assert assess([make_hit(0.7), make_hit(0.7, place=1)], GUARD).state == "ok"


def test_without_candidates_there_is_no_result() -> None:
    found = assess([], GUARD)
    assert (found.state, found.probability) == ("no_result", None)
    assert explain(found) == "Nothing in force matches the question."


def test_the_threshold_itself_passes() -> None:
    exact = probability(GUARD, signals_of([make_hit(0.6)]))
    assert assess([make_hit(0.6)], replace(GUARD, threshold=exact)).state == "ok"


def test_the_first_is_kept_and_of_the_others_those_that_would_pass_alone() -> None:
    hits = [make_hit(0.75), make_hit(0.7, "good-v1"), make_hit(0.5, "bad-v1")]
    assert [hit.chunk.doc_id for hit in kept(hits, GUARD)] == ["shop-v1", "good-v1"]
    assert [hit.chunk.doc_id for hit in kept([make_hit(0.1)], GUARD)] == ["shop-v1"]


def test_a_guard_is_refused_for_hits_of_another_measure() -> None:
    """BR-45."""
    with pytest.raises(ValueError, match="fitted on the cosine, and these hits are measured by idf_share"):
        assess([make_hit(None)], GUARD)


# ---------------------------------------------------------------- what can be promised


def test_thirteen_without_an_error_prove_a_fifth_at_best() -> None:
    """Thirteen answered without an error prove at most 0.21 wrong, however good the desk may be; 5 % takes 59."""
    report = calibrate(separable(13, 3))
    assert not report.promised
    assert (report.answered, report.wrong) == (Rate(13, 16), Rate(0, 13))
    assert report.promise == (
        "No threshold can promise at most 5 % wrong: 16 cases prove no less than 17.1 % wrong even without an error "
        "(95 % confidence); 59 answered without an error would. Taken is the threshold of least cost instead, "
        "at which 0 of 13 are wrong: that proves a rate of at most 0.21 and no less."
    )
    assert report.guard.source == "16 cases 01234567; nothing promised"


def test_fifty_eight_are_one_too_few_and_fifty_nine_are_enough() -> None:
    assert not calibrate(separable(58, 10)).promised
    assert calibrate(separable(59, 10)).promised


def test_a_set_that_is_parted_clean_gives_a_promise_that_holds() -> None:
    report = calibrate(separable(70, 30))
    assert report.promised
    assert report.guard.source == "100 cases 01234567; at most 5 % wrong promised"
    assert (report.answered, report.wrong, report.turned_away) == (Rate(70, 100), Rate(0, 70), Rate(0, 70))
    assert (report.auroc, report.max_wrong, report.confidence) == (1.0, 0.05, 0.95)
    assert "At most 5 % wrong can be promised: 0 wrong of 70 prove at most 4.2 % (95 % confidence)." in report.promise
    for cosine in (0.4, 0.45, 0.5):
        assert assess([make_hit(cosine)], report.guard).state == "weak"
    for cosine in (0.81, 0.85, 0.9):
        assert assess([make_hit(cosine)], report.guard).state == "ok"


@pytest.mark.parametrize("seed", range(6))
def test_a_promise_holds_on_cases_that_were_not_there(seed: int) -> None:
    """Fitted on 200, the guard judges 2,000 others of the same kind: of those that pass, at most 5 % are wrong."""
    report = calibrate(noisy(200, seed, spread=0.03))
    assert report.promised
    others = noisy(2000, seed + 100, spread=0.03).cases
    passing = [r for r in others if assess(tuple(r.candidates or ()), report.guard).state == "ok"]
    assert len(passing) > 400
    assert sum(not r.answerable for r in passing) <= 0.05 * len(passing)


def test_a_strict_promise_lets_no_more_pass() -> None:
    report = noisy(200, 1, spread=0.03)
    assert calibrate(report, strict=True).answered.count <= calibrate(report).answered.count


def test_a_higher_rate_is_easier_to_promise() -> None:
    assert calibrate(separable(13, 3), max_wrong=0.25).promised
    assert calibrate(separable(13, 3), confidence=0.4).promised


@pytest.mark.parametrize(("right", "wrong"), [(20, 0), (0, 20), (20, 1), (1, 20)])
def test_cases_of_one_kind_alone_are_refused_and_the_next_step_is_said(right: int, wrong: int) -> None:
    with pytest.raises(
        ValueError, match=f"there are {right} and {wrong}; add questions that your documents answer, and"
    ):
        calibrate(separable(right, wrong))


@pytest.mark.parametrize("options", [{"max_wrong": 0}, {"max_wrong": 1}, {"confidence": 0}, {"confidence": 1.0}])
def test_rates_outside_of_nought_and_one_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        calibrate(separable(5, 5), **options)


def test_where_nothing_can_be_promised_a_wrong_answer_costs_three_refusals() -> None:
    """Two wrong ones stand below ten right ones: to let the lowest two right ones pass would cost two wrong answers."""
    cosines = {True: [0.5, 0.55, *(0.8 + n / 100 for n in range(10))], False: [0.6, 0.62, 0.1, 0.2, 0.3]}
    results = [
        make_result(f"{right} {n}", make_hit(cosine), right=right)
        for right, every in cosines.items()
        for n, cosine in enumerate(every)
    ]
    report = calibrate(make_report(results))
    assert not report.promised
    assert (report.answered, report.wrong, report.turned_away) == (Rate(10, 17), Rate(0, 10), Rate(2, 12))


# ---------------------------------------------------------------- who counts


def test_an_answerable_case_whose_first_candidate_is_wrong_should_not_pass() -> None:
    results = list(separable(10, 5).cases)
    results += [make_result(f"other {n}", make_hit(0.45), right=False, answerable=True) for n in range(5)]
    report = calibrate(make_report(results))
    assert sum(right for _, right in report.scores) == 10
    assert (len(report.scores), report.turned_away) == (20, Rate(5, 15))


def test_cases_without_candidates_never_pass_and_stay_in_the_denominators() -> None:
    """BR-109."""
    whole = separable(10, 5)
    found_nothing = make_result("nothing", right=True)
    failed = make_result("failed", right=True, outcome="error")
    report = calibrate(replace(whole, cases=(*whole.cases, found_nothing, failed)))
    assert report.guard.weights == calibrate(whole).guard.weights
    assert (report.answered, report.turned_away, report.case_count) == (Rate(10, 17), Rate(2, 12), 17)
    assert len(report.scores) == 15


def test_a_question_that_was_searched_by_words_is_not_fitted_on_beside_cosines() -> None:
    whole = separable(10, 5)
    by_words = make_result("words", make_hit(None), right=False)
    report = calibrate(replace(whole, cases=(*whole.cases, by_words)))
    assert (len(report.scores), report.case_count, report.guard.measure) == (15, 16, "cosine")


def test_without_an_embedder_the_share_of_the_words_is_fitted() -> None:
    results = [make_result(f"right {n}", make_hit(None, idf_share=0.8 + n / 100)) for n in range(8)]
    results += [make_result(f"wrong {n}", make_hit(None, idf_share=0.2 + n / 100), right=False) for n in range(8)]
    report = calibrate(make_report(results, embedder=None))
    weights = dict(zip(report.guard.signals, report.guard.weights, strict=True))
    assert (report.guard.measure, report.embedder, report.auroc) == ("idf_share", None, 1.0)
    assert weights["top"] > 0
    assert (weights["idf_share"], weights["idf_margin"]) == (0.0, 0.0)
    assert assess([make_hit(None, idf_share=0.85)], report.guard).state == "ok"
    assert assess([make_hit(None, idf_share=0.25)], report.guard).state == "weak"


# ---------------------------------------------------------------- chosen and reported on different folds


def test_each_case_is_judged_by_a_guard_that_was_fitted_without_its_fold() -> None:
    report = noisy(60)
    right = [result.answerable for result in report.cases]
    read = [signals_of(tuple(result.candidates or ())) for result in report.cases]
    fold = folds_of([result.case_id for result in report.cases], right)
    found = calibrate(report)
    assert len(set(fold)) == 5
    for at, (score, is_right) in enumerate(found.scores):
        others = [n for n in range(60) if fold[n] != fold[at]]
        guard = fitted([read[n] for n in others], [right[n] for n in others])
        assert (probability(guard, read[at]), right[at]) == (score, is_right)
    unaware = [probability(found.guard, signals) for signals in read]
    assert max(abs(one - other) for one, (other, _) in zip(unaware, found.scores, strict=True)) > 0.01


def test_what_a_case_looks_like_changes_no_judgement_of_its_own_fold() -> None:
    report = noisy(60)
    fold = folds_of([r.case_id for r in report.cases], [r.answerable for r in report.cases])
    strange = Hits((make_hit(0.01, idf_share=0.0, foreign=True), make_hit(0.99, "rival-v1")), None, "hybrid")
    changed = replace(
        report,
        cases=(
            replace(report.cases[0], candidates=strange, expected=("shop-v1",) if report.cases[0].answerable else ()),
            *report.cases[1:],
        ),
    )
    before, after = calibrate(report).scores, calibrate(changed).scores
    mates = [n for n in range(1, 60) if fold[n] == fold[0]]
    assert [after[n] for n in mates] == [before[n] for n in mates]
    assert all(after[n] != before[n] for n in range(60) if fold[n] != fold[0])


def test_the_figures_are_of_the_scores_that_are_shown() -> None:
    report = calibrate(noisy(80))
    passing = [right for score, right in report.scores if score >= report.guard.threshold]
    assert report.answered == Rate(len(passing), 80)
    assert report.wrong == Rate(passing.count(False), len(passing))
    assert report.curve[-1].coverage == Rate(80, 80)
    assert set(report.auroc_of) == set(SIGNALS)
    assert report.auroc is not None
    assert report.auroc > max(value for value in report.auroc_of.values() if value is not None) - 0.05


def test_the_order_of_the_cases_does_not_matter() -> None:
    report = noisy(60)
    one, other = calibrate(report), calibrate(replace(report, cases=tuple(reversed(report.cases))))
    assert one.guard.weights == pytest.approx(other.guard.weights)
    assert (one.answered, one.wrong, one.promise) == (other.answered, other.wrong, other.promise)


# ---------------------------------------------------------------- in a file


QUESTIONS = {
    "returns": "You can return a new bike within {n} days of delivery.",
    "storage": "A repaired bike costs {n} taka of storage a week.",
    "helmets": "A helmet is replaced free of charge for {n} months after a crash.",
    "rental": "Renting a cargo bike costs {n} taka an hour.",
    "insurance": "Theft insurance starts {n} days after registration.",
    "lights": "Battery lights shine for {n} hours on one charge.",
}
ASKED = [
    ("returns", "Within how many days can I return a new bike?"),
    ("returns", "return of a new bike after delivery"),
    ("storage", "What does storage of a repaired bike cost a week?"),
    ("storage", "storage of a repaired bike"),
    ("helmets", "How long is a helmet replaced after a crash?"),
    ("helmets", "Is a helmet free of charge after a crash?"),
    ("rental", "What does renting a cargo bike cost an hour?"),
    ("rental", "renting a cargo bike"),
    ("insurance", "When does theft insurance start after registration?"),
    ("insurance", "theft insurance registration"),
    ("lights", "How many hours do battery lights shine on one charge?"),
    ("lights", "battery lights charge"),
]
UNANSWERED = [
    "Who painted the ceiling of the chapel in Rome?", "Which planet has the most moons?", "How is cheese made?",
    "Do you sell cars?", "What is the capital of Peru?", "Can I pay by cheque?", "When was the shop founded?",
    "Do you hire students?", "Is there parking behind the shop?", "How tall is the tower?",
]  # fmt: skip
SHOP = [
    make_source(text.format(n=7 + at), path=f"{name}.md", doc_id=f"{name}-v1", heading=name)
    for at, (name, text) in enumerate(QUESTIONS.items())
]
MIXED = [RagCase(id=f"a{n}", question=q, expected_doc_ids=(d,), answerable=True) for n, (d, q) in enumerate(ASKED)]
MIXED += [RagCase(id=f"u{n}", question=q, answerable=False) for n, q in enumerate(UNANSWERED)]
QUESTION = ASKED[0][1]


def squeezed(share: float, name: str) -> CallableEmbedder:
    """The toy embedder with a component that all its vectors share: cosines from `share` to 1."""
    toy = ToyEmbedder()

    def function(texts: list[str]) -> np.ndarray:
        vectors = toy.embed_documents(texts)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        own = np.sqrt(1 - share) * vectors / np.where(lengths == 0, 1, lengths)
        return np.hstack([own, np.full((len(texts), 1), np.sqrt(share), dtype=np.float32)])

    return CallableEmbedder(function, name, toy.dimension + 1, f"{share}")


def outcomes(desk: Desk) -> dict[str, str]:
    return {result.case_id: result.outcome for result in desk.evaluate(MIXED, store=False).cases}


def test_a_stored_guard_judges_from_then_on_and_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, SHOP, embedder="toy") as desk:
        before = desk.assess(QUESTION)
        report = desk.calibrate(MIXED)
        assert (before.probability, report.fit_id, report.case_count) == (None, 1, 22)
        found = desk.assess(QUESTION)
        assert isinstance(found.values, CalibratedGuard)
        assert (found.state, found.values.threshold) == ("ok", report.guard.threshold)
        short = "nothing promised"
        assert found.values.source == f"2026-06-01, 22 cases {report.cases_hash[:8]}; {short}"
        assert found.probability == pytest.approx(
            probability(report.guard, signals_of(desk.search(QUESTION, k=3).hits))
        )
    with Desk.open(path, read_only=True) as desk:
        assert desk.assess(QUESTION) == found
        answer = desk.ask(QUESTION)
        assert (answer.reason, answer.assessment) == ("ok", found)
        refused = desk.ask(UNANSWERED[0])
        assert (refused.reason, refused.model) == ("weak", "")
        assert "below the" in refused.detail
        assert "calibrated: 2026-06-01, 22 cases" in refused.detail


def test_the_newest_calibration_judges_and_to_forget_them_brings_the_built_in_thresholds_back() -> None:
    with open_desk(sources=SHOP, embedder="toy") as desk:
        first, second = desk.calibrate(MIXED), desk.calibrate(MIXED[1:], max_wrong=0.3)
        assert (first.fit_id, second.fit_id) == (1, 2)
        assert desk.assess(QUESTION).values.threshold == second.guard.threshold
        assert desk.uncalibrate() == 2
        assert desk.assess(QUESTION).values == ToyEmbedder.guard_thresholds
        assert desk.uncalibrate() == 0


def test_without_store_a_calibration_judges_nothing() -> None:
    with open_desk(sources=SHOP, embedder="toy") as desk:
        assert desk.calibrate(MIXED, store=False).fit_id is None
        assert desk.assess(QUESTION).values == ToyEmbedder.guard_thresholds


def test_an_evaluation_after_a_calibration_is_judged_by_it() -> None:
    with open_desk(sources=SHOP, embedder="toy") as desk:
        guard = desk.calibrate(MIXED).guard
        report = desk.evaluate(MIXED)
        assert isinstance(report.values, CalibratedGuard)
        assert report.values.threshold == guard.threshold
        assert report.sweep == (), "its risk-coverage curve says what a sweep would"
        assert "separates them" in report.separation
        assert report.guarded.unanswerable_answered == Rate(0, 10)


def test_a_guard_belongs_to_its_embedder_and_is_gone_after_another_one(tmp_path: Path) -> None:
    """BR-45: nothing that was measured in one scale judges in another."""
    path, other = tmp_path / "desk.db", squeezed(0.8, "narrow")
    with open_desk(path, SHOP, embedder="toy") as desk:
        desk.calibrate(MIXED)
        desk.reembed(other)
    with pytest.raises(EmbedderMismatch):
        Desk.open(path, embedder="toy")
    with Desk.open(path, embedder=other) as desk:
        assert desk.assess(QUESTION).state == "uncalibrated"
        assert desk.ask(QUESTION).reason == "uncalibrated"
        desk.calibrate(MIXED)
        assert isinstance(desk.assess(QUESTION).values, CalibratedGuard)
        desk.reembed(ToyEmbedder())
    with Desk.open(path, embedder="toy") as desk:
        assert desk.assess(QUESTION).values == ToyEmbedder.guard_thresholds


def test_a_calibration_on_signals_of_another_release_judges_nothing_and_says_to_calibrate_again() -> None:
    """Such a file is calibrated again as it stands, or its calibration forgotten; nothing needs to be deleted first."""

    def outdate(desk: Desk) -> None:
        with desk.store.write("a test") as transaction:
            rename = "UPDATE guard_weights SET signal = 'agreement' WHERE signal = 'sole'"
            transaction.connection.exec_driver_sql(rename)

    with open_desk(sources=SHOP, embedder="toy") as desk:
        desk.calibrate(MIXED)
        outdate(desk)
        for verb in (desk.assess, desk.ask):
            with pytest.raises(CalibrationOutdated, match=r"does not read: agreement\. Calibrate it again with `evi"):
                verb(QUESTION)
        with pytest.raises(CalibrationOutdated):
            desk.evaluate(MIXED, store=False)
        again = desk.calibrate(MIXED)
        assert again.fit_id == 2
        assert desk.assess(QUESTION).values.threshold == again.guard.threshold
        outdate(desk)
        assert desk.uncalibrate() == 2
        assert desk.assess(QUESTION).values == ToyEmbedder.guard_thresholds


def test_a_calibration_does_not_depend_on_what_judged_before() -> None:
    with open_desk(sources=SHOP, embedder="toy") as desk:
        first = desk.calibrate(MIXED, max_wrong=0.4, confidence=0.6)
        second = desk.calibrate(MIXED, max_wrong=0.4, confidence=0.6)
    assert replace(first, fit_id=2) == second


def test_a_question_that_the_embedder_cannot_read_is_judged_by_words_and_not_by_the_guard() -> None:
    english = squeezed(0.8, "narrow")
    english.languages = frozenset({"en"})
    with open_desk(sources=SHOP, embedder=english) as desk:
        desk.calibrate(MIXED)
        assert isinstance(desk.assess(QUESTION).values, CalibratedGuard)
        found = desk.assess("বাইক 7 ফেরত")
        assert found.measure == "idf_share"
        assert found.values == KEYWORD_THRESHOLDS


def test_a_desk_for_keyword_search_calibrates_on_the_share_of_the_words() -> None:
    with open_desk(sources=SHOP) as desk:
        assert desk.assess(QUESTION).values == KEYWORD_THRESHOLDS
        report = desk.calibrate(MIXED)
        assert (report.embedder, report.guard.measure) == (None, "idf_share")
        found = desk.assess(QUESTION)
        assert (found.state, found.measure, found.values.measure) == ("ok", "idf_share", "idf_share")
        assert desk.uncalibrate() == 1
        assert desk.assess(QUESTION).values == KEYWORD_THRESHOLDS


def test_cases_may_be_a_file() -> None:
    with open_desk(embedder="toy") as desk:
        desk.ingest(CORPUS)
        report = desk.calibrate(CASES)
    assert (report.case_count, report.promised) == (16, False)
    assert report.promise.startswith(
        "No threshold can promise at most 5 % wrong: 16 cases prove no less than 17.1 % wrong even"
    )


# ---------------------------------------------------------------- two scales


def in_two_scales(judge: Callable[[Desk], object]) -> tuple[object, object]:
    found = []
    for embedder in (squeezed(0.0, "wide"), squeezed(0.8, "narrow")):
        with open_desk(sources=SHOP, embedder=embedder) as desk:
            found.append(judge(desk))
    return found[0], found[1]


def test_two_embedders_with_different_bands_of_scores_are_each_judged_in_their_own() -> None:
    """BR-45: one gives 0.8 to 1.0 for everything; on the same cases both answer the same and refuse the same."""

    def judge(desk: Desk) -> tuple[CalibrationReport, dict[str, str], dict[str, str]]:
        before = outcomes(desk)
        return desk.calibrate(MIXED), before, outcomes(desk)

    (wide, wide_before, wide_after), (narrow, narrow_before, narrow_after) = in_two_scales(judge)  # type: ignore[misc]
    assert set(wide_before.values()) == set(narrow_before.values()) == {"turned_away", "refused"}, "uncalibrated"
    assert wide_after == narrow_after
    assert sorted(set(wide_after.values())) == ["refused", "right"]
    (wide_top, wide_margin), (narrow_top, narrow_margin) = wide.guard.means[:2], narrow.guard.means[:2]
    assert 0.2 < wide_top < 0.7
    assert 0.85 < narrow_top < 0.95
    assert narrow_margin == pytest.approx(0.2 * wide_margin, rel=0.01)
    assert wide.auroc == pytest.approx(narrow.auroc, abs=0.02)
    assert (wide.answered, wide.wrong) == (narrow.answered, narrow.wrong)


def test_a_guessed_threshold_lets_all_pass_in_one_scale_and_the_sweep_shows_it() -> None:
    """BR-45: 0.3 and 0.05, the toy embedder's own, read as if they meant the same everywhere."""

    def judge(desk: Desk) -> list[bool]:
        values = ToyEmbedder.guard_thresholds
        hits = [desk.search(case.question, k=3).hits for case in MIXED]
        return [hit[0].cosine >= values.min_score for hit in hits if hit]

    wide, narrow = in_two_scales(judge)
    assert not all(wide)
    assert all(narrow)


def test_scores_that_are_all_alike_make_no_judge_and_that_is_said() -> None:
    """BR-45."""
    flat = [make_result(f"right {n}", make_hit(0.9)) for n in range(30)]
    flat += [make_result(f"wrong {n}", make_hit(0.9), right=False) for n in range(30)]
    report = calibrate(make_report(flat))
    assert (report.promised, report.auroc) == (False, 0.5)
    assert report.promise.startswith("No threshold can promise at most 5 % wrong")


# ---------------------------------------------------------------- the benchmark


@given(st.floats(0, 1), st.integers(2, 300), st.integers(2, 300))
def test_the_interval_of_an_auroc_holds_it_and_mirrors_with_it(area: float, positives: int, negatives: int) -> None:
    low, high = trust.auroc_interval(area, positives, negatives)
    assert 0 <= low <= area <= high <= 1
    assert trust.auroc_interval(1 - area, positives, negatives) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_the_interval_of_a_perfect_auroc_is_no_point_and_shrinks_with_the_cases() -> None:
    few, many = trust.auroc_interval(1.0, 44, 13), trust.auroc_interval(1.0, 440, 130)
    assert few[1] == many[1] == 1.0
    assert 0.85 < few[0] < many[0] < 0.995


def test_what_is_answered_with_few_enough_wrong_is_counted_of_all_cases() -> None:
    """By hand: 25 right ones, a wrong one, 14 right ones, and the rest wrong: 41 hold 4.9 % wrong, 42 hold 7 %."""
    right = [True] * 25 + [False] + [True] * 14 + [False] * 10
    scores = [1 - n / 100 for n in range(50)]
    assert trust.covered(scores, right, 60) == Rate(41, 60)
    assert trust.promised(scores, right, 60) == Rate(0, 60)
    assert trust.promised([1 - n / 1000 for n in range(200)], [True] * 100 + [False] * 100, 200) == Rate(101, 200)


def test_the_benchmark_measures_a_set_and_says_when_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for at, (name, text) in enumerate(QUESTIONS.items()):
        write_source(
            tmp_path / "shop" / "corpus", f"{name}.md", text.format(n=7 + at), doc_id=f"{name}-v1", heading=name
        )
    rows = [case.model_dump() | {"must_cite": [], "tags": []} for case in MIXED]
    rows[-1]["tags"] = ["adversarial"]
    (tmp_path / "shop" / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert trust.main(["--data", str(tmp_path), "--sets", "shop", "--embedder", "toy"]) == 0
    printed = capsys.readouterr().out
    assert ["shop", "21", "12", "0", "9", "0", "1"] in [line.split() for line in printed.splitlines()]
    assert "right first, all else: calibrated" in printed
    assert "cases prove no less than 13.3 % wrong even without an error" in printed
    with pytest.raises(SystemExit, match="2"):
        trust.main(["--data", str(tmp_path), "--sets", "nothing"])
    assert "has no nothing" in capsys.readouterr().err
