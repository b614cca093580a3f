"""How sure a rate is: intervals and bounds of a share that was counted, and what a count can promise. Pure.

A count is `count` of `of` independent tries with one unknown rate. Two answers to "what can the rate be?":

- Wilson's score interval (1927), to be shown beside a rate: on average over rates its confidence is what it says.
- Clopper and Pearson's upper bound (1934), for a promise: never less sure than it says, at any rate and any number of
  tries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

from evidencedesk.records import require_count

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """Rates from `low` to `high`, both in 0..1."""

    low: float
    high: float


def wilson(count: float, of: int, confidence: float = CONFIDENCE) -> Interval:
    """Give Wilson's score interval for `count` of `of`; (0, 1) without any try.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    `count` may be a sum of values in 0..1: their variance is at most that of as many yes and no with the same mean, so
    the interval is, if anything, too wide. ValueError unless 0 <= count <= of and 0 < confidence < 1.
    """
    _require(count, of, confidence)
    if of == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    rate = count / of
    centre = rate + z * z / (2 * of)
    half_width = z * math.sqrt(rate * (1 - rate) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    # At 0 and at `of` one end is the rate itself, which rounding must not miss.
    low = 0.0 if count == 0 else max(0.0, (centre - half_width) / scale)
    high = 1.0 if count == of else min(1.0, (centre + half_width) / scale)
    return Interval(low, high)


def upper_bound(count: int, of: int, confidence: float = CONFIDENCE) -> float:
    """Give Clopper and Pearson's one-sided upper bound: the rate at which so few would be seen with 1 - confidence.

    Source: C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of the
    binomial, Biometrika 26 (1934). 1.0 when nothing was tried. ValueError as `wilson`, and for a count that is not
    whole.
    """
    _require(count, of, confidence)
    if count == of:
        return 1.0
    low, high = count / of, 1.0
    # The tail falls as the rate rises, so halving finds where it crosses; it ends when no float lies between.
    while low < (middle := (low + high) / 2) < high:
        if probability_of_at_most(count, of, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def probability_of_at_most(count: int, of: int, rate: float) -> float:
    """Give the binomial probability of at most `count` of `of` at that rate, summed term by term.

    Terms are taken by their logarithms, so none overflows. Cost: count + 1 terms. ValueError for a rate outside 0..1.
    """
    _require(count, of)
    require_count("count", count, minimum=0)
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must lie in 0..1, not {rate!r}")
    if count == of or rate == 0:
        return 1.0
    if rate == 1:
        return 0.0
    yes, no, ways = math.log(rate), math.log1p(-rate), math.lgamma(of + 1)
    logs = (ways - math.lgamma(k + 1) - math.lgamma(of - k + 1) + k * yes + (of - k) * no for k in range(count + 1))
    return min(1.0, math.fsum(map(math.exp, logs)))


def needed(errors: int, max_rate: float, confidence: float = CONFIDENCE) -> int:
    """Give the fewest tries with so many errors that prove, with that confidence, an error rate of at most `max_rate`.

    ValueError for a negative count, and for rates and confidences that do not lie between 0 and 1.
    """
    require_count("errors", errors, minimum=0)
    _require_max_rate(max_rate)
    _require(errors, errors, confidence)

    def proves(of: int) -> bool:
        return probability_of_at_most(errors, of, max_rate) <= 1 - confidence + _ROUNDING

    few, enough = errors, errors + 1
    while not proves(enough):
        few, enough = enough, 2 * enough
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if proves(middle) else (middle, enough)
    return enough


def needed_without_error(max_rate: float, confidence: float = CONFIDENCE) -> int:
    """Give how many tries without an error prove `max_rate`: 59 for 5 % at 95 %, about 3 / max_rate.

    That is the rule of three: J. A. Hanley, A. Lippman-Hand, If nothing goes wrong, is everything all right?, JAMA
    249 (1983). ValueError as `needed`.
    """
    return needed(0, max_rate, confidence)


@dataclass(frozen=True, slots=True)
class Promise:
    """Whether a count proves that errors are rare enough."""

    given: bool
    upper: float
    """What the count proves: the error rate is at most this."""
    more_needed: int
    """Further tries without any error that would prove what was asked; 0 when it is proved."""
    sentence: str


def promise(errors: int, of: int, max_rate: float, confidence: float = CONFIDENCE) -> Promise:
    """Judge whether `errors` of `of` prove an error rate of at most `max_rate`, and say it in one sentence.

    By Clopper and Pearson's upper bound. ValueError as `upper_bound` and `needed`.
    """
    upper = upper_bound(errors, of, confidence)
    _require_max_rate(max_rate)
    given = proves_at_most(errors, of, max_rate, confidence)
    more = 0 if given else needed(errors, max_rate, confidence) - of
    seen, sure = f"{errors} wrong of {of}", f"{percent(confidence)} confidence"
    if given:
        sentence = f"At most {percent(max_rate)} wrong can be promised: {seen} prove at most {percent(upper)} ({sure})."
    else:
        proved = f"{seen} prove only that at most {percent(upper)} are ({sure})" if of else "nothing was tried"
        sentence = f"At most {percent(max_rate)} wrong cannot be promised: {proved}; "
        sentence += f"it takes {more} more without an error."
    return Promise(given, upper, more, sentence)


def proves_at_most(errors: int, of: int, max_rate: float, confidence: float = CONFIDENCE) -> bool:
    """Tell whether the upper bound of `errors` of `of` is at most `max_rate`, with one look at the tail."""
    _require_max_rate(max_rate)
    _require(errors, of, confidence)
    return errors < of and probability_of_at_most(errors, of, max_rate) <= 1 - confidence + _ROUNDING


_ROUNDING = 1e-12
"""A tail that equals the doubt exactly, such as 0.5 ** 2 at 75 %, must not fail by its last bit."""


def percent(share: float) -> str:
    """Write a share in per cent with one decimal where it has one, as in `5 %` and `20.6 %`.

    What is not nothing or everything is never written as such: `less than 0.1 %`, `over 99.9 %`.
    """
    if 0 < share < 0.0005:
        return "less than 0.1 %"
    if 0.9995 <= share < 1:
        return "over 99.9 %"
    return f"{share * 100:.1f}".removesuffix(".0") + " %"


def _require(count: float, of: int, confidence: float = CONFIDENCE) -> None:
    require_count("of", of, minimum=0)
    if not 0 <= count <= of:
        raise ValueError(f"count must lie in 0..{of}, not {count!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence!r}")


def _require_max_rate(max_rate: float) -> None:
    if not 0 < max_rate < 1:
        raise ValueError(f"max_rate must lie between 0 and 1, not {max_rate!r}")
