"""Outcomes and figures in words, and as marks and bars beside them."""

from __future__ import annotations

import math

from evidencedesk.evaluation.html.elements import Markup, element
from evidencedesk.evaluation.intervals import Interval, percent
from evidencedesk.evaluation.metrics import Rate
from evidencedesk.evaluation.report import GOOD
from evidencedesk.records import Outcome

OUTCOMES: dict[Outcome, str] = {
    "error": "error", "wrong": "wrong", "turned_away": "turned away", "right": "right", "refused": "rightly refused",
}  # fmt: skip
"""How each is written, those that went wrong first."""


def badge(outcome: Outcome) -> Markup:
    """An outcome as a mark, in the colour of good or bad."""
    return element("span", OUTCOMES[outcome], class_=f"badge {'good' if outcome in GOOD else 'bad'}")


def counted(number: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def n_of(rate: Rate) -> str:
    """`3 of 6`; a dash when it was counted on nothing."""
    return f"{rate.count:.2f}".rstrip("0").rstrip(".") + f" of {rate.of}" if rate.of else "–"


def bounds(interval: Interval | None) -> str:
    """In whole per cent, rounded outwards: never narrower than it is."""
    if interval is None:
        return "–"
    return f"{math.floor(interval.low * 100)}–{math.ceil(interval.high * 100)} %"


def share(rate: Rate) -> str:
    """The share in per cent with its interval."""
    return "not applicable" if rate.value is None else f"{percent(rate.value)} (95 %: {bounds(rate.interval)})"


def n_of_and_share(rate: Rate) -> str:
    """`3 of 6`, and the share with its interval."""
    return "not applicable" if rate.value is None else f"{n_of(rate)}, {share(rate)}"


def three_digits(value: float | None) -> str:
    """With three digits; a dash for what does not apply."""
    return "–" if value is None else f"{value:.3f}"


def bar(rate: Rate) -> Markup:
    """A bar with its interval; for the eye only, the numbers stand beside it."""
    if rate.value is None or rate.interval is None:
        return Markup("")
    low, high = rate.interval
    style = f"--value:{rate.value:.2%};--low:{low:.2%};--width:{high - low:.2%}"
    return element("span", element("i"), element("b"), class_="bar", style=style, aria_hidden="true")
