"""A sentence of a claim beside the evidence it is held against: the sentences that fit it best, and what they lack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from evidencedesk.citations.amounts import compare
from evidencedesk.citations.reading import Sentence, Word


@dataclass(frozen=True, slots=True)
class Comparison:
    """One sentence of a claim, and what it is held against."""

    claim_text: str
    claim: Sentence
    evidence_text: str
    evidence: tuple[Sentence, ...]
    aligned: tuple[Sentence, ...]
    """The one or two neighbouring sentences of the evidence that hold most of the claim; the best one first."""
    words: tuple[Word, ...]
    """The claim's content words, each meaning once: not those of amounts, nor words that say nothing."""
    missing: tuple[Word, ...]
    """Those of them that the aligned sentences do not hold."""

    def matches(self, word: Word) -> list[Word]:
        """List the words of the aligned sentences that mean the same."""
        return [other for sentence in self.aligned for other in sentence.words if other.keys & word.keys]

    def has(self, word: Word) -> bool:
        return any(word.keys & sentence.keys for sentence in self.aligned)

    def quoted(self, word: Word) -> str:
        """Give the word as the claim writes it."""
        return self.claim_text[word.start : word.end]

    @property
    def share(self) -> float:
        """Share of the content words that the aligned sentences hold; 1.0 when there are none."""
        return 1 - len(self.missing) / len(self.words) if self.words else 1.0


def held_against(claim_text: str, claim: Sentence, evidence_text: str, evidence: tuple[Sentence, ...]) -> Comparison:
    """Align a sentence of a claim with the evidence."""
    aligned = align(claim, evidence)
    words = {w.keys: w for w in reversed(claim.words) if not w.in_amount and not w.light}
    distinct = tuple(reversed(words.values()))
    known = [sentence.keys for sentence in aligned]
    missing = tuple(word for word in distinct if not any(word.keys & keys for keys in known))
    comparison = Comparison(claim_text, claim, evidence_text, evidence, aligned, distinct, missing)
    subject = _subject(comparison) if missing else None
    if subject is None:
        return comparison
    excused = {word for word in missing if subject[0] <= word.start < subject[1]}
    return replace(comparison, missing=tuple(word for word in missing if word not in excused))


_SUBJECT = re.compile(  # a name: capitals side by side, also behind `In 1986,`
    r"(?:(?:In|On|At|During|After|Since|By)\b[^,]{1,60},\s+)?(?P<subject>(?:The\s+)?[\"'“‘(]*[A-Z][^\s,;:]*"
    r"(?:\s+(?:(?:de|la|le|von|van|der)\s+){0,3}[\"'“‘(]*[A-Z0-9][^\s,;:]*)*)"
)
PRONOUN = re.compile(r"[\"'“‘(]*(?:It|Its|He|His|She|Her|They|Their|This|These)\b")
_ANAPHOR = re.compile(r"[\"'“‘(]*The\s+[a-z]")


def _subject(comparison: Comparison) -> tuple[int, int] | None:
    """Find the claim's opening name when the evidence may mean it without giving it in full.

    That is when it holds a part of the name (Penn for Sean Penn), or begins with a pronoun, whose noun stands before it
    (in a heading, which is no part of a chunk's text), or, where the name has several words, with `The` and a noun. So
    is any first word, where the best sentence begins with a pronoun and the word stands elsewhere in the evidence.
    """
    claim, evidence, aligned = comparison.claim, comparison.evidence, comparison.aligned
    first = next((word for word in claim.words if not word.in_amount and not word.light), None)
    refers_back = bool(aligned) and PRONOUN.match(comparison.evidence_text, aligned[0].span.start)
    if first and refers_back and any(first.keys & sentence.keys for sentence in evidence):
        return first.start, first.end
    found = _SUBJECT.match(comparison.claim_text, *claim.span)
    if not found or not evidence:
        return None
    span = found.span("subject")
    names = [word for word in claim.words if span[0] <= word.start < span[1]]
    opens = aligned[:1] == tuple(evidence[:1])
    beginning = evidence[0].span.start
    if opens and PRONOUN.match(comparison.evidence_text, beginning):
        return span
    if len(names) > 1 and opens and _ANAPHOR.match(comparison.evidence_text, beginning):
        return span
    if len(names) < 2 or not any(name.keys & s.keys for s in evidence for name in names):
        return None
    return None if any(_is_another_name(comparison, span, place) for span, place in replaced(comparison)) else span


def _is_another_name(comparison: Comparison, span: tuple[int, int], place: tuple[int, int]) -> bool:
    """Tell whether all that stands in the place of a name has capitals (Museum for Cuba), and is no longer form of it.

    Timothy is one of Tim.
    """
    name, other = comparison.claim_text[slice(*span)], comparison.evidence_text[slice(*place)]
    return all(word[:1].isupper() for word in other.split()) and not other.startswith(name)


