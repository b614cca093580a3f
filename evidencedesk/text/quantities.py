"""Quantities: numbers with their units."""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from evidencedesk.text.spelling import DASHES, digits_of, normalise
from evidencedesk.text.stemming import stem
from evidencedesk.text.tokenizer import WORD, pieces_of, shape_of
from evidencedesk.text.units import MONEY_SIGNS, MONEY_UNITS, MONEY_WORDS, SCALE_LETTERS, SCALES, UNIT_OF


@dataclass(frozen=True, slots=True)
class Number:
    """One quantity: [start, end) are the numeral's characters in the source, its minus sign included.

    `value` is exact; a scale word after the numeral is applied (5 lakh, $3 million). `unit` is a key of UNITS or None.
    `kind` is `range` for both ends of a range (5-7, 30 to 60).
    """

    value: Decimal
    start: int
    end: int
    unit: str | None
    kind: Literal["number", "range"]


_LIST_NUMBER = re.compile(r"^[ \t]*(\d{1,3})[.)।](?=[ \t])", re.MULTILINE)
_MONEY_BEFORE = re.compile(
    rf"(?:(?<![A-Za-z])|(?<=US))(?P<sign>[{MONEY_SIGNS}])\s?$"
    rf"|(?<!\w)(?<!\d )(?:{'|'.join(sorted(MONEY_WORDS))}|শতকরা)\.?\s?$",
    re.I,
)
_UNIT_AFTER = re.compile(  # a unit or scale, also behind "30 (thirty)"; never in the next paragraph
    rf"(?:\s?\([^()\d]{{1,30}}\))?[^\S\n]{{0,2}}\n?-?(?P<unit>[%٪％]|[{MONEY_SIGNS}](?!\s?\d)|per\s+cent\b"
    rf"|(?:business|working|calendar)[\s-]days?\b|(?P<word>[ap]\.m\b|{WORD}))",
    re.I,
)
_RANGE_GAP = re.compile(rf"%?\s*(?:[{DASHES}—]|to\b|থেকে(?=\s))\s*[{MONEY_SIGNS}]?")
_LIST_GAP = re.compile(rf"\s*(?:or|and|বা|ও|এবং)\s+[{MONEY_SIGNS}]?")
_UNIT_JOINT = re.compile(r"[\s.-]+")


def numbers(text: str) -> list[Number]:
    """List the quantities of a text in order. Dates, times, versions, dotted ids, codes and list marks are none.

    Both ends of a range have its unit. Numbers in words and fractions (1/2, ½) are not read; the scales read are
    thousand, lakh, million, crore, billion, and k, m, bn glued to an amount of money ($5m).
    """
    marks = {mark.start(1) for mark in _LIST_NUMBER.finditer(text)}
    shape = shape_of(text)
    found: list[Number] = []
    for piece in pieces_of(text, shape):
        if piece.kind == "number" and not piece.inner and piece.start not in marks:
            number = _number(text, shape, piece.start, piece.end)
            if found and piece.start - found[-1].end <= 12:
                found[-1], number = _joined(found[-1], number, text[found[-1].end : piece.start])
            found.append(number)
    return found


def _number(text: str, shape: str, start: int, end: int) -> Number:
    before = _MONEY_BEFORE.search(text, max(0, start - 8), start)
    after = _UNIT_AFTER.match(shape, end)
    power = 0
    if after and after["word"]:
        word = normalise(text[slice(*after.span("word"))])
        if word not in SCALE_LETTERS or (before and after.start("word") == end):
            power = SCALES.get(stem(word), 0)
        if power:
            after = _UNIT_AFTER.match(shape, after.end())
    unit = _unit(text[slice(*after.span("unit"))]) if after else None
    if before and (before["sign"] or unit is None or unit in MONEY_UNITS):
        unit = _unit(before[0])
    minus = start > 0 and text[start - 1] in "-\u2212" and not text[max(0, start - 2) : start - 1].strip()
    value = Decimal(f"{'-' if minus else ''}{digits_of(text[start:end])}e{power}")
    return Number(value, start - minus, end, unit, "number")


def _unit(words: str) -> str | None:
    return UNIT_OF.get(stem(_UNIT_JOINT.sub("", normalise(words))))


def _joined(first: Number, second: Number, gap: str) -> tuple[Number, Number]:
    """Mark two numbers as a range, or let the first share the second's unit, where the words between say so."""
    shared = replace(first, unit=first.unit or second.unit)
    if _RANGE_GAP.fullmatch(gap):
        return replace(shared, kind="range"), replace(second, unit=second.unit or first.unit, kind="range")
    return (shared if _LIST_GAP.fullmatch(gap) else first), second
