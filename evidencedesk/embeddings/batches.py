"""Embeds in batches, and judges every vector before it is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from evidencedesk.embeddings.protocol import Embedder, Vectors
from evidencedesk.errors import BadVectors, EmbedderError, NothingToEmbed
from evidencedesk.records import require_count


def embed_in_batches(
    embedder: Embedder,
    texts: Sequence[str],
    subjects: Sequence[str],
    kind: Literal["document", "query"] = "document",
    batch_size: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Vectors:
    """Embed `texts` as unit vectors, shape (len(texts), dimension); `subjects` name each text in errors.

    `batch_size` is the embedder's own where it has one, else 32. After each batch `on_progress` is told how many
    texts are done. NothingToEmbed for a zero vector, BadVectors as `unit_vectors` raises it; any
    other exception of the embedder becomes an EmbedderError with its cause. ValueError for wrong arguments.
    """
    if batch_size is None:
        batch_size = getattr(embedder, "batch_size", 32)
    require_count("batch_size", batch_size)
    if kind not in ("document", "query"):
        raise ValueError(f'kind must be "document" or "query", not {kind!r}')
    if isinstance(texts, str) or len(texts) != len(subjects):
        raise ValueError("texts must be a list of texts, with one subject each")
    parts: list[Vectors] = []
    for start in range(0, len(texts), batch_size):
        # A copy: the host's function may change the list it is given.
        batch, named = list(texts[start : start + batch_size]), subjects[start : start + batch_size]
        try:
            raw = embedder.embed_documents(batch) if kind == "document" else embedder.embed_queries(batch)
            dimension = embedder.dimension  # after the call, which may have taught it
        except EmbedderError:
            raise
        except Exception as error:  # the host's code may raise anything
            problem = f"{type(error).__name__}: {error} (in the batch that begins with {named[0]})"
            raise EmbedderError(embedder=embedder.name, problem=problem) from error
        parts.append(unit_vectors(raw, len(named), dimension, named, embedder.name))
        if on_progress is not None:
            on_progress(start + len(named))
    return np.concatenate(parts) if parts else np.zeros((0, embedder.dimension), dtype=np.float32)


def unit_vectors(raw: object, count: int, dimension: int, subjects: Sequence[str], embedder_name: str) -> Vectors:
    """Turn what an embedder gave into float32 rows of unit length, C-contiguous, shape (count, dimension).

    BadVectors, naming the first subject concerned, for another count or width, for anything but real numbers,
    NaN and infinite values; NothingToEmbed for a zero vector, which has no cosine. ValueError for wrong arguments.
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
            if value == 0.0:
                raise NothingToEmbed(embedder=embedder_name, problem="a zero vector", subject=subject)
            raise refuse("NaN" if math.isnan(value) else "an infinite value", subject)
    # Divided by the largest value first, so that no square overflows or vanishes.
    exact /= largest[:, None]
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    return exact.astype(np.float32)


def embed_filled(
    texts: Sequence[str],
    embed: Callable[[list[str]], Vectors],
    batch_size: int,
    dimension: Callable[[], int],
) -> Vectors:
    """Embed the texts that are not blank; a blank one, which a model would give some vector, gets a zero row."""
    clean = [clean_text(text) for text in texts]
    filled = [i for i, text in enumerate(clean) if text.strip()]
    batches = [filled[start : start + batch_size] for start in range(0, len(filled), batch_size)]
    parts = [embed([clean[i] for i in batch]) for batch in batches]
    vectors = np.zeros((len(texts), parts[0].shape[1] if parts else dimension()), dtype=np.float32)
    if parts:
        vectors[filled] = np.concatenate(parts)
    return vectors


def clean_text(text: str) -> str:
    """`text` without NUL, at which a C library would end it, and lone surrogates, which UTF-8 cannot hold."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()
