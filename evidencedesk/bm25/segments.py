"""Segments: the chunks whose postings are packed, and how postings that are still rows are folded into them.

A chunk is packed or it is not: every chunk up to the last key of the last segment is, every later one has its
postings in rows (the delta). A segment is never changed. What changes about its chunks, whether they are in force and
whether they are gone, is a bit each in a row of its own, so a write touches 16 KB of a segment at most.

Folding is bounded work. A write that finds DELTA_CHUNKS or more unpacked chunks packs the oldest of them, at most
FOLD_CHUNKS, and takes in the last segments as long as they are no larger than what it has, so that sizes fall like
the digits of a binary number and a posting is written anew some seven times in all. It may also write anew one
segment of which more than half is gone. Neither ever makes a segment of more than SEGMENT_CHUNKS.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.bm25.packing import (
    SEGMENT_CHUNKS,
    DamagedPostings,
    PackedList,
    PostingArrays,
    pack,
    pack_keys,
    pack_marks,
    unpack,
    unpack_keys,
    unpack_marks,
)

DELTA_CHUNKS = 512
"""Unpacked chunks from which on the next write folds them."""
FOLD_CHUNKS = 16_384
"""The most unpacked chunks that one write folds; an old file that was upgraded may have many."""


@dataclass(frozen=True, slots=True)
class Segment:
    """What names a segment and says which chunks are in it."""

    key: int
    name: str
    first_key: int
    last_key: int
    chunk_count: int


@dataclass(frozen=True, slots=True)
class Content:
    """The chunks of a segment, in the order of their numbers, and their postings. Arrays of one length but the last."""

    chunk_keys: NDArray[np.int64]
    document_keys: NDArray[np.int64]
    lengths: NDArray[np.int64]
    in_force: NDArray[np.bool_]
    removed: NDArray[np.bool_]
    postings: PostingArrays

    def without_removed(self) -> Content:
        """The same chunks numbered anew without those that are gone."""
        stays = ~self.removed
        held = stays[self.postings.numbers]
        number_of = np.cumsum(stays) - 1
        return Content(
            self.chunk_keys[stays], self.document_keys[stays], self.lengths[stays], self.in_force[stays],
            self.removed[stays],
            PostingArrays(
                self.postings.term_keys[held], number_of[self.postings.numbers[held]], self.postings.frequencies[held]
            ),
        )  # fmt: skip

    def followed_by(self, other: Content) -> Content:
        """These chunks, then the other's, whose keys are higher."""
        postings = other.postings._replace(numbers=other.postings.numbers + len(self.chunk_keys))
        return Content(
            np.concatenate([self.chunk_keys, other.chunk_keys]),
            np.concatenate([self.document_keys, other.document_keys]),
            np.concatenate([self.lengths, other.lengths]),
            np.concatenate([self.in_force, other.in_force]),
            np.concatenate([self.removed, other.removed]),
            PostingArrays(*(np.concatenate(columns) for columns in zip(self.postings, postings, strict=True))),
        )


# ---------------------------------------------------------------- reading


def segments(connection: sa.Connection) -> list[Segment]:
    """Every segment, by chunk key."""
    query = "SELECT segment_key, name, first_key, last_key, chunk_count FROM lexical_segments ORDER BY first_key"
    return [Segment(*row) for row in connection.exec_driver_sql(query)]


def packed_through(connection: sa.Connection) -> int:
    """The key up to which every chunk is packed; 0 when none is."""
    return int(connection.exec_driver_sql("SELECT coalesce(max(last_key), 0) FROM lexical_segments").scalar_one())


