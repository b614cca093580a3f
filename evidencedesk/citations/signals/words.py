"""Words, names and what stands in their place: whether the claim is in the evidence at all."""

from __future__ import annotations

from evidencedesk.citations.comparing import Comparison, replaced
from evidencedesk.records import Signal

SPARE_RATE = 0.45
"""Of a claim's content words beyond one and a half, the share that may be missing. docs/decisions/claims.md has why."""


def spare_words(count: int, rate: float = SPARE_RATE) -> int:
    """Give how many of a claim's content words may be missing: none of 3, 1 of 4, 2 of 6, 4 of 11."""
    return max(0, int(rate * (count - 1.5)))


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
        for span, place in replaced(comparison)
    ]
