"""Turns a sentence into one that says something else, or the same in other words, where a rule is safe. Pure.

Rules know no grammar. So each applies only where little can go wrong: to a number that reads back as a number of its
kind, to a main clause with one negation at most, to verbs of a closed list. Where none is safe, they give None.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import TypeVar

from evidencedesk.text import Number, normalise, numbers
from evidencedesk.text.spelling import word_set

_Any = TypeVar("_Any")


def stable_hash(*parts: object) -> bytes:
    """Hash texts to what is the same on every machine."""
    return hashlib.sha256("\x00".join(map(str, parts)).encode()).digest()


def choose(options: Sequence[_Any], *parts: object) -> _Any | None:
    """Choose one by hash: the same for the same options and parts; None when there is no option."""
    return min(options, key=lambda option: stable_hash(option, *parts), default=None)


# ---------------------------------------------------------------- another number

_SPELT = dict(enumerate(("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 2))
_BEFORE_TIME_UNIT = r"(?= (?:working |business |calendar )?(?:hours|days|weeks|months|years)\b)"
_SPELT_COUNT = re.compile(rf"\b(?:{'|'.join(_SPELT.values())})\b{_BEFORE_TIME_UNIT}")
_FOOTNOTE = re.compile(r"\[[^\[\]]{1,8}\]")
# Between units of one kind: 24 hours are a day, so "24" for a day would be no other number.
_CONVERSIONS = frozenset(map(Decimal, (7, 12, 24, 28, 30, 31, 52, 60, 100, 365, 1000)))


def with_another_number(sentence: str, evidence: str) -> str | None:
    """Change one number to a plausible other one that `evidence` holds neither as it is nor in another unit.

    In digits; where none of these can be changed, an English word before a unit of time (`five years`).
    """
    found = numbers(sentence)
    footnotes = [mark.span() for mark in _FOOTNOTE.finditer(sentence)]
    held = {abs(number.value) for number in numbers(evidence)} - {Decimal(0)}
    claims = []
    for at, number in enumerate(found):
        if any(start < number.start < end for start, end in footnotes):
            continue
        for numeral in _other_numerals(sentence, number):
            claim = sentence[: number.start] + numeral + sentence[number.end :]
            changed = numbers(claim)
            # Read back: a range that falls, or a number that became part of a code, was not a safe change.
            if [(n.unit, n.kind) for n in changed] != [(n.unit, n.kind) for n in found]:
                continue
            falls = any(a.kind == b.kind == "range" and a.value >= b.value for a, b in pairwise(changed))
            value = changed[at].value
            ratios = {max(value, other) / min(value, other) for other in held}
            if not falls and Decimal(1) not in ratios and not ratios & _CONVERSIONS:
                claims.append(claim)
    return choose(claims, sentence) or _with_another_number_word(sentence, evidence)


def _with_another_number_word(sentence: str, evidence: str) -> str | None:
    counted = _SPELT_COUNT.search(sentence)
    held = {int(number.value) for number in numbers(evidence)}
    written = set(re.findall(r"[a-z]+", evidence.lower()))
    others = [word for count, word in _SPELT.items() if count not in held and word not in written]
    other = choose(others, sentence)
    return sentence[: counted.start()] + other + sentence[counted.end() :] if counted and other else None


def _other_numerals(sentence: str, number: Number) -> Iterator[str]:
    """Write twice, half and three times a number as it is written, the next to a small one, one near to a year."""
    written = sentence[number.start : number.end]
    ascii_digits = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in written)
    shape = re.fullmatch(r"(?:\d{1,3}(?P<group>,)\d{3}|\d+)(?:\.(?P<decimals>\d{1,2}))?", ascii_digits)
    if shape is None:
        return
    value, decimals = Decimal(ascii_digits.replace(",", "")), len(shape["decimals"] or "")
    is_year = 1900 <= value <= 2100 and number.unit is None and not shape["group"]
    options = [value + 1, value + 3, value - 2] if is_year else [value * 2, value / 2, value * 3]
    if value <= 12:
        options.append(value + 1)
    first = next(char for char in written if char.isdecimal())
    zero = ord(first) - unicodedata.decimal(first)
    for option in options:
        # From 100,000 on, groups are of two digits in Bangla and Indian English and of three elsewhere.
        is_written_alike = option == round(option, decimals) and not (shape["group"] and option >= 100_000)
        if option > 0 and is_written_alike and (number.unit != "%" or option < 100):
            text = f"{option:,.{decimals}f}" if shape["group"] else f"{option:.{decimals}f}"
            yield "".join(chr(zero + int(char)) if char.isdigit() else char for char in text)


# ---------------------------------------------------------------- no for yes, and yes for no

_ENGLISH_NO = re.compile(
    r"\b(?:not|no|never|none|nor|neither|nothing|nobody|nowhere|without|cannot|unless|until|except|hardly|barely"
    r"|only)\b|\w+n['’]t\b",
    re.IGNORECASE,
)
_BEYOND_MAIN_CLAUSE = re.compile(
    r"\b(?:if|when|whenever|because|since|as|that|which|who|whom|whose|where|while|whether|what|how|after|before|once"
    r"|everywhere|wherever|to|and|or|but)\b|(?<=\w )(?:I|you|we|they|he|she|it)\b|[;:—(]|\s[-–]\s",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(r"(?<=\w )(?P<verb>can|will|may|must|should|is|are|was|were) (?=[a-z])")
_LOOSE = re.compile(r"(?:also|always|still|even|just|already|often|usually|likely|typically|generally)\b")
_WE_DO = re.compile(
    r"(?P<subject>We|You|They) (?=(?:accept|allow|ask|charge|collect|delete|deliver|give|keep|log|need|offer|pay"
    r"|process|provide|refund|repair|replace|require|sell|send|share|ship|store|take|tell|use)\b)"
)
_DENIAL = re.compile(
    r"\b(?:(?P<verb>can|will|may|must|should|is|are|was|were) ?not|(?P<do>do) not"
    r"|(?P<short>ca|wo|is|are|was|were|do)n['’]t)"
    r" (?!only|just|even|yet|necessarily|all|every)(?=[a-z])"
)

_BANGLA_NO = word_set("না নেই নয় নাই নি নহে নন ছাড়া বিনা ব্যতীত নাকি শুধু কেবল যদি যদিও কিন্তু তবে নইলে")
_BANGLA_VERBS = word_set(
    "পারবেন পারবে পারেন পারে পারি হবে হবেন হয় হন যাবে যাবেন যায় যান পাবেন পাবে পান পায় থাকবে থাকবেন থাকে থাকেন লাগে"
    " লাগবে করবেন করবে করেন করে করি করব নেবেন নেবে নেন নেয় নিই দেবেন দেবে দেন দেয় দিই আসবে আসবেন আসে আসেন চলে চলবে"
    " রাখি রাখে রাখেন রাখবেন জানাই মেলে মিলবে ছিল ছিলেন হত হতো করত করতেন যেত"
)
_BANGLA_STATES = word_set("ফ্রি বৈধ অবৈধ প্রযোজ্য সম্ভব নিষিদ্ধ বাধ্যতামূলক জরুরি নিরাপদ")
_BANGLA_NA, _BANGLA_NOY = normalise("না"), normalise("নয়")
_BANGLA_OPPOSITE = {normalise("আছে"): "নেই", normalise("নেই"): "আছে", normalise("রয়েছে"): "নেই"}
_BANGLA_PERFECT = re.compile(normalise("(হয়|কর|গিয়|পেয়|দিয়|নিয়)েছ(ে|িল|েন|িলেন|ি|িলাম)"))
_BANGLA_NOT_DONE = {  # by person: he, they (honoured), we
    normalise(stem): negated.split()
    for stem, negated in {
        "হয়": "হয়নি হননি হইনি", "কর": "করেনি করেননি করিনি", "গিয়": "যায়নি যাননি যাইনি",
        "পেয়": "পায়নি পাননি পাইনি", "দিয়": "দেয়নি দেননি দিইনি", "নিয়": "নেয়নি নেননি নিইনি",
    }.items()
}  # fmt: skip
_BANGLA_DENIED_VERB = re.compile(normalise("(?:য়|ন|ে|ই)নি") + "$")
_BANGLA_WORD = re.compile(r"[^\s,;:।]+")


def with_another_polarity(sentence: str) -> str | None:
    """Say no in the main clause, or take away the only no; in Bangla, at the verb that ends the sentence."""
    return _bangla_polarity(sentence) if sentence.endswith("।") else _english_polarity(sentence)


def _english_polarity(sentence: str) -> str | None:
    beyond = _BEYOND_MAIN_CLAUSE.search(sentence)
    main = sentence[: beyond.start()] if beyond else sentence
    said_no = _ENGLISH_NO.findall(sentence)
    if said_no:
        denial = _DENIAL.search(main) if len(said_no) == 1 else None
        if denial is None:
            return None
        verb = denial["verb"] or {"ca": "can", "wo": "will", "do": None}.get(denial["short"] or "do", denial["short"])
        # `do` says nothing without its not: We do not sell -> We sell.
        return sentence[: denial.start()] + (f"{verb} " if verb else "") + sentence[denial.end() :]
    auxiliary = _AUXILIARY.search(main)
    if auxiliary and not _LOOSE.match(sentence, auxiliary.end()):
        denied = "cannot" if auxiliary["verb"] == "can" else f"{auxiliary['verb']} not"
        return f"{sentence[: auxiliary.start()]}{denied} {sentence[auxiliary.end() :]}"
    if auxiliary is None and (does := _WE_DO.match(main)):
        return f"{does['subject']} do not {sentence[does.end() :]}"
    return None


def _bangla_polarity(sentence: str) -> str | None:
    found = list(_BANGLA_WORD.finditer(sentence))
    words = [normalise(word[0]) for word in found]
    if len(words) < 3 or any(word in _BANGLA_NO or _BANGLA_DENIED_VERB.search(word) for word in words[:-1]):
        return None
    last, start = words[-1], found[-1].start()
    before, written = sentence[:start], found[-1][0]
    if (last == _BANGLA_NA and words[-2] in _BANGLA_VERBS) or last == _BANGLA_NOY:
        return f"{before.rstrip()}।"
    if last in _BANGLA_OPPOSITE:
        return f"{before}{_BANGLA_OPPOSITE[last]}।"
    if last in _BANGLA_VERBS:
        return f"{before}{written} না।"
    if last in _BANGLA_STATES:
        return f"{before}{written} নয়।"
    if perfect := _BANGLA_PERFECT.fullmatch(last):
        person = {"ে": 0, "িল": 0, "েন": 1, "িলেন": 1, "ি": 2, "িলাম": 2}[perfect[2]]
        return f"{before}{_BANGLA_NOT_DONE[perfect[1]][person]}।"
    return None


# ---------------------------------------------------------------- the same in other words

_EXPANDED = {
    "can't": "cannot", "won't": "will not", "don't": "do not", "doesn't": "does not", "isn't": "is not",
    "aren't": "are not", "we'll": "we will", "you'll": "you will", "we're": "we are", "you're": "you are",
    "we've": "we have", "you've": "you have", "didn't": "did not", "couldn't": "could not",
}  # fmt: skip
_SHORTENED = {long: short for short, long in _EXPANDED.items() if short.endswith("n't")}
_SHORT = re.compile(rf"\b(?:{'|'.join(_EXPANDED)})\b".replace("'", "['’]"), re.IGNORECASE)
_LONG = re.compile(rf"\b(?:{'|'.join(_SHORTENED)})\b(?! only)")
_OPENING = re.compile(r"(?:However|Also|In addition|Note that),? ")
_PER_CENT = re.compile(r"(?<=\d) ?%")
_GROUPED = re.compile(r"(?<![\d.,])(\d{1,3}),(\d{3})(?![\d,])")
_COUNTED = re.compile(rf"(?<![\w.,/:-])(?:10|[2-9]){_BEFORE_TIME_UNIT}")
_BANGLA_DIGITS = {0x09E6 + digit: str(digit) for digit in range(10)}


def reworded(sentence: str) -> str | None:
    """Write a sentence in another way that surely means the same, or give None when there is nothing of the kind in it.

    don't = do not, 5 % = 5 percent, 5,000 = 5000, 5 days = five days, ৩০ = 30; an opening such as `However` goes.
    """
    claim = _OPENING.sub("", sentence) if (opening := _OPENING.match(sentence)) else sentence
    if opening:
        claim = claim[0].upper() + claim[1:]
    if _SHORT.search(claim):
        claim = _SHORT.sub(lambda short: _cased(_EXPANDED[short[0].lower().replace("’", "'")], like=short[0]), claim)
    else:
        claim = _LONG.sub(lambda long: _SHORTENED[long[0]], claim)
    claim = _GROUPED.sub(r"\1\2", _PER_CENT.sub(" percent", claim)).translate(_BANGLA_DIGITS)
    claim = _COUNTED.sub(lambda count: _SPELT[int(count[0])], claim)
    return claim if claim != sentence else None


def _cased(word: str, *, like: str) -> str:
    return word[0].upper() + word[1:] if like[0].isupper() else word
