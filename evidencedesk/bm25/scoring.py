"""The formula.

Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) with the idf that stays above
zero, as Lucene has it:

    score(q, d) = sum over distinct terms t of q:  idf(t) * tf / (tf + k1 * (1 - b + b * len(d) / avg_len))
    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))

Every score is a sum in the alphabetical order of terms, in double precision, wherever it is computed, so that a
search, a score and an explanation agree to the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs to know of the chunks in force in a scope."""

    chunk_count: int
    total_length: int
    document_frequency: Mapping[str, int]
    """n of each term that was asked about; 0 for a term that stands nowhere in force."""

    @property
    def average_length(self) -> float:
        """Terms in a chunk on average; 0.0 when there is none."""
        return self.total_length / self.chunk_count if self.chunk_count else 0.0

    def idf(self, term: str) -> float:
        """ln(1 + (N - n + 0.5) / (n + 0.5)); above 0 for every n <= N."""
        n = self.document_frequency.get(term, 0)
        return math.log(1 + (max(self.chunk_count, n) - n + 0.5) / (n + 0.5))


def norms(lengths: NDArray[Any], average_length: float) -> NDArray[np.float64]:
    """k1 * (1 - b + b * len / avg_len) of each length."""
    return cast("NDArray[np.float64]", K1 * (1 - B + B * lengths.astype(np.int64) / average_length))


def parts(idf: float, frequencies: NDArray[Any], norm: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a term adds to the score of each chunk; 0.0 where its tf is 0."""
    counted = frequencies.astype(np.float64)
    return idf * counted / (counted + norm)
