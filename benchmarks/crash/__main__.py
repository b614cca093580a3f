"""The command: kills, and a table of what was found."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import benchmarks.crash
from benchmarks.crash.killing import Tally, torment
from benchmarks.crash.operations import OPERATIONS, do_as_in_large_files


def table(tallies: Mapping[str, Tally]) -> str:
    """Markdown: a row for each operation."""
    lines = [
        "| operation | killed at a write statement | at a random moment | found: former state | between | new state | "
        "hidden file left | faults |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rows = [
        (name, t.at_statement, t.at_moment, *(t.states[key] for key in ("former", "between", "new", "left behind")),
         len(t.faults))
        for name, t in tallies.items()
    ]  # fmt: skip
    total = ("all", *(sum(column) for column in zip(*(row[1:] for row in rows), strict=True)))
    lines += [f"| {' | '.join(map(str, row))} |" for row in (*rows, total)]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=benchmarks.crash.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1000, help="how many, over all operations (default 1000)")
    parser.add_argument("--every", action="store_true", help="at every write statement; --kills are at random moments")
    parser.add_argument("--operations", nargs="+", metavar="NAME", help=", ".join(o.name for o in OPERATIONS))
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(arguments)
    chosen = [o for o in OPERATIONS if options.operations is None or o.name in options.operations]
    if not chosen or (options.operations and len(chosen) < len(set(options.operations))):
        parser.error(f"there is no such operation; there are {', '.join(o.name for o in OPERATIONS)}")
    if options.kills < len(chosen):
        parser.error(f"--kills must be at least {len(chosen)}, one for each operation")
    if not hasattr(os, "fork"):
        parser.error("this needs a system with fork")
    do_as_in_large_files()
    rng = random.Random(options.seed)
    tallies: dict[str, Tally] = {}
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="evidencedesk-crash-") as name:
        for n, operation in enumerate(chosen):
            share = options.kills // len(chosen) + (n < options.kills % len(chosen))
            place = Path(name) / str(n)
            tallies[operation.name] = torment(operation, share, place, rng, every=options.every)
            shutil.rmtree(place)
            print(f"{operation.name}: {tallies[operation.name].kills} kills", file=sys.stderr, flush=True)
    print(table(tallies))
    faults = [fault for tally in tallies.values() for fault in tally.faults]
    kills = sum(tally.kills for tally in tallies.values())
    print(f"\n{kills} kills, {len(faults)} faults, {time.perf_counter() - begun:.0f} s")
    for fault in faults:
        print(f"- {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
