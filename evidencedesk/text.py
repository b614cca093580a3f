"""Reads text: words, numbers, codes and sentences, English and Bangla alike. Pure: no file, no database.

Offsets are those of the text that came in. Every function takes any text, raises nothing, writes nothing and ends in
time linear in the text's length. How a stretch is read:

- A *word* is letters with their marks and joiners, apostrophes inside it included. Hyphens and a lone slash part words:
  `e-bike` and `and/or` are two each. A script without spaces gives one word a run; `l'homme` is not split.
- A *number* has decimal digits of any script. Commas, apostrophes and fixed-width spaces group (1,000 and 12,50,000), a
  plain space does after one or two digits or before zeros only (`1 000`, `100 000`): `101 102` stays two. A comma that
  does not group is a list's comma: `1,0000` is 1 and 0. A point is a decimal point. An ordinal or case ending behind it
  is left aside (`30th`, `২০২৪-এর`), a unit or a hyphenated word is a word (`10kg`, `30-day`).
- A *range* (`5-7`, `30–60`, `2019-20`) is two numbers when it rises and nothing begins with a zero.
- A *code* is anything else with a digit in it or joined by one of `_ @ . : &` or several slashes: `RD2-24`, `v2.1.3`,
  `2024-01-15`, `10:30`, `24/7`, `user@example.org`, `/etc/hosts`. It gives the whole, then its parts, so `rd2 24` finds
  `RD2–24`. A decimal after a word such as *version* or *section* is a code too.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

TEXT_VERSION = "1"
"""Version of tokenizer and stemmer. A file remembers the one that its terms were made with."""

Kind = Literal["word", "number", "code"]


@dataclass(frozen=True, slots=True)
class Token:
    """One search term and the stretch [start, end) of the source, in characters, that it stands for.

    The tokens of a code's parts come after the code's own and lie inside its stretch.
    """

    term: str
    start: int
    end: int
    kind: Kind


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


class Span(NamedTuple):
    """Character offsets [start, end)."""

    start: int
    end: int


# --- One form for every spelling ---

# Unicode's Default_Ignorable_Code_Point: joiners, soft hyphen, byte-order mark, variation selectors ...
_IGNORABLES = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_QUOTE = "'\u2019\u02bc\uff07"
_DASH = "\\-\u2010\u2011\u2012\u2013\u2212\uff0d"
# Khanda ta is also typed as ta + virama (+ joiner).
_FOLD = {0xFF01 + at: chr(0x21 + at) for at in range(94)} | {0x3000: " ", 0x09CE: "\u09a4\u09cd"}
_FOLD |= dict.fromkeys(map(ord, _QUOTE), "'")


def normalise(text: str) -> str:
    """Give the form in which words are compared. Idempotent.

    Canonically equal spellings become one (in Bangla: U+09DC/DD/DF and base with nukta, the two-part vowel signs and
    their halves), case is folded, default-ignorable characters go, digits and full-width forms become ASCII,
    apostrophes straight.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFD", _IGNORABLES.sub("", text)).casefold().translate(_FOLD)
    composed = unicodedata.normalize("NFC", folded)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), composed)


def _words(listed: str) -> frozenset[str]:
    return frozenset(map(normalise, listed.split()))


# --- Stems and stop words ---

ENGLISH_STOP_WORDS = _words(
    "a an the this that these those i you he she it we they me him her them my your his its our their is are was were"
    " be been being am do does did have has had can could will would shall should of to in on at by for from with as"
    " and or what which who whom whose how when where why"
)
BANGLA_STOP_WORDS = _words(
    "এ ও এই ওই সেই যে সে তা যা এবং আর বা এটি এটা একটি একটা তার তাঁর তাদের আমি আমার আমরা আমাদের আপনি আপনার"
    " তুমি তোমার তিনি তারা কি কী কে কেন কোন কোথায় কখন কবে কত কীভাবে কিভাবে হয় হবে হয়েছে হয়েছিল ছিল ছিলেন"
    " আছে করে করা করতে করেন জন্য থেকে দিয়ে সঙ্গে সাথে পারি পারে পারেন পারবেন পারব এর র তে টি টা"
)
"""Bare case endings (`10%-এর`) included. Neither list holds a negation."""

