"""Answers without a model: the sentences of the passages that fit the question best, as they stand there.

How a sentence is chosen; the weights were chosen on public questions (docs/decisions/quoting.md):

- The question's terms are weighted by their idf among all the sentences that may be quoted. A term counts whole where
  the sentence has it, in part where only the sentence before (`NEAR`) or title, heading and table header (`HEAD`) do.
- A question for a duration, an amount, a date or a count favours sentences that hold one (`WANTED`).
- Such a sentence counts although it shares no term itself, where it leans on the sentence before it and the question's
  terms stand there or in title and heading: `It reaches you within 5 working days` under `How refunds are paid`.
- A passage loses `RANK` for each rank that it stands behind the first; among equals the first stands.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evidencedesk.records import ModelRequest, NumberedPassage, require_count
from evidencedesk.text import Number, analyse, normalise, numbers, script_of_language, scripts, sentences
from evidencedesk.text.units import MONEY_UNITS

NEAR, HEAD = 0.4, 0.7
WANTED, RANK = 0.2, 0.1
MIN_SCORE = 0.25
"""Below it, the best sentence shares too little with the question to be an answer."""
SECOND = 0.75
"""Share of the best sentence's score that another needs to be quoted beside it."""
MAX_QUOTE_CHARS = 600
"""A longer sentence is a list or table that lost its layout, and no answer."""

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_NO_PROSE = re.compile(r"\W*\Z|#{1,6}[ \t]|<!--")
_LIST_MARK = re.compile(r"(?:[-*+•]|\d{1,3}[.)।])[ \t]+")
_DELIMITER_ROW = re.compile(r"\s*\|[\s:|-]+(?:\n|\Z)")
_REFERENCES = re.compile(r"(?:\[[^\[\]\s]{1,20}\])+\Z")
_STOPS = (".", "!", "?", "…", "।", "॥")
_REFERRING = frozenset(
    normalise(
        "it its neither nor he his him she her they their them this that these those such both"
        " এটি এটা এগুলো এগুলি সেটি সেটা সেগুলো তিনি তারা তাঁরা সে তার তাঁর তাদের তাঁদের এর এরা এই এ সেই ঐ"
    ).split()
)
_REFERS_BACK = re.compile(  # `Below that`, and in second place `them` of `Send them` or `it` of `If it`
    r"\W*(?:(?:above|below|over|under|after|before|beyond|besides|beside|until|with|without|for|in|from|to)"
    r"\s+(?:that|it|them|this(?=,)|these(?=,))|[^\W\d_]+\s+(?:it|them))\b",
    re.IGNORECASE,
)
_THEM = re.compile(r"\bthem\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\b(?!does\b)[^\W\d_]{2,}[^\Wsui\d_]s\b|\b(?:and|people|children)\b", re.IGNORECASE)
"""What `them` could mean: a plural, or two things."""


def _leans(words: str) -> bool:
    """Whether a sentence speaks of what only the one before names."""
    if normalise(words.partition(" ")[0].strip(",;:'’\"“”")) in _REFERRING or _REFERS_BACK.match(words):
        return True
    them = _THEM.search(words)
    return them is not None and not _SEVERAL.search(words, 0, them.start())


# ---------------------------------------------------------------- what a question asks for


def _terms(text: str) -> frozenset[str]:
    return frozenset(token.term for token in analyse(text))


_TIME_UNITS = {"second", "minute", "hour", "day", "business day", "week", "month", "year"}
_TIME_WORDS = _terms("hour day week month year ঘণ্টা দিন সপ্তাহ মাস বছর")
_MONTHS = _terms(  # May is left out, which is most often the verb
    "january february march april june july august september october november december"
    " জানুয়ারি জানুয়ারী ফেব্রুয়ারি ফেব্রুয়ারী মার্চ এপ্রিল মে জুন জুলাই আগস্ট সেপ্টেম্বর অক্টোবর নভেম্বর ডিসেম্বর"
)
_ISO_DATE = re.compile(r"\d{4}-\d\d")


def _has_duration(found: Sequence[Number], terms: frozenset[str]) -> bool:
    return any(number.unit in _TIME_UNITS for number in found) or not terms.isdisjoint(_TIME_WORDS)


def _has_amount(found: Sequence[Number], terms: frozenset[str]) -> bool:
    return any(number.unit in MONEY_UNITS or number.unit == "%" for number in found)


