"""Segments: the chunks whose postings are packed, and how those that are not yet are folded into them.

A chunk is packed or it is not: every chunk up to the last key of the last segment is, every later one has its
postings in a row of its own (the delta). A segment is never changed. What changes about its chunks, whether they are
in force and whether they are gone, is a bit each in a row of its own, so a write touches 16 KB of a segment at most.

Folding is bounded work. A write that finds DELTA_CHUNKS or more unpacked chunks packs the oldest of them, at most
FOLD_CHUNKS, and takes in the last segments as long as they are no larger than what it has, so that sizes fall like
the digits of a binary number and a posting is written anew some seven times in all. It may also write anew one
segment of which more than half is gone. Neither ever makes a segment of more than SEGMENT_CHUNKS.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    unpack_rows,
)
from evidencedesk.store import in_lists, tuples

UNBOUNDED = 1 << 62
"""Higher than any key."""
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
    lists = [PackedList(*row) for row in tuples(connection.exec_driver_sql(query, (segment.key,)))]
    keys, documents, lengths = read_chunks(connection, segment)
    return Content(keys, documents, lengths, *read_marks(connection, segment), unpack(lists, segment.chunk_count))


def wrong_bounds(connection: sa.Connection, segment: Segment, content: Content) -> list[int]:
    """The numbers of terms whose bounds are stored otherwise than `content` gives them, ascending."""
    query = "SELECT term_key, best_frequency, shortest_length FROM lexical_packed WHERE segment_key = ?"
    stored = {(row[0], row[1], row[2]) for row in connection.exec_driver_sql(query, (segment.key,))}
    found = {(one.term_key, one.best_frequency, one.shortest_length) for one in pack(content.postings, content.lengths)}
    return sorted({term_key for term_key, _, _ in stored ^ found})


class Unpacked(NamedTuple):
    """Chunks that are not packed yet. The columns but the last have a value a chunk, in the order of keys."""

    chunk_keys: NDArray[np.int64]
    document_keys: NDArray[np.int64]
    lengths: NDArray[np.int64]
    in_force: NDArray[np.bool_]
    postings: PostingArrays
    """Chunks numbered from 0."""


def read_unpacked(connection: sa.Connection, before_key: int = UNBOUNDED, limit: int = -1) -> Unpacked:
    """The oldest chunks that are not packed, those below `before_key`, at most `limit`; all by default."""
    query = (
        "SELECT c.chunk_key, c.doc_key, c.term_count, d.status = 'current', u.term_keys, u.frequencies FROM chunks c "
        "JOIN documents d ON d.doc_key = c.doc_key LEFT JOIN lexical_unpacked u ON u.chunk_key = c.chunk_key "
        "WHERE c.chunk_key > ? AND c.chunk_key < ? ORDER BY c.chunk_key LIMIT ?"
    )
    rows = tuples(connection.exec_driver_sql(query, (packed_through(connection), before_key, limit)))
    columns = list(zip(*rows, strict=True)) or [()] * 6
    keys, documents, lengths, in_force = (np.array(column, dtype=np.int64) for column in columns[:4])
    return Unpacked(keys, documents, lengths, in_force.astype(np.bool_), unpack_rows(columns[4], columns[5]))


def read_rows(connection: sa.Connection, chunk_keys: Iterable[int]) -> tuple[NDArray[np.int64], PostingArrays]:
    """(keys of those of the given chunks that are not packed, ascending; their postings, chunks numbered from 0)."""
    found: list[Any] = []
    for some in in_lists(chunk_keys):
        query = "SELECT chunk_key, term_keys, frequencies FROM lexical_unpacked WHERE chunk_key IN "
        found += tuples(connection.exec_driver_sql(f"{query}({', '.join('?' * len(some))})", tuple(some)))
    found.sort(key=lambda row: row[0])
    return np.array([r[0] for r in found], dtype=np.int64), unpack_rows([r[1] for r in found], [r[2] for r in found])


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
        numbers = _numbers(connection, segment, mine)
        is_in_force, is_removed = read_marks(connection, segment)
        if in_force is not None:
            is_in_force[numbers] = in_force
        if removed:
            is_removed[numbers] = True
        connection.exec_driver_sql(
            "UPDATE lexical_marks SET in_force = ?, removed = ? WHERE segment_key = ?",
            (pack_marks(is_in_force), pack_marks(is_removed), segment.key),
        )


def _numbers(connection: sa.Connection, segment: Segment, chunk_keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of those of the chunks that are in a segment."""
    if segment.last_key - segment.first_key + 1 == segment.chunk_count:
        return chunk_keys - segment.first_key
    query = "SELECT chunk_keys FROM lexical_segments WHERE segment_key = ?"
    blob = connection.exec_driver_sql(query, (segment.key,)).scalar_one()
    keys = unpack_keys(blob, segment.chunk_count) + segment.first_key
    return np.flatnonzero(np.isin(keys, chunk_keys))


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
    keys, documents, lengths, in_force, postings = read_unpacked(connection, before_key, FOLD_CHUNKS)
    if not len(keys):
        return
    content = Content(keys, documents, lengths, in_force, np.zeros(len(keys), dtype=np.bool_), postings)
    connection.exec_driver_sql("DELETE FROM lexical_unpacked WHERE chunk_key <= ?", (int(keys[-1]),))
    for segment in reversed(segments(connection)):
        size = len(content.chunk_keys)
        if segment.chunk_count > size or segment.chunk_count + size > SEGMENT_CHUNKS:
            break
        content = read_content(connection, segment).without_removed().followed_by(content)
        drop_segments(connection, [segment.key])
    write_segment(connection, content)
    connection.exec_driver_sql(
        "UPDATE lexical_terms SET chunks_in_force = chunks_in_force + change FROM lexical_changes "
        "WHERE lexical_changes.term_key = lexical_terms.term_key AND change <> 0"
    )
    connection.exec_driver_sql("DELETE FROM lexical_changes")


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