_IRREGULAR = {"buses": "bus", "gases": "gas", "statuses": "status", "viruses": "virus", "bonuses": "bonus"}
_IRREGULAR |= {"menus": "menu", "news": "news", "goods": "goods", "customs": "customs", "lens": "lens"}
_SILENT_E = re.compile(r"(?:ch|sh|x|ss|zz)e$")
# The leftmost match is the longest ending. -র and -তে stand after vowels; after consonants they are the word's own
# letters (বছর, ভারত + ে).
_BANGLA_ENDING = re.compile(
    "(?<!\u09cd)(?:গুলি|গুলো|গুলা|সমূহ|দেরকে|দের|েরা|রা|টি|টা|(?<=[\u09be-\u09cc])(?:কে|তে|র|য\u09bc)"
    "|(?<=[\u0985-\u0994\u09be-\u09cc])(?:য\u09bcের|য\u09bcে)|ের|ে|ই|ও)$"
)


def stem(word: str) -> str:
    """Give the stem of a normalised word: English plurals and possessives, Bangla case and plural endings.

    English after Harman's S-stemmer ("How effective is suffixing?", 1991), kept equal for singular and plural (`cookie`
    and `cookies`: cooky). `can't` is `cannot`, any other n't is `not`; other apostrophes go.
    """
    if "'" in word:
        if word.endswith("n't"):
            return "cannot" if word == "can't" else "not"
        word = word.removesuffix("'s").replace("'", "")
    if "\u0980" <= word[-1:] <= "\u09ff":
        return _bangla_stem(word)
    if len(word) < 4 or word in _IRREGULAR:
        return _IRREGULAR.get(word, word)
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-2] if word.endswith("oes") and len(word) > 5 else word[:-1]
    if word.endswith("ie") and len(word) > 3:
        return word[:-2] + "y"
    return word[:-1] if _SILENT_E.search(word) else word


def _bangla_stem(word: str) -> str:
    """Strip endings one by one while two letters (signs not counted) stay in front."""
    letters = [at for at, char in enumerate(word) if char.isalpha()]
    if len(letters) < 2:
        return word
    # Behind a consonant, -কে is the object's ending of long words (মানুষকে), but ক + ে of short ones (দশকে).
    end = len(word) - 2 if word.endswith("কে") and len(letters) > 3 else len(word)
    while found := _BANGLA_ENDING.search(word, max(letters[1] + 1, end - 5), end):
        end = found.start()
    return word[:end]


def is_stop_word(word: str) -> bool:
    """Tell whether a word, in any spelling, is too common to search for (`it's` and `you're` as well)."""
    word = normalise(word)
    head, _, clitic = word.partition("'")
    return word in BANGLA_STOP_WORDS or (head in ENGLISH_STOP_WORDS and clitic in ("", "s", "re", "ve", "ll", "d", "m"))


# --- Words, numbers and codes ---

UNITS: Mapping[str, frozenset[str]] = {
    unit: _words(listed)
    for unit, listed in {
        "%": "% ٪ percent pct শতাংশ পার্সেন্ট শতকরা", "second": "second sec সেকেন্ড", "minute": "minute min মিনিট",
        "hour": "hour hr ঘণ্টা ঘন্টা", "am": "am", "pm": "pm", "day": "day calendarday দিন দিবস",
        "business day": "businessday workingday কর্মদিবস কার্যদিবস", "week": "week সপ্তাহ", "month": "month মাস",
        "year": "year yr বছর বৎসর", "BDT": "৳ bdt tk taka টাকা", "USD": "$ usd dollar ডলার", "EUR": "€ eur euro ইউরো",
        "GBP": "£ gbp", "JPY": "¥ jpy yen", "INR": "₹ inr rs rupee রুপি", "kg": "kg kilogram কেজি", "gram": "gram গ্রাম",
        "km": "km kilometre kilometer কিলোমিটার", "metre": "metre meter মিটার", "cm": "cm", "mm": "mm",
        "mile": "mile মাইল", "litre": "litre liter লিটার", "MB": "mb", "GB": "gb",
    }.items()
}  # fmt: skip
"""Unit -> the singular words and signs read as it. A working day is not a day."""

