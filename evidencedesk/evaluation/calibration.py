"""Fits a guard on the user's own cases, and picks the threshold that keeps a promise, or says that none can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from evidencedesk.evaluation.intervals import CONFIDENCE, upper_bound
from evidencedesk.evaluation.logistic import fit_logistic, folds_of, threshold_for
from evidencedesk.evaluation.metrics import Rate, Risk, aurc, auroc, risk_coverage
from evidencedesk.evaluation.report import EvaluationReport
from evidencedesk.guard.calibrated import SIGNALS, probability, signals_of, source
from evidencedesk.guard.thresholds import measure_of
from evidencedesk.records import CalibratedGuard, EmbedderIdentity, GuardMeasure, GuardSignal, require_number
from evidencedesk.release import VERSION
from evidencedesk.store import Store, put_guard

WRONG_COSTS = 3
"""Refusals that a wrong answer is worth, where the cases are too few to promise anything."""


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A guard and what it was fitted on; every figure is of cases that the model judging them had not seen."""

    fit_id: int | None
    """Its number in the file; None: not stored."""
    guard: CalibratedGuard
    embedder: EmbedderIdentity | None
    """None: keyword search."""
    cases_hash: str
    case_count: int
    max_wrong: float
    confidence: float
    promised: bool
    promise: str
    """What the cases can promise, in one sentence."""
    answered: Rate
    """Of all cases, those that pass."""
    wrong: Rate
    """Of those that pass, those that should not."""
    turned_away: Rate
    """Of the answerable cases, those that do not pass."""
    auroc: float | None
    auroc_of: Mapping[GuardSignal, float | None]
    """Of each signal alone."""
    aurc: float | None
    curve: tuple[Risk, ...]
    """Risk and coverage at every threshold."""
    scores: tuple[tuple[float, bool], ...]
    """(probability, right) of each case, for a reliability diagram."""


def calibrate(
    evaluated: EvaluationReport, *, max_wrong: float = 0.05, confidence: float = CONFIDENCE, strict: bool = False
) -> CalibrationReport:
    """Fit the guard on what an evaluation found; pure. To pass is an answerable case whose first candidate is right.

    Chosen and reported on different folds: each case's probability comes from a model fitted without its fold. Cases
    without candidates never pass and fit nothing, but count. Where no threshold proves at most `max_wrong` of wrong
    answers at that confidence, the cheapest one is taken (a wrong answer costs `WRONG_COSTS` refusals), and `promise`
    says so. `strict` as in `threshold_for`. ValueError for fewer than two cases that should pass, or that should not,
    and for a max_wrong or confidence outside of 0..1.
    """
    results, embedder, cases_hash = evaluated.cases, evaluated.embedder, evaluated.cases_hash
    measure: GuardMeasure = "idf_share" if embedder is None else "cosine"
    if not 0 < require_number("max_wrong", max_wrong) < 1 or not 0 < require_number("confidence", confidence) < 1:
        raise ValueError(f"max_wrong and confidence must lie between 0 and 1, not {max_wrong!r} and {confidence!r}")
    # A question that the embedder does not know was searched by keyword: the other measure's guard judges it.
    judged = [r for r in results if r.candidates and measure_of(r.candidates) == measure]
    right = [result.answerable and result.top_is_right for result in judged]
    if min(sum(right), len(right) - sum(right)) < 2:
        raise ValueError(
            f"calibration needs at least two cases to answer and two not to, and there are {sum(right)} and "
            f"{len(right) - sum(right)}; add questions that your documents answer, and ones that they do not"
        )
    read = [signals_of(result.candidates or ()) for result in judged]
    scores = unseen_probabilities(read, right, [result.case_id for result in judged])
    wrong = [not passes for passes in right]
    found = threshold_for(scores, wrong, max_wrong, confidence, strict=strict)
    threshold = found.value if found.value is not None else _cheapest(scores, right)
    passing = [score >= threshold for score in scores]
    errors = sum(passes and is_wrong for passes, is_wrong in zip(passing, wrong, strict=True))
    promise = (
        found.sentence if found.value is not None else _no_promise(found.sentence, errors, sum(passing), confidence)
    )
    answerable = sum(result.answerable for result in results)
    answered_right = sum(passes and is_right for passes, is_right in zip(passing, right, strict=True))
    origin = source(len(results), cases_hash, max_wrong, promise)
    return CalibrationReport(
        fit_id=None,
        guard=replace(fitted(read, right, measure=measure), threshold=float(threshold), source=origin),
        embedder=embedder, cases_hash=cases_hash, case_count=len(results), max_wrong=max_wrong, confidence=confidence,
        promised=found.value is not None, promise=promise, answered=Rate(sum(passing), len(results)),
        wrong=Rate(errors, sum(passing)), turned_away=Rate(answerable - answered_right, answerable),
        auroc=auroc(scores, right),
        auroc_of={name: auroc([row[at] for row in filled(read)], right) for at, name in enumerate(SIGNALS)},
        aurc=aurc(scores, wrong), curve=tuple(risk_coverage(scores, wrong)),
        scores=tuple(zip(scores, right, strict=True)),
    )  # fmt: skip


