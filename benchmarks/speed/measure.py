"""Asks the systems, each in a process of its own, in turn: a question goes to all before the next one is asked."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speed.data import KINDS, SHARES, Data
from benchmarks.speed.systems import SYSTEMS, Mode

Reply = dict[str, Any]
CHECKOUT = Path(__file__).resolve().parent.parent.parent
MODES: tuple[Mode, ...] = ("keyword", "vector", "hybrid")
WARMING_UPDATES = 2


class SystemFailed(Exception):
    """A system's process ended or answered with an error; the message is what it wrote last."""


class NotInstalled(Exception):
    """A system whose package is not here."""


class Sample(NamedTuple):
    """One search."""

    mode: Mode
    kind: str
    lang: str
    """What was filtered by; empty: nothing but what is in force."""
    ms: float
    cpu_ms: float
    right: int | None
    """How many of the true ten it found; None where there is no truth, as for a fused order."""
    wanted: int


@dataclass
class Figures:
    """What was measured of one system."""

    name: str
    versions: dict[str, str] = field(default_factory=dict)
    problem: str = ""
    """Why there is nothing, or no more."""
    is_missing: bool = False
    build: Reply = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    memory: Reply = field(default_factory=dict)
    cold: list[Reply] = field(default_factory=list)
    updates: list[Reply] = field(default_factory=list)


def environment(threads: int) -> dict[str, str]:
    """One thread, or that many, for every library that asks the environment; and nothing to the network."""
    pools = (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
        "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS", "LANCE_CPU_THREADS", "NUMBA_NUM_THREADS",
    )  # fmt: skip
    quiet = {
        "TOKENIZERS_PARALLELISM": "false", "LANCE_LOG": "error", "ANONYMIZED_TELEMETRY": "False", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    path = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, **dict.fromkeys(pools, str(threads)), **quiet, "PYTHONPATH": path}


class SystemProcess:
    """One system behind a pipe. NotInstalled, SystemFailed."""

    def __init__(self, command: str, name: str, data: Data, folder: Path, threads: int = 1) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.speed.serving", command, name, str(data.folder), str(data.count),
             str(folder), str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment(threads),
        )  # fmt: skip
        self.first = self._reply()
        if "missing" in self.first:
            self.close()
            raise NotInstalled(self.first["missing"])

    def ask(self, **request: Any) -> Reply:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it is told by the reply that is missing
        return self._reply()

    def _reply(self) -> Reply:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return json.loads(line)
        self.close()
        raise SystemFailed(self._last_words)

    def close(self) -> None:
        self._process.communicate()
        self._errors.seek(0)
        written = self._errors.read().decode(errors="replace").strip().splitlines()
        self._last_words = f"exit code {self._process.returncode}: {written[-1] if written else 'nothing was said'}"
        self._errors.close()


def build(data: Data, name: str, folder: Path, threads: int) -> Reply:
    """Build a system in `folder` unless it is there, and give what that took."""
    finished = folder.with_suffix(".json")
    if not finished.exists():
        shutil.rmtree(folder, ignore_errors=True)
        process = SystemProcess("build", name, data, folder, threads)
        process.close()
        spent = process.first
        rates = {
            "chunks_a_second": 1e3 * data.count / spent["ms"],
            "chunks_a_processor_second": 1e3 * data.count / spent["cpu_ms"],
            # What is written when the last process closes its files is there only now.
            "size_mb": sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6,
        }
        finished.write_text(json.dumps({**spent, **rates, "threads": threads}))
    return json.loads(finished.read_text())


class Interleaved:
    """The processes of several systems; one that fails is noted with its figures and asked no more."""

    def __init__(self, figures: Iterable[Figures]) -> None:
        self._running: dict[str, tuple[Figures, SystemProcess]] = {}
        self._figures = [found for found in figures if not found.problem]
        self._order = random.Random(5)

    def start(self, data: Data, folder_of: Mapping[str, Path]) -> None:
        for found in self._figures:
            with noting(found):
                process = SystemProcess("serve", found.name, data, folder_of[found.name])
                self._running[found.name] = (found, process)

    def ask(self, names: Iterable[str] | None = None, **request: Any) -> Iterator[tuple[Figures, Reply]]:
        """Ask all of them (or those of the names) in a random order; gives each with its reply."""
        chosen = [name for name in self._running if names is None or name in names]
        self._order.shuffle(chosen)
        for name in chosen:
            found, process = self._running[name]
            with noting(found):
                reply = process.ask(**request)
            if found.problem:
                del self._running[name]
            else:
                yield found, reply

    def close(self) -> None:
        for _, process in self._running.values():
            process.close()
        self._running.clear()


