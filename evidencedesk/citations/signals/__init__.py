"""The signals: each looks at one thing in a claim and in the sentences of the evidence that it is held against."""

from __future__ import annotations

from collections.abc import Callable

from evidencedesk.citations.comparing import Comparison
from evidencedesk.citations.signals.amounts import (
    amount_signals,
    code_signals,
    free_signals,
    unaligned_amount_signals,
)
from evidencedesk.citations.signals.denials import denial_signals, denied_signals, negation_signals, opposite_signals
from evidencedesk.citations.signals.strength import (
    condition_signals,
    hedge_signals,
    limit_signals,
    qualifier_signals,
    unaligned_limit_signals,
)
from evidencedesk.citations.signals.words import name_signals, replacement_signals, word_signals
from evidencedesk.records import Signal

__all__ = ["ACROSS_LANGUAGES", "ACROSS_LANGUAGES_UNALIGNED", "SIGNALS"]

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
