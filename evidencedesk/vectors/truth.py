"""The vectors themselves: unit float32, one for each embedder and indexed text, in a plain table.

The exact search is one SQL statement over that table with sqlite-vec's distance function, so filters are inside it and
no limit of a virtual table applies. What it reports is computed again from the stored floats in double precision: the
statement only has to find the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.models import VectorRow, table_of
from evidencedesk.store import Scope, chunk_heads, chunks, documents, in_lists

vectors = table_of(VectorRow)
_SLACK = 1e-5
"""More than the float32 distance of two unit vectors can be off, for every dimension in use."""
_LENGTH_ERROR = 1e-6
"""More than rounding to float32 does to a length of 1, and as little: a bit that flipped shows, unless it is a sign."""


def missing(connection: sa.Connection, embedder_key: int, text_hashes: Iterable[str]) -> set[str]:
    """Those of the text hashes that have no vector of this embedder yet."""
    wanted = list(dict.fromkeys(text_hashes))
    found: set[str] = set()
    for some in in_lists(wanted):
        query = sa.select(vectors.c.text_hash).where(
            vectors.c.embedder_key == embedder_key, vectors.c.text_hash.in_(some)
        )
        found.update(connection.scalars(query))
    return set(wanted) - found


def insert(connection: sa.Connection, embedder_key: int, given: Mapping[str, NDArray[np.float32]]) -> None:
    """Store unit vectors by text hash, inside the caller's transaction; those that are there already stay."""
    new = missing(connection, embedder_key, given)
    rows = [
        {"embedder_key": embedder_key, "text_hash": name, "embedding": to_blob(given[name])} for name in sorted(new)
    ]
    if rows:
        connection.execute(sa.insert(vectors), rows)