_UNIT_OF = {stem(word): unit for unit, listed in UNITS.items() for word in listed}
_POWERS = {3: "k thousand হাজার", 5: "lakh lac লাখ লক্ষ", 6: "m mn million মিলিয়ন", 7: "crore কোটি"}
_POWERS |= {9: "b bn billion বিলিয়ন"}
_SCALES = {stem(word): power for power, listed in _POWERS.items() for word in _words(listed)}
_SCALE_LETTERS = _words("k m mn b bn")
_MONEY = "$€£৳₹¥"
_MONEY_WORDS = _words("tk bdt usd eur gbp inr rs টাকা")
_MONEY_UNITS = {_UNIT_OF[stem(word)] for word in _MONEY_WORDS}
_ENDINGS = BANGLA_STOP_WORDS | _words("st nd rd th s ম য় র্থ ষ্ঠ তম লা রা ঠা ই শে টির টার টিতে টায় টিকে")

# The patterns read a text's shape: marks and joiners stand as this letter, ½ and ² (letters to \w) as "_".
_MARK = "\ua7f8"
# Possessive throughout: a long run must never be tried in more than one way.
_LETTERS = rf"[^\W\d_{_MARK}][^\W\d_]*+"
_WORD = rf"{_LETTERS}(?:[{_QUOTE}]{_LETTERS})*+"
_SPACE = "\u00a0\u2009\u202f"
_GROUPED = (
    rf"(?:(?<!\d,)(?:\d{{1,3}}(?:,\d{{3}})++|\d{{1,2}}(?:,\d\d(?!\d))++,\d{{3}})"
    rf"|(?<!\d[{_QUOTE}])\d{{1,3}}(?:[{_QUOTE}]\d{{3}})++"
    rf"|(?<![\w.,:/@&{_QUOTE}{_DASH}])(?<!\d[ {_SPACE}])(?:\d{{1,3}}(?:[{_SPACE}]\d{{3}})++"
    rf"|(?:\d{{1,2}}(?: \d{{3}})++|\d{{3}}(?: [0০]{{3}})++)(?! \d))(?![:/@&{_DASH}]\d|\.\d+\.))(?![,{_QUOTE}]?\d)"
)
_NUMBER = rf"(?:(?:{_GROUPED}|\d++)(?:\.\d++)?+|\.\d++)"
_JOINED = rf"(?:{_GROUPED}\w*+|[^\W{_MARK}]\w*+)"
_RUN = re.compile(  # whatever hangs together
    rf"(?:(?<![^\s\"'`“‘«(\[])[.~]?/(?=\w)|(?<![\w.])\.(?=\d))?"
    rf"{_JOINED}(?:(?:://|::|[.:/@&{_QUOTE}{_DASH}．／：＠]){_JOINED})*+"
)
_IS_WORD, _IS_NUMBER = re.compile(_WORD).fullmatch, re.compile(_NUMBER).fullmatch
_ATOM = re.compile(rf"(?P<word>{_WORD})|\d++")
_NUMERIC = re.compile(  # a numeral or range, and the words that hang on it
    rf"(?P<first>{_NUMBER})(?:[{_DASH}](?P<second>{_NUMBER}))?+"
    rf"(?P<rest>(?P<glued>{_WORD})?+(?:[/{_QUOTE}{_DASH}]{_WORD})*+)"
)
_SECTION = re.compile(
    r"(?:\b(?:version|ver|section|sec|clause|article|chapter|release|rule)|§|ধারা|অনুচ্ছেদ|সংস্করণ)\.?\s*$", re.I
)
_BETWEEN_WORDS = re.compile(rf"[/{_DASH}]")
_STRONG_PART = re.compile(rf"[^_/:@&{_DASH}／：＠]+")
_DOT_PART = re.compile(r"[^.．]+")


class _Piece(NamedTuple):
    """A stretch of text and how it is read; `inner` marks the parts of a code."""

    kind: Kind
    start: int
    end: int
    inner: bool = False


