"""Keeping the codes in step with the vectors, inside the caller's transaction, and proving that they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.vectors import blocks, truth
from evidencedesk.vectors.codes import NOT_A_UNIT, SAMPLE, Coding, DamagedCodes, encode
from evidencedesk.vectors.fitting import RECALL, new_coding, tuned
from evidencedesk.vectors.roster import empty_roster, refreshed, store_roster, stored_roster

FEWEST = 4096
"""Vectors of an embedder from which on they are coded: an exact scan of as many takes 15 ms."""
BLOCK = 1024
"""Vectors whose codes are one row. Those that do not fill one yet are coded by each process as it reads them."""
_REFITTED_UP_TO = 65_536
"""While it grows to this size a file's centre is fitted anew; beyond it `rebuild` does."""
_GROWTH = 4
_SIGNS_IN_DOUBT = 4
"""Of one vector: signs of values that are zero to the precision of float32."""


def put(connection: sa.Connection, embedder_key: int, given: Mapping[str, NDArray[np.float32]]) -> None:
    """Store unit vectors by text hash, inside the caller's transaction; those that are there already stay."""
    truth.insert(connection, embedder_key, given)
    newest = connection.exec_driver_sql("SELECT max(vector_key) FROM vectors").scalar_one() or 0
    if newest < FEWEST:
        return
    coding = blocks.read_coding(connection, embedder_key)
    if coding is None or coding.recall < RECALL:
        # A file whose vectors no codes serve is tried again when it has doubled.
        wanted = FEWEST if coding is None else 2 * coding.tuned_on
        if _count(connection, embedder_key, wanted) >= wanted:
            rebuild(connection, embedder_key)
    elif newest - coding.coded_through >= BLOCK:
        _fold(connection, embedder_key, coding)


def rebuild(connection: sa.Connection, embedder_key: int) -> None:
    """Fit and check a coding, and code every vector of the embedder anew; where there are few, drop the codes."""
    blocks.drop_coding(connection, embedder_key)
    count = _count(connection, embedder_key)
    if count < FEWEST:
        return
    sample = _sample(connection, embedder_key)
    coding = tuned(new_coding(sample, count), sample, count)
    blocks.write_coding(connection, embedder_key, coding)
    if coding.recall >= RECALL:
        _code_blocks(connection, embedder_key, coding)
        _update_roster(connection, embedder_key)


def _fold(connection: sa.Connection, embedder_key: int, coding: Coding) -> None:
    """Code the vectors that have come since, in whole blocks; fit or tune anew when the file has grown much."""
    coding = _code_blocks(connection, embedder_key, coding)
    # Counted afterwards: a gate may have left many vectors at once.
    count = blocks.coded_count(connection, embedder_key)
    if _GROWTH * coding.fitted_on <= count <= _REFITTED_UP_TO:
        rebuild(connection, embedder_key)
        return
    if count >= 2 * coding.tuned_on:
        blocks.write_coding(connection, embedder_key, tuned(coding, _sample(connection, embedder_key), count))
    _update_roster(connection, embedder_key)


def _code_blocks(connection: sa.Connection, embedder_key: int, coding: Coding) -> Coding:
    through = coding.coded_through
    while True:
        keys, vectors = truth.read_after(connection, embedder_key, len(coding.centre), through, BLOCK)
        if len(keys) < BLOCK:
            break
        blocks.write_block(connection, embedder_key, keys, encode(coding, vectors))
        through = int(keys[-1])
    coding = replace(coding, coded_through=through)
    blocks.write_coding(connection, embedder_key, coding)
    return coding


def _update_roster(connection: sa.Connection, embedder_key: int) -> None:
    """Keep a roster of this state when a tenth of it has changed since that which is kept."""
    kept = stored_roster(connection, embedder_key)
    changed = connection.exec_driver_sql(
        "SELECT count(*) FROM documents WHERE change_number > ?", (kept.change_number,)
    ).scalar_one()
    if changed * 10 > len(kept.documents) or 10 * _count_after(connection, kept.through_key) > len(kept.chunk_vectors):
        committed = connection.exec_driver_sql("SELECT change_number FROM state").scalar_one()
        store_roster(connection, embedder_key, refreshed(kept, connection, embedder_key, committed))


