"""Does a fault of the disk lose anything? Lets write statements fail, and looks at the file and at what is raised.

    python -m benchmarks.faults --faults 600

The operations, their points and what is looked at are those of `benchmarks.crash`. Instead of a kill, a statement
raises what SQLite's driver raises: a disk I/O error, a full disk, a lock that another process holds. Half of the time
SQLite has ended the transaction by itself, as it does after some of them. What the operation raises must be an error of
evidencedesk for it; the file must hold what was committed, and the next run must complete.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.crash.killing import judge, spread
from benchmarks.crash.operations import OPERATIONS, Operation, do_as_in_large_files
from benchmarks.crash.points import in_child, use, watched
from benchmarks.crash.rehearsal import copied, rehearse
from evidencedesk.connections import find_driver
from evidencedesk.errors import DeskBusy, DeskFull, EvidenceDeskError, StoreFailure

KINDS: dict[str, type[EvidenceDeskError]] = {
    "disk I/O error": StoreFailure, "database or disk is full": DeskFull, "database is locked": DeskBusy,
}  # fmt: skip


def fail_at(operation: Operation, folder: Path, number: int, sentence: str, answer: Path, *, ended: bool) -> str:
    """Run the operation in a child in which that point raises; gives the name of what reached the caller, or "nothing".

    `ended`: SQLite has rolled the transaction back by itself.
    """
    count = 0

    def reached(connection: Any, _statement: str, _when: str) -> None:
        nonlocal count
        count += 1
        if count == number + 1:
            if ended and connection.in_transaction:
                driver.module.Connection.rollback(connection)
            raise driver.module.OperationalError(sentence)

    def run() -> str:
        use(watched(driver, reached))
        try:
            operation.run(folder)
        except Exception as error:  # noqa: BLE001 - what it is, is what is asked
            return type(error).__name__
        return "nothing"

    driver = find_driver()
    if os.waitpid(in_child(run, answer), 0)[1]:
        raise LookupError(f"{operation.name}: the child failed; its traceback stands above")
    return str(pickle.loads(answer.read_bytes()))


def trouble(operation: Operation, faults: int, place: Path, rng: random.Random) -> tuple[Counter[str], list[str]]:
    """Let that many statements fail, evenly spread; gives what was raised how often, and what was wrong."""
    base, found = place / "base", []
    base.mkdir(parents=True)
    operation.make(base)
    rehearsal = rehearse(operation, base, place)
    before = [n for n, (label, _) in enumerate(rehearsal.points) if label.startswith("before")]
    tally: Counter[str] = Counter()
    for n, place_of in enumerate(spread(len(before), faults, rng)):
        number = before[place_of]
        label, committed = rehearsal.points[number]
        sentence, kind = list(KINDS.items())[n % len(KINDS)]
        folder = copied(base, place)
        raised = fail_at(operation, folder, number, sentence, place / "answer", ended=n // len(KINDS) % 2 == 1)
        tally[sentence] += 1
        _, wrong = judge(operation, folder, rehearsal, committed)
        if raised != kind.__name__:
            wrong.append(f"{raised} was raised instead of {kind.__name__}")
        found += [f"{operation.name}, {sentence} {label} (point {number}): {fault}" for fault in wrong]
    return tally, found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=600, help="how many, over all operations (default 600)")
    parser.add_argument("--operations", nargs="+", metavar="NAME", choices=[o.name for o in OPERATIONS])
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    chosen = [o for o in OPERATIONS if options.operations is None or o.name in options.operations]
    do_as_in_large_files()
    rng, begun = random.Random(options.seed), time.perf_counter()
    lines = [f"| operation | {' | '.join(KINDS)} | faults |", "|---" * (len(KINDS) + 2) + "|"]
    total, wrong = Counter[str](), []
    with tempfile.TemporaryDirectory(prefix="evidencedesk-faults-") as name:
        for operation in chosen:
            tally, found = trouble(operation, options.faults // len(chosen), Path(name) / "one", rng)
            shutil.rmtree(Path(name) / "one")
            lines.append(f"| {operation.name} | {' | '.join(str(tally[kind]) for kind in KINDS)} | {len(found)} |")
            total += tally
            wrong += found
    lines.append(f"| all | {' | '.join(str(total[kind]) for kind in KINDS)} | {len(wrong)} |")
    print("\n".join(lines))
    print(f"\n{total.total()} statements that fail, {len(wrong)} faults, {time.perf_counter() - begun:.0f} s")
    for fault in wrong:
        print(f"- {fault}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