class noting:  # noqa: N801 - it reads as a word where it is used
    """What goes wrong with one system is noted with its figures; the others go on."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, (NotInstalled, SystemFailed)):
            return False
        self._figures.problem, self._figures.is_missing = str(error), isinstance(error, NotInstalled)
        return True


def measure(
    data: Data, names: Sequence[str], place: Path, *, build_threads: int, updates: int, cold_starts: int
) -> list[Figures]:
    """Everything of every system, in the order of the names; what is built stays in `place`."""
    figures = [Figures(name) for name in names]
    folder_of = {name: place / name for name in names}
    for found in figures:
        with noting(found):
            found.build = build(data, found.name, folder_of[found.name], build_threads)
            found.versions = found.build["versions"]
            tell(f"{found.name} is built")
    ask_all(data, figures, folder_of)
    for found in figures if updates else []:
        with noting(found):
            if not found.problem and SYSTEMS[found.name].updates:
                found.updates = list(update(data, found.name, folder_of[found.name], updates))
                tell(f"{found.name} is updated")
    start_cold(data, figures, folder_of, cold_starts)
    return figures


def tell(message: str) -> None:
    print(f"  {time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


def ask_all(data: Data, figures: Sequence[Figures], folder_of: Mapping[str, Path]) -> None:
    """Every question in every mode; with filters those of the mixed kind alone."""
    running = Interleaved(figures)
    running.start(data, folder_of)
    for mode in MODES:
        able = {name for name, system in SYSTEMS.items() if mode in system.modes}
        for lang in ("", *SHARES):
            asked = able if not lang else {name for name in able if SYSTEMS[name].filters}
            for number in range(len(data.warm_up)):
                for _ in running.ask(asked, do="search", questions="warm_up", number=number, mode=mode, lang=lang):
                    pass
            for number, question in enumerate(data.questions):
                if lang and question.kind != "mixed":
                    continue
                request = {"do": "search", "questions": "questions", "number": number, "mode": mode, "lang": lang}
                for found, reply in running.ask(asked, **request):
                    found.samples.append(sample(data, mode, lang, number, reply))
            tell(f"asked {mode} {lang}")
    for found, reply in running.ask(do="memory"):
        found.memory = reply
    running.close()


def sample(data: Data, mode: Mode, lang: str, number: int, reply: Reply) -> Sample:
    right, wanted = None, 0
    if mode in data.truth:
        accepted, wanted = data.truth[mode][lang][number]
        right = len(set(accepted).intersection(reply["rows"]))
    return Sample(mode, data.questions[number].kind, lang, reply["ms"], reply["cpu_ms"], right, wanted)


def update(data: Data, name: str, folder: Path, count: int) -> Iterator[Reply]:
    """What each of `count` updates of ten chunks takes, and the search after it, in a copy that is thrown away."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        copy = Path(shutil.copytree(folder, Path(temporary) / "copy"))
        process = SystemProcess("serve", name, data, copy)
        for number in range(WARMING_UPDATES + count):
            reply = process.ask(do="update", number=number, search=True)
            if number >= WARMING_UPDATES:
                yield reply
        process.close()


def start_cold(data: Data, figures: Sequence[Figures], folder_of: Mapping[str, Path], count: int) -> None:
    """What it takes from starting a process to its first hybrid hit, several times, the systems in turn."""
    question = data.questions[KINDS.index("mixed") * len(data.questions) // len(KINDS)]
    asked = json.dumps({"text": question.text, "vector": question.vector.astype("<f4").tobytes().hex()})
    for _ in range(count):
        for found in figures:
            if not found.problem and "hybrid" in SYSTEMS[found.name].modes:
                with noting(found):
                    found.cold.append(first_hit(found.name, folder_of[found.name], asked))


def first_hit(name: str, folder: Path, asked: str) -> Reply:
    """Seconds by the clock to the hit, and of processor for the whole process."""
    command = [sys.executable, "-m", "benchmarks.speed.cold", name, str(folder)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started, before = time.perf_counter(), os.times()
    with subprocess.Popen(command, env=environment(1), **pipes) as process:
        process.stdin.write(asked + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        spent = time.perf_counter() - started
        said = process.communicate()[1].strip().splitlines()
    if not line or not json.loads(line):
        raise SystemFailed(f"no hit from a cold process: {said[-1] if said else 'nothing was said'}")
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return {"s": spent, "cpu_s": processor}
