"""What a process keeps of a file's codes: a `Picture` for each state that is being searched, brought up to the next.

A picture never changes. A search reads in its own snapshot which state the file is in, and gets the picture of just
that state: the one that is kept, or one made from it by reading what has changed since, or one read anew. Whether a
kept picture shows an ancestor of the snapshot's state is known from `recent_states`: a file that was put in the place
of another has other generations under the same numbers. Inside a write transaction that has changed something the
picture is made for that transaction alone.

The codes of all pictures of a file lie in one shelf of arrays with room at the end: appending to it touches nothing
that an older picture shows.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.store import Scope, Snapshot, Transaction, documents
from evidencedesk.vectors import blocks, truth
from evidencedesk.vectors.codes import Codes, Coding, encode
from evidencedesk.vectors.fitting import RECALL
from evidencedesk.vectors.roster import Roster, refreshed, stored_roster

NARROW = 300
"""A scope of so many chunks is searched exactly: reading their vectors takes no longer."""
_PICTURES = 3
"""Kept of one file: a search may have begun before another's write."""
_SCOPES = 3
"""Kept of one picture."""
_TAIL = 4096
"""Vectors read at once."""


class Shelf:
    """Growing arrays of codes and the numbers of their vectors. What has been handed out stays as it is."""

    def __init__(self, width: int, capacity: int) -> None:
        self._lock = threading.Lock()
        self._words = np.empty((width // 64, capacity), np.uint64)
        self._offsets = np.empty(capacity, np.float32)
        self._scales = np.empty(capacity, np.float32)
        self._keys = np.empty(capacity, np.int64)
        self._used = 0

    def appended(self, count: int, parts: Sequence[tuple[NDArray[np.int64], Codes]]) -> tuple[Shelf, int]:
        """The first `count` codes and these behind them: a shelf, this one if it can be, and how many it then holds."""
        added = sum(len(keys) for keys, _ in parts)
        with self._lock:
            if self._used == count and count + added <= len(self._keys):
                self._write(count, parts)
                return self, count + added
        width, total = 64 * len(self._words), count + added
        other = Shelf(width, total + max(_TAIL, total // 16))
        other._write(0, [(self._keys[:count], self.codes(count))])
        other._write(count, parts)
        return other, total

    def _write(self, start: int, parts: Sequence[tuple[NDArray[np.int64], Codes]]) -> None:
        for keys, codes in parts:
            stop = start + len(keys)
            self._words[:, start:stop] = codes.words
            self._offsets[start:stop] = codes.offsets
            self._scales[start:stop] = codes.scales
            self._keys[start:stop] = keys
            start = stop
        self._used = start

    def codes(self, count: int) -> Codes:
        """The first `count` codes."""
        return Codes(self._words[:, :count], self._offsets[:count], self._scales[:count])

    def keys(self, count: int) -> NDArray[np.int64]:
        """The numbers of their vectors, ascending."""
        return self._keys[:count]

    @property
    def size_bytes(self) -> int:
        """Memory that it takes."""
        return self._words.nbytes + self._offsets.nbytes + self._scales.nbytes + self._keys.nbytes


@dataclass(frozen=True, slots=True)
class Selection:
    """The vectors or documents of a scope."""

    in_scope: NDArray[np.bool_]
    """Which documents of the roster are in scope."""
    eligible: int
    """Chunks in scope that have a vector."""
    doc_keys: tuple[int, ...] | None
    """The documents in scope, when they have few chunks."""
    outside: NDArray[np.uint16] | None
    """0 for codes in scope, 65535 for others; None with `doc_keys`, or when all are in it."""
    places: NDArray[np.intp] | None
    """The codes in scope, when they are the smaller part."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The codes and the roster of one state of a file."""

    generation: str
    coding: Coding
    shelf: Shelf
    count: int
    roster: Roster
    _selections: OrderedDict[Scope, Selection] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def codes(self) -> Codes:
        """Codes of all vectors, by their numbers."""
        return self.shelf.codes(self.count)

    @property
    def keys(self) -> NDArray[np.int64]:
        """The numbers of the vectors."""
        return self.shelf.keys(self.count)

    def selection(self, connection: sa.Connection, scope: Scope) -> Selection:
        """The vectors of a scope; that of the last few scopes is kept."""
        with self._lock:
            if (kept := self._selections.get(scope)) is not None:
                self._selections.move_to_end(scope)
                return kept
        made = self._select(connection, scope)
        with self._lock:
            self._selections[scope] = made
            while len(self._selections) > _SCOPES:
                self._selections.popitem(last=False)
        return made

    def _select(self, connection: sa.Connection, scope: Scope) -> Selection:
        of_family = None
        if scope.family is not None:
            query = sa.select(documents.c.doc_key).where(documents.c.family == scope.family)
            of_family = connection.scalars(query).all()
        in_scope = self.roster.in_scope(scope, of_family)
        vectors = self.roster.vectors_of(in_scope)
        if len(vectors) <= NARROW:
            doc_keys = tuple(self.roster.documents["doc_key"][in_scope].tolist())
            return Selection(in_scope, len(vectors), doc_keys, None, None)
        eligible = _is_among(self.keys, vectors)
        count = int(np.count_nonzero(eligible))
        if count == self.count:
            return Selection(in_scope, len(vectors), None, None, None)
        if count < self.count // 4:
            return Selection(in_scope, len(vectors), None, None, np.flatnonzero(eligible))
        return Selection(in_scope, len(vectors), None, np.where(eligible, np.uint16(0), np.uint16(0xFFFF)), None)

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, the shelf that others may share included."""
        arrays: list[NDArray[Any]] = [self.roster.documents, self.roster.chunk_documents, self.roster.chunk_vectors]
        for selection in self._selections.values():
            masks = (selection.in_scope, selection.outside, selection.places)
            arrays += [array for array in masks if array is not None]
        return self.shelf.size_bytes + sum(array.nbytes for array in arrays)


def _is_among(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the ascending keys are wanted."""
    span = int(keys[-1] - keys[0]) + 1 if len(keys) else 0
    if span > 4 * len(keys) + 1_000_000:
        found: NDArray[np.bool_] = np.isin(keys, wanted)
        return found
    # A table of flags takes a fifth of the time of sorting.
    flags = np.zeros(span, dtype=bool)
    flags[wanted[(wanted >= keys[:1]) & (wanted <= keys[-1:])] - keys[0]] = True
    eligible: NDArray[np.bool_] = flags[keys - keys[0]]
    return eligible


class Memory:
    """The pictures of one file's embedder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pictures: OrderedDict[str, Picture] = OrderedDict()

    def picture(self, snapshot: Snapshot, embedder_key: int) -> Picture | None:
        """The picture of the snapshot's state; None when its vectors are not coded."""
        generation = snapshot.generation
        with self._lock:
            if (kept := self._pictures.get(generation)) is not None:
                self._pictures.move_to_end(generation)
                return kept
            candidates = list(self._pictures.values())
        made = _picture(snapshot, embedder_key, _nearest_ancestor(snapshot, candidates))
        if made is not None:
            with self._lock:
                made = self._pictures.setdefault(generation, made)
                newest = sorted(self._pictures.values(), key=lambda one: one.roster.change_number)[-_PICTURES:]
                self._pictures = OrderedDict((one.generation, one) for one in newest)
        return made

    def kept(self, generation: str) -> Picture | None:
        """The picture of a state, if it is kept."""
        with self._lock:
            return self._pictures.get(generation)

    @property
    def size_bytes(self) -> int:
        """Memory that the pictures take, shared shelves counted once."""
        with self._lock:
            pictures = list(self._pictures.values())
        shelves = {id(one.shelf): one.shelf.size_bytes for one in pictures}
        return sum(shelves.values()) + sum(one.size_bytes - one.shelf.size_bytes for one in pictures)


_memories: weakref.WeakKeyDictionary[sa.Engine, dict[int, Memory]] = weakref.WeakKeyDictionary()
_memories_lock = threading.Lock()


def _forget_after_fork() -> None:
    """A lock that another thread of the parent held would stay locked for ever."""
    global _memories_lock, _memories
    _memories_lock, _memories = threading.Lock(), weakref.WeakKeyDictionary()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def memory_of(engine: sa.Engine, embedder_key: int) -> Memory:
    """What this process keeps for an engine: it goes with it, and a forked process begins with nothing."""
    with _memories_lock:
        return _memories.setdefault(engine, {}).setdefault(embedder_key, Memory())


def picture_of(snapshot: Snapshot, embedder_key: int) -> Picture | None:
    """The picture of the state that the snapshot sees; None when the embedder's vectors are not coded."""
    memory = memory_of(snapshot.connection.engine, embedder_key)
    if not isinstance(snapshot, Transaction) or not snapshot.uncommitted:
        return memory.picture(snapshot, embedder_key)
    # A transaction's own changes bear a number that is not yet the file's; they may never become so.
    key = (Picture, embedder_key)
    remembered: tuple[int, Picture | None] = snapshot.remembered.get(key, (0, None))
    count, picture = remembered
    if count != snapshot.uncommitted:
        count, base = snapshot.uncommitted, memory.kept(snapshot.generation)
        picture = _picture(snapshot, embedder_key, base, private=True)
        snapshot.remembered[key] = (count, picture)
    return picture


def _nearest_ancestor(snapshot: Snapshot, pictures: Sequence[Picture]) -> Picture | None:
    """The newest of the pictures that shows a former state of the snapshot's file."""
    for picture in sorted(pictures, key=lambda one: -one.roster.change_number):
        row = snapshot.connection.exec_driver_sql(
            "SELECT 1 FROM recent_states WHERE change_number = ? AND generation = ?",
            (picture.roster.change_number, picture.generation),
        ).one_or_none()
        if row is not None:
            return picture
    return None


def _picture(snapshot: Snapshot, embedder_key: int, base: Picture | None, *, private: bool = False) -> Picture | None:
    """The picture of the snapshot's state, made from one of a former state of the same file where there is one."""
    connection = snapshot.connection
    coding = blocks.read_coding(connection, embedder_key)
    if coding is None or coding.recall < RECALL:
        return None
    if base is not None and base.coding.coding_id == coding.coding_id:
        shelf, count, roster = base.shelf, base.count, base.roster
        parts = []
    else:
        parts = list(blocks.read_blocks(connection, embedder_key, coding.width))
        total = sum(len(keys) for keys, _ in parts)
        shelf, count, roster = Shelf(coding.width, total + _TAIL), 0, stored_roster(connection, embedder_key)
    last = int(parts[-1][0][-1]) if parts else int(shelf.keys(count)[-1]) if count else -1
    while True:
        keys, vectors = truth.read_after(connection, embedder_key, len(coding.centre), last, _TAIL)
        if not len(keys):
            break
        parts.append((keys, encode(coding, vectors)))
        last = int(keys[-1])
    if parts:
        if private:
            shelf, count = Shelf(coding.width, 0).appended(0, [(shelf.keys(count), shelf.codes(count))])
        shelf, count = shelf.appended(count, parts)
    roster = refreshed(roster, connection, embedder_key, snapshot.state.change_number)
    return Picture(snapshot.generation, coding, shelf, count, roster)
