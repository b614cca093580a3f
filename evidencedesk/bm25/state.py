"""One state of the file in memory: which chunks are in force, the kept figures, and what is not packed yet.

`memory` says whose state it is. Memory: some ten bytes a packed chunk, MASKS masks of a byte a chunk, the terms and the
rows that were asked for; with the segments that it shares with other states, 18 bytes a packed chunk and at most
DECODED_BYTES of posting lists.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.bm25.counting import kept_totals
from evidencedesk.bm25.lists import PackedLists, PostingList
from evidencedesk.bm25.scoring import Statistics, norms
from evidencedesk.bm25.segments import read_marks, read_unpacked, segments
from evidencedesk.store import Scope, documents

MASKS = 8
"""Days, and filters, whose chunks are remembered for a state."""
_FEW_DOCUMENTS = 500
"""Up to so many documents that pass a filter are looked up by key; of more, every chunk is asked for its document."""
_TERMS_KEPT = 200_000
_LONGEST_TABLED = 1 << 20

Positions = tuple[NDArray[np.int64], NDArray[np.int64]]
"""(positions among the unpacked chunks, tf)."""


class InForce:
    """The chunks in force at one time, and the figures that BM25 takes from them."""

    def __init__(
        self, packed: NDArray[np.bool_], unpacked: NDArray[np.bool_], chunk_count: int, total_length: int, longest: int,
        kept: bool,
    ) -> None:  # fmt: skip
        self.packed = packed
        """By slot."""
        self.unpacked = unpacked
        """By position among the unpacked chunks."""
        self.chunk_count = chunk_count
        self.total_length = total_length
        self.kept = kept
        """Whether n of a term is kept; else it is counted."""
        self.average_length = Statistics(chunk_count, total_length, {}).average_length
        self._norms = (
            norms(np.arange(longest + 1), self.average_length)
            if self.average_length and longest < _LONGEST_TABLED
            else None
        )

    def norms(self, lengths: NDArray[Any]) -> NDArray[np.float64]:
        """The norm of chunks of those lengths."""
        return norms(lengths, self.average_length) if self._norms is None else self._norms[lengths]


class Eligible:
    """The chunks in force that pass the filters."""

    def __init__(
        self, packed: NDArray[np.bool_] | None, few: NDArray[np.int32] | None, unpacked: NDArray[np.bool_]
    ) -> None:
        self.packed = packed
        """By slot; None: they are so few that `few` names them."""
        self.few = few
        """Slots, ascending."""
        self.unpacked = unpacked
        """By position among the unpacked chunks."""

    def holds(self, slots: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each of the slots is one of them."""
        if self.few is not None:
            return np.isin(slots, self.few)
        return np.zeros(len(slots), dtype=np.bool_) if self.packed is None else self.packed[slots]


