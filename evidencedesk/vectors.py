"""Vectors in the file: unit float32, one for each embedder and indexed text, and the exact search over them.

The search is one SQL statement over the plain table with sqlite-vec's distance function, so filters are inside it
and no limit of a virtual table applies. What it reports is computed again from the stored floats in double
precision: the statement only has to find the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.models import VectorRow, table_of
from evidencedesk.store import Scope, chunk_heads, chunks, documents, in_lists

_vectors = table_of(VectorRow)
_SLACK = 1e-5
"""More than the float32 distance of two unit vectors can be off, for every dimension in use."""


def missing(connection: sa.Connection, embedder_key: int, text_hashes: Iterable[str]) -> set[str]:
    """Those of the text hashes that have no vector of this embedder yet."""
    wanted = list(dict.fromkeys(text_hashes))
    found: set[str] = set()
    for some in in_lists(wanted):
        query = sa.select(_vectors.c.text_hash).where(
            _vectors.c.embedder_key == embedder_key, _vectors.c.text_hash.in_(some)
        )
        found.update(connection.scalars(query))
    return set(wanted) - found


def put(connection: sa.Connection, embedder_key: int, vectors: Mapping[str, NDArray[np.float32]]) -> None:
    """Store unit vectors by text hash, inside the caller's transaction; those that are there already stay."""
    new = missing(connection, embedder_key, vectors)
    rows = [
        {"embedder_key": embedder_key, "text_hash": name, "embedding": to_blob(vectors[name])} for name in sorted(new)
    ]
    if rows:
        connection.execute(sa.insert(VectorRow), rows)


def nearest(
    connection: sa.Connection, embedder_key: int, scope: Scope, question: NDArray[np.float32], k: int
) -> list[tuple[int, float]]:
    """The k chunks in scope with the highest cosine: (chunk key, cosine), best first, ties by chunk id.

    Gives min(k, chunks in scope that have a vector), whatever the filters.
    """
    distance = sa.func.vec_distance_cosine(_vectors.c.embedding, to_blob(question), type_=sa.Float)
    query = (
        sa.select(chunks.c.chunk_key, distance.label("distance"))
        .join_from(documents, chunks)
        .join(_vectors, sa.and_(_vectors.c.text_hash == chunks.c.text_hash, _vectors.c.embedder_key == embedder_key))
        .where(scope.in_force(), scope.passes())
        .order_by(sa.text("distance"))
    )
    limit = k + 16
    while True:
        rows = connection.execute(query.limit(limit)).all()
        # Enough when there are no more, or the last is farther than the k-th by more than the statement's rounding.
        if len(rows) < limit or rows[-1].distance - rows[k - 1].distance > _SLACK:
            break
        limit *= 2
    exact = cosines(connection, embedder_key, (row.chunk_key for row in rows), question)
    heads = chunk_heads(connection, exact)
    return sorted(exact.items(), key=lambda found: (-found[1], heads[found[0]].id))[:k]


def cosines(
    connection: sa.Connection, embedder_key: int, chunk_keys: Iterable[int], question: NDArray[np.float32]
) -> dict[int, float]:
    """Exact cosines of the question with given chunks, by chunk key; a chunk without a vector is left out."""
    # Two look-ups by key, not one join: without statistics SQLite may walk all vectors to join them.
    found: dict[int, float] = {}
    for some in in_lists(chunk_keys):
        hash_of = connection.execute(
            sa.select(chunks.c.chunk_key, chunks.c.text_hash).where(chunks.c.chunk_key.in_(some))
        )
        keys_of: dict[str, list[int]] = {}
        for key, text_hash in hash_of:
            keys_of.setdefault(text_hash, []).append(key)
        query = sa.select(_vectors.c.text_hash, _vectors.c.embedding).where(
            _vectors.c.embedder_key == embedder_key, _vectors.c.text_hash.in_(keys_of)
        )
        for text_hash, blob in connection.execute(query):
            found.update(dict.fromkeys(keys_of[text_hash], cosine(blob, question)))
    return found


def cosine(blob: bytes, question: NDArray[np.float32]) -> float:
    """The cosine of a stored unit vector and a unit question vector, in double precision."""
    stored = np.frombuffer(blob, dtype="<f4").astype(np.float64)
    return float(np.clip(stored @ question.astype(np.float64), -1.0, 1.0))


def to_blob(vector: NDArray[np.float32]) -> bytes:
    """float32, little endian: what the table holds and sqlite-vec reads."""
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def drop_damaged(connection: sa.Connection, embedder_key: int, dimension: int) -> None:
    """Delete what `damaged` finds."""
    for some in in_lists(damaged(connection, embedder_key, dimension)):
        connection.execute(
            sa.delete(VectorRow).where(VectorRow.embedder_key == embedder_key, VectorRow.text_hash.in_(some))
        )


def drop_unused(connection: sa.Connection) -> None:
    """Delete vectors whose text no chunk has any more."""
    used = sa.exists().where(chunks.c.text_hash == _vectors.c.text_hash)
    connection.execute(sa.delete(VectorRow).where(~used))


def damaged(connection: sa.Connection, embedder_key: int, dimension: int) -> list[str]:
    """Text hashes whose stored vector has another width or is not of length 1."""
    found: list[str] = []
    query = sa.select(_vectors.c.text_hash, _vectors.c.embedding).where(_vectors.c.embedder_key == embedder_key)
    for text_hash, blob in connection.execute(query):
        stored = np.frombuffer(blob, dtype="<f4") if len(blob) % 4 == 0 else np.zeros(0)
        if stored.shape != (dimension,) or not abs(float(np.linalg.norm(stored.astype(np.float64))) - 1) < 1e-4:
            found.append(text_hash)
    return found
