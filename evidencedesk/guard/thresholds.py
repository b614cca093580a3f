"""A guard of two thresholds, in the scale of one embedder.

It reads a number that means the same for every question: the exact cosine where the hits have one, else the share of
the question's idf weight that a chunk holds. Never the score that the hits are ordered by: a fused score is scaled
within one question, so its best is high however bad it is.

A cosine alone says that a text is about the same things, not that it speaks of what was asked. So it may be lowered by
`missing_weight` times the share of the question's idf weight that the chunk lacks; not for a chunk in another
script than the question's, whose words cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from evidencedesk.records import Assessment, Chunk, GuardMeasure, GuardState, Hit, Thresholds
from evidencedesk.versions import version_sort_key

KEYWORD_THRESHOLDS = Thresholds(
    min_score=0.5,
    min_margin=0.0,
    source="built in for keyword search, chosen on ver_policies, SQuAD 2.0, TyDi QA and COVID-QA: "
    "docs/decisions/guard.md",
    measure="idf_share",
)
"""For a search without a question vector, on any desk."""


def assess(candidates: Sequence[Hit], thresholds: Thresholds | None) -> Assessment:
    """Judge the hits of one search, in its order: the first must be good, and no other text nearly as good.

    States, the first that holds: `no_result` without candidates; `uncalibrated` without thresholds; `weak` when the
    first scores below `min_score`; `ambiguous` when the second is of another text and the first's lead over it is below
    `min_margin` (the lead is negative where the second scores higher); `ok`. ValueError for thresholds in another
    measure.
    """
    if not candidates:
        return Assessment("no_result", 0.0, 0.0, thresholds.measure if thresholds else "cosine", thresholds)
    measure = measure_of(candidates)
    top, *others = _scores(candidates[:2], thresholds, measure)
    margin = top - others[0] if others else top
    state: GuardState = "ok"
    if thresholds is None:
        state = "uncalibrated"
    elif top < thresholds.min_score:
        state = "weak"
    elif others and margin < thresholds.min_margin and not same_text(candidates[0].chunk, candidates[1].chunk):
        state = "ambiguous"
    return Assessment(state, top, margin, measure, thresholds)


def kept(candidates: Sequence[Hit], thresholds: Thresholds | None) -> tuple[Hit, ...]:
    """The candidates that score at least `min_score`, in order: what an answer may be made from.

    None without thresholds; ValueError for thresholds in another measure.
    """
    if thresholds is None or not candidates:
        return ()
    scores = _scores(candidates, thresholds, measure_of(candidates))
    return tuple(hit for hit, score in zip(candidates, scores, strict=True) if score >= thresholds.min_score)


def explain(assessment: Assessment, thresholds: Thresholds | None) -> str:
    """Say in one sentence what was found, what it was compared with, and where that comes from."""
    top, margin = assessment.top, assessment.margin
    if assessment.state == "no_result":
        return "Nothing in force matches the question."
    measured = "cosine" if assessment.measure == "cosine" else "share of the question's idf weight"
    if thresholds is None:
        return f"The first passage has a {measured} of {top:.3f}, but this embedder has no thresholds to judge it by."
    if thresholds.missing_weight:
        measured = f"cosine less {thresholds.missing_weight:g} times the missing share of the question's idf weight"
    found = f"The first passage has a score of {top:.3f} ({measured})"
    score, lead, origin = (
        f"{thresholds.min_score:g}",
        f"{thresholds.min_margin:g}",
        f"(thresholds: {thresholds.source})",
    )
    if assessment.state == "weak":
        return f"{found}, below the {score} that an answer needs {origin}."
    if assessment.state == "ambiguous" and margin < 0:
        return (
            f"{found}, and the second, from another text, is {-margin:.3f} better, where a lead of {lead} is"
            f" needed {origin}."
        )
    if assessment.state == "ambiguous":
        return (
            f"{found}, and the second, from another text, is only {margin:.3f} behind, where {lead} is needed {origin}."
        )
    ahead = (
        f" and leads by {margin:.3f}"
        if margin >= thresholds.min_margin
        else "; what is close to it is of the same text"
    )
    return f"{found}{ahead}; needed are {score}, and a lead of {lead} over another text {origin}."


def measure_of(candidates: Sequence[Hit]) -> GuardMeasure:
    """What these hits can be judged by: their cosines, where all have one."""
    return "idf_share" if any(hit.cosine is None for hit in candidates) else "cosine"


def _scores(hits: Sequence[Hit], thresholds: Thresholds | None, measure: GuardMeasure) -> list[float]:
    if thresholds is not None and thresholds.measure != measure:
        raise ValueError(f"the thresholds are for the {thresholds.measure}, and these hits are measured by {measure}")
    missing_weight = thresholds.missing_weight if thresholds else 0.0
    return [
        hit.idf_share
        if hit.cosine is None
        else hit.cosine - (0.0 if hit.foreign else missing_weight * (1 - hit.idf_share))
        for hit in hits
    ]


def same_text(one: Chunk, other: Chunk) -> bool:
    """Of one family at one version: two places of a document, or one text in two languages, do not compete."""
    if one.doc_id == other.doc_id:
        return True
    same_family = one.family != "" and one.family == other.family
    return same_family and version_sort_key(one.version) == version_sort_key(other.version)