def _has_date(found: Sequence[Number], terms: frozenset[str]) -> bool:
    is_dated = any(number.unit is None and 1000 <= number.value < 2200 for number in found)
    is_dated = is_dated or not terms.isdisjoint(_MONTHS) or any(map(_ISO_DATE.match, terms))
    return is_dated or _has_duration(found, terms)


def _has_number(found: Sequence[Number], terms: frozenset[str]) -> bool:
    return bool(found)


_WANTS: tuple[tuple[str, Callable[[Sequence[Number], frozenset[str]], bool]], ...] = (
    (r"\bhow (?:long|soon|quickly|often)\b|\bhow much (?:time|notice)\b", _has_duration),
    (r"\bhow many (?:\w+ )?(?:second|minute|hour|day|week|month|year)s?\b", _has_duration),
    ("কত ?(?:দিন|মাস|বছর|বৎসর|সপ্তাহ|ঘণ্টা|ঘন্টা|মিনিট|সময়|ক্ষণ)", _has_duration),
    (r"\bhow much\b|\b(?:price|cost|fee|charge)s?\b|কত টাকা|খরচ|মূল্য|দাম|চার্জ", _has_amount),
    (r"\bwhen\b|\b(?:what|which) (?:time|year|date|day|month|century)\b|কবে|কখন|(?:কোন|কত) (?:সাল|তারিখ)", _has_date),
    (r"\bhow (?:many|old|far|tall|large|big|high)\b|\bpercentage\b|কত|কয়", _has_number),
)

_BANGLA = re.compile("[\u0980-\u09ff]+")
# Normalised as questions are; only the words, for an escape such as \\B is no text.
_WANTED = tuple((re.compile(_BANGLA.sub(lambda word: normalise(word[0]), pattern)), holds) for pattern, holds in _WANTS)

_ASKING = re.compile(r"\bhow (?:long|soon|quickly|often|much|many|old|far|tall|large|big|high)\b")
"""Says what is asked for, and nothing about it: "as long as" is no answer to "how long"."""


def _wanted(question: str) -> Callable[[Sequence[Number], frozenset[str]], bool]:
    """What tells, from a sentence's numbers and terms, whether it holds the kind of thing that is asked for."""
    asked = normalise(question)
    fits = (holds for pattern, holds in _WANTED if pattern.search(asked))
    return next(fits, lambda found, terms: False)


# ---------------------------------------------------------------- what may be quoted


@dataclass(frozen=True, slots=True, eq=False)
class _Sentence:
    passage: NumberedPassage
    text: str
    terms: frozenset[str]
    before: _Sentence | None
    """The one in front of it; of a table row the header, of a list entry the sentence in front of the list."""
    leans: bool
    """Whether it says nothing alone and is quoted with the one before."""
    quotable: bool
    place: int
    """Where it begins in the text of its passage."""


def _read(passage: NumberedPassage) -> Iterator[_Sentence]:
    """The sentences of a passage but its headings and fenced blocks, in order."""
    text = passage.chunk.text
    fences = [fence.span() for fence in _FENCE.finditer(text)]
    former: _Sentence | None = None
    header: _Sentence | None = None
    lead: _Sentence | None = None
    for start, end in sentences(text):
        if _NO_PROSE.match(text, start, end) or any(a < end and start < b for a, b in fences):
            continue
        is_row, mark = text[start] == "|", _LIST_MARK.match(text, start, end)
        # The text's own reference marks, as in "1953.[2]", would read like citations of ours.
        words = _REFERENCES.sub("", text[mark.end() if mark else start : end])
        is_header = is_row and header is None and bool(_DELIMITER_ROW.match(text, end))
        if is_row:
            before, leans = (None, False) if is_header else (header, header is not None)
        elif mark:
            before, leans = lead, lead is not None and not words.endswith(_STOPS)
        else:
            before, leans = former, _leans(words)
        sentence = _Sentence(
            passage, words, _terms(words), before, leans and before is not None, not is_header and bool(words), start
        )
        header = (sentence if is_header else header) if is_row else None
        lead = lead if mark else sentence
        former = sentence
        yield sentence


