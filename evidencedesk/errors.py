"""Every error that evidencedesk raises on purpose.

    EvidenceDeskError
    ├── SourceError             a file cannot become a document (path, line)
    │   ├── FrontMatterError    its metadata block is wrong
    │   ├── EncodingError       its bytes are not UTF-8 text (byte_offset)
    │   ├── UnreadableSource    it cannot be opened, or must not be (a link)
    │   ├── NoContentError      it holds no text
    │   └── SourceChanged       it changed between two looks of one run
    ├── DocumentConflict        two sources claim one doc_id, or one version of a line
    ├── NotFound                no such document, family or chunk
    │   └── AmbiguousName       a family that has several current documents
    ├── EmbedderError
    │   ├── EmbedderMismatch    the file belongs to another embedder
    │   ├── EmbedderUnavailable the embedder is not installed here
    │   │   └── NoVectors       the desk was made for keyword search only
    │   └── BadVectors          it returned something that is not usable vectors
    │       └── NothingToEmbed  a zero vector
    ├── IndexOutOfStep          an index finds what is not in force: rows were changed by hand
    ├── RerankerError           a host's reranker failed
    ├── ModelError              a language model gave nothing that can be used
    │   ├── ModelUnavailable    it cannot be reached, or its package is missing
    │   └── BadOutput           its reply does not parse (raw)
    ├── CheckerError            a host's support checker failed
    ├── CaseError               a file of cases is wrong (path, line, faults)
    ├── CalibrationOutdated     the file was calibrated on signals that are read no more
    └── StoreError              the database file (path)
        ├── DriverMissing       no SQLite library here can be used
        ├── DeskMissing         there is no file at that path
        ├── NotADesk            the file is something else
        ├── SchemaTooOld        made by an older version: upgrade it
        ├── SchemaTooNew        made by a newer version: update the package
        ├── SettingsMismatch    made with other text analysis or chunk settings
        ├── ReadOnlyDesk        a write was asked of a file opened for reading
        ├── DeskBusy            another writer kept the lock for too long
        ├── DeskFull            no room for the write
        ├── DeskDamaged         the file is corrupt
        ├── DeskClosed          the Desk was closed
        └── StoreFailure        anything else the driver reported

Each class's docstring is its message: a template that is filled with the facts, which are attributes of the
error as well. Wrong arguments (a negative k, an unknown mode) are ValueError or TypeError.
"""

from __future__ import annotations

import inspect
from typing import Any


class EvidenceDeskError(Exception):
    """Something that evidencedesk could not do."""

    def __init__(self, **facts: Any) -> None:
        for name, value in facts.items():
            setattr(self, name, value)
        self.facts = facts
        # Under `python -OO` there are no docstrings: name and facts still say what happened.
        template = inspect.cleandoc(type(self).__doc__ or f"{type(self).__name__} {facts}".replace("{", "{{"))
        super().__init__(" ".join(template.format_map(facts).split("\n")))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.facts)


def _rebuild(kind: type[EvidenceDeskError], facts: dict[str, Any]) -> EvidenceDeskError:
    return kind(**facts)


class SourceError(EvidenceDeskError):
    """{path}, line {line}: {problem}."""

    path: str
    line: int
    problem: str


class FrontMatterError(SourceError):
    """{path}, line {line}: {problem}."""


class EncodingError(SourceError):
    """{path}, line {line}: {problem} (byte {byte_offset}); save the file as UTF-8."""

    byte_offset: int


class UnreadableSource(SourceError):
    """{path}: {problem}."""


class NoContentError(SourceError):
    """{path}: no content; nothing was stored and a former version stays as it is."""


class SourceChanged(SourceError):
    """{path} changed while it was read; nothing of it was stored. Run it again."""


class DocumentConflict(EvidenceDeskError):
    """{doc_id} ({path}) conflicts with {other}: {problem}."""

    doc_id: str
    path: str
    other: str
    problem: str


class NotFound(EvidenceDeskError):
    """There is no {kind} {name!r} in this desk; `evidencedesk documents` lists what there is."""

    kind: str
    name: str


class AmbiguousName(NotFound):
    """{name!r} has several current documents: {choices}. Name one of them, or give lang (--lang)."""

    choices: str


class EmbedderError(EvidenceDeskError):
    """The embedder {embedder} failed: {problem}."""

    embedder: str
    problem: str = ""


class EmbedderMismatch(EmbedderError):
    """This desk's vectors were made by {stored}, not by {given}; the two cannot be compared. Search it by keyword
    (mode="keyword", --mode keyword), open it with the embedder that made them, or give it the other one with
    `evidencedesk reembed` (Desk.reembed). Nothing was changed."""

    stored: str
    given: str