def _count(connection: sa.Connection, embedder_key: int, limit: int = -1) -> int:
    """Vectors of an embedder, counted up to a limit."""
    return int(
        connection.exec_driver_sql(
            "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE embedder_key = ? LIMIT ?)", (embedder_key, limit)
        ).scalar_one()
    )


def _count_after(connection: sa.Connection, vector_key: int) -> int:
    """An upper bound of the vectors that have come since that one."""
    return int(connection.exec_driver_sql("SELECT max(vector_key) FROM vectors").scalar_one() or 0) - vector_key


def _sample(connection: sa.Connection, embedder_key: int) -> NDArray[np.float32]:
    """Sound vectors evenly spread over those of an embedder, shape (n, dimension)."""
    keys = np.array(
        connection.exec_driver_sql(
            "SELECT vector_key FROM vectors WHERE embedder_key = ? ORDER BY vector_key", (embedder_key,)
        ).scalars().all(),
        dtype=np.int64,
    )  # fmt: skip
    dimension = connection.exec_driver_sql(
        "SELECT dimension FROM embedders WHERE embedder_key = ?", (embedder_key,)
    ).scalar_one()
    chosen = keys[np.linspace(0, len(keys) - 1, min(SAMPLE, len(keys)), dtype=np.intp)]
    blob_of = dict(truth.read_blobs(connection, chosen))
    matrix = truth.from_blobs([blob_of[key] for key in chosen.tolist()], dimension)
    sound: NDArray[np.bool_] = np.abs(np.einsum("ij,ij->i", matrix, matrix) - 1) < NOT_A_UNIT
    return matrix[sound]


def code_problems(connection: sa.Connection, embedder_key: int, change_number: int) -> Iterator[str]:
    """What is wrong with an embedder's codes: one sentence for each block that a rebuild would give otherwise.

    `change_number` is that of the state that the connection sees.
    A sign may differ where the rotated value is zero to the precision of float32, which processors add up in different
    orders.
    """
    through = -1
    try:
        coding = blocks.read_coding(connection, embedder_key)
        if coding is None or coding.recall < RECALL:
            return
        for keys, codes in blocks.read_blocks(connection, embedder_key, coding.width):
            stored, vectors = truth.read_after(connection, embedder_key, len(coding.centre), through, len(keys))
            if not np.array_equal(stored, keys):
                yield f"the codes of the block at {int(keys[0])} are not of the vectors that are there"
                return
            made = encode(coding, vectors)
            # Shape (words of a vector, vectors, bits of a word): the most signs that differ for one vector.
            bits = np.unpackbits((made.words ^ codes.words).view(np.uint8)).reshape(*codes.words.shape, 64)
            differing = int(bits.sum(axis=(0, 2)).max())
            close = all(
                np.allclose(a, b, rtol=1e-3, atol=1e-4)
                for a, b in ((made.offsets, codes.offsets), (made.scales, codes.scales))
            )
            if differing > _SIGNS_IN_DOUBT or not close:
                yield f"the codes of the block at {int(keys[0])} are not those of its vectors"
            through = int(keys[-1])
        roster = stored_roster(connection, embedder_key)
    except DamagedCodes as error:
        yield f"they cannot be read: {error.problem}"
        return
    if through != coding.coded_through and not (through == -1 and coding.coded_through == 0):
        yield f"vectors up to {coding.coded_through} should have codes, and those up to {through} have"
    brought_up = refreshed(roster, connection, embedder_key, change_number)
    if brought_up.comparable() != refreshed(empty_roster(), connection, embedder_key, change_number).comparable():
        yield "the roster of documents is not that of the tables"
