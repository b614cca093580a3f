"""What one side says and the other denies, and words that mean the opposite."""

from __future__ import annotations

import re

from evidencedesk.citations.comparing import Comparison, is_verb_used
from evidencedesk.citations.reading import Negation, Sentence
from evidencedesk.records import Signal, SignalEffect


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


def opposite_signals(comparison: Comparison) -> list[Signal]:
    """Find a word of the claim whose opposite stands in the evidence, and not the word itself."""
    found = []
    for word in comparison.claim.words:
        if word.in_amount or word.name or comparison.has(word) or is_verb_used(comparison, word):
            continue
        for other in (other for sentence in comparison.aligned for other in sentence.words):
            facing = {(pair, -side if word.negated == other.negated else side) for pair, side in word.opposites}
            if not other.name and not other.in_amount and facing & set(other.opposites):
                held = comparison.evidence_text[other.start : other.end]
                detail = f'The claim says "{comparison.quoted(word)}", the evidence "{held}".'
                spans = (word.start, word.end), (other.start, other.end)
                found.append(Signal("opposite", "contradicts", detail, *spans))
                break
    return found
