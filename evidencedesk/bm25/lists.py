"""Posting lists of the packed chunks in memory: decoded once a process, for as long as the segments stay the same.

Chunks of all segments are numbered through: a chunk's slot is its place among all packed chunks by key. Segments are
never changed, so what is decoded from them holds for every state of the file that has the same segments.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.bm25.packing import DamagedPostings, PackedList, unpack_frequencies, unpack_list
from evidencedesk.bm25.segments import Segment, read_chunks

DECODED_BYTES = 128 * 1024 * 1024
"""The most that decoded lists of one set of segments take; the one used longest ago goes first."""
_DENSE_SHARE = 8
"""A term in more than an eighth of the slots is kept as one tf a slot, which is looked up without a search."""


@dataclass(frozen=True, slots=True)
class PostingList:
    """Where a term stands among the packed chunks."""

    slots: NDArray[np.int32] | None
    """Ascending; None: dense."""
    frequencies: NDArray[np.unsignedinteger]
    """A tf for each of the slots; dense: for every slot, 0 where the term does not stand."""
    best_frequencies: NDArray[np.int64]
    """The highest tf in each segment that holds the term ..."""
    shortest_lengths: NDArray[np.int64]
    """... and the length of the shortest chunk there that does."""

    def at(self, slots: NDArray[np.int32]) -> NDArray[np.unsignedinteger]:
        """The tf at each of the slots, in their order; 0 where the term does not stand."""
        if self.slots is None:
            return self.frequencies[slots]
        if not len(self.slots):
            return np.zeros(len(slots), dtype=self.frequencies.dtype)
        places = np.searchsorted(self.slots, slots)
        np.minimum(places, len(self.slots) - 1, out=places)
        found: NDArray[np.unsignedinteger] = self.frequencies[places] * (self.slots[places] == slots)
        return found

    def at_least(self, frequency: int) -> tuple[NDArray[np.int32], NDArray[np.unsignedinteger]]:
        """(slots, tf) where the tf is `frequency`, which is 1 or more, or higher."""
        if self.slots is None:
            slots = np.flatnonzero(self.frequencies >= frequency).astype(np.int32)
            return slots, self.frequencies[slots]
        if frequency <= 1:
            return self.slots, self.frequencies
        held = self.frequencies >= frequency
        return self.slots[held], self.frequencies[held]

    def count(self, mask: NDArray[np.bool_]) -> int:
        """In how many of the slots that the mask holds the term stands."""
        if self.slots is None:
            return int(np.count_nonzero(self.frequencies.astype(np.bool_) & mask))
        return int(np.count_nonzero(mask[self.slots]))

    @property
    def size_bytes(self) -> int:
        """Memory of the arrays."""
        return self.frequencies.nbytes + (0 if self.slots is None else self.slots.nbytes) + 500


class PackedLists:
    """The packed chunks of one set of segments, and the posting lists that were asked for. Safe between threads."""

    def __init__(self, connection: sa.Connection, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        self.bases = np.cumsum([0, *(segment.chunk_count for segment in segments)])
        self.size = int(self.bases[-1])
        """Number of slots."""
        columns = [read_chunks(connection, segment) for segment in segments]
        nothing = np.zeros(0, dtype=np.int64)
        self.chunk_keys = np.concatenate([nothing, *(column[0] for column in columns)])
        """By slot, ascending."""
        self.document_keys = np.concatenate([nothing, *(column[1] for column in columns)])
        lengths = np.concatenate([nothing, *(column[2] for column in columns)])
        self.longest = int(lengths.max(initial=0))
        self.lengths: NDArray[Any] = lengths.astype(np.uint16) if self.longest < 1 << 16 else lengths
        self._place_of = {segment.key: place for place, segment in enumerate(segments)}
        self._lists: OrderedDict[int, PostingList] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def slots_of(self, chunk_keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """(slot of each chunk, whether it is packed at all); the slot of one that is not means nothing."""
        if not self.size:
            return np.zeros(len(chunk_keys), dtype=np.int32), np.zeros(len(chunk_keys), dtype=np.bool_)
        slots = np.minimum(np.searchsorted(self.chunk_keys, chunk_keys), self.size - 1)
        return slots.astype(np.int32), self.chunk_keys[slots] == chunk_keys

    def lists(self, connection: sa.Connection, term_keys: Sequence[int]) -> dict[int, PostingList]:
        """The list of each term that stands in a packed chunk, by the term's number; read when it is not there yet."""
        found: dict[int, PostingList] = {}
        if not self.size:
            return found
        missing = []
        with self._lock:
            for key in term_keys:
                if key in self._lists:
                    self._lists.move_to_end(key)
                    found[key] = self._lists[key]
                else:
                    missing.append(key)
        if missing:
            read = self._read(connection, missing)
            with self._lock:
                for key, posting_list in read.items():
                    if key not in self._lists:
                        self._lists[key] = posting_list
                        self._bytes += posting_list.size_bytes
                while self._bytes > DECODED_BYTES and len(self._lists) > 1:
                    self._bytes -= self._lists.popitem(last=False)[1].size_bytes
            found |= {key: posting_list for key, posting_list in read.items() if len(posting_list.best_frequencies)}
        return found

    def _read(self, connection: sa.Connection, term_keys: Sequence[int]) -> dict[int, PostingList]:
        rows_of: dict[int, list[tuple[int, PackedList]]] = {key: [] for key in term_keys}
        query = (
            "SELECT term_key, segment_key, best_frequency, shortest_length, numbers, frequencies FROM lexical_packed "
            f"WHERE segment_key IN ({', '.join('?' * len(self.segments))}) AND term_key IN ({{}})"
        )
        keys = tuple(segment.key for segment in self.segments)
        for start in range(0, len(term_keys), 500):
            some = tuple(term_keys[start : start + 500])
            statement = query.format(", ".join("?" * len(some)))
            for row in connection.exec_driver_sql(statement, (*keys, *some)):
                rows_of[row[0]].append((self._place_of[row[1]], PackedList(row[0], *row[2:])))
        return {key: self._decode(sorted(rows, key=lambda pair: pair[0])) for key, rows in rows_of.items()}

    def _decode(self, rows: Sequence[tuple[int, PackedList]]) -> PostingList:
        bounds = np.array([(row.best_frequency, row.shortest_length) for _, row in rows], dtype=np.int64).reshape(-1, 2)
        best, shortest = bounds[:, 0], bounds[:, 1]
        if len(rows) * 4 < len(self.segments) or all(
            row.numbers is not None and _DENSE_SHARE * len(row.numbers) < 2 * self.segments[place].chunk_count
            for place, row in rows
        ):
            return PostingList(*self._sparse(rows), best, shortest)
        frequencies: NDArray[Any] = np.zeros(self.size, dtype=np.uint8 if int(best.max()) < 255 else np.uint32)
        for place, row in rows:
            base, size = self.bases[place], self.segments[place].chunk_count
            mine = frequencies[base : base + size]
            if row.numbers is None:
                mine[:] = unpack_frequencies(row.frequencies, size)
            else:
                numbers, found = unpack_list(row.numbers, row.frequencies, size)
                mine[self._checked(numbers, size)] = found
        if _DENSE_SHARE * int(np.count_nonzero(frequencies)) > self.size:
            return PostingList(None, frequencies, best, shortest)
        slots = np.flatnonzero(frequencies).astype(np.int32)
        return PostingList(slots, frequencies[slots], best, shortest)

    def _sparse(self, rows: Sequence[tuple[int, PackedList]]) -> tuple[NDArray[np.int32], NDArray[np.unsignedinteger]]:
        slots: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)]
        every: list[NDArray[np.unsignedinteger]] = [np.zeros(0, dtype=np.uint8)]
        for place, row in rows:
            size = self.segments[place].chunk_count
            numbers, found = unpack_list(row.numbers, row.frequencies, size)
            slots.append(self._checked(numbers, size).astype(np.int32) + np.int32(self.bases[place]))
            every.append(found)
        return np.concatenate(slots), np.concatenate(every)

    @staticmethod
    def _checked(numbers: NDArray[np.unsignedinteger], size: int) -> NDArray[np.unsignedinteger]:
        if len(numbers) and int(numbers[-1]) >= size:
            raise DamagedPostings(f"a chunk number beyond the {size} of the segment")
        return numbers