def keep(store: Store, report: CalibrationReport) -> CalibrationReport:
    """Store a calibrated guard; from then on it judges for its embedder. Gives the report with its number. Writes."""
    with store.write("storing a calibration") as transaction:
        facts = {
            "fitted_at": transaction.now, "promise": report.promise, "max_wrong": report.max_wrong,
            "confidence": report.confidence, "cases_hash": report.cases_hash, "case_count": report.case_count,
            "answered": int(report.answered.count), "wrong": int(report.wrong.count), "auroc": report.auroc,
            "aurc": report.aurc, "code_version": VERSION,
        }  # fmt: skip
        return replace(report, fit_id=put_guard(transaction, report.guard, report.embedder, facts))


def fitted(
    read: Sequence[Mapping[GuardSignal, float | None]],
    right: Sequence[bool],
    names: Sequence[GuardSignal] = SIGNALS,
    *,
    measure: GuardMeasure = "cosine",
) -> CalibratedGuard:
    """Fit a guard of those signals; it has no threshold yet, and lets everything pass. ValueError as `fit_logistic`."""
    model = fit_logistic(filled(read, names), right, names, nonnegative=names)
    return CalibratedGuard(tuple(names), model.means, model.scales, model.weights, model.intercept, 0.0, measure, "")


def unseen_probabilities(
    read: Sequence[Mapping[GuardSignal, float | None]],
    right: Sequence[bool],
    case_ids: Sequence[str],
    names: Sequence[GuardSignal] = SIGNALS,
) -> list[float]:
    """Give each case the probability by a guard that was fitted without the case's fold. ValueError as `folds_of`."""
    fold = folds_of(case_ids, right)
    without = {
        left_out: fitted(
            [signals for signals, own in zip(read, fold, strict=True) if own != left_out],
            [is_right for is_right, own in zip(right, fold, strict=True) if own != left_out],
            names,
        )
        for left_out in set(fold)
    }
    return [probability(without[own], signals) for signals, own in zip(read, fold, strict=True)]


def filled(
    read: Sequence[Mapping[GuardSignal, float | None]], names: Sequence[GuardSignal] = SIGNALS
) -> list[list[float]]:
    """The signals as rows; one that is not said of a question is the mean of those of which it is."""
    means = {}
    for name in names:
        said = [value for signals in read if (value := signals[name]) is not None]
        means[name] = sum(said) / len(said) if said else 0.0
    return [[means[name] if (value := signals[name]) is None else value for name in names] for signals in read]


def _cheapest(scores: Sequence[float], right: Sequence[bool]) -> float:
    """The threshold of least cost over the cases, the highest of equals; half-way to the next score below it."""
    ordered = sorted(set(scores))
    cuts = [(low + high) / 2 for low, high in pairwise(ordered)]

    def cost(cut: float) -> int:
        return sum(
            (WRONG_COSTS if not is_right else 0) if score >= cut else (1 if is_right else 0)
            for score, is_right in zip(scores, right, strict=True)
        )

    return min([ordered[0], *cuts], key=lambda cut: (cost(cut), -cut))


def _no_promise(why: str, errors: int, passing: int, confidence: float) -> str:
    if not passing:
        return f"{why} Nothing passes."
    best = upper_bound(errors, passing, confidence)
    return (
        f"{why} Taken is the threshold of least cost instead, at which {errors} of {passing} are wrong: that proves a "
        f"rate of at most {best:.2f} and no less."
    )
