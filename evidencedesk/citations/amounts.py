"""Reads amounts, in digits or in words, with their units and bounds, and says which of them are equal.

What counts as equal, and nothing else does:

- the same value in the same unit, however it is written: 1,000 = 1000 = ১,০০০, thirty = 30 = ত্রিশ, a dozen = 12,
  $3 million = $3,000,000, seventh = 7th = 7, 5-7 = 5 to 7 = between 5 and 7;
- exact conversions: second, minute, hour, day, week; gram, kg; mm, cm, metre, km; 30 % = 0.3, half = 50 % = 1/2;
- what people mean by them: a month = 30 days; a year = 12 months = 52 weeks = 365 days;
- the same bound: within = up to = at most = no later than; at least = or more; over = more than. `within` a time is
  also that time (30 days to return it), and so is `30 days after` or `from` something, which is also `after 30 days`;
  `about 30` follows from 30, not 30 from `about 30`;
- an end of a range of years: 1924 in 1924-2004 (not in 2019-20, which is one season).

A working day is not a day. Amounts that can be compared but are in no such relation (5 against `at least 5`, 6 against
5-7, four weeks against a month) are `open`: neither proved nor disproved.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from evidencedesk.text import UNITS, Number, Token, normalise, stem

Bound = Literal["exact", "least", "more", "most", "less", "within", "about", "after", "point"]
Relation = Literal["same", "open", "other", "unit", "none"]


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount from `low` to `high` (equal unless it is a range) of `unit`, a key of text.UNITS or None.

    [start, end) are the characters of the numeral, [outer_start, outer_end) those with its unit and bound.
    """

    low: Decimal
    high: Decimal
    unit: str | None
    start: int
    end: int
    outer_start: int
    outer_end: int
    bound: Bound = "exact"


def _values(listed: str) -> dict[str, Decimal]:
    pairs = (entry.rpartition("=") for entry in listed.split())
    return {stem(word): Decimal(value) for word, _, value in pairs}


_SMALL = _values(
    "one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12 thirteen=13 fourteen=14"
    " fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 twenty=20 thirty=30 forty=40 fifty=50 sixty=60"
    " seventy=70 eighty=80 ninety=90 first=1 second=2 third=3 fourth=4 fifth=5 sixth=6 seventh=7 eighth=8 ninth=9"
    " tenth=10 eleventh=11 twelfth=12 thirteenth=13 fifteenth=15 twentieth=20 half=0.5 fortnight=14"
    " এক=1 দুই=2 দু=2 দুটি=2 তিন=3 চার=4 পাঁচ=5 ছয়=6 সাত=7 আট=8 নয়=9 দশ=10 এগারো=11 বারো=12 তেরো=13 চৌদ্দ=14 পনেরো=15"
    " ষোলো=16 সতেরো=17 আঠারো=18 উনিশ=19 বিশ=20 কুড়ি=20 একুশ=21 পঁচিশ=25 ত্রিশ=30 তিরিশ=30 চল্লিশ=40 পঁয়তাল্লিশ=45"
    " পঞ্চাশ=50 ষাট=60 সত্তর=70 আশি=80 নব্বই=90 দেড়=1.5 আড়াই=2.5 আধা=0.5 আধ=0.5 অর্ধেক=0.5 প্রথম=1 দ্বিতীয়=2 তৃতীয়=3"
    " চতুর্থ=4 পঞ্চম=5 ষষ্ঠ=6 সপ্তম=7 অষ্টম=8 নবম=9 দশম=10"
)
_LARGE = _values(
    "hundred=100 thousand=1000 lakh=100000 million=1000000 crore=10000000 billion=1000000000 dozen=12"
    " শত=100 শো=100 শ=100 হাজার=1000 লাখ=100000 লক্ষ=100000 কোটি=10000000 ডজন=12"
)
_UNIT_OF = {stem(word): unit for unit, listed in UNITS.items() for word in listed if any(map(str.isalpha, word))}
_DAY_MODIFIERS = {stem(word) for word in ("business", "working")}

_EXACT: Mapping[str, Mapping[str, int]] = {
    "time": {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800},
    "mass": {"gram": 1, "kg": 1000},
    "length": {"mm": 1, "cm": 10, "metre": 1000, "km": 1_000_000},
}
_CUSTOMARY = {("month", "day"): 30, ("year", "month"): 12, ("year", "week"): 52, ("year", "day"): 365}
_ROUGH_SECONDS = {**_EXACT["time"], "month": 2_592_000, "year": 31_536_000}

