"""The signals: each looks at one thing in a claim and in the sentences of the evidence that it is held against."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from evidencedesk.citations.amounts import Amount, compare
from evidencedesk.citations.reading import Negation, Sentence, Word
from evidencedesk.citations.vocabulary import CONDITIONS, COSTS_NOTHING, HEDGES
from evidencedesk.records import Signal, SignalEffect
from evidencedesk.text.units import MONEY_UNITS

SPARE_RATE = 0.45
"""Of a claim's content words beyond one and a half, the share that may be missing. docs/decisions/claims.md has why."""


def spare_words(count: int, rate: float = SPARE_RATE) -> int:
    """Give how many of a claim's content words may be missing: none of 3, 1 of 4, 2 of 6, 4 of 11."""
    return max(0, int(rate * (count - 1.5)))


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
_PRONOUN = re.compile(r"[\"'“‘(]*(?:It|Its|He|His|She|Her|They|Their|This|These)\b")
_ANAPHOR = re.compile(r"[\"'“‘(]*The\s+[a-z]")


def _subject(comparison: Comparison) -> tuple[int, int] | None:
    """Find the claim's opening name when the evidence may mean it without giving it in full.

    That is when it holds a part of the name (Penn for Sean Penn), or begins with a pronoun, whose noun stands before it
    (in a heading, which is no part of a chunk's text), or, where the name has several words, with `The` and a noun. So
    is any first word, where the best sentence begins with a pronoun and the word stands elsewhere in the evidence.
    """
    claim, evidence, aligned = comparison.claim, comparison.evidence, comparison.aligned
    first = next((word for word in claim.words if not word.in_amount and not word.light), None)
    refers_back = bool(aligned) and _PRONOUN.match(comparison.evidence_text, aligned[0].span.start)
    if first and refers_back and any(first.keys & sentence.keys for sentence in evidence):
        return first.start, first.end
    found = _SUBJECT.match(comparison.claim_text, *claim.span)
    if not found or not evidence:
        return None
    span = found.span("subject")
    names = [word for word in claim.words if span[0] <= word.start < span[1]]
    opens = aligned[:1] == tuple(evidence[:1])
    beginning = evidence[0].span.start
    if opens and _PRONOUN.match(comparison.evidence_text, beginning):
        return span
    if len(names) > 1 and opens and _ANAPHOR.match(comparison.evidence_text, beginning):
        return span
    if len(names) < 2 or not any(name.keys & s.keys for s in evidence for name in names):
        return None
    return None if any(_is_another_name(comparison, span, place) for span, place in _replaced(comparison)) else span


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


def amount_signals(comparison: Comparison) -> list[Signal]:
    """Hold each amount of the claim against those of the aligned sentences, then of the whole evidence."""
    return [_amount_signal(comparison, amount) for amount in comparison.claim.amounts]


def _amount_signal(comparison: Comparison, amount: Amount) -> Signal:
    claim_span = (amount.outer_start, amount.outer_end)
    written = comparison.claim_text[slice(*claim_span)]
    related: dict[str, Amount] = {}
    for sentence in comparison.aligned:
        for other in sentence.amounts:
            related.setdefault(compare(amount, other), other)
        if amount.unit and related.keys() & {"same", "open", "other", "unit"}:
            break  # the best sentence has the last word: what its neighbour says of the like is about something else

    def signal(effect: SignalEffect, relation: str, detail: str, name: str = "number") -> Signal:
        other = related[relation]
        span = (other.outer_start, other.outer_end)
        return Signal(name, effect, detail.format(written, comparison.evidence_text[slice(*span)]), claim_span, span)

    if "same" in related:
        return _attached(comparison, amount) or signal("supports", "same", 'The evidence has "{0}" as "{1}".')
    if "open" in related:
        return signal("unchecked", "open", '"{0}" and "{1}" can be compared, but neither follows from the other.')
    if "unit" in related:
        return signal("lacks", "unit", 'The claim says "{0}", the evidence "{1}": another unit.', "unit")
    if "other" in related and amount.unit is not None:
        return signal("contradicts", "other", 'The claim says "{0}", the evidence "{1}".')
    for sentence in comparison.evidence:
        for other in sentence.amounts:
            if compare(amount, other) == "same":
                related["elsewhere"] = other
                if _is_year(amount) and "other" not in related:
                    return signal("supports", "elsewhere", 'The evidence has "{0}", which dates all of it.')
                return signal(
                    "lacks", "elsewhere", '"{0}" stands in another sentence of the evidence, of something else.'
                )
    return Signal("number", "lacks", f'The evidence does not say "{written}".', claim_span)


