"""Reads a text into sentences of words that can be compared: roots, meanings, names, negation, amounts, codes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple

from evidencedesk.citations.amounts import Amount, amounts
from evidencedesk.citations.vocabulary import (
    LIGHT,
    LONGEST_PHRASE,
    NEGATIONS,
    NEGATIONS_AFTER,
    OPPOSITES,
    PHRASE_BEGINNINGS,
    QUALIFIERS,
    SAYS_NO_ALONE,
    SYNONYMS,
    root,
)
from evidencedesk.text import Number, Span, Token, analyse, numbers, sentences
from evidencedesk.text.spelling import is_one_letter

REACH = 3
"""Content words that a negation reaches. Farther ones are seldom what is denied."""

_FOOTNOTE = re.compile(r"\[\s*\d{1,3}\s*\]")
_FOOTNOTE_AND_SPACE = re.compile(rf"\s*{_FOOTNOTE.pattern}")
_PLAIN = (
    {ord(char): "'" for char in "‘’ʼ＇´"} | {ord(char): '"' for char in "“”„«»"} | {ord(c): "-" for c in "‐‑‒–—−－"}
)
_LIST_MARK = re.compile(r"\A(?:[-*+•]|\d{1,3}[.)।])\s+")
_CLAUSE_END = re.compile(  # where the reach of a negation ends
    r"[,;:()—।](?!\d)|\s[–-]\s|\b(?:but|and|while|because|although|though|which|who)\b"
    r"|(?<!\S)(?:কিন্তু|এবং|আর|তবে|বরং)(?!\S)",
    re.I,
)
_PART_END = re.compile(  # what parts a list
    r"[,;:()—।](?!\d)|\s-\s|\b(?:but|and|or|while|because|although)\b"
    r"|(?<!\S)(?:কিন্তু|এবং|আর|ও|বা|তবে|বরং)(?!\S)",
    re.I,
)
_CODE_PARTS = re.compile(r"[^\w]+")
_ONLY_DOTS = re.compile(r"[\w.]+")
_ADDRESS_BEGINS = re.compile(r"(?:https?://)?(?:www\.)?")
_BANGLA_NEGATED_VERB = re.compile("(?:য\u09bc|েন|ে)নি$")
_UN = re.compile(r"^(?:un(?!der|it|iv)(?=\w{4,}(?:ed|en|able)$)|non(?=\w{2}))")
_JOINS_NON = re.compile(r"[-‐‑‒–\s]")
_AFFIRMS = re.compile(r"not\s+only\b(?=[^.;]{0,200}\bbut\b)|yet\b(?!\s+to\b)|no\s+doubt\b", re.I)
_DENIES_NOUN = re.compile(r"(?:no|without|zero)\b", re.I)
_NOUN_ENDS = re.compile(r"\b(?:for|in|at|on|to|from|by|with|of|is|are|was|were|can|will|has|have)\b", re.I)
_GIVEN_BACK = frozenset({"send", "give", "bring", "take", "hand"})
_GIVING_BACK = ("return", *SYNONYMS["return",])


class Word(NamedTuple):
    """A content word, or a phrase read as one: characters [start, end) of its text."""

    term: str
    keys: frozenset[str]
    """Two words mean the same when they share a key: a root or a group of meaning."""
    start: int
    end: int
    clause: int
    """Number of the clause that it stands in."""
    negated: bool
    name: bool
    """Whether it is written as a name: with a capital inside a sentence, or in capitals."""
    in_amount: bool
    """Part of an amount, such as its unit: compared as such and not as a word."""
    opposites: tuple[tuple[int, int], ...]
    qualifies: frozenset[str]
    light: bool
    """Says too little to be looked for."""


class Meaning(NamedTuple):
    """What the vocabulary knows of a word."""

    term: str
    root: str
    keys: frozenset[str]
    """Empty for a word that says no and nothing besides."""
    negation: Literal["", "forwards", "back", "inside"]
    """Which way it denies other words; `inside`: it denies what it holds itself (unridden)."""
    opposites: tuple[tuple[int, int], ...]
    qualifies: frozenset[str]
    light: bool


class Negation(NamedTuple):
    """A word that says no, and the clause that it stands in."""

    start: int
    end: int
    clause: int
    forwards: bool
    """English negations reach forwards, Bangla ones back."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """What one sentence says, in parts that can be compared."""

    span: Span
    words: tuple[Word, ...]
    amounts: tuple[Amount, ...]
    codes: tuple[tuple[str, int, int], ...]
    """Term, start, end of each code: RD2-24, an address, a path. One without scheme and www is the same address."""
    negations: tuple[Negation, ...]
    keys: frozenset[str]
    """Those of all its words."""
    parts: tuple[int, ...]
    """Where commas, `and` and their like part it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text, read once."""

    sentences: tuple[Sentence, ...]
    key_words: tuple[str, ...]
    """Those of `text.key_words`."""
    numbers: tuple[Number, ...]
    """Those of `text.numbers`, footnote marks left out."""
    written: str
    """The sentences one behind the other, `as_written`."""
    begins: Mapping[int, int]
    """Where a sentence, or what follows its list mark, begins in `written` -> its number in `sentences`."""
    ends: frozenset[int]
    """Where a sentence ends in `written`, with its full stop or without."""

    def quoted(self, sentence: str) -> Span | None:
        """Find the characters that hold this sentence word for word, from the beginning of a sentence to an end of one.

        White space, quotes, dashes, a list mark before it and a full stop behind it make no difference.
        """
        wanted = _without_full_stop(_LIST_MARK.sub("", as_written(sentence)))
        at = self.written.find(wanted) if wanted else -1
        while at >= 0:
            if at in self.begins and at + len(wanted) in self.ends:
                return self.sentences[self.begins[at]].span
            at = self.written.find(wanted, at + 1)
        return None


def as_written(text: str) -> str:
    """Give a text with single spaces, plain quotes and dashes, and no footnote marks: what a quotation may change."""
    bare = _FOOTNOTE_AND_SPACE.sub("", text) if "[" in text else text
    return " ".join((bare if bare.isascii() else bare.translate(_PLAIN)).split())


@lru_cache(maxsize=256)
def read(text: str) -> Reading:
    """Read a text. Footnote marks such as [7] are passed over: they are no numbers of the text."""
    plain = _FOOTNOTE.sub(lambda mark: " " * len(mark[0]), text)
    tokens = analyse(plain)
    found = numbers(plain)
    spans = sentences(plain)
    starts = [span.start for span in spans]
    tokens_of: list[list[Token]] = [[] for _ in spans]
    for token in tokens:
        tokens_of[bisect_right(starts, token.start) - 1].append(token)
    amounts_of: list[list[Amount]] = [[] for _ in spans]
    for amount in amounts(plain, tokens, found):
        amounts_of[bisect_right(starts, amount.start) - 1].append(amount)
    words = dict.fromkeys(token.term for token in tokens if token.kind == "word")
    read_sentences = (_sentence(plain, *parts) for parts in zip(spans, tokens_of, amounts_of, strict=True))
    return Reading(tuple(read_sentences), tuple(words), tuple(found), *_written(text, spans))


def _written(text: str, spans: Sequence[Span]) -> tuple[str, dict[int, int], frozenset[int]]:
    pieces: list[str] = []
    begins: dict[int, int] = {}
    ends: set[int] = set()
    length = 0
    for number, (start, end) in enumerate(spans):
        piece = as_written(text[start:end])
        if number and start > spans[number - 1].end:
            pieces.append(" ")
            length += 1
        for begin in (0, _list_mark_end(piece)):
            begins.setdefault(length + begin, number)
        ends |= {length + len(piece), length + len(_without_full_stop(piece))}
        pieces.append(piece)
        length += len(piece)
    return "".join(pieces), begins, frozenset(ends)


def _without_full_stop(text: str) -> str:
    bare = text.rstrip()
    said = bare.rstrip(".।!")
    return said.rstrip() if said != bare else text


def _list_mark_end(written: str) -> int:
    mark = _LIST_MARK.match(written)
    return mark.end() if mark else 0


def _sentence(text: str, span: Span, tokens: Sequence[Token], found: Sequence[Amount]) -> Sentence:
    ends = [end.start() for end in _CLAUSE_END.finditer(text, *span)]
    codes = tuple((_address(t.term), t.start, t.end) for t in tokens if t.kind == "code" and _is_code(text, t))
    amount_starts = [amount.outer_start for amount in found]
    words: list[Word] = []
    negations: list[Negation] = []
    for meaning, start, end in _phrases(text, tokens):
        clause = bisect_right(ends, start)
        nearest = bisect_right(amount_starts, start) - 1
        in_amount = nearest >= 0 and start < found[nearest].outer_end
        keys, negated = meaning.keys, False
        if meaning.negation == "inside":
            negated = True
        elif meaning.term == "nor" and negations and negations[-1].clause == clause:
            pass  # neither sell nor rent: the first one denies both
        elif meaning.negation and not in_amount and not _AFFIRMS.match(text, start):
            negations.append(Negation(start, end, clause, meaning.negation == "forwards"))
        if keys:
            written = text[start:end]
            name = written[0].isupper() and (start > span.start or (len(written) > 1 and written.isupper()))
            marks = (negated, name, in_amount, meaning.opposites, meaning.qualifies, meaning.light and not name)
            words.append(Word(meaning.term, keys, start, end, clause, *marks))
    _deny(text, words, negations)
    keys_of_all = frozenset().union(*(word.keys for word in words))
    parts = tuple(end.start() for end in _PART_END.finditer(text, *span))
    return Sentence(span, tuple(words), tuple(found), codes, tuple(negations), keys_of_all, parts)


def _is_code(text: str, token: Token) -> bool:
    """Tell whether a code has to stand as it is: not so initials (U.S.), and sentences without a space (so.Then)."""
    if any(map(str.isdigit, token.term)):
        return True
    parts = _CODE_PARTS.split(text[token.start : token.end])
    return not all(map(is_one_letter, parts)) and not (_ONLY_DOTS.fullmatch(token.term) and parts[-1][:1].isupper())


def _address(term: str) -> str:
    return _ADDRESS_BEGINS.sub("", term).rstrip("/") or term


def _phrases(text: str, tokens: Sequence[Token]) -> Iterator[tuple[Meaning, int, int]]:
    """Give the meaning and the span of each word, known phrases as one. What a code is made of is not a word."""
    words: list[Token] = []
    code_end = 0
    for token in tokens:
        if token.kind == "code" and _is_code(text, token):
            code_end = max(code_end, token.end)
        elif token.start >= code_end and token.kind != "number":
            if words and words[-1].term == "non" and _JOINS_NON.fullmatch(text, words[-1].end, token.start):
                token = replace(words.pop(), term=f"non{token.term}", end=token.end)  # noqa: PLW2901 - one word of two
            words.append(token)
    meanings = [_meaning(token.term) for token in words]
    at, back = 0, -1
    while at < len(words):
        meaning, length = meanings[at], 1
        if meaning.root in PHRASE_BEGINNINGS:
            roots = tuple(m.root for m in meanings[at : at + LONGEST_PHRASE])
            for longer in range(len(roots), 1, -1):
                phrase = roots[:longer]
                if phrase in SYNONYMS or phrase in QUALIFIERS:
                    meaning, length = _meaning_of_phrase(phrase), longer
                    break
        if length == 1 and meaning.root in _GIVEN_BACK:  # send the bike back
            following = [m.root for m in meanings[at + 1 : at + 5]]
            if "back" in following:
                back = at + 1 + following.index("back")
                meaning = meaning._replace(keys=frozenset(_GIVING_BACK))
        if at != back:
            yield meaning, words[at].start, words[at + length - 1].end
        at += length


@lru_cache(maxsize=1 << 15)
def _meaning(term: str) -> Meaning:
    own = root(term)
    negation: Literal["", "forwards", "back", "inside"] = ""
    keys = frozenset({own, *SYNONYMS.get((own,), ())})
    if term in NEGATIONS or term in NEGATIONS_AFTER:
        negation = "forwards" if term in NEGATIONS else "back"
        keys = frozenset() if term in SAYS_NO_ALONE else keys
    elif _BANGLA_NEGATED_VERB.search(term):
        negation, keys = "back", frozenset({root(term[:-2])})
    elif _UN.match(term):
        affirmed = root(_UN.sub("", term))
        negation, keys = "inside", frozenset({affirmed, *SYNONYMS.get((affirmed,), ())})
    side = -1 if negation == "inside" else 1  # `unridden` counts as denied, and is listed beside `new`
    opposites = tuple((pair, side * which) for pair, which in OPPOSITES.get(own, ()))
    return Meaning(term, own, keys, negation, opposites, QUALIFIERS.get((own,), frozenset()), own in LIGHT)


def _meaning_of_phrase(phrase: tuple[str, ...]) -> Meaning:
    name = "+".join(phrase)
    keys = frozenset({name, *SYNONYMS.get(phrase, ())})
    return Meaning(name, phrase[0], keys, "", (), QUALIFIERS.get(phrase, frozenset()), light=False)


def _deny(text: str, words: list[Word], negations: Sequence[Negation]) -> None:
    """Turn the polarity of the words that each negation reaches: the nearest few of its clause.

    `no` and `without` reach no further than the next preposition or verb: no invoice [for the repair].
    """
    starts = [word.start for word in words]
    for negation in negations:
        if negation.forwards:
            first = bisect_right(starts, negation.end)
            reached: Sequence[int] = range(first, min(first + REACH, len(words)))
        else:
            last = bisect_right(starts, negation.start) - 1
            reached = range(last, max(last - REACH, -1), -1)
        of_noun = _DENIES_NOUN.match(text, negation.start)
        for at in reached:
            if words[at].clause != negation.clause or (of_noun and _NOUN_ENDS.search(text, negation.end, starts[at])):
                break
            words[at] = words[at]._replace(negated=not words[at].negated)