_SHARED_UNITS = frozenset({*_ROUGH_SECONDS, "business day"})

_BEFORE: Sequence[tuple[Bound, str]] = (
    (
        "most",
        r"up\s+to|at\s+(?:the\s+)?most|(?:no|not)\s+(?:more|longer|greater|later)\s+than|not\s+exceeding|maximum(?:\s+of)?",
    ),
    ("least", r"at\s+(?:the\s+)?least|(?:no|not)\s+(?:less|fewer)\s+than|minimum(?:\s+of)?"),
    ("within", r"within|inside|in\s+under"),
    ("more", r"(?:more|longer|greater|higher|older|larger|bigger|later)\s+than|over|above|exceed(?:s|ing)?"),
    ("less", r"(?:less|fewer|shorter|lower|younger|smaller)\s+than|under|below"),
    ("about", r"about|around|approximately|approx\.?|roughly|nearly|almost|circa|an\s+estimated|প্রায়|প্রায়|আনুমানিক"),
    ("after", r"after"),
    ("least", r"কমপক্ষে|অন্তত|ন্যূনতম|সর্বনিম্ন"),
    ("most", r"সর্বোচ্চ|সর্বাধিক|অনধিক|বড়জোর"),
)
_BOUND_BEFORE = re.compile(
    r"(?<!\w)(?:"
    + "|".join(f"(?P<b{at}>{words})" for at, (_, words) in enumerate(_BEFORE))
    + r")\s+(?:an?\s+|the\s+)?[$€£৳₹¥]?\s?$",
    re.I,
)
_AFTER: Sequence[tuple[Bound, str]] = (
    (
        "least",
        r"(?<=\d)\+(?!\w)|(?:or|and)\s+(?:more|over|above|longer|older|later|up)\b|(?:at\s+)?minimum\b|at\s+least\b|(?:বা|অথবা)\s+(?:তার|এর)?\s*(?:বেশি|অধিক)",
    ),
    (
        "most",
        r"(?:or|and)\s+(?:less|fewer|under|below|younger|sooner)\b|(?:at\s+)?maximum\b|at\s+most\b|(?:বা|অথবা)\s+(?:তার|এর)?\s*কম",
    ),
    ("within", r"মধ্যে"),
    ("more", r"(?:এর|-এর)?\s*(?:বেশি|অধিক|উপরে|ঊর্ধ্বে)"),
    ("less", r"(?:এর|-এর)?\s*(?:কম|নিচে)"),
    ("after", r"পর(?:ে)?(?![\u0980-\u09ff])"),
    ("point", r"(?:after|later|from|and\s+then)\b"),
)
_BOUND_AFTER = re.compile(
    r"\s{0,2}(?:" + "|".join(f"(?P<b{at}>{words})" for at, (_, words) in enumerate(_AFTER)) + ")", re.I
)
_A_UNIT = re.compile(r"\b(?P<a>an?|one)\s+(?P<unit>second|minute|hour|day|week|month|year|fortnight)\b", re.I)
_RATE_BEFORE = re.compile(r"(?:\b(?:once|twice|times|per|every|each|half)|\w*\d\w*(?:\s+\w+)?)\s+$", re.I)
_FRACTION = re.compile(r"(?<![\d/.,])(?:(?P<top>\d{1,3})/(?P<bottom>[1-9]\d{0,2})(?![\d/])|(?P<sign>[¼½¾]))")
_SIGNS = {"¼": Decimal("0.25"), "½": Decimal("0.5"), "¾": Decimal("0.75")}
_ONE_IS_A_PRONOUN = re.compile(r"(?:no|any|every|some|each|this|that|which|the|another)\s+$", re.I)
_AMBIGUOUS = frozenset({"one"})
_BANGLA_NINE = stem("নয়")
_WORD = re.compile(r"\s*([^\W\d_][^\s,.;:।()]*)")
_BETWEEN = re.compile(r"[\s\-‐‑]{1,2}(?:and\s|an?\s)?")
_GLUED = re.compile(r"[\s\-‐‑]{0,2}")
_BETWEEN_UNIT = re.compile(r"\s?\([^()\n]{1,30}\)\s?-?|\s+(?:an?|full|whole|calendar|more|of)\s+")
_SIGN_AFTER = re.compile(r"\s?[%٪％$€£৳₹¥]|(?:st|nd|rd|th)\b", re.I)
_PER_CENT = re.compile(r"\s*per\s?cent(?:age)?\b", re.I)
_BETWEEN_TWO = re.compile(r"\bbetween\s+\W?$", re.I)
_AND = re.compile(r"\s*(?:and|&)\s+\W?", re.I)
_TO = re.compile(r"\s*(?:to|থেকে|[-‐‑–—])\s*", re.I)
_FROM = re.compile(r"\bfrom\s+\W?$", re.I)
_STOP = re.compile(r"[.;।\n](?:\s|$)")
_WITHOUT_END = Decimal("1e40")
_ONE_OF = re.compile(r"\s+(?:of|can|is|may|must|who|that|will|should|has|another)\b|\s*$", re.I)
_GAP_ENDS = re.compile(r"\s*(?:[,.;:।)]|$|(?:and|or|for|in|at|on|by|to|elsewhere|ও|আর|এবং)\b)", re.I)


