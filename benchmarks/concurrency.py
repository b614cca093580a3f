"""Do readers ever see a mixture, an outdated text or an error while writers update, in several processes and threads?

    python -m benchmarks.concurrency --seconds 300

Every chunk of a document carries the number of its edition. A writer has some documents of its own and brings each to
the next edition, one after the other, in the same order for ever: half of them by a correction in place, the others by
a new version. So a reader's Hits must show, whatever it asked for:

- each document in one edition, with all of its parts when all were asked for, and of each line one version, in force;
- along a writer's documents the same edition, then from some place on the one before: anything else is two states of
  the file in one answer;
- no edition older than what was committed before the search began, and none newer than what was begun when it ended.

Writers wait for one another and finish; the write-ahead log stays bounded; `check` finds nothing at the end. Exit code
1 when anything else happened.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing.sharedctypes import SynchronizedArray
from pathlib import Path
from random import Random
from typing import Any

from evidencedesk import Desk
from evidencedesk.connections import LOG_LIMIT_BYTES
from evidencedesk.documents import parse_document
from evidencedesk.records import Hits, SourceDocument

DOCUMENTS = 6
"""Of each writer."""
PARTS = 5
"""Chunks of each document."""
_MARK = re.compile(r"Writer (\d+) document (\d+) part (\d+) edition (\d+)\.")
_QUESTIONS = ("red bikes", "which edition is in force", "writer part document", "বাইক ফেরত", "Where are helmets sold?")


def source(writer: int, document: int, edition: int) -> SourceDocument:
    """A document in one edition; those with an odd number are corrected in place, the others get a new version."""
    version = 1 if document % 2 else edition
    sections = "\n\n".join(
        f"## Part {part}\n\nWriter {writer} document {document} part {part} edition {edition}. "
        f"Bikes are red and helmets are sold in part {part}. বাইক ফেরত দেওয়া যায়।"
        for part in range(PARTS)
    )
    front = f"---\ndoc_id: w{writer}-d{document}\ntitle: Rules {writer} {document}\nversion: {version}\nlang: en\n---\n"
    return parse_document(f"{front}{sections}\n", f"w{writer}-d{document}.md")


def faults(
    hits: Hits, whole: bool, oldest: Mapping[tuple[int, int], int], newest: Mapping[tuple[int, int], int]
) -> list[str]:
    """What is wrong with an answer. `whole`: every chunk in force was asked for."""
    editions: dict[tuple[int, int], set[int]] = {}
    names: dict[tuple[int, int], set[str]] = {}
    parts: Counter[tuple[int, int]] = Counter()
    found = []
    for hit in hits:
        mark = _MARK.search(hit.chunk.text)
        if mark is None:
            continue  # one of the documents that nobody changes
        writer, document, part, edition = map(int, mark.groups())
        editions.setdefault((writer, document), set()).add(edition)
        names.setdefault((writer, document), set()).add(hit.chunk.doc_id)
        parts[writer, document] += 1
        if hit.chunk.status != "current":
            found.append(f"{hit.chunk.id} is {hit.chunk.status}")
        if not hit.chunk.id.endswith(f":c{part}"):
            found.append(f"{hit.chunk.id} has the text of part {part}")
    for place, seen in editions.items():
        if len(seen) > 1 or len(names[place]) > 1:
            found.append(f"document {place} in editions {sorted(seen)} of {sorted(names[place])}")
        if not oldest[place] <= min(seen) <= max(seen) <= newest[place]:
            found.append(f"document {place} in edition {sorted(seen)}, not {oldest[place]} to {newest[place]}")
        if whole and parts[place] != PARTS:
            found.append(f"document {place} with {parts[place]} of {PARTS} parts")
    for writer in {writer for writer, _ in editions}:
        row = [max(editions[place]) for place in sorted(editions) if place[0] == writer]
        if row != sorted(row, reverse=True) or row[0] - row[-1] > 1:
            found.append(f"writer {writer}'s documents in editions {row}: two states in one answer")
        if whole and len(row) != DOCUMENTS:
            found.append(f"{len(row)} of {DOCUMENTS} documents of writer {writer}")
    return found


@dataclass(slots=True)
class Outcome:
    """What one thread did."""

    kind: str
    done: int = 0
    hits: int = 0
    slowest_seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shared:
    """What the processes share: for each document the edition that was last begun, and last committed."""

    begun: SynchronizedArray[int]
    committed: SynchronizedArray[int]
    writers: int

    def state(self, array: SynchronizedArray[int]) -> dict[tuple[int, int], int]:
        return {(w, d): array[w * DOCUMENTS + d] for w in range(self.writers) for d in range(DOCUMENTS)}


def read(desk: Desk, shared: Shared, until: float, seed: int, outcome: Outcome) -> None:
    random, everything = Random(seed), shared.writers * DOCUMENTS * PARTS
    while time.time() < until:
        whole = random.random() < 0.3
        options: dict[str, Any] = {"k": 100_000 if whole else random.choice((3, 10, everything))}
        question = "writer part edition" if whole else random.choice(_QUESTIONS)
        if not whole and random.random() < 0.3:
            writer, document = random.randrange(shared.writers), random.randrange(DOCUMENTS)
            options["family"] = f"w{writer}-d{document}"
        oldest, started = shared.state(shared.committed), time.perf_counter()
        hits = desk.search(question, **options)
        outcome.slowest_seconds = max(outcome.slowest_seconds, time.perf_counter() - started)
        outcome.done += 1
        outcome.hits += len(hits)
        outcome.faults += faults(hits, whole, oldest, shared.state(shared.begun))[:5]


def write(desk: Desk, shared: Shared, until: float, writer: int, outcome: Outcome) -> None:
    edition = 1
    while time.time() < until:
        edition += 1
        for document in range(DOCUMENTS):
            place, started = writer * DOCUMENTS + document, time.perf_counter()
            shared.begun[place] = edition
            desk.update_document(source(writer, document, edition))
            shared.committed[place] = edition
            outcome.slowest_seconds = max(outcome.slowest_seconds, time.perf_counter() - started)
            outcome.done += 1


def process(
    path: Path, shared: Shared, work: Sequence[tuple[str, int]], seconds: float, ready: Any, start: Any, results: Any
) -> None:
    """One process: a thread for each piece of work, all over one desk."""
    outcomes = [Outcome(kind) for kind, _ in work]

    def run(kind: str, number: int, outcome: Outcome) -> None:
        try:
            (write if kind == "writer" else read)(desk, shared, until, number, outcome)
        except BaseException as error:  # noqa: BLE001 - whatever a thread ends with is what is looked for
            outcome.faults.append(f"{type(error).__name__}: {error}")

    with Desk.open(path, embedder="toy") as desk:
        desk.search("red bikes")
        ready.release()
        start.wait()
        until = time.time() + seconds
        threads = [
            threading.Thread(target=run, args=(*piece, outcome)) for piece, outcome in zip(work, outcomes, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    results.put(outcomes)


def fill(path: Path, writers: int, chunks: int) -> None:
    """A desk with the first edition of every document, and `chunks` chunks that nobody changes."""
    with Desk.open(path, embedder="toy") as desk:
        for number in range(0, chunks, 50):
            body = "\n\n".join(f"## Text {n}\n\nNumber {n} says where helmets and lamps are sold." for n in range(50))
            desk.update_document(parse_document(f"---\ndoc_id: other-{number}\nlang: en\n---\n{body}", f"{number}.md"))
        for writer in range(writers):
            for document in range(DOCUMENTS):
                desk.update_document(source(writer, document, 1))


def run(
    path: Path, *, seconds: float, readers: int = 8, writers: int = 2, threads: int = 2, chunks: int = 0
) -> tuple[list[Outcome], int]:
    """Read and write for a time, in processes of `threads` threads each; what became of it, and the longest log.

    Readers and writers sit in different processes where `threads` divides them.
    """
    fill(path, writers, chunks)
    context = multiprocessing.get_context("spawn")
    first = [1] * (writers * DOCUMENTS)
    shared = Shared(context.Array("q", first), context.Array("q", first), writers)
    work = [*(("writer", n) for n in range(writers)), *(("reader", n) for n in range(readers))]
    pieces = [work[:1], *(work[at : at + threads] for at in range(1, len(work), threads))]
    ready, start, results = context.Semaphore(0), context.Event(), context.Queue()
    children = [
        context.Process(target=process, args=(path, shared, piece, seconds, ready, start, results)) for piece in pieces
    ]
    for child in children:
        child.start()
    for _ in children:
        ready.acquire()
    start.set()
    outcomes: list[Outcome] = []
    longest, log = 0, path.with_name(f"{path.name}-wal")
    while len(outcomes) < len(work):
        while results.empty() and any(child.is_alive() for child in children):
            longest = max(longest, log.stat().st_size if log.exists() else 0)
            time.sleep(0.05)
        outcomes += results.get(timeout=5)
    for child in children:
        child.join()
    return outcomes, longest


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.concurrency", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--writers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2, help="of each process (default: 2)")
    parser.add_argument("--chunks", type=int, default=5000, help="that nobody changes; above 4,096 vectors are coded")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "desk.db"
        outcomes, longest = run(
            path, seconds=options.seconds, readers=options.readers, writers=options.writers, threads=options.threads,
            chunks=options.chunks,
        )  # fmt: skip
        with Desk.open(path, embedder="toy") as desk:
            report = desk.check()
            documents = len(desk.documents())
    print(f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {options}")
    for kind, what in (("reader", "searches"), ("writer", "updates")):
        those = [outcome for outcome in outcomes if outcome.kind == kind]
        done, found = sum(o.done for o in those), sum(len(o.faults) for o in those)
        slowest = max((o.slowest_seconds for o in those), default=0.0)
        hits = f", {sum(o.hits for o in those)} hits looked at" if kind == "reader" else ""
        print(f"{len(those)} {kind}s: {done} {what}{hits}, slowest {slowest:.2f} s, {found} faults")
    print(f"longest write-ahead log {longest / 1e6:.1f} MB; {documents} documents at the end; check: ", end="")
    print("nothing found" if report.ok else f"{len(report.problems)} problems")
    wrong = [fault for outcome in outcomes for fault in outcome.faults]
    for fault in [*wrong[:20], *map(str, report.problems[:5])]:
        print(f"  {fault}")
    return 0 if not wrong and report.ok and longest < 2 * LOG_LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
