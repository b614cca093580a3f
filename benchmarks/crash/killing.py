"""Killing an operation, and judging what is left."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.crash.operations import Operation
from benchmarks.crash.points import in_child, use, watched
from benchmarks.crash.rehearsal import Rehearsal, copied, rehearse
from benchmarks.crash.states import Look, damaged, look_at, state_of
from evidencedesk.connections import find_driver

RANDOM_SHARE = 0.25
"""Of the kills, those at a random moment."""


@dataclass(slots=True)
class Tally:
    """The outcomes of one operation's kills."""

    at_statement: int = 0
    at_moment: int = 0
    states: Counter[str] = field(default_factory=Counter)
    """How often the former state was found, the new one, one between them; and hidden files that were left behind."""
    faults: list[str] = field(default_factory=list)

    @property
    def kills(self) -> int:
        return self.at_statement + self.at_moment


def kill_at(operation: Operation, folder: Path, number: int, answer: Path) -> None:
    """Run the operation in a child that kills itself at that point."""
    count = 0

    def reached(*_point: object) -> None:
        nonlocal count
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    def run() -> None:
        use(watched(find_driver(), reached))
        operation.run(folder)

    status = os.waitpid(in_child(run, answer), 0)[1]
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
        raise LookupError(f"{operation.name}: the run did not come to point {number} (status {status})")


def kill_after(operation: Operation, folder: Path, seconds: float, answer: Path) -> bool:
    """Run the operation in a child and kill it after so long; whether it was still at work."""
    pid = in_child(lambda: operation.run(folder), answer)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if status and not os.WIFSIGNALED(status):
        raise LookupError(f"{operation.name}: the child failed; its traceback stands above")
    return os.WIFSIGNALED(status)


def judge(operation: Operation, folder: Path, rehearsal: Rehearsal, committed: int | None) -> tuple[str, list[str]]:
    """Which state an interrupted run left, and what is wrong. `committed`: the one it must be, where that is known."""
    path, faults, number = folder / "desk.db", [], None
    try:
        found = state_of(path)
        number = rehearsal.states.index(found) if found in rehearsal.states else None
        if number is None:
            faults.append("the file is in a state that was never committed")
        elif committed is not None and found != rehearsal.states[committed]:
            faults.append(f"the file is in state {number}, and {committed} was committed")
        if path.exists():
            faults += damaged(path)
        if number is not None and (expected := rehearsal.looks[number]):
            faults += _differences(look_at(path), expected)
        (operation.again or operation.run)(folder)
        if state_of(path) != rehearsal.states[-1]:
            faults.append("the next run ends in another state than an undisturbed one")
        if expected := rehearsal.looks[-1]:
            faults += [f"after the next run: {fault}" for fault in _differences(look_at(path), expected)]
        faults += _copies_that_are_not_whole(folder, rehearsal)
    except Exception as error:  # noqa: BLE001 - whatever a file raises that was left by a kill is a fault
        faults.append(f"{type(error).__name__}: {error}")
    return _named(number, len(rehearsal.states)), faults


def _differences(seen: Look, expected: Look) -> list[str]:
    found = [] if seen.found == expected.found else ["searches find something else than in an undisturbed run"]
    return [*seen.problems, *found]


def _named(number: int | None, count: int) -> str:
    if number is None:
        return "none"
    return "former" if number == 0 else "new" if number == count - 1 else "between"


def _copies_that_are_not_whole(folder: Path, rehearsal: Rehearsal) -> Iterator[str]:
    """A copy that was set aside, or a backup, is whole under its name, whatever came between."""
    for copy in (*folder.glob("desk.db.schema-*"), *folder.glob("backup.db")):
        if copy.name.endswith(("-wal", "-shm", "-journal")):
            yield f"{copy.name} was left beside a copy"
        elif state_of(copy) != rehearsal.states[0]:
            yield f"{copy.name} is not the state that was copied"
        else:
            yield from (f"{copy.name}: {problem}" for problem in damaged(copy))


def left_behind(folder: Path) -> bool:
    """Whether a hidden file of a run that was killed is still there after the next one."""
    return any(path.name.startswith(".") for path in folder.iterdir())


def spread(count: int, wanted: int, rng: random.Random) -> list[int]:
    """That many of the numbers below `count`, evenly spaced from a random one on; each once where all are wanted."""
    begin = rng.random()
    return [int((begin + n) * count / wanted) for n in range(wanted)]


def torment(operation: Operation, kills: int, place: Path, rng: random.Random, *, every: bool = False) -> Tally:
    """Kill the operation that often: three of four at a statement, evenly spread over all, the rest at any time.

    `every`: at each point once, and `kills` times at a random moment.
    """
    base, tally = place / "base", Tally()
    base.mkdir(parents=True)
    operation.make(base)
    rehearsal = rehearse(operation, base, place)
    tally.faults += [f"{operation.name}, undisturbed: {fault}" for fault in rehearsal.faults]
    at_moments = kills if every else round(kills * RANDOM_SHARE)
    wanted = len(rehearsal.points) if every else kills - at_moments

    def look(where: str, committed: int | None) -> None:
        state, faults = judge(operation, folder, rehearsal, committed)
        tally.states[state] += 1
        tally.states["left behind"] += left_behind(folder)
        tally.faults += [f"{operation.name}, killed {where}: {fault}" for fault in faults]

    answer = place / "answer"
    for number in spread(len(rehearsal.points), wanted, rng):
        folder = copied(base, place)
        kill_at(operation, folder, number, answer)
        label, committed = rehearsal.points[number]
        tally.at_statement += 1
        look(f"{label} (point {number})", committed)
    while tally.at_moment < at_moments:
        folder = copied(base, place)
        seconds = rng.uniform(0, rehearsal.seconds)
        if kill_after(operation, folder, seconds, answer):
            tally.at_moment += 1
            look(f"after {seconds * 1000:.1f} ms", None)
    return tally