def amounts(text: str, tokens: Sequence[Token], figures: Sequence[Number]) -> list[Amount]:
    """List the amounts of a text in order. `tokens` are those of `analyse(text)`, `figures` of `numbers(text)`."""
    found = sorted(_in_digits(text, figures) + _in_words(text, tokens), key=lambda amount: (amount.start, -amount.end))
    apart: list[Amount] = []
    for amount in found:
        if not apart or amount.start >= apart[-1].end:
            apart.append(amount)
    starts = [token.start for token in tokens]
    with_units = _joined(text, [_with_unit(text, amount, tokens, starts) for amount in apart])
    return _with_gaps(text, [_bounded(text, amount) for amount in with_units])


def compare(claim: Amount, evidence: Amount) -> Relation:
    """Say how an amount of a claim stands to one of the evidence.

    `same`: equal by the list above. `open`: comparable, and neither equal nor excluded. `other`: the same kind of
    amount, and excluded. `unit`: the same figure of another unit. `none`: amounts of different kinds.
    """
    same_figures = (claim.low, claim.high) == (evidence.low, evidence.high)
    if "%" in (claim.unit, evidence.unit):
        if not (_is_share(claim) and _is_share(evidence)):
            return "unit" if same_figures else "none"
        claim, evidence = _as_share(claim), _as_share(evidence)
    ratio = _ratio(claim.unit, evidence.unit)
    if ratio is None and None in (claim.unit, evidence.unit):
        if not same_figures:
            return "none"
        return "same" if claim.unit is None and _same_bound(claim, evidence) else "open"
    rough = ratio or _rough_ratio(claim.unit, evidence.unit)
    if rough is None:
        return "unit" if same_figures else "none"
    is_equal = ratio is not None and claim.low * ratio[0] == evidence.low * ratio[1]
    is_equal = is_equal and ratio is not None and claim.high * ratio[0] == evidence.high * ratio[1]
    if is_equal and _same_bound(claim, evidence):
        return "same"
    if (
        not is_equal
        and ratio
        and claim.bound in ("within", "most", "least", "more", "less")
        and _same_bound(claim, evidence)
    ):
        return "other"  # 60 days at most is another promise than 30 days at most
    if _is_end_of_years(claim, evidence):
        return "same"
    (low, high), (other_low, other_high) = _interval(claim), _interval(evidence)
    slack = 1 if ratio else Decimal("1.1")
    is_below = high * rough[0] * slack < other_low * rough[1]
    return "other" if is_below or low * rough[0] > other_high * rough[1] * slack else "open"


def _same_bound(claim: Amount, evidence: Amount) -> bool:
    bounds = {claim.bound, evidence.bound}
    alike = ({"within", "most"}, {"within", "exact"}, {"point", "exact"}, {"point", "within"}, {"point", "after"})
    return len(bounds) == 1 or bounds in alike or (claim.bound, evidence.bound) == ("about", "exact")


def _is_share(amount: Amount) -> bool:
    return amount.unit == "%" or (amount.unit is None and 0 < amount.low < 1)


def _as_share(amount: Amount) -> Amount:
    """Give a percentage as a share, which a bare 0.3 or `half` is already."""
    if amount.unit == "%":
        return replace(amount, low=amount.low / 100, high=amount.high / 100, unit=None)
    return amount