def _is_year(amount: Amount) -> bool:
    return amount.unit is None and amount.bound == "exact" and 1900 <= amount.low == amount.high <= 2100


def _attached(comparison: Comparison, amount: Amount) -> Signal | None:
    """Find the words around an amount in a part of the sentence that has another amount of the same kind.

    Parts are what commas, `and` and the like part: 80 taka in Chattogram | and 150 taka in other districts. Words
    of the amount's own part of the claim count, the claim's first word by half more; there must be more of them in the
    wrong part.
    """
    near = _part(comparison.claim, amount)
    first = comparison.words[0].keys if comparison.words else frozenset()

    def shared(sentence: Sentence, other: Amount) -> float:
        part = _part(sentence, other)
        return len(near & part) + (0.5 if first & near & part else 0)

    for sentence in comparison.aligned:
        same = [other for other in sentence.amounts if compare(amount, other) == "same"]
        rivals = [o for o in sentence.amounts if compare(amount, o) in ("other", "open") and o.unit == amount.unit]
        if amount.unit and same and rivals:
            right = max(shared(sentence, other) for other in same)
            rival = max(rivals, key=lambda other: shared(sentence, other))
            if shared(sentence, rival) > right:
                span = (rival.outer_start, rival.outer_end)
                written = comparison.claim_text[amount.outer_start : amount.outer_end]
                detail = f'The evidence has "{written}", but says "{comparison.evidence_text[slice(*span)]}" of this.'
                return Signal("number", "contradicts", detail, (amount.outer_start, amount.outer_end), span)
    return None


def _part(sentence: Sentence, amount: Amount) -> frozenset[str]:
    """Give the keys of the words in the same part of the sentence as an amount."""
    begin = max((p for p in sentence.parts if p <= amount.start), default=sentence.span.start)
    end = min((p for p in sentence.parts if p > amount.start), default=sentence.span.end)
    return frozenset().union(*(w.keys for w in sentence.words if begin <= w.start < end and not w.in_amount))


def unaligned_amount_signals(comparison: Comparison) -> list[Signal]:
    """Across languages: find amounts that the evidence has beside others of the kind, so that any could be meant.

    Which of them a word belongs to cannot be seen where the words cannot be compared: five years is right of the
    frame, and wrong of the battery.
    """
    found = []
    for amount in comparison.claim.amounts:
        related = [(compare(amount, other), other) for sentence in comparison.evidence for other in sentence.amounts]
        rival = next((other for relation, other in related if relation in ("other", "open")), None)
        if rival and any(relation == "same" for relation, _ in related):
            spans = (amount.outer_start, amount.outer_end), (rival.outer_start, rival.outer_end)
            written, other = comparison.claim_text[slice(*spans[0])], comparison.evidence_text[slice(*spans[1])]
            detail = f'The evidence has "{written}" and "{other}": across languages words cannot tell which is meant.'
            found.append(Signal("number", "unchecked", detail, *spans))
    return found


def code_signals(comparison: Comparison) -> list[Signal]:
    """Codes, dates and times have to stand in the evidence as they are; 2024-01-15 is not read as a day in words."""
    found = []
    for term, start, end in comparison.claim.codes:
        spans = [(s, e) for sentence in comparison.evidence for code, s, e in sentence.codes if code == term]
        written = comparison.claim_text[start:end]
        if spans:
            found.append(Signal("code", "supports", f'The evidence has "{written}".', (start, end), spans[0]))
        else:
            found.append(Signal("code", "lacks", f'The evidence does not have "{written}".', (start, end)))
    return found