class State:
    """One state of the file. What is not there yet is read through the connection of a snapshot of that state."""

    def __init__(self, connection: sa.Connection, former: Iterable[PackedLists] = ()) -> None:
        every = segments(connection)
        names = [segment.name for segment in every]
        same = (lists for lists in former if [segment.name for segment in lists.segments] == names)
        self.packed = next(same, None) or PackedLists(connection, every)
        nothing = np.zeros(0, dtype=np.bool_)
        marks = [read_marks(connection, segment) for segment in every]
        self._current = np.concatenate([nothing, *(mark[0] for mark in marks)])
        self._stays = ~np.concatenate([nothing, *(mark[1] for mark in marks)])
        unpacked = read_unpacked(connection)
        self.unpacked_keys, self._unpacked_documents, self.unpacked_lengths = unpacked[:3]
        self._unpacked_current = unpacked.in_force
        order = np.argsort(unpacked.postings.term_keys, kind="stable")
        self._unpacked_terms, self._positions, self._frequencies = (column[order] for column in unpacked.postings)
        self._longest = max(self.packed.longest, int(self.unpacked_lengths.max(initial=0)))
        self._today: InForce | None = None
        self._terms: dict[str, tuple[int, int] | None] = {}
        self._validity: tuple[NDArray[Any], ...] | None = None
        self._masks: OrderedDict[tuple[object, ...], Any] = OrderedDict()
        self._lock = threading.Lock()

    # ------------------------------------------------------------ terms

    def terms(self, connection: sa.Connection, terms: Sequence[str]) -> dict[str, tuple[int, int]]:
        """(number, n over the chunks in force) of each term that any chunk holds, in the order given."""
        known = {term: self._terms[term] for term in terms if term in self._terms}
        missing = [term for term in terms if term not in known]
        for start in range(0, len(missing), 500):
            some = missing[start : start + 500]
            read: dict[str, tuple[int, int] | None] = dict.fromkeys(some)
            query = (
                "SELECT term, t.term_key, chunks_in_force + coalesce(change, 0) FROM lexical_terms t "
                f"LEFT JOIN lexical_changes c ON c.term_key = t.term_key WHERE term IN ({_places(some)})"
            )
            read.update((row[0], (row[1], row[2])) for row in connection.exec_driver_sql(query, tuple(some)))
            known |= read
            with self._lock:
                self._terms = read if len(self._terms) > _TERMS_KEPT else self._terms | read
        pairs = ((term, known[term]) for term in terms)
        return {term: pair for term, pair in pairs if pair is not None}

    def rows(self, term_keys: Sequence[int]) -> dict[int, Positions]:
        """Where each term stands among the unpacked chunks, by the term's number."""
        wanted = np.array(term_keys, dtype=np.int64)
        starts = np.searchsorted(self._unpacked_terms, wanted).tolist()
        ends = np.searchsorted(self._unpacked_terms, wanted, "right").tolist()
        return {
            key: (self._positions[start:end], self._frequencies[start:end])
            for key, start, end in zip(term_keys, starts, ends, strict=True)
        }

    def statistics(
        self, connection: sa.Connection, terms: Iterable[str], in_force: InForce
    ) -> tuple[Statistics, dict[str, int], Mapping[int, PostingList], Mapping[int, Positions]]:
        """N, lengths and n; with the number, the packed list and the rows of each term that any chunk holds."""
        distinct = sorted(set(terms))
        found = self.terms(connection, distinct)
        key_of = {term: pair[0] for term, pair in found.items()}
        keys = list(key_of.values())
        lists, rows = self.packed.lists(connection, keys), self.rows(keys)
        n_of = dict.fromkeys(distinct, 0)
        for term, (key, kept) in found.items():
            if in_force.kept:
                n_of[term] = kept
            else:
                n_of[term] = int(np.count_nonzero(in_force.unpacked[rows[key][0]]))
                if key in lists:
                    n_of[term] += lists[key].count(in_force.packed)
        return Statistics(in_force.chunk_count, in_force.total_length, n_of), key_of, lists, rows

    # ------------------------------------------------------------ which chunks

    def in_force(self, connection: sa.Connection, scope: Scope) -> InForce:
        """The chunks in force in the scope's time."""
        if scope.as_of is None:
            if self._today is None:
                count, length = kept_totals(connection)
                self._today = InForce(
                    self._current & self._stays, self._unpacked_current, count, length, self._longest, kept=True
                )
            return self._today
        if self._validity is None:
            self._validity = (*_instants(connection, "valid_from"), *_instants(connection, "valid_to"))
        begins, of_begin, ends, of_end = self._validity
        at = np.bytes_(_written(scope.as_of).encode())
        begun, ended = int(np.searchsorted(begins, at, "right")), int(np.searchsorted(ends, at, "right"))

        def counted() -> InForce:
            # What has ended has begun, so what is in force is what has begun less what has ended.
            highest = int(max(of_begin.max(initial=0), of_end.max(initial=0)))
            is_valid = np.zeros(highest + 1, dtype=np.bool_)
            is_valid[of_begin[:begun]] = True
            is_valid[of_end[:ended]] = False
            packed = self._stays & _of_documents(is_valid, self.packed.document_keys)
            unpacked = _of_documents(is_valid, self._unpacked_documents)
            length = int(self.packed.lengths[packed].sum(dtype=np.int64) + self.unpacked_lengths[unpacked].sum())
            chunk_count = int(np.count_nonzero(packed) + np.count_nonzero(unpacked))
            return InForce(packed, unpacked, chunk_count, length, self._longest, kept=False)

        found: InForce = self._remember(("in force", begun, ended), counted)
        return found

    def eligible(self, connection: sa.Connection, scope: Scope, in_force: InForce) -> Eligible:
        """The chunks in force that pass the scope's filters."""
        if scope.lang is None and scope.family is None:
            return Eligible(in_force.packed, None, in_force.unpacked)

        def look_up() -> tuple[NDArray[np.bool_] | None, NDArray[np.int32] | None, NDArray[np.bool_]]:
            query = sa.select(documents.c.doc_key).where(scope.passes())
            passing = np.fromiter((row[0] for row in connection.execute(query)), dtype=np.int64)
            unpacked = np.isin(self._unpacked_documents, passing)
            if len(passing) > _FEW_DOCUMENTS:
                passes = np.zeros(int(passing.max()) + 1, dtype=np.bool_)
                passes[passing] = True
                return _of_documents(passes, self.packed.document_keys), None, unpacked
            statement = f"SELECT chunk_key FROM chunks WHERE doc_key IN ({_places(passing)}) ORDER BY chunk_key"
            rows = connection.exec_driver_sql(statement, tuple(passing.tolist()))
            slots, is_packed = self.packed.slots_of(np.fromiter((row[0] for row in rows), dtype=np.int64))
            return None, slots[is_packed], unpacked

        lang = None if scope.lang is None else scope.lang.lower()
        packed, few, unpacked = self._remember(("passing", lang, scope.family), look_up)
        if packed is not None:
            return Eligible(in_force.packed & packed, None, in_force.unpacked & unpacked)
        return Eligible(None, few[in_force.packed[few]], in_force.unpacked & unpacked)

    def _remember(self, key: tuple[object, ...], make: Any) -> Any:
        with self._lock:
            if key in self._masks:
                self._masks.move_to_end(key)
                return self._masks[key]
        made = make()
        with self._lock:
            self._masks[key] = made
            while len(self._masks) > MASKS:
                self._masks.popitem(last=False)
        return made


def _of_documents(holds: NDArray[np.bool_], document_keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For each chunk whether its document is held; documents beyond the table are not."""
    if not len(document_keys) or int(document_keys.max()) < len(holds):
        return holds[document_keys]
    inside = document_keys < len(holds)
    found: NDArray[np.bool_] = inside & holds[np.where(inside, document_keys, 0)]
    return found


def _instants(connection: sa.Connection, column: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """(instants as they are written, keys of their documents), by time; where there is one."""
    query = f"SELECT {column}, doc_key FROM documents WHERE {column} IS NOT NULL ORDER BY {column}"
    rows = connection.exec_driver_sql(query).fetchall()
    return np.array([row[0] for row in rows], dtype="S26"), np.array([row[1] for row in rows], dtype=np.int64)


def _written(instant: datetime) -> str:
    """An instant as the file writes it; the text sorts as time does."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def _places(values: Sequence[object] | NDArray[Any]) -> str:
    return ", ".join("?" * len(values))
