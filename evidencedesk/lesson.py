"""The verbs under the names that the published lesson used, as plain functions over an open Desk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from evidencedesk import guard
from evidencedesk.desk import Desk
from evidencedesk.embeddings import Embedder
from evidencedesk.guard import CANDIDATES
from evidencedesk.guard.thresholds import measure_of
from evidencedesk.records import (
    Answer,
    Assessment,
    Hit,
    Hits,
    IngestReport,
    Mode,
    SourceDocument,
    Stale,
    Thresholds,
    UpdateReport,
)

if TYPE_CHECKING:
    from evidencedesk.llm import LLMClient


def ingest(desk: Desk, folder: str | Path) -> IngestReport:
    """`desk.ingest(folder)`. Writes."""
    return desk.ingest(folder)


def update_document(desk: Desk, document: SourceDocument | str | Path) -> UpdateReport:
    """`desk.update_document(document)`: replace, never append. Writes."""
    return desk.update_document(document)


def staleness(desk: Desk) -> list[Stale]:
    """`desk.staleness()`. Reads only."""
    return desk.staleness()


def candidates(desk: Desk, question: str) -> Hits:
    """The three best chunks in force, no threshold. Reads only."""
    return desk.search(question, k=CANDIDATES)


def assess(candidates: Sequence[Hit], min_score: float = 0.3, min_margin: float = 0.05) -> Assessment:
    """Whether candidates are good enough to answer from; the defaults are the published guesses, for the toy embedder.

    Pure. `Desk.assess` judges by what belongs to the file's own embedder.
    """
    values = Thresholds(min_score, min_margin, "given by the caller", measure_of(candidates))
    return guard.assess(candidates, values)


def guarded_answer(desk: Desk, question: str, llm: LLMClient | None = None) -> Answer:
    """`desk.ask(question, llm=llm)`: an answer that was checked, or a reasoned no. Reads only."""
    return desk.ask(question, llm=llm)


@dataclass(frozen=True, slots=True)
class Retriever:
    """Retrieval over an open Desk; a context manager that closes it."""

    desk: Desk
    mode: Mode = "hybrid"

    def retrieve(self, question: str, k: int = 10) -> Hits:
        """The best k chunks in force. Reads only."""
        return self.desk.search(question, k=k, mode=self.mode)

    def candidates(self, question: str) -> Hits:
        """The three best chunks in force, no threshold. Reads only."""
        return self.retrieve(question, CANDIDATES)

    def __enter__(self) -> Retriever:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.desk.close()


def open_retriever(path: str | Path, *, embedder: str | Embedder | None = "auto", mode: Mode = "hybrid") -> Retriever:
    """A Retriever over an existing desk, opened for reading. DeskMissing when there is none."""
    return Retriever(Desk.open(path, embedder=embedder, read_only=True, create=False), mode)
