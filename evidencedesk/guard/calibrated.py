"""A guard that was fitted on cases: a few signals of the candidates, weighed into one probability of being right.

The signals, each of the first candidate and read from the hits alone:

- `top`: its cosine, or without vectors the share of the question's idf weight that it holds.
- `margin`: how far the best candidate of another text lies behind in that measure, negative when it lies before.
- `idf_share`: the share of the question's idf weight that it holds.
- `idf_margin`: how much less of it any candidate of another text holds, within `IDF_MARGIN_BOUND`.
- `sole`: 1 when all candidates are of its text, so that none competes, else 0; not said of a single candidate.

A signal that is not said of a question counts as the mean of the cases, so it speaks neither for nor against: the
margins when no other text competes, and what is read from words when they are those of another script. Without vectors
the first two are read from words already, and the next two are not said. docs/decisions/calibration.md tells what was
tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from evidencedesk.guard.thresholds import measure_of, same_text
from evidencedesk.records import Assessment, CalibratedGuard, GuardMeasure, GuardSignal, GuardState, Hit

SIGNALS: tuple[GuardSignal, ...] = ("top", "margin", "idf_share", "idf_margin", "sole")
IDF_MARGIN_BOUND = 0.5
"""Whether the others hold half as much of the question or nothing, they do not answer it."""


def signals_of(candidates: Sequence[Hit]) -> dict[GuardSignal, float | None]:
    """The signals of the hits of one search, in its order; None for one that is not said. ValueError without hits."""
    if not candidates:
        raise ValueError("there is no candidate to read signals from")
    measure, first = measure_of(candidates), candidates[0]
    rivals = [hit for hit in candidates[1:] if not same_text(first.chunk, hit.chunk)]
    top, sole = _score(first, measure), float(not rivals) if len(candidates) > 1 else None
    if measure == "idf_share":
        margin = _lead(top, (hit.idf_share for hit in rivals), IDF_MARGIN_BOUND)
        return {"top": top, "margin": margin, "idf_share": None, "idf_margin": None, "sole": sole}
    words = None if first.foreign else first.idf_share
    return {
        "top": top,
        "margin": _lead(top, (_score(hit, measure) for hit in rivals)),
        "idf_share": words,
        "idf_margin": _lead(words, (hit.idf_share for hit in rivals if not hit.foreign), IDF_MARGIN_BOUND),
        "sole": sole,
    }


def probability(guard: CalibratedGuard, signals: Mapping[GuardSignal, float | None]) -> float:
    """That the first candidate is right, in 0..1."""
    log_odds = guard.intercept
    for name, mean, deviation, weight in zip(guard.signals, guard.means, guard.deviations, guard.weights, strict=True):
        value = signals[name]
        log_odds += 0.0 if value is None else weight * (value - mean) / deviation
    return 1 / (1 + math.exp(-log_odds)) if log_odds >= 0 else math.exp(log_odds) / (1 + math.exp(log_odds))


def assess(candidates: Sequence[Hit], guard: CalibratedGuard) -> Assessment:
    """Judge the hits: `ok` from the guard's threshold on; below it `ambiguous` where only a rival is in the way.

    That is when the question would pass were its rivals as far behind as they usually are; else it is `weak`.
    ValueError when the guard was fitted on another measure than these hits have.
    """
    if not candidates:
        return Assessment("no_result", 0.0, 0.0, guard.measure, guard, None)
    measure = measure_of(candidates)
    if measure != guard.measure:
        raise ValueError(f"the guard was fitted on the {guard.measure}, and these hits are measured by {measure}")
    signals = signals_of(candidates)
    found = probability(guard, signals)
    state: GuardState = "ok"
    if found < guard.threshold:
        without_rivals = probability(guard, {**signals, "margin": None, "idf_margin": None, "sole": None})
        state = "ambiguous" if without_rivals >= guard.threshold else "weak"
    top = _score(candidates[0], measure)
    margin = top - _score(candidates[1], measure) if len(candidates) > 1 else top
    return Assessment(state, top, margin, measure, guard, found)


def kept(candidates: Sequence[Hit], guard: CalibratedGuard) -> tuple[Hit, ...]:
    """What an answer may be made from: the first, and those that would pass with rivals as far behind as usual."""
    return tuple(
        hit for at, hit in enumerate(candidates) if at == 0 or probability(guard, signals_of([hit])) >= guard.threshold
    )


def explain(assessment: Assessment, guard: CalibratedGuard) -> str:
    """Say in one sentence what was found, what it was compared with, and where that comes from."""
    found = f"The first passage is right with a probability of {assessment.probability or 0.0:.2f}"
    origin = f"(calibrated: {guard.source})"
    if assessment.state == "weak":
        return f"{found}, below the {guard.threshold:.2f} that an answer needs {origin}."
    if assessment.state == "ambiguous":
        return f"{found}, below the {guard.threshold:.2f} that is needed, because another text competes {origin}."
    return f"{found}; needed are {guard.threshold:.2f} {origin}."


NO_PROMISE = "No threshold"
"""How the sentence of a promise begins where nothing can be promised."""


def source(case_count: int, cases_hash: str, max_wrong: float, promise: str) -> str:
    """Which cases a guard was fitted on, and whether they promise what was asked, for reasons and reports."""
    promised = not promise.startswith(NO_PROMISE)
    kept = f"at most {100 * max_wrong:g} % wrong promised" if promised else "nothing promised"
    return f"{case_count} cases {cases_hash[:8]}; {kept}"


def _score(hit: Hit, measure: GuardMeasure) -> float:
    return hit.idf_share if measure == "idf_share" or hit.cosine is None else hit.cosine


def _lead(first: float | None, others: Iterable[float], bound: float = math.inf) -> float | None:
    """How far the best of the others lies behind, within the bound; None when there is nothing to compare."""
    best = max(others, default=None)
    return None if first is None or best is None else max(-bound, min(bound, first - best))