def negation_signals(comparison: Comparison) -> list[Signal]:
    """Find what one side says and the other denies.

    A clause of the claim that denies something is not held against what the evidence denies: it may be the same, put in
    another order. A claim with more negations than the evidence is never supported.
    """
    found = []
    said_no = {negation.clause for negation in comparison.claim.negations}
    for word in comparison.words:
        others = comparison.matches(word)
        if not others or any(other.negated == word.negated for other in others):
            continue
        if word.negated or word.clause not in said_no:
            denies = "the claim denies it" if word.negated else "the evidence denies it"
            span = (others[0].start, others[0].end)
            detail = f'Both speak of "{comparison.quoted(word)}", and {denies}.'
            found.append(Signal("negation", "contradicts", detail, (word.start, word.end), span))
    available = sum(len(sentence.negations) for sentence in comparison.aligned)
    if not found:
        for negation in comparison.claim.negations[available:]:
            written = comparison.claim_text[negation.start : negation.end]
            detail = f'The claim says "{written}", and the evidence denies nothing here.'
            found.append(Signal("negation", "lacks", detail, (negation.start, negation.end)))
    if not found and comparison.aligned and _repeats(comparison, comparison.aligned[0]):
        found += _uneven_negations(comparison, comparison.aligned[0])
    return found


def _uneven_negations(comparison: Comparison, sentence: Sentence) -> list[Signal]:
    """Compare how often each side says no."""
    said = [(negation.start, negation.end) for negation in comparison.claim.negations]
    held = [(negation.start, negation.end) for negation in sentence.negations]
    if len(said) == len(held):
        return []
    effect: SignalEffect = "unchecked" if said and held else "contradicts"
    detail = 'Of two sentences in the same words, only one says "{}".'
    if len(said) > len(held):
        span = said[len(held)]
        return [Signal("negation", effect, detail.format(comparison.claim_text[slice(*span)]), span)]
    span = held[len(said)]
    return [Signal("negation", effect, detail.format(comparison.evidence_text[slice(*span)]), None, span)]


def _repeats(comparison: Comparison, sentence: Sentence) -> bool:
    """Tell whether claim and sentence have the same content words, but for a fifth."""
    strange = sum(1 for word in comparison.words if not word.keys & sentence.keys)
    more = {w.keys for w in sentence.words if not w.light and not w.in_amount and not w.keys & comparison.claim.keys}
    return strange + len(more) <= len(comparison.words) / 5


_JOINED = re.compile(r"(?:and|or|আর|এবং)\b", re.I)
_RUNNING_WORD = re.compile(r"[\w\u0980-\u09ff]+")


def denied_signals(comparison: Comparison) -> list[Signal]:
    """Find a denial in the best sentence that the claim may have turned round.

    The claim denies nothing, and says of what stands there something that does not: `We store your PIN` of `Your PIN
    never reaches us`. It is also turned round when it holds nothing but the subject of the denial (`We have your PIN`).
    """
    if not comparison.aligned or comparison.claim.negations or any(word.negated for word in comparison.claim.words):
        return []
    best, said = comparison.aligned[0], comparison.claim.keys
    strange = [word for word in comparison.words if word in comparison.missing or not word.keys & best.keys]
    for negation in best.negations:
        clauses = _denied_clauses(comparison, best, negation)
        shared = [w for w in best.words if w.clause in clauses and w.keys & said and not w.light]
        is_subject = negation.forwards and all(word.start < negation.start for word in shared)
        if is_subject and all(word.clause != negation.clause for word in shared):
            is_subject = not _running_words(comparison.claim_text, comparison.claim) <= _running_words(
                comparison.evidence_text, best
            )
        if shared and (strange or is_subject):
            written = comparison.evidence_text[negation.start : negation.end]
            what = f'"{comparison.quoted(strange[0])}" is not said there' if strange else "the claim leaves it out"
            detail = f'The evidence says "{written}", and {what}.'
            return [Signal("negation", "unchecked", detail, None, (negation.start, negation.end))]
    return []