def _ratio(unit: str | None, other: str | None) -> tuple[int, int] | None:
    """Give a and b so that x of `unit` are x * a / b of `other`, exactly or by custom; None where the list has none."""
    if unit == other:
        return 1, 1
    if unit is None or other is None:
        return None
    for scale in _EXACT.values():
        if unit in scale and other in scale:
            return scale[unit], scale[other]
    if (unit, other) in _CUSTOMARY:
        return _CUSTOMARY[unit, other], 1
    return (1, _CUSTOMARY[other, unit]) if (other, unit) in _CUSTOMARY else None


def _rough_ratio(unit: str | None, other: str | None) -> tuple[int, int] | None:
    """Give the same for lengths of time that are only roughly so, such as a month in weeks."""
    if unit in _ROUGH_SECONDS and other in _ROUGH_SECONDS:
        return _ROUGH_SECONDS[unit], _ROUGH_SECONDS[other]
    return None


def _is_end_of_years(claim: Amount, evidence: Amount) -> bool:
    years = evidence.unit is None and evidence.low >= 1000 and evidence.low < evidence.high
    return years and evidence.end - evidence.start >= 9 and claim.low == claim.high in (evidence.low, evidence.high)


def _interval(amount: Amount) -> tuple[Decimal, Decimal]:
    """Give the values that an amount allows. An open end lies a trifle further in: 30 is not `over 30`."""
    low, high = amount.low, amount.high
    trifle = max(abs(low), abs(high)) * Decimal("1e-9")
    match amount.bound:
        case "least":
            return low, _WITHOUT_END
        case "more" | "after":
            return low + trifle, _WITHOUT_END
        case "most" | "within":
            return -_WITHOUT_END, high
        case "less":
            return -_WITHOUT_END, high - trifle
        case "about":
            return low - abs(low) / 10, high + abs(high) / 10
    return low, high


def _amount(low: Decimal, start: int, end: int, unit: str | None = None, high: Decimal | None = None) -> Amount:
    return Amount(low, low if high is None else high, unit, start, end, start, end)


def _in_digits(text: str, figures: Sequence[Number]) -> list[Amount]:
    found = [
        _amount(
            _SIGNS[found["sign"]] if found["sign"] else Decimal(found["top"]) / Decimal(found["bottom"]), *found.span()
        )
        for found in _FRACTION.finditer(text)
    ]
    low: Number | None = None
    for number in figures:
        if low is not None:
            high = number.value
            if low.value >= 1000 and high < 100:  # 2019-20
                high += low.value // 100 * 100
            found.append(_amount(low.value, low.start, number.end, number.unit, high))
            low = None
        elif number.kind == "range":
            low = number
        else:
            found.append(_amount(number.value, number.start, number.end, number.unit))
    return found


def _in_words(text: str, tokens: Sequence[Token]) -> list[Amount]:
    """Read `thirty`, `one hundred and fifty`, `half a dozen`, `a month`."""
    runs: list[list[Token]] = []
    former: Token | None = None
    for token in tokens:
        if _is_number_word(text, token, former):
            joined = runs and runs[-1][-1] is former and _BETWEEN.fullmatch(text, former.end, token.start)
            if joined and _continues(runs[-1][-1].term, token.term):
                runs[-1].append(token)
            else:
                runs.append([token])
        former = token
    found = [_amount(_value([token.term for token in run]), run[0].start, run[-1].end) for run in runs]
    found += [
        _amount(Decimal(1), *unit.span("a"))
        for unit in _A_UNIT.finditer(text)
        if not _RATE_BEFORE.search(text, max(0, unit.start() - 24), unit.start())
    ]
    return found


def _is_number_word(text: str, token: Token, former: Token | None) -> bool:
    if token.kind != "word" or (token.term not in _SMALL and token.term not in _LARGE):
        return False
    if former is not None and former.kind != "word" and _GLUED.fullmatch(text, former.end, token.start):
        return False  # the million of 5 million, the seconds of 30 seconds
    if token.term in _AMBIGUOUS:
        before, after = text[max(0, token.start - 12) : token.start], text[token.end : token.end + 12]
        return not _ONE_IS_A_PRONOUN.search(before) and not _ONE_OF.match(after)
    if token.term == _BANGLA_NINE:  # it is "is not" as well
        unit = _WORD.match(text, token.end)
        return unit is not None and stem(normalise(unit[1])) in _UNIT_OF
    return True


