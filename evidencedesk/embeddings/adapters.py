"""Adapters for the embedding objects of two common libraries; neither library is imported here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import numpy as np

from evidencedesk.embeddings.batches import clean_text
from evidencedesk.embeddings.protocol import Vectors, digest_of_settings, identity
from evidencedesk.errors import EmbedderError
from evidencedesk.records import require_count

# The names under which models keep the prompts that sentence-transformers itself looks for, in its order.
_PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
_SAMPLES = 64


class SentenceTransformerEmbedder:
    """A loaded sentence-transformers model, or any object with its `encode` and dimension.

    Questions go to `encode_query` and documents to `encode_document` where the model has them, else to `encode`
    with the model's own prompt of that kind. `query_prefix` and `document_prefix` take the place of those prompts.
    `max_tokens` is the model's `max_seq_length`. A blank text is not encoded and gives a zero row.

    The fingerprint is made from the model's weights (a sample of every tensor), prompts and limits; a model that
    shows none (the ONNX and OpenVINO back ends) needs a `fingerprint`, such as the revision of the model. Its model
    card is not read: it says what the hub holds now, and says nothing without a network. `name` is part of the
    identity as well; the default is the same for every model. ValueError or TypeError for a model without dimension
    or weights and for wrong arguments.
    """

    def __init__(
        self,
        model: Any,
        *,
        name: str | None = None,
        fingerprint: str | None = None,
        languages: frozenset[str] | None = None,
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> None:
        if not callable(getattr(model, "encode", None)):
            raise TypeError(f"{type(model).__name__} is no sentence-transformers model: it has no encode")
        self.model = model
        self.name = "sentence-transformers" if name is None else name
        self.languages = languages
        self.dimension = _dimension(model)
        # A model without a limit gives None or infinity.
        longest = getattr(model, "max_seq_length", None)
        self.max_tokens: int | None = longest if isinstance(longest, int) else None
        self._prefixes = {"query": query_prefix, "document": document_prefix}
        prompts = {kind: self._prefixes[kind] or _own_prompt(model, kind) for kind in ("query", "document")}
        self._document_prompt = prompts["document"]
        if fingerprint is None:
            fingerprint = digest_of_settings(
                "sentence-transformers 1", _weights(model), self.max_tokens, prompts["query"], prompts["document"]
            )
        self.fingerprint = fingerprint
        identity(self)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, "document")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, "query")

    def count_tokens(self, text: str) -> int:
        """Tokens of `text` as a document, its prompt included; words where the model has no tokenizer."""
        prompted = self._document_prompt + clean_text(text)
        encode = getattr(getattr(self.model, "tokenizer", None), "encode", None)
        return len(encode(prompted) if callable(encode) else prompted.split())

    def _embed(self, texts: Sequence[str], kind: Literal["query", "document"]) -> Vectors:
        encode = getattr(self.model, f"encode_{kind}", None)  # since version 5
        # The library would draw a bar for every call in a host that logs at INFO.
        options: dict[str, Any] = {"show_progress_bar": False}
        prefix, front = self._prefixes[kind], ""
        prompt = prefix or (_own_prompt(self.model, kind) if encode is None else "")
        if prompt and hasattr(self.model, "prompts"):  # since version 2.4
            options["prompt"] = prompt
        else:
            front = prefix
        return _embed_filled(
            texts, lambda filled: (encode or self.model.encode)([front + t for t in filled], **options), self.dimension
        )


class LangChainEmbedder:
    """Any object with LangChain's `embed_documents(list of texts)` and `embed_query(text)`.

    `name` and `fingerprint` identify the model: the object does not tell them in one way. The fingerprint is any
    text that changes when weights or settings do, such as the model's revision. When `dimension` is not said, it
    is learnt by one call of `embed_query` when first asked for; EmbedderError when that fails. `max_chars` and
    `max_tokens` say what the model reads of a text. A blank text is not passed on and gives a zero row. ValueError or
    TypeError for wrong arguments.
    """

    def __init__(
        self,
        embeddings: Any,
        *,
        name: str,
        dimension: int | None = None,
        fingerprint: str,
        languages: frozenset[str] | None = None,
        max_chars: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        for method in ("embed_documents", "embed_query"):
            if not callable(getattr(embeddings, method, None)):
                raise TypeError(f"{type(embeddings).__name__} is no LangChain embedding object: it has no {method}")
        if not fingerprint:
            raise ValueError("fingerprint must be a text that changes with weights or settings; it must not be empty")
        self.embeddings = embeddings
        self.name, self.fingerprint, self.languages = name, fingerprint, languages
        self.max_chars, self.max_tokens = max_chars, max_tokens
        self._dimension = None if dimension is None else require_count("dimension", dimension)

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            try:
                self._dimension = len(self.embeddings.embed_query("dimension"))
            except Exception as error:  # the host's code may raise anything
                problem = f"its dimension could not be learnt: {type(error).__name__}: {error}"
                raise EmbedderError(embedder=self.name, problem=problem) from error
        return self._dimension

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return _embed_filled(texts, self.embeddings.embed_documents, self.dimension)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return _embed_filled(texts, lambda filled: [self.embeddings.embed_query(t) for t in filled], self.dimension)


def _embed_filled(texts: Sequence[str], embed: Callable[[list[str]], Any], dimension: int) -> Vectors:
    """Embed the texts that are not blank; a blank one, which a model would give some vector, gets a zero row.

    What a model gives is passed on as it is: `embed_in_batches` judges it, and knows the names of the texts.
    """
    clean = [clean_text(text) for text in texts]
    filled = [i for i, text in enumerate(clean) if text.strip()]
    if len(filled) == len(texts):
        return cast(Vectors, embed(clean))
    vectors = np.zeros((len(texts), dimension), dtype=np.float32)
    if filled:
        vectors[filled] = np.asarray(embed([clean[i] for i in filled]))
    return vectors


def _dimension(model: Any) -> int:
    for method in ("get_embedding_dimension", "get_sentence_embedding_dimension"):  # the newer name first
        if callable(getattr(model, method, None)):
            return require_count(f"{type(model).__name__}.{method}()", getattr(model, method)())
    raise TypeError(f"{type(model).__name__} is no sentence-transformers model: it has no get_embedding_dimension")


def _own_prompt(model: Any, kind: str) -> str:
    prompts = getattr(model, "prompts", None) or {}
    names = [name for name in (*_PROMPT_NAMES[kind], getattr(model, "default_prompt_name", None)) if name in prompts]
    return str(prompts[names[0]]) if names else ""


def _weights(model: Any) -> str:
    """A digest of the shapes and of up to 64 evenly spaced values of each tensor; ValueError where there is none.

    Names and order are the library's and change with its versions, and so do its int64 tables of positions.
    Training changes values nearly everywhere, so a sample tells models apart without reading gigabytes.
    """
    state = getattr(model, "state_dict", None)
    tensors = [tensor for tensor in state().values() if hasattr(tensor, "shape")] if callable(state) else []
    tensors = [tensor for tensor in tensors if not str(tensor.dtype).endswith("int64")]
    if not tensors:
        raise ValueError(
            f"the weights of {type(model).__name__} cannot be read here; "
            'say which they are: fingerprint="...", such as the revision of the model'
        )
    digests = []
    for tensor in tensors:
        flat = tensor.reshape(-1)
        sample = flat[:: max(1, len(flat) // _SAMPLES)][:_SAMPLES].tolist()
        digests.append(hashlib.blake2b(json.dumps([list(tensor.shape), sample]).encode(), digest_size=16).digest())
    return hashlib.blake2b(b"".join(sorted(digests)), digest_size=16).hexdigest()