def read_chunks(
    connection: sa.Connection, segment: Segment
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(chunk keys, document keys, lengths) of a segment's chunks, by number."""
    query = "SELECT chunk_keys, document_keys, lengths FROM lexical_segments WHERE segment_key = ?"
    row = connection.exec_driver_sql(query, (segment.key,)).one()
    keys, documents, lengths = (unpack_keys(blob, segment.chunk_count) for blob in row)
    return keys + segment.first_key, documents, lengths


def read_marks(connection: sa.Connection, segment: Segment) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(in force, removed) of a segment's chunks, by number."""
    query = "SELECT in_force, removed FROM lexical_marks WHERE segment_key = ?"
    row = connection.exec_driver_sql(query, (segment.key,)).one_or_none()
    if row is None:
        raise DamagedPostings(f"the marks of segment {segment.key} are gone")
    return unpack_marks(row[0], segment.chunk_count), unpack_marks(row[1], segment.chunk_count)


def read_content(connection: sa.Connection, segment: Segment) -> Content:
    """A whole segment. DamagedPostings for bytes that cannot be."""
    query = (
        "SELECT term_key, best_frequency, shortest_length, numbers, frequencies FROM lexical_packed "
        "WHERE segment_key = ?"
    )
    lists = [PackedList(*row) for row in connection.exec_driver_sql(query, (segment.key,))]
    keys, documents, lengths = read_chunks(connection, segment)
    return Content(keys, documents, lengths, *read_marks(connection, segment), unpack(lists, segment.chunk_count))


def read_unpacked(connection: sa.Connection, before_key: int, limit: int) -> Content:
    """The oldest chunks whose postings are rows, those below `before_key`, at most `limit`."""
    query = (
        "SELECT c.chunk_key, c.doc_key, c.term_count, d.status = 'current' FROM chunks c "
        "JOIN documents d ON d.doc_key = c.doc_key WHERE c.chunk_key > ? AND c.chunk_key < ? "
        "ORDER BY c.chunk_key LIMIT ?"
    )
    rows = connection.exec_driver_sql(query, (packed_through(connection), before_key, limit)).fetchall()
    keys, documents, lengths, in_force = np.array([tuple(row) for row in rows], dtype=np.int64).reshape(-1, 4).T
    found = np.zeros((0, 3), dtype=np.int64)
    if rows:
        query = "SELECT term_key, chunk_key, frequency FROM lexical_postings WHERE chunk_key BETWEEN ? AND ?"
        cursor = connection.exec_driver_sql(query, (int(keys[0]), int(keys[-1])))
        found = np.fromiter(chain.from_iterable(cursor), dtype=np.int64).reshape(-1, 3)
    postings = PostingArrays(found[:, 0], np.searchsorted(keys, found[:, 1]), found[:, 2])
    return Content(keys, documents, lengths, in_force.astype(np.bool_), np.zeros(len(keys), dtype=np.bool_), postings)


# ---------------------------------------------------------------- writing, inside the caller's transaction


def write_segment(connection: sa.Connection, content: Content) -> None:
    """Store chunks as one new segment; nothing when there are none."""
    keys = content.chunk_keys
    if not len(keys):
        return
    if len(keys) > SEGMENT_CHUNKS:
        raise ValueError(f"{len(keys)} chunks for one segment of at most {SEGMENT_CHUNKS}")
    columns = "name, first_key, last_key, chunk_count, chunk_keys, document_keys, lengths"
    blobs = (pack_keys(keys - keys[0]), pack_keys(content.document_keys), pack_keys(content.lengths))
    connection.exec_driver_sql(
        f"INSERT INTO lexical_segments ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (secrets.token_hex(8), int(keys[0]), int(keys[-1]), len(keys), *blobs),
    )
    segment_key = int(connection.exec_driver_sql("SELECT last_insert_rowid()").scalar_one())
    connection.exec_driver_sql(
        "INSERT INTO lexical_marks (segment_key, in_force, removed) VALUES (?, ?, ?)",
        (segment_key, pack_marks(content.in_force), pack_marks(content.removed)),
    )
    rows = [(segment_key, *packed) for packed in pack(content.postings, content.lengths)]
    if rows:
        columns = "segment_key, term_key, best_frequency, shortest_length, numbers, frequencies"
        connection.exec_driver_sql(f"INSERT INTO lexical_packed ({columns}) VALUES (?, ?, ?, ?, ?, ?)", rows)


def mark(
    connection: sa.Connection, chunk_keys: Sequence[int], *, in_force: bool | None = None, removed: bool = False
) -> None:
    """Set the marks of packed chunks, given by key, ascending; keys that no segment holds are left out."""
    if not chunk_keys:
        return
    wanted = np.array(chunk_keys, dtype=np.int64)
    for segment in segments(connection):
        mine = wanted[(wanted >= segment.first_key) & (wanted <= segment.last_key)]
        if not len(mine):
            continue
        keys, _, _ = read_chunks(connection, segment)
        numbers = np.flatnonzero(np.isin(keys, mine))
        is_in_force, is_removed = read_marks(connection, segment)
        if in_force is not None:
            is_in_force[numbers] = in_force
        if removed:
            is_removed[numbers] = True
        connection.exec_driver_sql(
            "UPDATE lexical_marks SET in_force = ?, removed = ? WHERE segment_key = ?",
            (pack_marks(is_in_force), pack_marks(is_removed), segment.key),
        )


def drop_segments(connection: sa.Connection, keys: Iterable[int]) -> None:
    """Delete segments with all that is in them."""
    for key in keys:
        for table in ("lexical_packed", "lexical_marks", "lexical_segments"):
            connection.exec_driver_sql(f"DELETE FROM {table} WHERE segment_key = ?", (key,))


def fold_when_due(connection: sa.Connection, before_key: int) -> None:
    """Pack the oldest unpacked chunks when there are DELTA_CHUNKS of them below `before_key`; else nothing.

    Chunks from that key on are the caller's, who has not stored their postings yet.
    """
    query = "SELECT 1 FROM chunks WHERE chunk_key > ? AND chunk_key < ? LIMIT 1 OFFSET ?"
    bounds = (packed_through(connection), before_key, DELTA_CHUNKS - 1)
    if connection.exec_driver_sql(query, bounds).first() is not None:
        fold(connection, before_key)
        _reclaim(connection)


def fold(connection: sa.Connection, before_key: int) -> None:
    """Pack the oldest unpacked chunks, together with the last segments as long as those are no larger."""
    content = read_unpacked(connection, before_key, FOLD_CHUNKS)
    if not len(content.chunk_keys):
        return
    connection.exec_driver_sql("DELETE FROM lexical_postings WHERE chunk_key <= ?", (int(content.chunk_keys[-1]),))
    for segment in reversed(segments(connection)):
        size = len(content.chunk_keys)
        if segment.chunk_count > size or segment.chunk_count + size > SEGMENT_CHUNKS:
            break
        content = read_content(connection, segment).without_removed().followed_by(content)
        drop_segments(connection, [segment.key])
    write_segment(connection, content)


def _reclaim(connection: sa.Connection) -> None:
    """Write anew, without what is gone, the first segment of which more than half is; the next one too, if both fit."""
    every = segments(connection)
    staying = [segment.chunk_count - int(read_marks(connection, segment)[1].sum()) for segment in every]
    for place, (segment, stays) in enumerate(zip(every, staying, strict=True)):
        if 2 * stays >= segment.chunk_count:
            continue
        content = read_content(connection, segment).without_removed()
        taken = [segment.key]
        if place + 1 < len(every) and stays + staying[place + 1] <= SEGMENT_CHUNKS:
            content = content.followed_by(read_content(connection, every[place + 1]).without_removed())
            taken.append(every[place + 1].key)
        drop_segments(connection, taken)
        write_segment(connection, content)
        return
