"""Cases: questions with what would be right, read from a JSONL file. Pure but for reading that one file.

The package root offers these names lazily: pydantic is slow to import, and only evaluation needs it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from evidencedesk import strict_json
from evidencedesk.documents import decode
from evidencedesk.errors import CaseError, EncodingError
from evidencedesk.records import DocumentSummary, SourceDocument
from evidencedesk.versions import VersionFacts, parse_instant, settle, version_sort_key

CaseTag = Literal["direct", "exact_term", "paraphrase", "bangla", "stale", "unanswerable"]

# A file of another kind has a fault on every line: the error carries them all, its sentence tells the first.
_FAULTS_TOLD = 20

# JSON has lists only. `strict=False` lets a list stand for the tuple; what is in it is checked strictly all the same.
_Names = Annotated[tuple[str, ...], Field(strict=False)]
_Tags = Annotated[tuple[CaseTag, ...], Field(strict=False)]


class RagCase(BaseModel):
    """A question with what would be right. Wrong or unknown fields are a pydantic.ValidationError."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    id: str
    question: str
    expected_doc_ids: _Names = ()
    """doc_ids or families. A family also counts when a newer version answers; a doc_id means that version alone."""
    answerable: bool
    must_cite: bool = False
    tags: _Tags = ()
    as_of: str | None = None
    """ISO date (meaning its last instant, UTC) or instant that the question is asked about; None: now."""

    @field_validator("id", "question")
    @classmethod
    def _not_blank(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be blank")
        return text

    @field_validator("expected_doc_ids", "tags")
    @classmethod
    def _each_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        # A document that is named twice would count twice in recall, a tag twice in its row of the report.
        if len(set(names)) < len(names):
            raise ValueError("names something twice")
        return names

    @field_validator("as_of")
    @classmethod
    def _is_instant(cls, as_of: str | None) -> str | None:
        if as_of is not None:
            parse_instant(as_of, end_of_day=True)
        return as_of

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> RagCase:
        if self.answerable != bool(self.expected_doc_ids):
            raise ValueError("answerable needs expected_doc_ids, and only then")
        if self.must_cite and not self.answerable:
            raise ValueError("an unanswerable question cannot require a citation")
        return self


def known_names(documents: Iterable[SourceDocument | DocumentSummary], *, at: datetime | None = None) -> frozenset[str]:
    """The doc_ids and families that a case may expect; with `at` (aware), only what is in force at that instant.

    A source that gives no effective_from has come in already. ValueError for an `at` without a time zone.
    """
    every = list(documents)
    if at is not None:
        if at.tzinfo is None:
            raise ValueError(f"at needs a time zone: {at!r}")
        in_force = _in_force(every, at)
        every = [document for document in every if document.doc_id in in_force]
    return frozenset(name for document in every for name in (document.doc_id, document.family))


def _in_force(documents: Iterable[SourceDocument | DocumentSummary], at: datetime) -> set[str]:
    """The doc_ids in force at `at`: stored documents carry their validity, sources have it settled line by line."""
    stored = {
        document.doc_id
        for document in documents
        if isinstance(document, DocumentSummary)
        and document.valid_from <= at
        and (document.valid_to is None or at < document.valid_to)
    }

    def line(source: SourceDocument) -> tuple[str, str]:
        return source.family, source.lang

    sources = sorted((document for document in documents if isinstance(document, SourceDocument)), key=line)
    always = datetime.min.replace(tzinfo=UTC)
    for _, versions in groupby(sources, key=line):
        facts = [
            VersionFacts(s.doc_id, version_sort_key(s.version), always, s.effective_from, s.effective_to)
            for s in versions
        ]
        stored |= {standing.doc_id for standing in settle(facts, at) if standing.status == "current"}
    return stored


def load_rag_cases(
    path: str | Path, known: Collection[str] | None = None, *, in_force: Collection[str] | None = None
) -> list[RagCase]:
    """Read a UTF-8 JSONL file of cases, one object a line, in the file's order.

    `known`: the doc_ids and families that a case may expect (`known_names(documents)`); None: not checked.
    `in_force`: those that a question about now can find (`known_names(documents, at=now)`): a case without `as_of`
    that expects another, such as a superseded version, is a fault; None: not checked. Blank lines are passed over
    but counted. CaseError names every line that is wrong (and no case is given then), or says that the file cannot
    be read or holds no case.
    """
    shown = str(path)
    try:
        text = decode(Path(path).read_bytes(), shown)
    except OSError as error:
        raise _case_error(shown, [(1, f"the file cannot be read: {error.strerror}")]) from error
    except EncodingError as error:
        raise _case_error(shown, [(error.line, f"{error.problem}; save the file as UTF-8")]) from error
    cases: list[RagCase] = []
    faults: list[tuple[int, str]] = []
    lines_of_ids: dict[str, int] = {}
    for number, line in strict_json.lines(text):
        try:
            _require_object(line)
            case = RagCase.model_validate_json(line)
        except ValidationError as error:
            faults.append((number, _reasons(error)))
            continue
        except ValueError as error:
            faults.append((number, str(error)))
            continue
        cases.append(case)
        problems = _unfit_names(case, known, in_force)
        first = lines_of_ids.setdefault(case.id, number)
        if first != number:
            problems.append(f"id {case.id!r} stands on line {first} too")
        faults += [(number, problem) for problem in problems]
    if not cases and not faults:
        faults = [(1, "the file holds no case")]
    if faults:
        raise _case_error(shown, faults)
    return cases


def _require_object(line: str) -> None:
    """ValueError for a line that is not one JSON object, read more strictly than pydantic does."""
    try:
        value = strict_json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (column {error.colno}); write one JSON object a line") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object; write one object a line, without brackets around them all")


def _reasons(error: ValidationError) -> str:
    return "; ".join(
        ".".join(map(str, part["loc"])) + (": " if part["loc"] else "") + part["msg"]
        for part in error.errors(include_url=False, include_input=False)
    )


def _unfit_names(case: RagCase, known: Collection[str] | None, in_force: Collection[str] | None) -> list[str]:
    problems = []
    for name in case.expected_doc_ids:
        if known is not None and name not in known:
            problems.append(f"unknown document in expected_doc_ids: {name!r}")
        elif in_force is not None and case.as_of is None and name not in in_force:
            problems.append(
                f"document not in force in expected_doc_ids: {name!r}; name its family or the version in force, "
                "or give as_of"
            )
    return problems


def _case_error(path: str, faults: list[tuple[int, str]]) -> CaseError:
    told = [f"line {line}: {what}" for line, what in faults[:_FAULTS_TOLD]]
    if len(faults) > _FAULTS_TOLD:
        told.append(f"and {len(faults) - _FAULTS_TOLD} faults more")
    problem = "; ".join(told)
    return CaseError(path=path, line=faults[0][0], problem=problem, faults=tuple(faults))
