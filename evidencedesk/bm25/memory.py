"""What a process keeps in memory of the index, and the rule by which it is that of a snapshot.

Every transaction that changes something stamps the file with a random generation. A search reads it inside its
snapshot and takes what is kept under that name, so that it never sees another state; what is missing is read through
the snapshot itself. Inside a write transaction that has changed something the state has no name yet: what is kept
there belongs to the transaction and its parts alone, and is made anew when a row has been changed since.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from evidencedesk.bm25.state import State
from evidencedesk.store import Snapshot, Transaction

STATES = 2
"""States that are kept for a file: the newest, and one that a longer read may still be in."""


class _Kept:
    """The states of one file that this process keeps."""

    def __init__(self) -> None:
        self.states: OrderedDict[str, State] = OrderedDict()
        self.lock = threading.Lock()


# By engine: that is one open file in one process, and a child process gets an engine of its own.
_kept: WeakKeyDictionary[sa.Engine, _Kept] = WeakKeyDictionary()
_lock = threading.Lock()


def _forget_after_fork() -> None:
    """A lock that another thread of the parent held would stay locked for ever."""
    global _lock, _kept
    _lock, _kept = threading.Lock(), WeakKeyDictionary()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def state_of(snapshot: Snapshot) -> State:
    """The state that a snapshot sees, kept or read now."""
    if isinstance(snapshot, Transaction) and snapshot.uncommitted:
        return _state_inside(snapshot)
    with _lock:
        kept = _kept.setdefault(snapshot.connection.engine, _Kept())
    generation = snapshot.generation
    with kept.lock:
        if generation in kept.states:
            kept.states.move_to_end(generation)
            return kept.states[generation]
        former = [state.packed for state in kept.states.values()]
    # Outside of the lock: another thread may do the same meanwhile, and both have read the same.
    state = State(snapshot.connection, former)
    with kept.lock:
        state = kept.states.setdefault(generation, state)
        kept.states.move_to_end(generation)
        while len(kept.states) > STATES:
            kept.states.popitem(last=False)
    return state


def _state_inside(transaction: Transaction) -> State:
    count = transaction.uncommitted
    found: tuple[int, State] | None = transaction.remembered.get(State)
    if found is None or found[0] != count:
        # Segments have random names, so those that the transaction has not touched are still the same.
        found = (count, State(transaction.connection, [] if found is None else [found[1].packed]))
        transaction.remembered[State] = found
    return found[1]
