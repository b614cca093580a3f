"""One system in a process of its own, which builds it or answers for it. `python -m benchmarks.speed.serving ...`.

Requests and replies are JSON, a line each, on standard input and output. What a library prints goes to standard error.
Times are taken here, so the pipe is no part of them.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

from benchmarks.speed.data import Data, Question
from benchmarks.speed.systems import SYSTEMS, EvidenceDesk, System

Reply = dict[str, Any]


def memory_mb() -> Reply:
    """Resident memory of this process, the part of it that no file backs, and its peak; empty where Linux is not."""
    path = Path("/proc/self/status")
    if not path.exists():
        return {}
    names = {"VmRSS": "resident_mb", "RssAnon": "anonymous_mb", "VmHWM": "peak_mb"}
    lines = (line.split() for line in path.read_text().splitlines())
    return {names[fields[0][:-1]]: int(fields[1]) / 1000 for fields in lines if fields[0][:-1] in names}


def timed(action: Callable[[], Any]) -> tuple[Any, Reply]:
    """What an action gives, and milliseconds by the clock and of processor, all threads of the process together."""
    started, processor = time.perf_counter(), time.process_time()
    result = action()
    spent, processor = time.perf_counter() - started, time.process_time() - processor
    return result, {"ms": 1e3 * spent, "cpu_ms": 1e3 * processor}


def build(system: System, data: Data, threads: int) -> Reply:
    for name in system.modules:
        importlib.import_module(name)
    system.folder.mkdir(parents=True)
    _, spent = timed(lambda: system.build(data, threads))
    return {**spent, **memory_mb()}


def search(system: System, data: Data, request: Reply) -> Reply:
    question = getattr(data, request["questions"])[request["number"]]
    if isinstance(system, EvidenceDesk):
        system.as_of = request.get("as_of")
    found, spent = timed(lambda: system.search(request["mode"], question, request["lang"]))
    return {**spent, "rows": system.rows(found)}


def update(system: System, data: Data, request: Reply) -> Reply:
    """A new version, then a search for its fourth chunk by the chunk's vector and its four rarest words."""
    change = data.change(request["number"])
    _, spent = timed(lambda: system.update(change))
    if not request["search"]:
        return spent
    rarest = sorted(set(change.texts[3].split()), key=lambda word: (len(word), word))[-4:]
    mode = "hybrid" if "hybrid" in system.modes else next(iter(system.modes))
    question = Question("", " ".join(rarest), change.vectors[3])
    found, after = timed(lambda: system.search(mode, question, ""))
    rows = system.rows(found)
    is_visible = change.document.first_row + 3 in rows and not set(rows) & set(change.former.rows)
    return {**spent, "search_ms": after["ms"], "is_visible": is_visible}


def serve(system: System, data: Data, out: TextIO) -> None:
    started = time.perf_counter()
    for name in system.modules:
        importlib.import_module(name)
    system.open()
    print(json.dumps({"open_ms": 1e3 * (time.perf_counter() - started)}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        match request["do"]:
            case "search":
                reply = search(system, data, request)
            case "update":
                reply = update(system, data, request)
            case "memory":
                reply = memory_mb()
            case _:
                raise ValueError(f"unknown request {request}")
        print(json.dumps(reply), file=out, flush=True)
    system.close()


def main() -> None:
    command, name, data_folder, count, system_folder, threads = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    system = SYSTEMS[name](Path(system_folder))
    data = Data(Path(data_folder), int(count))
    try:
        versions = {distribution: metadata.version(distribution) for distribution in system.distributions}
    except metadata.PackageNotFoundError as error:
        print(json.dumps({"missing": f"{error.name} is not installed"}), file=out, flush=True)
        return
    if command == "build":
        print(json.dumps({**build(system, data, int(threads)), "versions": versions}), file=out, flush=True)
    else:
        serve(system, data, out)


if __name__ == "__main__":
    main()
