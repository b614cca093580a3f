"""The undisturbed run of an operation: its points, and the states that the file goes through."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.crash.operations import Operation
from benchmarks.crash.points import in_child, use, watched
from benchmarks.crash.states import Look, State, is_set_up, look_at, state_of, torn
from evidencedesk import connections
from evidencedesk.connections import find_driver

Point = tuple[str, int]
"""What comes next or was just done, and which state is committed at that point."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What an undisturbed run does to the file."""

    points: list[Point]
    states: list[State | None]
    """Each state that was committed, the first one and the last one included."""
    looks: list[Look | None]
    """How a reader sees each of them; None where it is no desk of this schema."""
    seconds: float
    faults: list[str]
    """What is wrong with one of the states: a reader saw it, though only for a moment."""


def rehearse(operation: Operation, base: Path, place: Path) -> Rehearsal:
    """Run the operation undisturbed on a copy of `base`, once to note every point and once for its duration."""
    folder = copied(base, place)
    copies = place / "states"
    copies.mkdir()
    answer = place / "answer"
    _require_exit(in_child(lambda: _noted(operation, folder, copies), answer))
    points, states = pickle.loads(answer.read_bytes())
    (operation.again or operation.run)(folder)
    if state_of(folder / "desk.db") != states[-1]:
        raise LookupError(f"{operation.name}: a second run changes what the first one made")
    looks = [look_at(copies / f"{n}.db") if is_set_up(state) else None for n, state in enumerate(states)]
    faults = [f"state {n}: {problem}" for n, look in enumerate(looks) if look for problem in look.problems]
    faults += torn(states)
    folder = copied(base, place)
    begun = time.perf_counter()
    _require_exit(in_child(lambda: operation.run(folder), answer))
    return Rehearsal(points, states, looks, time.perf_counter() - begun, faults)


def _noted(operation: Operation, folder: Path, copies: Path) -> tuple[list[Point], list[State | None]]:
    """The points of an undisturbed run and the states at them; `copies` gets a copy of the file in each state."""
    driver, path = find_driver(), folder / "desk.db"
    points: list[Point] = []
    states: list[State | None] = []
    plain: Any = None
    seen: object = None

    def look() -> None:
        """See, with the plain driver and past the product, whether something was committed since the last look."""
        nonlocal plain, seen
        if plain is None and path.exists():
            plain = driver.module.connect(str(path), isolation_level=None)
        committed = plain and plain.execute("PRAGMA data_version").fetchone()
        if states and committed == seen:
            return
        seen, watching, connections.find_driver = committed, connections.find_driver, lambda: driver
        state = state_of(path)
        connections.find_driver = watching
        if not states or states[-1] != state:
            if state is not None:
                plain.execute("VACUUM INTO ?", (str(copies / f"{len(states)}.db"),))
            states.append(state)

    def note(_connection: object, statement: str, when: str) -> None:
        # A pragma changes no row, and holds its lock until its answer is fetched.
        if not statement.startswith("PRAGMA"):
            look()
        points.append((f"{when} {' '.join(statement.split())[:60]}", len(states) - 1))

    look()
    use(watched(driver, note))
    operation.run(folder)
    look()
    return points, states


def copied(base: Path, place: Path) -> Path:
    """A folder like `base` for one run; the former one goes."""
    folder = place / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
    return folder


def _require_exit(pid: int) -> None:
    if os.waitpid(pid, 0)[1]:
        raise LookupError("the undisturbed run failed; its traceback stands above")