def _shape(text: str) -> str:
    """Give the text, character for character, as the patterns read it."""
    return text if text.isascii() else text.translate(_shapes())


@cache
def _shapes() -> dict[int, str]:
    shapes = {}
    for char in map(chr, (*range(0xA0, 0x20000), *range(0xE0100, 0xE01F0))):
        category = unicodedata.category(char)
        if category[0] == "M" or (category == "Cf" and _IGNORABLES.match(char)):
            shapes[ord(char)] = _MARK
        elif category == "No":
            shapes[ord(char)] = "_"
    return shapes


def _pieces(text: str, shape: str) -> Iterator[_Piece]:
    """Cut into words (stop words too), numbers and codes, in order; a code comes before its parts."""
    for run in _RUN.finditer(shape):
        if run[0].isalpha() or _IS_WORD(run[0]):
            yield _Piece("word", run.start(), run.end())
        else:
            yield from _compound(text, shape, run.start(), run.end())


def _compound(text: str, shape: str, start: int, end: int) -> Iterator[_Piece]:
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
            yield _Piece(kind, *atom.span(), kind == "number" and text[atom.end() : end].strip("_") != "")
    elif set(between) <= {".", "&"} and all(_is_one_letter(text[slice(*atom.span())]) for atom in atoms):
        yield _Piece("code", atoms[0].start(), atoms[-1].end())  # U.S. and R&D: their letters say nothing alone
    elif not path and "number" not in kinds and all(map(_BETWEEN_WORDS.fullmatch, between)):
        yield from (_Piece("word", *atom.span()) for atom in atoms)
    elif kinds[1] == "number" and normalise(text[start : atoms[1].start()]).removesuffix(".") in _MONEY_WORDS:
        yield _Piece("word", *atoms[0].span())  # Tk500 and Rs.500 are amounts
        yield from _compound(text, shape, atoms[1].start(), end)
    else:
        yield from _code(shape, start if path else atoms[0].start(), atoms[-1].end(), inner=False)


def _is_one_letter(word: str) -> bool:
    return sum(map(str.isalpha, normalise(word))) == 1


def _numeric(text: str, found: re.Match[str]) -> list[_Piece]:
    """Give the numbers and words of a run that begins with a numeral; nothing when it is a code after all."""
    spans = [found.span(name) for name in ("first", "second") if found[name]]
    numerals = [_digits(text[slice(*span)]) for span in spans]
    if len(spans) == 2 and not _rises(*numerals):
        return []
    glued = normalise(text[slice(*found.span("glued"))]) if found["glued"] else ""
    if glued and glued.isascii() and "." not in numerals[-1] and glued not in _ENDINGS:
        money = found.start() > 0 and text[found.start() - 1] in _MONEY
        if stem(glued) not in _UNIT_OF and not (money and glued in _SCALE_LETTERS):
            return []
    pieces = [_Piece("number", *span) for span in spans]
    is_bare_decimal = "." in numerals[0] and found.end("first") == found.end()
    if is_bare_decimal and _SECTION.search(text, max(0, found.start() - 16), found.start()):
        pieces = [_Piece("code", *spans[0]), _Piece("number", *spans[0], True)]
    words = [_Piece("word", *word.span()) for word in _ATOM.finditer(found.string, *found.span("rest"))]
    return pieces + [word for word in words if normalise(text[word.start : word.end]) not in _ENDINGS]


def _rises(low: str, high: str) -> bool:
    """Tell whether low-high is a range: rising, or years such as 2019-20. A leading zero says date or code."""
    if re.match(r"0\d", low) or re.match(r"0\d", high):
        return False
    years = len(low) == 4 and len(high) == 2 and (low + high).isdigit() and low[2:] < high
    return years or Decimal(low) < Decimal(high)


