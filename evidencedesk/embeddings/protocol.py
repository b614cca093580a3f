"""What a desk needs of an embedder, and what identifies one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence, Set
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evidencedesk.records import EmbedderIdentity, require_count

Vectors = NDArray[np.float32]
OPTIONAL_ATTRIBUTES = (
    "batch_size", "max_chars", "max_tokens", "count_tokens", "lexical_weight", "language_gap", "guard_thresholds",
)  # fmt: skip


class Embedder(Protocol):
    """What a desk needs of an embedder.

    Both methods give one row a text, in order: shape (len(texts), dimension), of any length but zero. They
    are called from any thread. `fingerprint` differs when weights or settings differ and is never made from
    output, whose last digits depend on the processor; it may be empty. `languages` are the primary language
    subtags (`en`, `bn`) that the embedder knows; None: any.

    Optional attributes: `batch_size`, texts a call; `max_chars` or `max_tokens`, what the model reads of a text, the
    rest being cut or refused (None: no limit, or not known); `count_tokens(text)`, which gives a whole number;
    `lexical_weight`, BM25's share of a hybrid score, from 0 to 1; `language_gap`, how much lower its cosines are
    between a question and a text in another language (None: it does not bring languages together);
    `guard_thresholds`, a `Thresholds` in the scale of its cosines: from which cosine on a question may be answered
    (None: not known, and questions are turned away as uncalibrated).
    """

    @property
    def name(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def languages(self) -> frozenset[str] | None: ...
    def embed_documents(self, texts: Sequence[str]) -> Vectors: ...
    def embed_queries(self, texts: Sequence[str]) -> Vectors: ...


def identity(embedder: Embedder) -> EmbedderIdentity:
    """Read an embedder's identity; an `OpenAIEmbedder` may have to ask its server for the dimension.

    TypeError or ValueError says which attribute of a host's embedder is missing or wrong.
    """
    owner = type(embedder).__name__
    for attribute, kind in (("name", str), ("dimension", Integral), ("fingerprint", str)):
        value = getattr(embedder, attribute, None)
        if not isinstance(value, kind):
            wanted = "text" if kind is str else "a whole number"
            raise TypeError(f"{owner}.{attribute} must be {wanted}, not {value!r}")
    if not embedder.name or embedder.name != embedder.name.strip():
        raise ValueError(f"{owner}.name must not be empty, nor begin or end with white space: {embedder.name!r}")
    languages: Any = getattr(embedder, "languages", "missing")
    if languages is not None and not (
        isinstance(languages, Set) and all(isinstance(language, str) for language in languages)
    ):
        raise TypeError(f"{owner}.languages must be a set of language subtags, or None for any, not {languages!r}")
    width: Any = embedder.dimension
    width = width if isinstance(width, int) else int(width)  # one of numpy's integers
    return EmbedderIdentity(embedder.name, require_count(f"{owner}.dimension", width), embedder.fingerprint)


def longer_than_limit(embedder: Embedder, texts: Sequence[str]) -> int:
    """Count the texts that are longer than what the embedder declares to read of one; 0 where it declares no limit.

    `max_chars` counts characters. `max_tokens` counts by the embedder's `count_tokens`; without one each word counts
    as one token, of which it has at least one: what is counted is too long, but more may be. ValueError for a limit
    that is no whole number of at least 1.
    """
    chars, tokens = getattr(embedder, "max_chars", None), getattr(embedder, "max_tokens", None)
    count_tokens = getattr(embedder, "count_tokens", None) or (lambda text: len(text.split()))
    owner = type(embedder).__name__
    if chars is not None:
        chars = require_count(f"{owner}.max_chars", chars)
    if tokens is not None:
        tokens = require_count(f"{owner}.max_tokens", tokens)
    return sum(
        (chars is not None and len(text) > chars) or (tokens is not None and count_tokens(text) > tokens)
        for text in texts
    )


def digest_of_settings(*settings: object) -> str:
    """Give a fingerprint of settings that JSON can hold: the same in every process."""
    return hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16).hexdigest()