def align(claim: Sentence, evidence: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """Find the sentence that holds most of the claim's words, and a neighbour if it adds words, amounts or codes.

    Amounts and codes decide between sentences that hold equally many words; a number alone draws no claim to itself.
    """
    wanted = [word.keys for word in claim.words if not word.in_amount]

    def words_held(at: int) -> frozenset[int]:
        return frozenset(i for i, keys in enumerate(wanted) if keys & evidence[at].keys)

    def figures_held(at: int) -> frozenset[str]:
        codes = {code for code, *_ in evidence[at].codes}
        held = {code for code, *_ in claim.codes if code in codes}
        held |= {
            str(amount.start)
            for amount in claim.amounts
            if any(compare(amount, other) == "same" for other in evidence[at].amounts)
        }
        return frozenset(held)

    words = [words_held(at) for at in range(len(evidence))]
    figures = [figures_held(at) for at in range(len(evidence))]
    best = max(range(len(evidence)), key=lambda at: (len(words[at]), len(figures[at]), -at), default=None)
    if best is None or not (words[best] or figures[best]):
        return ()
    gains = {
        at: len(words[at] - words[best]) + len(figures[at] - figures[best])
        for at in (best - 1, best + 1)
        if 0 <= at < len(evidence)
    }
    neighbour = max(gains, key=lambda at: (gains[at], -at), default=None)
    if neighbour is not None and gains[neighbour] > 0:
        return evidence[best], evidence[neighbour]
    return (evidence[best],)


def replaced(comparison: Comparison) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """List stretches of up to three missing words, each with the stretch of the evidence that stands in its place.

    The place is known by the words on both sides, which the evidence has in the same order with few others between
    them; the beginning or end of both sentences serves as a side. Something else stands there if it has a word that
    the claim has not, or has not as often. Between a claim's beginning and its code, a word is only a kind of
    thing (Error E21 for Code E21).
    """
    words = [word for word in comparison.claim.words if not word.light]
    said = Counter(key for word in words for key in word.keys)
    sentences = [[word for word in sentence.words if not word.light] for sentence in comparison.aligned]
    others = [(found, Counter(key for word in found for key in word.keys)) for found in sentences]
    first_code = min((start for _, start, _ in comparison.claim.codes), default=len(comparison.claim_text))
    replaced = []
    at = 0
    for is_missing, run in groupby(words, key=lambda word: word in comparison.missing):
        stretch = list(run)
        before = words[at - 1] if at else None
        at += len(stretch)
        behind = words[at] if at < len(words) else None
        if not is_missing or len(stretch) > 3 or before is behind is None:
            continue
        longest = len(stretch) + (2 if before and behind else 0)
        if stretch[0].start == comparison.claim.span.start:
            if behind and first_code <= behind.start:
                continue
            longest = max(longest, _LONGEST_OPENING)
        places = (_place(found, before, behind, longest, held - said) for found, held in others)
        if place := next(filter(None, places), None):
            replaced.append(((stretch[0].start, stretch[-1].end), place))
    return replaced


def _place(
    words: Sequence[Word], before: Word | None, behind: Word | None, longest: int, strange: Mapping[str, int]
) -> tuple[int, int] | None:
    """Find up to `longest` words between two known ones, one of them with keys that are all `strange`.

    At the beginning all of them are: a bike can be returned, and customers can return a bike.
    """
    for start in [-1] if before is None else [i for i, word in enumerate(words) if word.keys & before.keys]:
        for end in range(start + 2, min(start + 2 + longest, len(words) + 1)):
            closed = end == len(words) if behind is None else end < len(words) and words[end].keys & behind.keys
            between = words[start + 1 : end]
            is_strange = [word.keys <= strange.keys() for word in between]
            if closed and (all(is_strange) if before is None else any(is_strange)):
                return between[0].start, between[-1].end
    return None


_LONGEST_OPENING = 6
"""Content words: a sentence's subject, which a claim that begins with another does not speak of."""


_USED_AS_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|being|often|also|widely|commonly|they|who|that|which|he|she|we|have|has|had)\s+used\b"
    r"|\bused\s+(?:by|to|for|as|in|with|a|an|the)\b",
    re.I,
)


def is_verb_used(comparison: Comparison, word: Word) -> bool:
    """Tell whether `used` says what is done (is used for) and not that something is not new."""
    around = max(0, word.start - 12), word.end + 6
    return (
        comparison.quoted(word).lower() == "used" and _USED_AS_VERB.search(comparison.claim_text, *around) is not None
    )