def _code(shape: str, start: int, end: int, *, inner: bool) -> Iterator[_Piece]:
    """Give a code, then its parts: between strong signs, in these between dots, in these letters | digits.

    Letters and digits are parted where there is one stretch of each (RD2, 5G), not in hashes.
    """
    yield _Piece("code", start, end, inner)
    for pattern in (_STRONG_PART, _DOT_PART, _ATOM):
        parts = [found.span() for found in pattern.finditer(shape, start, end)]
        if len(parts) < 2 or (pattern is _ATOM and len(parts) > 2):
            continue
        if pattern is _DOT_PART and shape[start] in "vV" and shape[start + 1 : parts[0][1]].isdecimal():
            yield from _code(shape, start + 1, end, inner=True)  # v2.1.3 is version 2.1.3
            return
        for span in parts:
            if _IS_WORD(shape, *span):
                yield _Piece("word", *span, True)
            elif _IS_NUMBER(shape, *span):
                yield _Piece("number", *span, True)
            elif _ATOM.search(shape, *span):
                yield from _code(shape, *span, inner=True)
        return


# --- Terms ---

_NO_DIGIT = re.compile(r"[^0-9.]")
_DASHES = re.compile(f"[{_DASH}]")


def _digits(numeral: str) -> str:
    return numeral if numeral.isascii() and numeral.isdigit() else _NO_DIGIT.sub("", normalise(numeral))


def _number_term(numeral: str) -> str:
    whole, point, fraction = _digits(numeral).partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


@lru_cache(maxsize=1 << 16)
def _word_term(surface: str) -> str:
    """Give the word's term; empty for a stop word."""
    word = normalise(surface)
    return "" if is_stop_word(word) else stem(word)


def _code_term(surface: str) -> str:
    term = _DASHES.sub("-", normalise(surface))
    letters = term.split(".")
    return "".join(letters) if all(map(_is_one_letter, letters)) and not any(map(str.isdecimal, term)) else term


def _terms(text: str) -> Iterator[tuple[str, _Piece]]:
    for piece in _pieces(text, _shape(text)):
        surface = text[piece.start : piece.end]
        if piece.kind == "word":
            # A long run is seldom met twice and would fill the memory of the cache.
            term = _word_term(surface) if len(surface) <= 40 else _word_term.__wrapped__(surface)
        else:
            term = _number_term(surface) if piece.kind == "number" else _code_term(surface)
        if term:
            yield term, piece


def analyse(text: str) -> list[Token]:
    """List the search terms of a text in order: stemmed words but the stop words, numbers, codes and their parts."""
    return [Token(term, piece.start, piece.end, piece.kind) for term, piece in _terms(text)]


def tokens(text: str) -> list[str]:
    """List the terms of `analyse`, each as often as it occurs."""
    return [term for term, _ in _terms(text)]


def key_words(text: str) -> list[str]:
    """List the distinct stemmed words by first occurrence, those inside codes too: no numbers, no stop words."""
    return list(dict.fromkeys(term for term, piece in _terms(text) if piece.kind == "word"))


# --- Quantities ---

_LIST_NUMBER = re.compile(r"^[ \t]*(\d{1,3})[.)।](?=[ \t])", re.MULTILINE)
_MONEY_BEFORE = re.compile(
    rf"(?:(?<![A-Za-z])|(?<=US))(?P<sign>[{_MONEY}])\s?$"
    rf"|(?<!\w)(?<!\d )(?:{'|'.join(sorted(_MONEY_WORDS))}|শতকরা)\.?\s?$",
    re.I,
)
_UNIT_AFTER = re.compile(  # a unit or scale, also behind "30 (thirty)"; never in the next paragraph
    rf"(?:\s?\([^()\d]{{1,30}}\))?[^\S\n]{{0,2}}\n?-?(?P<unit>[%٪％]|[{_MONEY}](?!\s?\d)|per\s+cent\b"
    rf"|(?:business|working|calendar)[\s-]days?\b|(?P<word>[ap]\.m\b|{_WORD}))",
    re.I,
)
_RANGE_GAP = re.compile(rf"%?\s*(?:[{_DASH}—]|to\b|থেকে(?=\s))\s*[{_MONEY}]?")
_LIST_GAP = re.compile(rf"\s*(?:or|and|বা|ও|এবং)\s+[{_MONEY}]?")
_UNIT_JOINT = re.compile(r"[\s.-]+")