def _denied_clauses(comparison: Comparison, sentence: Sentence, negation: Negation) -> set[int]:
    """Give the clause of a negation, and those before it that are its subject.

    A card and a PIN never ... share the clause before; a card, like a PIN, never ... begins before what is put in.
    """
    own = negation.clause
    words = [word for word in sentence.words if word.clause == own]
    former = [word for word in sentence.words if word.clause == own - 1]
    if not words or not former:
        return {own}
    subject = sum(word.start < negation.start for word in words)
    between = comparison.evidence_text[former[-1].end : min(words[0].start, negation.start)]
    if subject > (0 if negation.forwards else 1):
        return {own, own - 1} if _JOINED.search(between) else {own}
    return set(range(own + 1)) if negation.forwards and own > 1 and between.strip() == "," else {own}


def _running_words(text: str, sentence: Sentence) -> set[str]:
    return {word.lower() for word in _RUNNING_WORD.findall(text, *sentence.span)}


def opposite_signals(comparison: Comparison) -> list[Signal]:
    """Find a word of the claim whose opposite stands in the evidence, and not the word itself."""
    found = []
    for word in comparison.claim.words:
        if word.in_amount or word.name or comparison.has(word) or _is_verb_used(comparison, word):
            continue
        for other in (other for sentence in comparison.aligned for other in sentence.words):
            facing = {(pair, -side if word.negated == other.negated else side) for pair, side in word.opposites}
            if not other.name and not other.in_amount and facing & set(other.opposites):
                detail = (
                    f'The claim says "{comparison.claim_text[word.start : word.end]}",'
                    f' the evidence "{comparison.evidence_text[other.start : other.end]}".'
                )
                spans = (word.start, word.end), (other.start, other.end)
                found.append(Signal("opposite", "contradicts", detail, *spans))
                break
    return found


def qualifier_signals(comparison: Comparison) -> list[Signal]:
    """Find words that make the claim stronger than the evidence: only, all, must, used."""
    held = {group for sentence in comparison.aligned for word in sentence.words for group in word.qualifies}
    return [
        Signal(
            "qualifier",
            "lacks",
            f'The evidence does not say "{comparison.claim_text[word.start : word.end]}".',
            (word.start, word.end),
        )
        for word in comparison.claim.words
        if word.qualifies and not word.qualifies & held and not comparison.has(word)
        if not _is_verb_used(comparison, word)
    ]


_USED_AS_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|being|often|also|widely|commonly|they|who|that|which|he|she|we|have|has|had)\s+used\b"
    r"|\bused\s+(?:by|to|for|as|in|with|a|an|the)\b",
    re.I,
)


def _is_verb_used(comparison: Comparison, word: Word) -> bool:
    """Tell whether `used` says what is done (is used for) and not that something is not new."""
    around = max(0, word.start - 12), word.end + 6
    return (
        comparison.quoted(word).lower() == "used" and _USED_AS_VERB.search(comparison.claim_text, *around) is not None
    )


def denial_signals(comparison: Comparison) -> list[Signal]:
    """Across languages: what is denied cannot be told, only that something is.

    A claim that denies is at best undecided; one that affirms is so where the evidence denies, unless it has a word
    such as `unridden`, which other languages write with a negation.
    """
    denies = comparison.claim.negations
    denied = any(sentence.negations for sentence in comparison.aligned)
    if denies and not denied:
        span = (denies[0].start, denies[0].end)
        return [Signal("negation", "lacks", "The claim denies something, and the evidence nothing.", span)]
    if denies or (denied and not any(word.negated for word in comparison.claim.words)):
        return [Signal("negation", "unchecked", "What is denied cannot be compared across languages.")]
    return []


_FREE_OF_ELSE = re.compile(r"free\s+(?:from|of)\b(?!\s+(?:any\s+)?(?:charge|cost|fee))", re.I)


