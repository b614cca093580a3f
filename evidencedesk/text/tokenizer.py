"""Cuts a text into words, numbers and codes: what each of them is stands at the top of the package."""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Literal, NamedTuple

from evidencedesk.text.spelling import DASHES, IGNORABLES, QUOTES, digits_of, is_one_letter, normalise, word_set
from evidencedesk.text.stemming import BANGLA_STOP_WORDS, stem
from evidencedesk.text.units import MONEY_SIGNS, MONEY_WORDS, SCALE_LETTERS, UNIT_OF

Kind = Literal["word", "number", "code"]

_ENDINGS = BANGLA_STOP_WORDS | word_set("st nd rd th s ম য় র্থ ষ্ঠ তম লা রা ঠা ই শে টির টার টিতে টায় টিকে")

# The patterns read a text's shape: marks and joiners stand as this letter, ½ and ² (letters to \w) as "_".
_MARK = "\ua7f8"
# Possessive throughout: a long run must never be tried in more than one way.
_LETTERS = rf"[^\W\d_{_MARK}][^\W\d_]*+"
WORD = rf"{_LETTERS}(?:[{QUOTES}]{_LETTERS})*+"
_SPACE = "\u00a0\u2009\u202f"
_GROUPED = (
    rf"(?:(?<!\d,)(?:\d{{1,3}}(?:,\d{{3}})++|\d{{1,2}}(?:,\d\d(?!\d))++,\d{{3}})"
    rf"|(?<!\d[{QUOTES}])\d{{1,3}}(?:[{QUOTES}]\d{{3}})++"
    rf"|(?<![\w.,:/@&{QUOTES}{DASHES}])(?<!\d[ {_SPACE}])(?:\d{{1,3}}(?:[{_SPACE}]\d{{3}})++"
    rf"|(?:\d{{1,2}}(?: \d{{3}})++|\d{{3}}(?: [0০]{{3}})++)(?! \d))(?![:/@&{DASHES}]\d|\.\d+\.))(?![,{QUOTES}]?\d)"
)
_NUMBER = rf"(?:(?:{_GROUPED}|\d++)(?:\.\d++)?+|\.\d++)"
_JOINED = rf"(?:{_GROUPED}\w*+|[^\W{_MARK}]\w*+)"
_RUN = re.compile(  # whatever hangs together
    rf"(?:(?<![^\s\"'`“‘«(\[])[.~]?/(?=\w)|(?<![\w.])\.(?=\d))?"
    rf"{_JOINED}(?:(?:://|::|[.:/@&{QUOTES}{DASHES}．／：＠]){_JOINED})*+"
)
_IS_WORD, _IS_NUMBER = re.compile(WORD).fullmatch, re.compile(_NUMBER).fullmatch
_ATOM = re.compile(rf"(?P<word>{WORD})|\d++")
_NUMERIC = re.compile(  # a numeral or range, and the words that hang on it
    rf"(?P<first>{_NUMBER})(?:[{DASHES}](?P<second>{_NUMBER}))?+"
    rf"(?P<rest>(?P<glued>{WORD})?+(?:[/{QUOTES}{DASHES}]{WORD})*+)"
)
_SECTION = re.compile(
    r"(?:\b(?:version|ver|section|sec|clause|article|chapter|release|rule)|§|ধারা|অনুচ্ছেদ|সংস্করণ)\.?\s*$", re.I
)
_BETWEEN_WORDS = re.compile(rf"[/{DASHES}]")
_STRONG_PART = re.compile(rf"[^_/:@&{DASHES}／：＠]+")
_DOT_PART = re.compile(r"[^.．]+")


class Piece(NamedTuple):
    """A stretch of text and how it is read; `inner` marks the parts of a code."""

    kind: Kind
    start: int
    end: int
    inner: bool = False


def shape_of(text: str) -> str:
    """Give the text, character for character, as the patterns read it."""
    return text if text.isascii() else text.translate(_SHAPES)


