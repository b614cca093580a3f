"""Amounts and codes, and what is free of charge."""

from __future__ import annotations

import re
from bisect import bisect_right

from evidencedesk.citations.amounts import Amount, compare
from evidencedesk.citations.comparing import PRONOUN, Comparison
from evidencedesk.citations.reading import Sentence
from evidencedesk.citations.vocabulary import COSTS_NOTHING
from evidencedesk.records import Signal, SignalEffect
from evidencedesk.text.units import MONEY_UNITS


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
    return bool(sentence.keys & said) or PRONOUN.match(comparison.evidence_text, sentence.span.start) is not None


def _shared_in_part(sentence: Sentence, place: int, said: frozenset[str]) -> int:
    """Count the words of the part of a sentence around a place that the claim has as well."""
    number = bisect_right(sentence.parts, place)
    words = (word for word in sentence.words if bisect_right(sentence.parts, word.start) == number)
    return sum(1 for word in words if word.keys & said and not word.in_amount)