def free_signals(comparison: Comparison) -> list[Signal]:
    """Find what the claim says is free of charge, and the evidence does not say is so, or gives a price for."""
    about = (word.keys for word in comparison.words if not word.keys & COSTS_NOTHING)
    said: frozenset[str] = frozenset().union(*about)
    for word in comparison.claim.words:
        if not word.keys & COSTS_NOTHING or word.name or _FREE_OF_ELSE.match(comparison.claim_text, word.start):
            continue
        span = (word.start, word.end)
        free = [
            _shared_in_part(sentence, other.start, said)
            for sentence in comparison.aligned
            if sentence is comparison.aligned[0] or _speaks_of_the_same(comparison, sentence, said)
            for other in sentence.words
            if other.keys & COSTS_NOTHING
        ]
        for sentence in comparison.aligned if free else comparison.aligned[:1]:
            for price in sentence.amounts:
                is_price = price.unit in MONEY_UNITS
                if is_price and (not free or _shared_in_part(sentence, price.start, said) > max(free)):
                    place = (price.outer_start, price.outer_end)
                    written = comparison.evidence_text[slice(*place)]
                    detail = f'The claim says "{comparison.quoted(word)}", the evidence "{written}".'
                    return [Signal("free", "contradicts", detail, span, place)]
        if comparison.aligned and not free:
            return [Signal("free", "lacks", f'The evidence does not say "{comparison.quoted(word)}".', span)]
    return []


def _speaks_of_the_same(comparison: Comparison, sentence: Sentence, said: frozenset[str]) -> bool:
    """Tell whether a neighbour says something of what the claim is about, or of what stands before it (It is free)."""
    return bool(sentence.keys & said) or _PRONOUN.match(comparison.evidence_text, sentence.span.start) is not None


def _shared_in_part(sentence: Sentence, place: int, said: frozenset[str]) -> int:
    """Count the words of the part of a sentence around a place that the claim has as well."""
    number = bisect_right(sentence.parts, place)
    words = (word for word in sentence.words if bisect_right(sentence.parts, word.start) == number)
    return sum(1 for word in words if word.keys & said and not word.in_amount)


def name_signals(comparison: Comparison) -> list[Signal]:
    """Find names of the claim that the evidence does not have."""
    known = [sentence.keys for sentence in comparison.evidence]
    return [
        Signal("name", "lacks", f'The evidence does not name "{comparison.quoted(word)}".', (word.start, word.end))
        for word in comparison.missing
        if word.name and not any(word.keys & keys for keys in known)
    ]


def replacement_signals(comparison: Comparison) -> list[Signal]:
    """Find the one stretch of a claim in whose place the evidence has others: drama [book] about, drama [film] about.

    A claim that lacks words in several places is put in other words, and the words that are missing are counted
    instead.
    """
    words = [word for word in comparison.claim.words if not word.light]
    lacking = [at for at, word in enumerate(words) if word in comparison.missing]
    if not lacking or lacking[-1] - lacking[0] != len(lacking) - 1 or len(lacking) > 3:
        return []
    return [
        Signal(
            "replaced",
            "lacks",
            f'Where the claim says "{comparison.claim_text[slice(*span)]}", the evidence says'
            f' "{comparison.evidence_text[slice(*place)]}".',
            span,
            place,
        )
        for span, place in _replaced(comparison)
    ]


def _replaced(comparison: Comparison) -> list[tuple[tuple[int, int], tuple[int, int]]]:
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


def condition_signals(comparison: Comparison) -> list[Signal]:
    """Find conditions (if, unless, only) that the claim leaves out, or takes for what is said.

    It leaves out one of the best sentence of which it holds no word. It takes for said what stands behind an `if` when
    it holds words of that alone, and none of what follows from it.
    """
    if any(word.keys & CONDITIONS for word in comparison.claim.words):
        return []
    said = comparison.claim.keys
    found = []
    for sentence in comparison.aligned:
        for word in sentence.words:
            if not word.keys & CONDITIONS:
                continue
            behind = [w for w in sentence.words if w.clause == word.clause and w.start > word.start and not w.light]
            if not behind:
                continue
            outside = [w for w in sentence.words if w.clause != word.clause or w.start < word.start]
            span = (word.start, behind[-1].end)
            condition = comparison.evidence_text[slice(*span)]
            if not any(w.keys & said for w in behind):
                if sentence is comparison.aligned[0]:
                    found.append(Signal("condition", "unchecked", f'The claim leaves out "{condition}".', None, span))
            elif word.keys & _SUPPOSING and not any(w.keys & said for w in outside if not w.light):
                found.append(Signal("condition", "lacks", f'The evidence only supposes it: "{condition}".', None, span))
    return found


_LIMITS = frozenset({"least", "more", "most", "less", "within", "after"})


