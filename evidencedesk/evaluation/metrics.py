"""Figures of rankings and of abstention, each with what it was counted on. Pure.

One case gives a float, or None where the figure does not apply to it (what is the rank of the right document of a
question that has none?). Many cases give a Rate, which keeps its numerator and denominator: what does not apply leaves
the denominator, and nothing else does. A case that failed is a 0.0, never a None.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evidencedesk.evaluation.intervals import Interval, percent, wilson
from evidencedesk.records import require_count

Name = TypeVar("Name", bound=Hashable)
BIN_SIZE = 10
"""Fewest cases in a bin of the reliability diagram, where there are enough for two: fewer say nothing about a rate."""
BINS = 10


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` of `of`. A sum of values in 0..1, such as reciprocal ranks, is a count as well."""

    count: float
    of: int

    def __post_init__(self) -> None:
        require_count("of", self.of, minimum=0)
        if not 0 <= self.count <= self.of:
            raise ValueError(f"count must lie in 0..{self.of}, not {self.count!r}")

    @property
    def value(self) -> float | None:
        """The share; None when it was counted on nothing: not applicable is not 0."""
        return self.count / self.of if self.of else None

    @property
    def interval(self) -> Interval | None:
        """Wilson's interval at 95 %; None when there is no value."""
        return wilson(self.count, self.of) if self.of else None

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.count + other.count, self.of + other.of)

    def __str__(self) -> str:
        if (interval := self.interval) is None:
            return "not applicable (0 cases)"
        count = f"{self.count:.2f}".rstrip("0").rstrip(".")
        share = percent(self.count / self.of)
        return f"{share} ({count} of {self.of}; 95 %: {percent(interval.low)} to {percent(interval.high)})"


def average(values: Iterable[float | None]) -> Rate:
    """Average values in 0..1 over those that apply. ValueError for NaN and for what lies outside 0..1."""
    applicable = [float(value) for value in values if value is not None]
    for value in applicable:
        if not 0 <= value <= 1:
            raise ValueError(f"a value to average must lie in 0..1, or be None, not {value!r}")
    # The sum of n values of at most 1 may round to more than n.
    return Rate(min(math.fsum(applicable), len(applicable)), len(applicable))


# ---------------------------------------------------------------- rankings


def recall_at_k(ranked_ids: Sequence[Name], relevant: Collection[Name], k: int) -> float | None:
    """Give the share of `relevant` among the k first distinct `ranked_ids`; None when nothing is relevant.

    Ids may be doc_ids or families, in both alike. An id that is ranked more than once, as a document is by several of
    its chunks, counts at its first place and takes up one. ValueError unless k is a whole number of at least 1.
    """
    wanted = set(relevant)
    found = wanted.intersection(_distinct(ranked_ids)[: require_count("k", k)])
    return len(found) / len(wanted) if wanted else None


def reciprocal_rank(ranked_ids: Sequence[Name], relevant: Collection[Name]) -> float | None:
    """Give 1 / the rank of the first relevant id, 0.0 when none is ranked; None when nothing is relevant.

    Ids are ranked as in `recall_at_k`. Source: E. M. Voorhees, The TREC-8 question answering track report (1999).
    """
    wanted = set(relevant)
    if not wanted:
        return None
    ranks = (rank for rank, name in enumerate(_distinct(ranked_ids), 1) if name in wanted)
    first = next(ranks, None)
    return 1 / first if first else 0.0


def ndcg_at_k(ranked_ids: Sequence[Name], relevant: Collection[Name], k: int) -> float | None:
    """Give the normalised discounted cumulative gain, gain 1 for a relevant id; None when nothing is relevant.

    The sum of 1 / log2(rank + 1) over the relevant ids among the k first, over the most it can be: all relevant ids
    first. Ids are ranked as in `recall_at_k`. Source: K. Järvelin, J. Kekäläinen, Cumulated gain-based evaluation of
    IR techniques, ACM TOIS 20 (2002), with the discount log2(rank + 1) that is usual since. ValueError as there.
    """
    wanted = set(relevant)
    first = _distinct(ranked_ids)[: require_count("k", k)]
    if not wanted:
        return None
    gain = math.fsum(1 / math.log2(rank + 1) for rank, name in enumerate(first, 1) if name in wanted)
    ideal = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return gain / ideal


