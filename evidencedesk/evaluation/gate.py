"""The gate: a change is tried inside one transaction, the cases are asked of what it would make true, and only then is
it committed, or undone as if it had never been.

Texts are embedded before the write lock is taken, into the file's own table of vectors, which is keyed by the text's
hash: what was embedded for a change that is refused is there for the next try. Inside the transaction no model is
called; readers see the former state until it commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from evidencedesk.cases import RagCase, load_rag_cases
from evidencedesk.evaluation.html import require_writable, write_html
from evidencedesk.evaluation.report import GOOD, EvaluationReport, flips, objections, require_limits
from evidencedesk.evaluation.run import Prepare, evaluate, prepare, remember
from evidencedesk.index import Index
from evidencedesk.rag import Answerer
from evidencedesk.records import Document, Flip, GateReport, IngestReport, RecordedAnswer, SentenceChange, UpdateReport
from evidencedesk.store import Snapshot, Store, recorded_answers
from evidencedesk.text import sentences

Report = TypeVar("Report", IngestReport, UpdateReport)


@dataclass(frozen=True, slots=True)
class Gate:
    """The cases that must hold, and what must hold of them.

    `fail_under` and `fail_over` name metrics (`recall@3`, `wrong`; `evaluation.report.METRICS` lists them) and the
    least or most that they may be: then these alone decide. Without any, a case that came out well before and does not
    any more is what refuses the change, unless nothing was in force before. A case that fails always refuses it.
    """

    cases: str | Path | Sequence[RagCase]
    """The cases, or the JSONL file that holds them."""
    fail_under: Mapping[str, float] = field(default_factory=dict)
    fail_over: Mapping[str, float] = field(default_factory=dict)
    html: str | Path | None = None
    """Where to write what was found as one HTML file, which needs the extra `report`; None: nowhere."""

    def load(self) -> list[RagCase]:
        """The cases. CaseError for a file with a fault; which documents there will be is not known yet."""
        return load_rag_cases(self.cases) if isinstance(self.cases, str | Path) else list(self.cases)


class _UndoneError(Exception):
    """Rolls the transaction back; never leaves this module."""


def gated(
    index: Index,
    change: Callable[[Index], Report],
    gate: Gate,
    answerer: Answerer,
    ask: Prepare,
    *,
    replaced: Mapping[str, Document],
    dry_run: bool = False,
) -> Report:
    """Make a change if the cases hold; gives its report with what the gate found. Writes, unless refused or `dry_run`.

    `replaced`: documents by doc_id whose text the change would replace in place, as they were. Whatever the change
    raises reaches the caller, and nothing of it was written. The run is stored with the change, or alone where that was
    refused; not in a dry run. Raises what `require_writable` does; an HTML file that cannot be written in the end is a
    note in the report.
    """
    require_limits(gate.fail_under, gate.fail_over)
    if gate.html is not None:
        require_writable(gate.html)
    prepared = prepare(gate.load(), ask)
    before = evaluate(index.store, prepared, answerer)
    with suppress(_UndoneError), index.store.write("trying a change") as transaction:
        inside = index.store.within(transaction)
        if transaction.generation != before.generation:
            before = evaluate(inside, prepared, answerer)
        stale_before = {} if gate.html is None else _stale_answers(inside)
        report = change(replace(index, store=inside))
        after = evaluate(inside, prepared, answerer)
        found = _found(inside, gate, before, after, report, replaced)
        later = _notes_of_scheduled(inside, report)
        stale_after = {} if gate.html is None else _stale_answers(inside)
        if dry_run or not found.accepted:
            raise _UndoneError
        after = remember(inside, after, kind="gate", accepted=True)
    if not dry_run and not found.accepted:
        after = remember(index.store, after, kind="gate", accepted=False)
    found = replace(found, run_id=after.run_id)
    notes: tuple[str, ...] = report.notes
    notes += tuple(later)
    if gate.html is not None:
        gone_stale = [answer for key, answer in stale_after.items() if key not in stale_before]
        try:
            write_html(gate.html, after, gate=found, gone_stale=gone_stale)
        except OSError as error:  # what became of the change is decided, and is what the caller must hear of
            notes = (*notes, f"the HTML report was not written: {error}")
    return replace(report, gate=found, notes=notes)


def _stale_answers(store: Store) -> dict[int, RecordedAnswer]:
    with store.read("reading answers") as snapshot:
        return {answer.answer_id: answer for answer in recorded_answers(snapshot, stale=True)}


def _found(
    inside: Store, gate: Gate, before: EvaluationReport, after: EvaluationReport,
    report: IngestReport | UpdateReport, replaced: Mapping[str, Document],
) -> GateReport:  # fmt: skip
    """What the gate says of the change, and what the change does to sentences; no run has a number yet."""
    flipped = flips(after.cases, {result.case_id: result.outcome for result in before.cases})
    with inside.read() as snapshot:
        rule, broken = _judged(gate, before, after, flipped)
        against = (*_unknown_names(snapshot, after), *broken)
        return GateReport(not against, None, against, flipped, _changes(snapshot, report, replaced), rule)


def _judged(
    gate: Gate, before: EvaluationReport, after: EvaluationReport, flipped: Iterable[Flip]
) -> tuple[str, list[str]]:
    """What decides, and what of it is broken."""
    found = [f"case {result.case_id} failed: {result.error}" for result in after.cases if result.outcome == "error"]
    if gate.fail_under or gate.fail_over:
        limits = objections(after.metrics(), gate.fail_under, gate.fail_over)
        return "the stated limits alone decide", [*found, *limits]
    if not before.documents_in_force:
        return "nothing was in force before, so only cases that fail count", found
    return "no case may come out worse than before", found + [
        f"case {flip.case_id} was {flip.before} and would be {flip.after}: {flip.detail}"
        for flip in flipped
        if flip.before in GOOD and flip.after not in GOOD and flip.after != "error"
    ]


def _unknown_names(snapshot: Snapshot, after: EvaluationReport) -> tuple[str, ...]:
    """Cases that expect a document which would not be there: they could hold of nothing, and guard nothing."""
    known = {name for summary in snapshot.summaries() for name in (summary.doc_id, summary.family)}
    return tuple(
        f"case {result.case_id} expects {name}, and there is no such document or family"
        for result in after.cases
        for name in result.expected
        if name not in known
    )


def _changes(
    snapshot: Snapshot, report: IngestReport | UpdateReport, replaced: Mapping[str, Document]
) -> tuple[SentenceChange, ...]:
    """What documents say no more and say newly: superseded ones beside what took their place, and corrected ones."""
    pairs: list[tuple[Document, Document]] = []
    for doc_id in report.superseded:
        old = snapshot.document(doc_id)
        current = snapshot.summaries(family=old.family, lang=old.lang, status="current")
        pairs += [(old, snapshot.document(summary.doc_id)) for summary in current]
    pairs += [(old, snapshot.document(doc_id)) for doc_id, old in replaced.items()]
    for new in _scheduled(snapshot, report):
        current = snapshot.summaries(family=new.family, lang=new.lang, status="current")
        pairs += [(snapshot.document(summary.doc_id), new) for summary in current if new.doc_id not in replaced]
    changes = []
    for old, new in pairs:
        said, says = _sentences(old), _sentences(new)
        removed = tuple(sentence for sentence in said if sentence not in says)
        added = tuple(sentence for sentence in says if sentence not in said)
        if removed or added:
            changes.append(SentenceChange(old.doc_id, new.doc_id, removed, added))
    return tuple(changes)


def _scheduled(snapshot: Snapshot, report: IngestReport | UpdateReport) -> list[Document]:
    """The documents that the change brings in and that take force later."""
    stored = (report.doc_id,) if isinstance(report, UpdateReport) else (*report.added, *report.updated)
    documents = (snapshot.document(doc_id) for doc_id in stored)
    return [document for document in documents if document.status == "scheduled"]


def _notes_of_scheduled(inside: Store, report: IngestReport | UpdateReport) -> list[str]:
    with inside.read() as snapshot:
        return [
            f"{document.doc_id} takes force on {document.valid_from:%Y-%m-%d}, and then no gate is asked: cases with "
            f'"as_of": "{document.valid_from:%Y-%m-%d}" ask about that day now'
            for document in _scheduled(snapshot, report)
        ]


def _sentences(document: Document) -> list[str]:
    """Each sentence once, white space apart."""
    texts = (chunk.text for chunk in document.chunks)
    return list(dict.fromkeys(" ".join(text[slice(*span)].split()) for text in texts for span in sentences(text)))