class EmbedderUnavailable(EmbedderError):
    """The embedder {embedder} is not available here: {problem}. Keyword search still works: mode="keyword"
    (--mode keyword)."""


class NoVectors(EmbedderUnavailable):
    """This desk was made for keyword search only and holds no vectors. Search it with mode="keyword" (--mode keyword),
    or give it an embedder with `evidencedesk reembed e5` (Desk.reembed)."""


class BadVectors(EmbedderError):
    """The embedder {embedder} gave {problem} for {subject}; nothing was written."""

    subject: str


class NothingToEmbed(BadVectors):
    """The embedder {embedder} found nothing to embed in {subject} and gave a zero vector; nothing was written."""


class IndexOutOfStep(EvidenceDeskError):
    """A search found {chunk}, which {problem}: rows were changed by hand, and the indexes have not followed.
    `evidencedesk check` says what differs; `evidencedesk compact` (Desk.compact) makes the indexes anew.
    """

    chunk: str
    problem: str


class RerankerError(EvidenceDeskError):
    """The reranker failed: {problem}. Search without it, or mend it."""

    problem: str


class ModelError(EvidenceDeskError):
    """The model {model} failed: {problem}."""

    model: str
    problem: str


class ModelUnavailable(ModelError):
    """The model {model} is not available here: {problem}."""


class BadOutput(ModelError):
    """The reply of the model {model} cannot be used: {problem}."""

    raw: str


class CheckerError(EvidenceDeskError):
    """The support checker {checker} failed: {problem}."""

    checker: str
    problem: str


class CaseError(EvidenceDeskError):
    """{path}: {problem}. No case was taken from it; mend the file."""

    path: str
    line: int
    problem: str
    faults: tuple[tuple[int, str], ...]


class CalibrationOutdated(EvidenceDeskError):
    """This file was calibrated by another release, on signals that this one does not read: {signals}. Calibrate it
    again with `evidencedesk calibrate CASES` (Desk.calibrate), or let the built-in thresholds judge with
    `evidencedesk calibrate --reset` (Desk.uncalibrate)."""

    signals: str


class StoreError(EvidenceDeskError):
    """{path}: the database file cannot be used."""

    path: str
    answer: object | None = None
    """The Answer that could not be recorded, where that is what failed: it was checked and paid for."""


class DriverMissing(StoreError):
    """{path}: no usable SQLite library here: {problem}. Install one with `pip install pysqlite3` (or sqlean.py)."""

    problem: str


class DeskMissing(StoreError):
    """{path}: there is no such {missing}. Check the path (--db, or EVIDENCEDESK_DB);
    `evidencedesk ingest FOLDER --db {path}` makes a new desk in a folder that exists."""

    missing: str


class NotADesk(StoreError):
    """{path} is not an evidencedesk file ({problem}); it was not touched. Choose another path."""

    problem: str


class SchemaTooOld(StoreError):
    """{path} has schema {found}, this package needs {head}. Run `evidencedesk upgrade --db {path}`; it sets a copy
    aside first."""

    found: str
    head: str


class SchemaTooNew(StoreError):
    """{path} has schema {found}, which this package (schema {head}) does not know. Update the package:
    `pip install -U evidencedesk`. Nothing was changed."""

    found: str
    head: str


class SettingsMismatch(StoreError):
    """{path} was made with {setting} {stored}, not {given}; mixing them would make search wrong. Open it without
    the setting, or make a new file. Nothing was changed."""

    setting: str
    stored: str
    given: str


class ReadOnlyDesk(StoreError):
    """{path} cannot be written: {problem}. Nothing was changed."""

    problem: str


class DeskBusy(StoreError):
    """{path}: another writer held the lock for more than {waited_seconds} seconds; nothing was changed. Try again."""

    waited_seconds: float


class DeskFull(StoreError):
    """{path}: no room left while {stage}; the change was rolled back whole and the former state still answers. Free
    some space, in the folder for temporary files (TMPDIR) too, and run it again."""

    stage: str


class DeskDamaged(StoreError):
    """{path} is damaged ({problem}). Restore a backup; what can still be read, any SQLite tool reads."""

    problem: str


class DeskClosed(StoreError):
    """{path}: this Desk is closed; open it again with Desk.open."""


class StoreFailure(StoreError):
    """{path}: the database failed while {stage}: {problem}. Nothing of that step was kept."""

    stage: str
    problem: str