def limit_signals(comparison: Comparison) -> list[Signal]:
    """Find a limit of the evidence (5,000 taka or more, within 30 days) that the claim drops: it holds beyond it too.

    The limit stands in a clause of the best sentence that holds words of the claim, and the claim has no amount of the
    kind.
    """
    said = comparison.claim.keys
    meant = {w.clause for sentence in comparison.aligned[:1] for w in sentence.words if w.keys & said and not w.light}
    return [signal for clause, signal in _dropped_limits(comparison) if clause in meant]


def unaligned_limit_signals(comparison: Comparison) -> list[Signal]:
    """Across languages: the same for limits of the whole best sentence, for no words tell the clause."""
    return [signal for _, signal in _dropped_limits(comparison)]


def _dropped_limits(comparison: Comparison) -> Iterator[tuple[int, Signal]]:
    """Give the clause of each limit of the best sentence that the claim has no amount to compare with."""
    for best in comparison.aligned[:1]:
        for amount in best.amounts:
            is_limit = amount.bound in _LIMITS and amount.unit is not None
            if not is_limit or any(compare(own, amount) != "none" for own in comparison.claim.amounts):
                continue
            span = (amount.outer_start, amount.outer_end)
            detail = f'The claim leaves out "{comparison.evidence_text[slice(*span)]}".'
            inside = (word.clause for word in best.words if word.start >= amount.outer_start)
            yield (
                next(inside, best.words[-1].clause if best.words else 0),
                Signal("condition", "unchecked", detail, None, span),
            )


def hedge_signals(comparison: Comparison) -> list[Signal]:
    """Find a doubt of the evidence (may, usually) that the claim drops."""
    if not comparison.aligned or _HEDGED.search(comparison.claim_text, *comparison.claim.span):
        return []
    best, said = comparison.aligned[0], comparison.claim.keys
    doubtful = {word.clause for word in best.words if word.keys & said and not word.light}
    return [
        Signal(
            "hedge",
            "unchecked",
            f'The claim drops a doubt of the evidence: "{comparison.evidence_text[word.start : word.end]}".',
            None,
            (word.start, word.end),
        )
        for word in best.words
        if word.keys & HEDGES and not word.keys & said and word.clause in doubtful and not word.name
    ]


_SUPPOSING = frozenset({"if", "যদি"})
_HEDGED = re.compile(
    r"\b(?:may|might|can|could|sometimes|usually|normally|typically|often|generally|possibly|likely|perhaps)\b"
    r"|পার(?:ে|েন|বেন|বে)|সম্ভবত|হয়তো|প্রায়ই|কখনো",
    re.I,
)


def lost_words(comparison: Comparison) -> float:
    """Count the claim's content words that are missing; one that stands elsewhere in the evidence counts half."""
    known = [sentence.keys for sentence in comparison.evidence]
    return sum(0.5 if any(word.keys & keys for keys in known) else 1.0 for word in comparison.missing)


def word_signals(comparison: Comparison) -> list[Signal]:
    """Judge by how many of the claim's content words are missing."""
    words, missing = comparison.words, comparison.missing
    if not words:
        return []
    detail = f"The evidence holds {len(words) - len(missing)} of {len(words)} content words"
    detail += f", not {', '.join(map(comparison.quoted, missing[:5]))}." if missing else "."
    return [Signal("key_words", "supports" if lost_words(comparison) <= spare_words(len(words)) else "lacks", detail)]


SIGNALS: tuple[Callable[[Comparison], list[Signal]], ...] = (
    amount_signals,
    code_signals,
    negation_signals,
    denied_signals,
    opposite_signals,
    free_signals,
    qualifier_signals,
    name_signals,
    replacement_signals,
    condition_signals,
    limit_signals,
    hedge_signals,
    word_signals,
)
"""What is looked at when claim and evidence are in one language."""
ACROSS_LANGUAGES_UNALIGNED = (amount_signals, code_signals)
"""What can be compared across languages before it is known which sentences belong together."""
ACROSS_LANGUAGES = (
    *ACROSS_LANGUAGES_UNALIGNED,
    unaligned_amount_signals,
    denial_signals,
    opposite_signals,
    free_signals,
    qualifier_signals,
    unaligned_limit_signals,
)
"""The same when the sentence is known."""
