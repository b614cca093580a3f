"""What is killed: the operations that write, each over a small folder."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidencedesk import Desk, RagCase, ToyEmbedder, parse_document, schema
from evidencedesk.bm25 import segments
from evidencedesk.evaluation.gate import Gate
from evidencedesk.index import upkeep as index_upkeep
from evidencedesk.records import Mode
from evidencedesk.vectors import upkeep as vector_upkeep

OLD_FILES = Path(__file__).resolve().parents[2] / "tests" / "old_files"
MADE_AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
RUN_AT = datetime(2026, 7, 1, 12, tzinfo=UTC)
"""A version that was scheduled has come due by then."""
RETURN = "How long do I have to return a bike?"
QUESTIONS: tuple[tuple[str, Mode], ...] = (
    ("red saddle store", "keyword"), ("red saddle store", "vector"), (RETURN, "hybrid"), ("umbrella", "hybrid"),
)  # fmt: skip

PARTS = ("saddle", "bell")
SPECIAL = "You can return a new bike within 30 days of delivery."
CASES = (
    RagCase(id="returns", question=RETURN, expected_doc_ids=("returns",), answerable=True),
    RagCase(id="moon", question="Who walked on the moon first?", answerable=False),
)


def markdown(doc_id: str, version: int = 1, *, colour: str = "red", text: str = "", start: str | None = None) -> str:
    """A source of two or three sections."""
    head = [f"doc_id: {doc_id}", f"version: {version}", f"title: About {doc_id}", "lang: en"]
    head += [f"effective_from: {start}"] if start else []
    sections = [f"## The {part}\n\nThe {colour} {part} of {doc_id} is kept in store {version}.\n" for part in PARTS]
    return "\n".join(["---", *head, "---", *sections, f"## Returns\n\n{text}\n" if text else ""])


def _write_docs(folder: Path, texts: Mapping[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")


_FORMER = {
    **{name: markdown(name) for name in ("alpha", "beta", "gamma", "delta")},
    "returns": markdown("returns", text=SPECIAL),
    "rule": markdown("rule", colour="blue"),
    "rule-2": markdown("rule", 2, colour="green", start="2026-06-15"),
}
_CHANGED = {
    **{name: text for name, text in _FORMER.items() if name not in ("alpha", "beta")},
    "alpha": markdown("alpha", colour="teal"),
    "beta": markdown("beta"),
    "beta-2": markdown("beta", 2, colour="amber"),
    "new": markdown("umbrella", text="Every umbrella that leaks is repaired by the workshop without charge."),
}
_FIRST = {name: _FORMER[name] for name in ("returns", "rule", "rule-2")}
_PRUNED = {name: text for name, text in _FORMER.items() if name != "gamma"}


def _embedder(dimension: int = 16) -> ToyEmbedder:
    return ToyEmbedder(dimension)


def _open(folder: Path, embedder: Any = "auto") -> Desk:
    return Desk.open(folder / "desk.db", embedder=embedder, clock=lambda: RUN_AT)


def _on_desk(work: Callable[[Desk], object]) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        with _open(folder) as desk:
            work(desk)

    return run


@functools.cache
def _desk() -> bytes:
    """A desk with documents of which two are superseded, an answer that was recorded, and an evaluation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_docs(folder / "docs", _FORMER)
        with Desk.open(folder / "desk.db", embedder=_embedder(), clock=lambda: MADE_AT) as desk:
            desk.update_document(parse_document(markdown("beta", colour="ivory"), "beta.md"))
            desk.ingest(folder / "docs")
            desk.update_document(parse_document(markdown("delta", 2, colour="khaki"), "delta.md"))
            if desk.ask(RETURN, record=True).abstained:
                raise LookupError("there is no answer to record")
            desk.evaluate(CASES)
        return (folder / "desk.db").read_bytes()


def _make_desk(folder: Path) -> None:
    (folder / "desk.db").write_bytes(_desk())


@dataclass(frozen=True, slots=True)
class Operation:
    """What is killed: `run` works on a folder like the one that `make` fills."""

    name: str
    make: Callable[[Path], None]
    run: Callable[[Path], None]
    again: Callable[[Path], None] | None = None
    """The next run, where it is not the same."""


def _with_docs(texts: Mapping[str, str]) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        _make_desk(folder)
        _write_docs(folder / "docs", texts)

    return make


def _first_ingest(folder: Path) -> None:
    with _open(folder, _embedder()) as desk:
        desk.ingest(folder / "docs")


def _gated(**limits: Mapping[str, float]) -> Callable[[Path], None]:
    def run(folder: Path) -> None:
        with _open(folder) as desk:
            report = desk.ingest(folder / "docs", gate=Gate(CASES, **limits))
        if report.gate is None or report.gate.accepted is bool(limits):
            raise LookupError(f"the gate came out otherwise: {report.gate}")

    return run


def _copy_old_file(revision: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        shutil.copyfile(OLD_FILES / f"{revision}.db", folder / "desk.db")

    return make


def _upgrade(folder: Path) -> None:
    Desk.upgrade(folder / "desk.db")


def _ingest(folder: Path, **options: Any) -> None:
    with _open(folder) as desk:
        if failed := desk.ingest(folder / "docs", **options).failed:
            raise LookupError(f"failed: {failed}")


def _back_up_unless_there(folder: Path) -> None:
    if not (folder / "backup.db").exists():
        _back_up(folder)


_back_up = _on_desk(lambda desk: desk.backup(Path(desk.store.database.path).with_name("backup.db")))

OPERATIONS = (
    Operation("first ingest", lambda folder: _write_docs(folder / "docs", _FIRST), _first_ingest),
    Operation("ingest", _with_docs(_CHANGED), _ingest),
    Operation("prune", _with_docs(_PRUNED), lambda folder: _ingest(folder, prune=True)),
    Operation(
        "update",
        _make_desk,
        _on_desk(lambda desk: desk.update_document(parse_document(markdown("returns", 2), "returns.md"))),
    ),
    Operation("withdraw", _make_desk, _on_desk(lambda desk: desk.withdraw("gamma-v1", reason="by the regulator"))),
    Operation("gated ingest, accepted", _with_docs(_CHANGED), _gated()),
    Operation("gated ingest, refused", _with_docs(_CHANGED), _gated(fail_under={"answered": 1.0})),
    Operation("reembed", _make_desk, _on_desk(lambda desk: desk.reembed(_embedder(24)))),
    Operation("compact", _make_desk, _on_desk(lambda desk: desk.compact())),
    Operation("backup", _make_desk, _back_up, _back_up_unless_there),
    *(Operation(f"upgrade from {revision}", _copy_old_file(revision), _upgrade) for revision in schema.REVISIONS[:-1]),
)


def do_as_in_large_files() -> None:
    """Pack postings and code vectors from a few on, and embed in several batches."""
    segments.DELTA_CHUNKS = 4
    vector_upkeep.FEWEST, vector_upkeep.BLOCK = 12, 4
    index_upkeep._REEMBED_BATCH = 6
