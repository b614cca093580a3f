"""What makes a claim stronger than its evidence: qualifiers, and the conditions, limits and doubts that it drops."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evidencedesk.citations.amounts import compare
from evidencedesk.citations.comparing import Comparison, is_verb_used
from evidencedesk.citations.vocabulary import CONDITIONS, HEDGES
from evidencedesk.records import Signal


def qualifier_signals(comparison: Comparison) -> list[Signal]:
    """Find words that make the claim stronger than the evidence: only, all, must, used."""
    held = {group for sentence in comparison.aligned for word in sentence.words for group in word.qualifies}
    return [
        Signal(
            "qualifier",
            "lacks",
            f'The evidence does not say "{comparison.quoted(word)}".',
            (word.start, word.end),
        )
        for word in comparison.claim.words
        if word.qualifies and not word.qualifies & held and not comparison.has(word)
        if not is_verb_used(comparison, word)
    ]


_SUPPOSING = frozenset({"if", "যদি"})


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


_HEDGED = re.compile(
    r"\b(?:may|might|can|could|sometimes|usually|normally|typically|often|generally|possibly|likely|perhaps)\b"
    r"|পার(?:ে|েন|বেন|বে)|সম্ভবত|হয়তো|প্রায়ই|কখনো",
    re.I,
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