def exact_nearest(
    connection: sa.Connection, embedder_key: int, scope: Scope, question: NDArray[np.float32], k: int
) -> list[tuple[int, float]]:
    """The k chunks in scope with the highest cosine: (chunk key, cosine), best first, ties by chunk id.

    Gives min(k, chunks in scope that have a vector), whatever the filters.
    """
    distance = sa.func.vec_distance_cosine(vectors.c.embedding, to_blob(question), type_=sa.Float)
    # The zero fixes the order, documents before vectors: without statistics SQLite would begin with all vectors.
    made_by = vectors.c.embedder_key == embedder_key + 0 * chunks.c.chunk_key
    query = (
        sa.select(chunks.c.chunk_key, distance.label("distance"))
        .join_from(documents, chunks)
        .join(vectors, sa.and_(vectors.c.text_hash == chunks.c.text_hash, made_by))
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
    return nearest_of(connection, embedder_key, [row.chunk_key for row in rows], question, k)


def nearest_of(
    connection: sa.Connection, embedder_key: int, chunk_keys: Sequence[int], question: NDArray[np.float32], k: int
) -> list[tuple[int, float]]:
    """The k of the given chunks with the highest cosine: (chunk key, cosine), best first, ties by chunk id."""
    exact = cosines(connection, embedder_key, chunk_keys, question)
    if len(exact) > k:
        floor = sorted(exact.values(), reverse=True)[k - 1]
        exact = {key: value for key, value in exact.items() if value >= floor}
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
        query = sa.select(vectors.c.text_hash, vectors.c.embedding).where(
            vectors.c.embedder_key == embedder_key, vectors.c.text_hash.in_(keys_of)
        )
        rows = connection.execute(query).all()
        for row, value in zip(rows, cosines_of([row.embedding for row in rows], question).tolist(), strict=True):
            found.update(dict.fromkeys(keys_of[row.text_hash], value))
    return found


def cosine(blob: bytes, question: NDArray[np.float32]) -> float:
    """The cosine of a stored unit vector and a unit question vector, in double precision."""
    return float(cosines_of([blob], question)[0])


def cosines_of(blobs: Sequence[bytes], question: NDArray[np.float32]) -> NDArray[np.float64]:
    """The same of several, shape (n,): each the same to the last digit, however many are computed together."""
    stored = np.frombuffer(b"".join(blobs), dtype="<f4").reshape(-1, len(question))
    # Multiplied in double precision, which a copy of `stored` in it would only slow down, to a sixth. A matrix product
    # may add up the rows of one batch in different orders, and vectors that tie would not.
    found: NDArray[np.float64] = np.clip((stored * question.astype(np.float64)).sum(axis=1), -1.0, 1.0)
    return found


def cosine_by_key(
    connection: sa.Connection, vector_keys: NDArray[np.int64], question: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Exact cosines of the vectors of those numbers, in order; minus infinity for one that is gone or damaged."""
    blob_of = dict(read_blobs(connection, vector_keys))
    sound = [n for n, key in enumerate(vector_keys.tolist()) if len(blob_of.get(key, b"")) == 4 * len(question)]
    found = np.full(len(vector_keys), -np.inf)
    if sound:
        keys = vector_keys[sound].tolist()
        found[sound] = cosines_of([blob_of[key] for key in keys], question)
    return found


def read_blobs(connection: sa.Connection, vector_keys: NDArray[np.int64]) -> list[tuple[int, bytes]]:
    """(number, embedding) of the vectors of those numbers, in no order; those that are gone are left out."""
    found: list[tuple[int, bytes]] = []
    for some in in_lists(vector_keys.tolist()):
        # Written into the statement, not bound: they are integers, and binding each takes longer than reading it.
        listed = ",".join(map(str, some))
        rows = connection.exec_driver_sql(f"SELECT vector_key, embedding FROM vectors WHERE vector_key IN ({listed})")
        found += [(row[0], row[1]) for row in rows.all()]
    return found


def read_after(
    connection: sa.Connection, embedder_key: int, dimension: int, after_key: int, limit: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """At most `limit` vectors with the next higher numbers: numbers, shape (n,), and vectors, shape (n, dimension).

    A damaged one is a row of zeros.
    """
    rows = connection.exec_driver_sql(
        # The plus keeps SQLite from walking the index by embedder, which holds all of them, and sorting.
        "SELECT vector_key, embedding FROM vectors WHERE vector_key > ? AND +embedder_key = ? "
        "ORDER BY vector_key LIMIT ?",
        (after_key, embedder_key, limit),
    ).all()
    return np.array([row[0] for row in rows], dtype=np.int64), from_blobs([row[1] for row in rows], dimension)


def from_blobs(blobs: Sequence[bytes], dimension: int) -> NDArray[np.float32]:
    """Stored vectors as a matrix, shape (n, dimension); a damaged one is a row of zeros."""
    zeros = bytes(4 * dimension)
    whole = b"".join(blob if len(blob) == len(zeros) else zeros for blob in blobs)
    matrix = np.frombuffer(whole, dtype="<f4").reshape(-1, dimension).astype(np.float32, copy=False)
    return np.where(np.isfinite(matrix), matrix, np.float32(0)) if not np.isfinite(matrix).all() else matrix


def to_blob(vector: NDArray[np.float32]) -> bytes:
    """float32, little endian: what the table holds and sqlite-vec reads."""
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def stored(
    connection: sa.Connection, embedder_key: int, dimension: int, text_hashes: Iterable[str]
) -> dict[str, NDArray[np.float64]]:
    """The vector, shape (dimension,), of each of the text hashes that has a sound one."""
    query = sa.select(vectors.c.text_hash, vectors.c.embedding).where(vectors.c.embedder_key == embedder_key)
    return {
        row.text_hash: np.frombuffer(row.embedding, dtype="<f4").astype(np.float64)
        for some in in_lists(text_hashes)
        for row in connection.execute(query.where(vectors.c.text_hash.in_(some)))
        if len(row.embedding) == 4 * dimension
    }


def counts(connection: sa.Connection) -> tuple[int, int]:
    """(vectors of all embedders, those whose text no chunk has any more)."""
    used = sa.exists().where(chunks.c.text_hash == vectors.c.text_hash)
    every = sa.select(sa.func.count()).select_from(vectors)
    return connection.scalar(every) or 0, connection.scalar(every.where(~used)) or 0


def drop_damaged(connection: sa.Connection, embedder_key: int, dimension: int) -> None:
    """Delete what `damaged` finds."""
    for some in in_lists(damaged(connection, embedder_key, dimension)):
        connection.execute(
            sa.delete(vectors).where(vectors.c.embedder_key == embedder_key, vectors.c.text_hash.in_(some))
        )


def drop_unused(connection: sa.Connection) -> None:
    """Delete vectors whose text no chunk has any more."""
    used = sa.exists().where(chunks.c.text_hash == vectors.c.text_hash)
    connection.execute(sa.delete(vectors).where(~used))


def damaged(connection: sa.Connection, embedder_key: int, dimension: int) -> list[str]:
    """Text hashes whose stored vector has another width or is not of length 1."""
    found: list[str] = []
    query = sa.select(vectors.c.text_hash, vectors.c.embedding).where(vectors.c.embedder_key == embedder_key)
    for text_hash, blob in connection.execute(query):
        stored = np.frombuffer(blob, dtype="<f4") if len(blob) % 4 == 0 else np.zeros(0)
        length = float(np.linalg.norm(stored.astype(np.float64)))
        if stored.shape != (dimension,) or not abs(length - 1) < _LENGTH_ERROR:
            found.append(text_hash)
    return found
