"""The guard: whether what search found is good enough to answer from, before a model is asked. Pure.

Two thresholds are built in for an embedder (`thresholds`); a guard that was calibrated on the user's own cases
(`calibrated`) takes their place.
"""

from __future__ import annotations

from collections.abc import Sequence

from evidencedesk.guard import calibrated, thresholds
from evidencedesk.guard.thresholds import KEYWORD_THRESHOLDS
from evidencedesk.records import Assessment, CalibratedGuard, EmptyReason, Guard, Hit

__all__ = ["CANDIDATES", "KEYWORD_THRESHOLDS", "assess", "describe", "explain", "kept"]

CANDIDATES = 3
"""How many of the best hits the guard looks at."""

_NOTHING_FOUND: dict[EmptyReason, str] = {
    "no_terms": "The question holds no word that could be searched.",
    "nothing_in_force": "There is no text in force to answer from.",
    "nothing_matches": "Nothing in force matches the question.",
}


def assess(candidates: Sequence[Hit], judge: Guard | None) -> Assessment:
    """Judge the best hits of one search, in its order: the first must be good, and no other text nearly as good.

    States, the first that holds: `no_result` without candidates; `uncalibrated` without a guard; `weak`; `ambiguous`;
    `ok`: see `guard.thresholds` and `guard.calibrated`. ValueError for a guard in another measure than the hits have.
    """
    if isinstance(judge, CalibratedGuard):
        return calibrated.assess(candidates, judge)
    return thresholds.assess(candidates, judge)


def kept(candidates: Sequence[Hit], judge: Guard | None) -> tuple[Hit, ...]:
    """The candidates that an answer may be made from, in order; none without a guard.

    ValueError for a guard in another measure than the hits have.
    """
    if isinstance(judge, CalibratedGuard):
        return calibrated.kept(candidates, judge)
    return thresholds.kept(candidates, judge)


def explain(assessment: Assessment, empty: EmptyReason | None = None) -> str:
    """Say in one sentence what was found, what it was compared with, and where that comes from.

    `empty` is the `reason` of the Hits, where nothing was found.
    """
    if assessment.state == "no_result":
        return _NOTHING_FOUND[empty or "nothing_matches"]
    if isinstance(assessment.values, CalibratedGuard):
        return calibrated.explain(assessment, assessment.values)
    return thresholds.explain(assessment, assessment.values)


def describe(judge: Guard | None) -> str:
    """Say what judges: what it needs of a question, and where that comes from."""
    if judge is None:
        return "none: calibrate"
    if isinstance(judge, CalibratedGuard):
        return f"probability {judge.threshold:.3f} (calibrated: {judge.source})"
    lowered = f", less {judge.missing_weight:g} for all words missing" if judge.missing_weight else ""
    measure = judge.measure.replace("_", " ")
    return f"{measure} {judge.min_score:g}{lowered}; lead {judge.min_margin:g} ({judge.source})"