def _continues(former: str, term: str) -> bool:
    """Tell whether a number word goes on with the number before it: twenty-one, three hundred, a hundred and six."""
    return term in _LARGE or former in _LARGE or (_SMALL[former] >= 20 and _SMALL[term] < 10)


def _value(terms: Sequence[str]) -> Decimal:
    total = group = Decimal(0)
    for term in terms:
        scale = _LARGE.get(term)
        if scale is None:
            group += _SMALL[term]
        elif scale <= 100:
            group = (group or 1) * scale
        else:
            total, group = total + (group or 1) * scale, Decimal(0)
    return total + group


def _with_unit(text: str, amount: Amount, tokens: Sequence[Token], starts: Sequence[int]) -> Amount:
    at = bisect_left(starts, amount.end)
    unit, outer_end = amount.unit, amount.end
    if per_cent := _PER_CENT.match(text, amount.end):
        return replace(amount, unit="%", outer_end=per_cent.end())
    if sign := _SIGN_AFTER.match(text, amount.end):
        unit, outer_end = unit or ("%" if sign[0].strip() in "%٪％" else None), sign.end()
    for token in tokens[at : at + 3]:
        if token.start - outer_end > 3 and not _BETWEEN_UNIT.fullmatch(text, outer_end, token.start):
            break
        if token.term in _DAY_MODIFIERS or token.term in _LARGE:
            outer_end = token.end
        elif token.term in _UNIT_OF:
            unit = unit or ("business day" if tokens[at].term in _DAY_MODIFIERS else _UNIT_OF[token.term])
            outer_end = token.end
            break
        else:
            break
    return replace(amount, unit=unit, outer_end=outer_end)


def _joined(text: str, found: Sequence[Amount]) -> list[Amount]:
    """Read `between five and seven days` and `50 percent to 60 percent` as one range."""
    joined: list[Amount] = []
    for amount in found:
        low = joined[-1] if joined else None
        between = _BETWEEN_TWO.search(text, max(0, low.start - 12), low.start) if low else None
        is_range = low is not None and low.low < amount.high and _is_joined(text, low, amount, between is not None)
        if low is not None and is_range:
            unit, begin = amount.unit or low.unit, between.start() if between else low.outer_start
            joined[-1] = Amount(low.low, amount.high, unit, low.start, amount.end, begin, amount.outer_end)
        else:
            joined.append(amount)
    return joined


def _is_joined(text: str, low: Amount, high: Amount, is_between: bool) -> bool:
    """Tell whether two amounts are the ends of one; `from 5 days to 7 days` may tell of a change as well."""
    if is_between:
        return _AND.fullmatch(text, low.outer_end, high.start) is not None
    tells_of_a_change = _FROM.search(text, max(0, low.start - 12), low.start)
    is_of_one_unit = low.low == low.high and high.low == high.high and low.unit is not None and low.unit == high.unit
    return is_of_one_unit and not tells_of_a_change and _TO.fullmatch(text, low.outer_end, high.start) is not None


def _bounded(text: str, amount: Amount) -> Amount:
    before = _BOUND_BEFORE.search(text, max(0, amount.start - 32), amount.start)
    after = _BOUND_AFTER.match(text, amount.outer_end, amount.outer_end + 32)
    if before and before.lastgroup and after and after.lastgroup and _AFTER[int(after.lastgroup[1:])][0] == "point":
        after = None  # up to a month after it arrives
    if after and after.lastgroup:
        bound = _AFTER[int(after.lastgroup[1:])][0]
        return replace(amount, bound=bound, outer_end=after.end())
    if before and before.lastgroup:
        bound = _BEFORE[int(before.lastgroup[1:])][0]
        return replace(amount, bound=bound, outer_start=before.start())
    return amount


def _with_gaps(text: str, found: list[Amount]) -> list[Amount]:
    """Give an amount without a unit that of the amount before it in a list: five years, two for the battery."""
    for at in range(1, len(found)):
        former, amount = found[at - 1], found[at]
        near = amount.start - former.outer_end <= 60 and not _STOP.search(text, former.outer_end, amount.start)
        if amount.unit is None and former.unit in _SHARED_UNITS and near and _GAP_ENDS.match(text, amount.outer_end):
            found[at] = replace(amount, unit=former.unit)
    return found
