"""Builders with defaults, so that a test names only what it is about."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from evidencedesk import Desk
from evidencedesk.connections import Database, connect_database
from evidencedesk.documents import parse_document
from evidencedesk.records import SourceDocument

Value = TypeVar("Value")

MOMENT = datetime(2026, 6, 1, 12, tzinfo=UTC)
"""Now, for every test that does not set another."""


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: datetime = MOMENT) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **delta: float) -> None:
        self.now += timedelta(**delta)


def markdown(body: str = "Bikes are red.", *, heading: str | None = "Rule", **front: object) -> str:
    """A source text: front matter from the keywords, then one section."""
    fields = {"doc_id": "shop-v1", "title": "Shop rules", "lang": "en", **front}
    lines = [f"{key}: {value}" for key, value in fields.items() if value is not None]
    section = f"## {heading}\n\n{body}\n" if heading else f"{body}\n"
    return "---\n" + "\n".join(lines) + "\n---\n" + section


def make_source(body: str = "Bikes are red.", *, path: str = "shop.md", **front: object) -> SourceDocument:
    return parse_document(markdown(body, **front), path)


def write_source(folder: Path, name: str, body: str = "Bikes are red.", **front: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(markdown(body, **front), encoding="utf-8")
    return path


@contextmanager
def open_desk(
    path: str | Path = ":memory:",
    sources: Sequence[SourceDocument] = (),
    *,
    clock: Clock | None = None,
    embedder: object = "none",
    **options: object,
) -> Iterator[Desk]:
    """A desk with its own clock and, unless a test wants one, no embedder."""
    with Desk.open(path, embedder=embedder, clock=clock or Clock(), **options) as desk:
        for source in sources:
            desk.update_document(source)
        yield desk


ascii_place = pytest.mark.skipif(
    not (sys.prefix + str(Path(__file__).resolve())).isascii(),
    reason="a Python that is told to read everything as ASCII cannot start from this place",
)


def opened(path: Path, **options: object) -> AbstractContextManager[Database]:
    """A bare database, closed at the end of the block."""
    return closing(connect_database(path, **options))


def found(desk: Desk, query: str, **options: object) -> list[str]:
    """The chunk ids that a search finds, best first."""
    return [hit.chunk.id for hit in desk.search(query, **options)]


def value_or_error(
    call: Callable[[], Value], error: type[BaseException] | tuple[type[BaseException], ...]
) -> tuple[Value | None, BaseException | None]:
    """What a call gives, or the error of this kind that it raises."""
    try:
        return call(), None
    except error as raised:
        return None, raised


class Unplugged(Exception):
    """What a test raises in the middle of an upgrade."""


WRITES = ("CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE")


@contextmanager
def after_writing_statement(number: int, action: Callable[[], None]) -> Iterator[list[str]]:
    """Act after so many statements that write, counted over every engine of the process."""
    seen: list[str] = []

    def count(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.lstrip().upper().startswith(WRITES):
            seen.append(statement)
            if len(seen) == number:
                action()

    sa.event.listen(sa.Engine, "after_cursor_execute", count)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "after_cursor_execute", count)


def unplug() -> None:
    raise Unplugged


CHECKOUT = Path(__file__).resolve().parent.parent


def python(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with the checkout and the builders at hand."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "tests")])}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment, capture_output=True, text=True, check=False, **options,
    )  # fmt: skip


_KILLED = """
import os, sys
from builders import make_source, open_desk
with open_desk(sys.argv[1], [make_source(doc_id="late-v1")], embedder=sys.argv[2]):
    os._exit(0)
"""


def leave_a_log(path: Path, embedder: str = "toy") -> Path:
    """Let a process store one more document and be gone before the log is put away."""
    assert python(_KILLED, path, embedder).returncode == 0
    log = path.with_name(f"{path.name}-wal")
    assert log.stat().st_size > 0
    return log


def assert_as_before(desk: Desk) -> None:
    """The desk holds what `make_source()` gives, and nothing else."""
    assert [d.doc_id for d in desk.documents()] == ["shop-v1"]
    assert found(desk, "red bikes") == ["shop-v1:c0"]
    assert desk.check().problems == ()