class _Shapes(dict[int, str]):
    """How each character reads, looked up when it is first met: to go through all of them takes as long as a search."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if code >= 0x20000 and not 0xE0100 <= code < 0xE01F0:
            return char  # as it stands, and not kept: a strange text must not fill the memory
        category = unicodedata.category(char)
        if category[0] == "M" or (category == "Cf" and IGNORABLES.match(char)):
            char = _MARK
        elif category == "No":
            char = "_"
        self[code] = char
        return char


_SHAPES = _Shapes()


def pieces_of(text: str, shape: str, start: int = 0, end: int | None = None) -> Iterator[Piece]:
    """Cut into words (stop words too), numbers and codes, in order; a code comes before its parts.

    `start` and `end`: only that stretch, which must begin and end where words do.
    """
    for run in _RUN.finditer(shape, start, len(shape) if end is None else end):
        if run[0].isalpha() or _IS_WORD(run[0]):
            yield Piece("word", run.start(), run.end())
        else:
            yield from _compound(text, shape, run.start(), run.end())


def _compound(text: str, shape: str, start: int, end: int) -> Iterator[Piece]:
    numeric = _NUMERIC.fullmatch(shape, start, end)
    if numeric and (pieces := _numeric(text, numeric)):
        yield from pieces
        return
    atoms = list(_ATOM.finditer(shape, start, end))
    kinds: list[Kind] = ["word" if atom["word"] else "number" for atom in atoms]
    between = [text[a.end() : b.start()] for a, b in pairwise(atoms)]
    path = text[start] in "/~." or sum("/" in joint for joint in between) > 1
    if len(atoms) < 2:
        for kind, atom in zip(kinds, atoms, strict=True):  # a sign behind the digits makes another number: 2½
            yield Piece(kind, *atom.span(), kind == "number" and text[atom.end() : end].strip("_") != "")
    elif set(between) <= {".", "&"} and all(is_one_letter(text[slice(*atom.span())]) for atom in atoms):
        yield Piece("code", atoms[0].start(), atoms[-1].end())  # U.S. and R&D: their letters say nothing alone
    elif not path and "number" not in kinds and all(map(_BETWEEN_WORDS.fullmatch, between)):
        yield from (Piece("word", *atom.span()) for atom in atoms)
    elif kinds[1] == "number" and normalise(text[start : atoms[1].start()]).removesuffix(".") in MONEY_WORDS:
        yield Piece("word", *atoms[0].span())  # Tk500 and Rs.500 are amounts
        yield from _compound(text, shape, atoms[1].start(), end)
    else:
        yield from _code(shape, start if path else atoms[0].start(), atoms[-1].end(), inner=False)


def _numeric(text: str, found: re.Match[str]) -> list[Piece]:
    """Give the numbers and words of a run that begins with a numeral; nothing when it is a code after all."""
    spans = [found.span(name) for name in ("first", "second") if found[name]]
    numerals = [digits_of(text[slice(*span)]) for span in spans]
    if len(spans) == 2 and not _rises(*numerals):
        return []
    glued = normalise(text[slice(*found.span("glued"))]) if found["glued"] else ""
    if glued and glued.isascii() and "." not in numerals[-1] and glued not in _ENDINGS:
        money = found.start() > 0 and text[found.start() - 1] in MONEY_SIGNS
        if stem(glued) not in UNIT_OF and not (money and glued in SCALE_LETTERS):
            return []
    pieces = [Piece("number", *span) for span in spans]
    is_bare_decimal = "." in numerals[0] and found.end("first") == found.end()
    if is_bare_decimal and _SECTION.search(text, max(0, found.start() - 16), found.start()):
        pieces = [Piece("code", *spans[0]), Piece("number", *spans[0], True)]
    words = [Piece("word", *word.span()) for word in _ATOM.finditer(found.string, *found.span("rest"))]
    return pieces + [word for word in words if normalise(text[word.start : word.end]) not in _ENDINGS]


def _rises(low: str, high: str) -> bool:
    """Tell whether low-high is a range: rising, or years such as 2019-20. A leading zero says date or code."""
    if re.match(r"0\d", low) or re.match(r"0\d", high):
        return False
    years = len(low) == 4 and len(high) == 2 and (low + high).isdigit() and low[2:] < high
    return years or Decimal(low) < Decimal(high)


def _code(shape: str, start: int, end: int, *, inner: bool) -> Iterator[Piece]:
    """Give a code, then its parts: between strong signs, in these between dots, in these letters | digits.

    Letters and digits are parted where there is one stretch of each (RD2, 5G), not in hashes.
    """
    yield Piece("code", start, end, inner)
    for pattern in (_STRONG_PART, _DOT_PART, _ATOM):
        parts = [found.span() for found in pattern.finditer(shape, start, end)]
        if len(parts) < 2 or (pattern is _ATOM and len(parts) > 2):
            continue
        if pattern is _DOT_PART and shape[start] in "vV" and shape[start + 1 : parts[0][1]].isdecimal():
            yield from _code(shape, start + 1, end, inner=True)  # v2.1.3 is version 2.1.3
            return
        for span in parts:
            if _IS_WORD(shape, *span):
                yield Piece("word", *span, True)
            elif _IS_NUMBER(shape, *span):
                yield Piece("number", *span, True)
            elif _ATOM.search(shape, *span):
                yield from _code(shape, *span, inner=True)
        return