class QuotingAnswerer:
    """An `LLMClient` without model, network or key: it quotes the sentences that answer, or abstains.

    The reply has the form of a model's (`abstained`, and `claims` with `text` and `sources`) and is judged like one.
    Each claim is one sentence of one passage, verbatim, at most `most_sentences` in all. A sentence that cannot stand
    alone, because it begins with a word such as *it*, or is a table row or a list entry, comes with the one that it
    leans on. Headings and fenced blocks are never quoted. Where a passage in the script of the question shares a word
    with it, those in other scripts are left aside. `min_score`: below it, the best sentence is no answer.

    The same request gives the same reply, from any thread. ValueError for wrong settings.
    """

    name = "quoting"

    def __init__(self, *, most_sentences: int = 2, min_score: float = MIN_SCORE) -> None:
        self._most_sentences = require_count("most_sentences", most_sentences)
        if not min_score >= 0:
            raise ValueError(f"min_score must be at least 0, not {min_score!r}")
        self._min_score = min_score

    def complete(self, request: ModelRequest) -> str:
        chosen = self._choose(_ranked(request.question, request.passages))
        claims = [{"text": found.text, "sources": [found.passage.number]} for found in chosen]
        return json.dumps({"abstained": not claims, "claims": claims}, ensure_ascii=False)

    def _choose(self, ranked: Sequence[tuple[float, _Sentence]]) -> list[_Sentence]:
        if not ranked or ranked[0][0] < self._min_score:
            return []
        best_score, best = ranked[0]
        chosen = [best.before, best] if best.leans and best.before and self._most_sentences > 1 else [best]
        for score, sentence in ranked[1:]:
            if len(chosen) >= self._most_sentences or score < SECOND * best_score:
                break
            if sentence not in chosen and (not sentence.leans or sentence.before in chosen):
                chosen.append(sentence)
        return _in_order(chosen)


def _in_order(chosen: Sequence[_Sentence]) -> list[_Sentence]:
    """The passages as they were chosen, and the sentences of each as they stand there."""
    passages = list(dict.fromkeys(sentence.passage.number for sentence in chosen))
    return sorted(chosen, key=lambda sentence: (passages.index(sentence.passage.number), sentence.place))


def _ranked(question: str, passages: Sequence[NumberedPassage]) -> list[tuple[float, _Sentence]]:
    """The sentences that may answer, with their scores, best first."""
    asked, holds = _terms(_ASKING.sub(" ", normalise(question))), _wanted(question)
    read = [sentence for passage in passages for sentence in _read(passage)]
    found = [sentence for sentence in read if sentence.quotable and len(sentence.text) <= MAX_QUOTE_CHARS]
    heads = {passage.number: _terms(_head(passage)) for passage in passages}

    def is_near(sentence: _Sentence) -> bool:
        if not sentence.leans or sentence.before is None or not sentence.before.quotable:
            return False
        around = heads[sentence.passage.number] | sentence.before.terms
        return not asked.isdisjoint(around) and holds(numbers(sentence.text), sentence.terms)

    sharing = [sentence for sentence in found if not asked.isdisjoint(sentence.terms) or is_near(sentence)]
    asked_scripts = scripts(question)
    sharing = [s for s in sharing if not asked_scripts.isdisjoint(_scripts_of(s.passage))] or sharing
    counts = Counter(term for sentence in found for term in sentence.terms)
    idf = {term: math.log(1 + (len(found) - counts[term] + 0.5) / (counts[term] + 0.5)) for term in asked}
    whole = sum(idf.values())

    def score(sentence: _Sentence) -> float:
        near = sentence.before.terms if sentence.before else frozenset()
        head = heads[sentence.passage.number]
        held = sum(
            weight * (1 if term in sentence.terms else HEAD if term in head else NEAR if term in near else 0)
            for term, weight in idf.items()
        )
        fits = holds(numbers(sentence.text), sentence.terms)
        return held / whole + WANTED * fits - RANK * (sentence.passage.number - 1)

    # The sort is stable: among equals the first stands.
    return sorted(((score(sentence), sentence) for sentence in sharing), key=lambda row: -row[0])


def _head(passage: NumberedPassage) -> str:
    """What is indexed in front of the text."""
    return passage.chunk.indexed_text.removesuffix(passage.chunk.text)


def _scripts_of(passage: NumberedPassage) -> frozenset[str]:
    named = script_of_language(passage.chunk.lang)
    return frozenset({named}) if named else scripts(passage.chunk.text)