def numbers(text: str) -> list[Number]:
    """List the quantities of a text in order. Dates, times, versions, dotted ids, codes and list marks are none.

    Both ends of a range have its unit. Numbers in words and fractions (1/2, ½) are not read; the scales read are
    thousand, lakh, million, crore, billion, and k, m, bn glued to an amount of money ($5m).
    """
    marks = {mark.start(1) for mark in _LIST_NUMBER.finditer(text)}
    shape = _shape(text)
    found: list[Number] = []
    for piece in _pieces(text, shape):
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
        if word not in _SCALE_LETTERS or (before and after.start("word") == end):
            power = _SCALES.get(stem(word), 0)
        if power:
            after = _UNIT_AFTER.match(shape, after.end())
    unit = _unit(text[slice(*after.span("unit"))]) if after else None
    if before and (before["sign"] or unit is None or unit in _MONEY_UNITS):
        unit = _unit(before[0])
    minus = start > 0 and text[start - 1] in "-\u2212" and not text[max(0, start - 2) : start - 1].strip()
    value = Decimal(f"{'-' if minus else ''}{_digits(text[start:end])}e{power}")
    return Number(value, start - minus, end, unit, "number")


def _unit(words: str) -> str | None:
    return _UNIT_OF.get(stem(_UNIT_JOINT.sub("", normalise(words))))


def _joined(first: Number, second: Number, gap: str) -> tuple[Number, Number]:
    """Mark two numbers as a range, or let the first share the second's unit, where the words between say so."""
    shared = replace(first, unit=first.unit or second.unit)
    if _RANGE_GAP.fullmatch(gap):
        return replace(shared, kind="range"), replace(second, unit=second.unit or first.unit, kind="range")
    return (shared if _LIST_GAP.fullmatch(gap) else first), second


# --- Sentences ---

_CLOSING = r"(?:[\"'”’»)\]}*_]|\[[^\[\]\s]{1,80}\])*+"
_BREAK = re.compile(
    r"(?P<block>^[ \t]*(?:\|[^\n]*|\#{1,6}[ \t][^\n]*)(?:\n|\Z))"  # a table row, a heading
    r"|(?P<mark>^[ \t]*\d{1,3}[.)।](?=[ \t]))"
    r"|(?P<line>\n(?=[ \t\r]*\n|[ \t]*(?:(?:[-*+•]|\d{1,3}[.)।]|\#{1,6})[ \t]|\|)))"
    rf"|(?P<danda>(?:[।॥。！？]++|(?<=[ঀ-৿])\|++(?=\s|\Z)){_CLOSING})"
    rf"|(?P<stop>(?<![.!?…])[.!?…]++{_CLOSING}(?=\s|\Z))",
    re.MULTILINE,
)
_LAST_WORD = re.compile(r"[^\s(\[{\"'“‘«/—–]*\Z")
_ABBREVIATIONS = _words(
    "mr mrs ms dr prof st rev hon gen col capt lt sgt gov sen messrs e.g i.e eg ie cf vs viz approx ca al"
    " ড ডা মো মোঃ মোছা মি প্রফেসর অধ্যা ইঞ্জি লে"
)
_BEFORE_NUMBER = _words("no nos p pp vol art sec fig ch para cl tk rs নং পৃ")
_BEFORE_CAPITAL = _words("etc a.m p.m inc ltd co corp jr sr ইত্যাদি লি")


def sentences(text: str) -> list[Span]:
    """List the sentences, trimmed of white space; together they hold every other character, once and in order.

    A sentence ends at . ! ? … before white space, at a danda anywhere (and at a bar typed for one: right after a Bangla
    letter, before white space), each with its closing quotes, brackets and attached citation marks; at a blank line;
    before a list mark. A table row (its line begins with a bar) and a heading stand alone. A newline ends nothing, nor
    do abbreviations, initials and list numbers.
    """
    spans: list[Span] = []
    begin = 0
    cuts = [cut.end() for cut in _BREAK.finditer(text) if _ends_sentence(text, cut)]
    for end in (*cuts, len(text)):
        stretch = text[begin:end]
        if bare := stretch.strip():
            start = begin + len(stretch) - len(stretch.lstrip())
            spans.append(Span(start, start + len(bare)))
        begin = end
    return spans


