"""The host's own embedders, and a count of what any embedder is given."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evidencedesk.embeddings.protocol import OPTIONAL_ATTRIBUTES, Embedder, Vectors, identity


@dataclass(eq=False)
class CallableEmbedder:
    """A function of the host's that takes a list of texts and gives as many vectors, in lists or an array.

    `query_function` is for questions, where the model treats them in another way. What they give is passed on
    as it is; `embed_in_batches` judges it. `max_chars` and `max_tokens` say what the model reads of a text. TypeError
    or ValueError for a wrong name, dimension, fingerprint.
    """

    function: Callable[[list[str]], Any]
    name: str
    dimension: int
    fingerprint: str = ""
    languages: frozenset[str] | None = None
    query_function: Callable[[list[str]], Any] | None = None
    max_chars: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        identity(self)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return cast(Vectors, self.function(list(texts)))

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return cast(Vectors, (self.query_function or self.function)(list(texts)))


class CountingEmbedder:
    """Another embedder under the same identity; `documents` and `queries` count the texts it was given."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.documents = 0
        self.queries = 0
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    @property
    def fingerprint(self) -> str:
        return self.embedder.fingerprint

    @property
    def languages(self) -> frozenset[str] | None:
        return self.embedder.languages

    def __getattr__(self, attribute: str) -> Any:
        if attribute not in OPTIONAL_ATTRIBUTES:  # nor look for `embedder` before it is there
            raise AttributeError(f"CountingEmbedder has no {attribute}")
        return getattr(self.embedder, attribute)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            self.documents += len(texts)
        return self.embedder.embed_documents(texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            self.queries += len(texts)
        return self.embedder.embed_queries(texts)


def counting(embedder: Embedder) -> CountingEmbedder:
    """Wrap an embedder so that it counts the texts it is given."""
    return CountingEmbedder(embedder)