def _distinct(ranked_ids: Sequence[Name]) -> list[Name]:
    return list(dict.fromkeys(ranked_ids))


# ---------------------------------------------------------------- scores that part right from wrong


def auroc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Give how often a case labelled True scores above one labelled False, a tie counting half.

    None when one label is missing. The area under the ROC curve, by ranks: J. A. Hanley, B. J. McNeil, The meaning
    and use of the area under a ROC curve, Radiology 143 (1982). ValueError for different lengths and for NaN.
    """
    positives = sum(map(bool, labels))
    negatives = len(labels) - positives
    area = 0.0
    negatives_above = 0
    for group in _tied(scores, labels):
        own = len(group) - sum(group)
        area += sum(group) * (negatives - negatives_above - own / 2)
        negatives_above += own
    return area / (positives * negatives) if positives and negatives else None


@dataclass(frozen=True, slots=True)
class Risk:
    """What answering everything with a score of at least `threshold` costs."""

    threshold: float
    coverage: Rate
    """Answered, of all."""
    risk: Rate
    """Wrong, of the answered."""


def risk_coverage(scores: Sequence[float], wrong: Sequence[bool]) -> list[Risk]:
    """Give the risk-coverage curve: one point for each distinct score, from the highest down.

    Source: R. El-Yaniv, Y. Wiener, On the foundations of noise-free selective classification, JMLR 11 (2010).
    `wrong`: whether an answer to that case is wrong. ValueError as `auroc`.
    """
    points = []
    answered = errors = 0
    for score, group in zip(sorted(set(scores), reverse=True), _tied(scores, wrong), strict=True):
        answered += len(group)
        errors += sum(group)
        points.append(Risk(score, Rate(answered, len(scores)), Rate(errors, answered)))
    return points


def aurc(scores: Sequence[float], wrong: Sequence[bool]) -> float | None:
    """Give the area under the risk-coverage curve: the mean of the risk at coverages 1/n, 2/n, ... 1.

    None without a case. Lower is better; a score that orders nothing gives about the share of wrong ones. Among equal
    scores the wrong ones are taken to be evenly spread, so the order of the cases does not matter. Source: Y. Geifman,
    G. Uziel, R. El-Yaniv, Bias-reduced uncertainty estimation for deep neural classifiers, ICLR 2019. ValueError as
    `auroc`.
    """
    answered = errors = 0
    risks: list[float] = []
    for group in _tied(scores, wrong):
        share = sum(group) / len(group)
        risks += [(errors + nth * share) / (answered + nth) for nth in range(1, len(group) + 1)]
        answered += len(group)
        errors += sum(group)
    return math.fsum(risks) / len(risks) if risks else None


def reliability(scores: Sequence[tuple[float, bool]]) -> list[tuple[float, Rate]]:
    """Group (probability, right) of each case by rising probability: the mean probability, and how many were right.

    Groups of equal size, as far as equal probabilities, which stay together, allow: at most `BINS`, of at least
    `BIN_SIZE` cases, but two where there are fewer. Source: the reliability diagram of A. Niculescu-Mizil, R. Caruana,
    Predicting good probabilities with supervised learning, ICML 2005, with bins of equal count.
    """
    ordered = sorted(scores)
    bins = max(min(2, len(ordered)), min(BINS, len(ordered) // BIN_SIZE))
    groups: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    first_place: dict[float, int] = {}
    for place, (score, right) in enumerate(ordered):
        at = first_place.setdefault(score, place) * bins // len(ordered)
        groups[at].append((score, right))
    return [
        (math.fsum(score for score, _ in group) / len(group), Rate(sum(right for _, right in group), len(group)))
        for group in groups
        if group
    ]


def _tied(scores: Sequence[float], labels: Sequence[bool]) -> list[list[bool]]:
    """Give the labels in groups of equal score, the highest first."""
    if len(scores) != len(labels):
        raise ValueError(f"{len(scores)} scores and {len(labels)} labels do not belong together")
    groups: dict[float, list[bool]] = {}
    for score, label in zip(scores, labels, strict=True):
        if math.isnan(score):
            raise ValueError("a score is NaN, which is neither above nor below another")
        groups.setdefault(float(score), []).append(bool(label))
    return [groups[score] for score in sorted(groups, reverse=True)]