def _ends_sentence(text: str, found: re.Match[str]) -> bool:
    dot = found.start()
    if found.lastgroup != "stop" or text[dot] != "." or text.startswith((".", "!", "?", "…"), dot + 1):
        return found.lastgroup != "mark"
    word = _LAST_WORD.findall(text, max(0, dot - 24), dot)[0]
    key = normalise(word)
    following = text[found.end() : found.end() + 80].lstrip()[:1]
    if key in _BEFORE_NUMBER:
        return not following.isdigit()
    if key in _BEFORE_CAPITAL:
        return not following or following.isupper()
    initials = all(map(_is_one_letter, key.split("."))) and not word.islower() and key not in ("i", "না", "নি")
    return not initials and key not in _ABBREVIATIONS


# --- Scripts ---

_NAMES = """
LATIN Latn|BENGALI Beng|DEVANAGARI Deva|ARABIC Arab|CYRILLIC Cyrl|GREEK Grek|HEBREW Hebr|ARMENIAN Armn|GEORGIAN Geor
GURMUKHI Guru|GUJARATI Gujr|ORIYA Orya|TAMIL Taml|TELUGU Telu|KANNADA Knda|MALAYALAM Mlym|SINHALA Sinh|THAI Thai
LAO Laoo|TIBETAN Tibt|MYANMAR Mymr|KHMER Khmr|ETHIOPIC Ethi|HANGUL Hang|HIRAGANA Jpan|KATAKANA Jpan|CJK Hani
"""
_SCRIPT_OF_NAME = dict(map(str.split, re.findall(r"[^|\n]+", _NAMES)))
_SAME_SCRIPT = {"Hans": "Hani", "Hant": "Hani", "Hira": "Jpan", "Kana": "Jpan", "Kore": "Hang"}
_LANGUAGES = """
Latn en de fr es it pt nl sv da nb nn no fi is et lv lt pl cs sk sl hr bs ro hu tr az sq ga cy eu ca gl id ms vi tl sw
Beng bn as|Deva hi mr ne sa mai|Arab ar fa ur ps sd ug ckb|Cyrl ru uk be bg mk sr kk ky mn tg|Grek el|Guru pa|Hebr he yi
Armn hy|Geor ka|Gujr gu|Orya or|Taml ta|Telu te|Knda kn|Mlym ml|Sinh si|Thai th|Laoo lo|Tibt bo dz|Mymr my|Khmr km
Ethi am ti|Hang ko|Jpan ja|Hani zh yue
"""
_SCRIPT_OF_LANGUAGE = {
    language: script
    for script, *languages in map(str.split, re.findall(r"[^|\n]+", _LANGUAGES))
    for language in languages
}


def scripts(text: str) -> frozenset[str]:
    """Name the scripts (ISO 15924) of a text's words, codes such as RD2-24 left out; empty when it has no words.

    Kana is `Jpan`, every kind of Han `Hani`; a letter of a script that is not known here counts as nothing.
    """
    plain = (piece for piece in _pieces(text, _shape(text)) if piece.kind == "word" and not piece.inner)
    letters = set("".join(map(normalise, {text[piece.start : piece.end] for piece in plain})))
    return frozenset(script for script in map(_script_of_letter, letters) if script)


@lru_cache(maxsize=1 << 12)
def _script_of_letter(char: str) -> str | None:
    return _SCRIPT_OF_NAME.get(unicodedata.name(char, "").partition(" ")[0]) if char.isalpha() else None


def script_of_language(lang: str) -> str | None:
    """Name the script, as `scripts` does, of a BCP 47 tag: its script subtag, else what its language is written in.

    None for `und` and languages that are not known here.
    """
    language, *subtags = lang.replace("_", "-").lower().split("-")
    for subtag in subtags[:2]:
        if len(subtag) == 4 and subtag.isalpha():
            return _SAME_SCRIPT.get(subtag.title(), subtag.title())
    return _SCRIPT_OF_LANGUAGE.get(language)
