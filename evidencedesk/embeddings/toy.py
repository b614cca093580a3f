"""An embedder without weights."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from evidencedesk.embeddings.protocol import Vectors, digest_of_settings
from evidencedesk.records import Thresholds, require_count
from evidencedesk.text import TEXT_VERSION, normalise, tokens

_WORD_WEIGHT = 1.0
_GRAM_WEIGHT = 0.75
_GRAM_SIZE = 3


class ToyEmbedder:
    """Hashed words and character trigrams, the same on every machine, without weights; for tests and lessons.

    A stemmed word counts as often as it occurs; its trigrams share a fixed weight and bring related forms
    together. A text without a letter or digit gives a zero row.
    """

    name = "toy"
    languages: frozenset[str] | None = None
    lexical_weight = 0.3
    guard_thresholds: Thresholds | None = Thresholds(
        min_score=0.3, min_margin=0.05, source="built in for toy: the published lesson's guesses, measured on nothing"
    )

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = require_count("dimension", dimension)

    @property
    def fingerprint(self) -> str:
        return digest_of_settings("toy 1", self.dimension, _WORD_WEIGHT, _GRAM_WEIGHT, _GRAM_SIZE, TEXT_VERSION)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            # A text of stop words alone has no terms; its plain words are better than no vector.
            terms = tokens(text) or [word for word in normalise(text).split() if any(map(str.isalnum, word))]
            for term, count in Counter(terms).items():
                framed = f"<{term}>"
                grams = [framed[i : i + _GRAM_SIZE] for i in range(max(1, len(framed) - _GRAM_SIZE + 1))]
                self._add(row, term, count * _WORD_WEIGHT)
                for gram in grams:
                    self._add(row, f"#{gram}", count * _GRAM_WEIGHT / math.sqrt(len(grams)))
        return vectors

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)

    def _add(self, row: Vectors, feature: str, weight: float) -> None:
        value = _feature_hash(feature)
        # The lowest bit is the sign, so that features that meet in one place cancel as often as they add up.
        row[(value >> 1) % self.dimension] += weight if value & 1 else -weight


@lru_cache(maxsize=65536)
def _feature_hash(feature: str) -> int:
    return int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "big")
