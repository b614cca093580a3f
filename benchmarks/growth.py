"""What grows how: latency, updates and size of a desk by its chunks, and after many updates.

    python -m benchmarks.growth --n 1000 10000 100000 [--updates 1000] [--versions 10]

Desks of all sizes are asked and updated in turn, so that a busy minute falls on all of them. Times are of the clock
(p50 / p95) and of the processor (p50, in brackets). Exponents are slopes of the straight line through the logarithms of
chunks and of the clock's p50: 1 grows with the file, 0 does not grow.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed import report
from benchmarks.speed.data import Data, prepare
from benchmarks.speed.measure import SystemProcess, build, tell
from benchmarks.speed.systems import EvidenceDesk

NAME = EvidenceDesk.name
SEARCHES = ("keyword", "vector", "hybrid", "as of")
"""What is asked: the three modes now, and a hybrid search as of a day before the updates."""


Spent = tuple[float, float]
"""Milliseconds by the clock and of processor."""


@dataclass
class Growth:
    """What was measured of one size."""

    data: Data
    build: dict[str, Any]
    before: dict[str, list[Spent]] = field(default_factory=lambda: {name: [] for name in SEARCHES})
    after: dict[str, list[Spent]] = field(default_factory=lambda: {name: [] for name in SEARCHES})
    updates: list[Spent] = field(default_factory=list)
    size_after_mb: float = 0.0
    resident_mb: float = 0.0


def measure(sizes: Sequence[Growth], folders: Sequence[Path], updates: int) -> None:
    """Ask, update a copy, ask the copy again."""
    ask_each(sizes, folders, lambda size: size.before)
    if not updates:
        return
    with tempfile.TemporaryDirectory(dir=folders[0].parent) as temporary:
        copies = [Path(shutil.copytree(folder, Path(temporary) / str(number))) for number, folder in enumerate(folders)]
        running = [SystemProcess("serve", NAME, s.data, copy) for s, copy in zip(sizes, copies, strict=True)]
        for number in range(updates):
            for size, process in zip(sizes, running, strict=True):
                size.updates.append(spent(process.ask(do="update", number=number, search=False)))
        for process in running:
            process.close()
        tell(f"{updates} updates of each")
        for size, copy in zip(sizes, copies, strict=True):
            size.size_after_mb = sum(path.stat().st_size for path in copy.iterdir()) / 1e6
        ask_each(sizes, copies, lambda size: size.after)


def ask_each(
    sizes: Sequence[Growth], folders: Sequence[Path], into: Callable[[Growth], dict[str, list[Spent]]]
) -> None:
    running = [SystemProcess("serve", NAME, s.data, folder) for s, folder in zip(sizes, folders, strict=True)]
    for name in SEARCHES:
        for questions in ("warm_up", "questions"):
            for number in range(len(getattr(sizes[0].data, questions))):
                for size, process in zip(sizes, running, strict=True):
                    as_of = size.data.past if name == "as of" else None
                    reply = process.ask(
                        do="search", questions=questions, number=number, lang="",
                        mode="hybrid" if name == "as of" else name, as_of=as_of,
                    )  # fmt: skip
                    if questions == "questions":
                        into(size)[name].append(spent(reply))
    for size, process in zip(sizes, running, strict=True):
        size.resident_mb = process.ask(do="memory").get("resident_mb", 0.0)
        process.close()
    tell("asked")


def spent(reply: dict[str, Any]) -> Spent:
    return reply["ms"], reply["cpu_ms"]


def rows_of(sizes: Sequence[Growth]) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """What was measured, and for each size the cell that is shown and the number that grows."""
    for name in SEARCHES:
        yield f"{name}, ms", [times(size.before[name]) for size in sizes]
    several = len(sizes[0].updates)
    if several:
        tenth = max(1, several // 10)
        yield f"first {tenth} updates, ms", [times(size.updates[:tenth]) for size in sizes]
        yield f"last {tenth} of {several} updates, ms", [times(size.updates[-tenth:]) for size in sizes]
        for name in SEARCHES:
            yield f"{name} after them, ms", [times(size.after[name]) for size in sizes]
    yield "file, MB", [number(size.build["size_mb"]) for size in sizes]
    if several:
        yield "file after them, MB", [number(size.size_after_mb) for size in sizes]
    yield "serving, MB", [number(size.resident_mb) for size in sizes]
    yield "ingest, chunks/s", [number(size.build["chunks_a_second"]) for size in sizes]


def times(given: Sequence[Spent]) -> tuple[str, float]:
    clock, processor = np.transpose(given)
    middle = float(np.median(clock))
    return f"{middle:.2f} / {np.quantile(clock, 0.95):.2f} [{np.median(processor):.2f}]", middle


def number(value: float) -> tuple[str, float]:
    return f"{value:,.1f}", value


def show(sizes: Sequence[Growth]) -> str:
    counts = [size.data.count for size in sizes]
    rows = [
        [
            label,
            *(cell for cell, _ in cells),
            f"{exponent(counts, [value for _, value in cells]):.2f}" if len(sizes) > 1 else report.NOTHING,
        ]
        for label, cells in rows_of(sizes)
    ]
    header = ["p50 / p95 [processor]", *(f"{count:,} chunks" for count in counts), "exponent"]
    return f"{report.machine()}\n\n{report.table(header, rows)}"


def exponent(counts: Sequence[int], values: Sequence[float]) -> float:
    """The slope of log value by log count, by least squares."""
    slope = np.polyfit(np.log(counts), np.log(values), 1)[0]
    return round(float(slope), 2) + 0.0  # no minus zero


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="chunks, all versions")
    parser.add_argument("--updates", type=int, default=1_000, help="of ten chunks, to each size")
    parser.add_argument("--versions", type=int, default=0, help="of each text; 0: one, and two of about 5 %%")
    parser.add_argument("--questions", type=int, default=30, help="of each of three kinds")
    parser.add_argument("--keep", type=Path, help="folder that keeps data and desks; benchmarks.speed can use it too")
    parser.add_argument("--json", type=Path, help="write every figure there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        sizes, folders = [], []
        for count in given.n:
            place = (given.keep or Path(temporary)) / (f"{count}-{given.versions}" if given.versions else str(count))
            data = prepare(place / "data", count, given.questions, versions=given.versions)
            sizes.append(Growth(data, build(data, NAME, place / NAME, threads=1)))
            folders.append(place / NAME)
            tell(f"{count} chunks are built")
        measure(sizes, folders, given.updates)
    print(show(sizes))
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(size) for size in sizes], default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
