"""What the command prints: records as JSON, or words and tables for people."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from evidencedesk.records import (
    Answer,
    AnswerReason,
    Chunk,
    Claim,
    Document,
    DocumentSummary,
    Failed,
    Flip,
    GateReport,
    Hit,
    Hits,
    IngestProgress,
    IngestReport,
    Progress,
    RecordedAnswer,
    Skipped,
    StatusChange,
    UpdateReport,
)

if TYPE_CHECKING:
    from evidencedesk.evaluation.attacks import AttackReport
    from evidencedesk.evaluation.calibration import CalibrationReport
    from evidencedesk.evaluation.metrics import Rate
    from evidencedesk.evaluation.report import EvaluationReport

# A document must not steer the terminal. U+FFFD stands for control characters, save line ends and tabs.
_CONTROLS: dict[int, str | None] = dict.fromkeys([*range(32), *range(127, 160)], "\ufffd")
# Nor must it turn the order of what is printed around.
_CONTROLS |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")
_CONTROLS |= {ord("\n"): "\n", ord("\t"): "\t", ord("\r"): None}

# ---------------------------------------------------------------- records as JSON


def json_value(value: object) -> Any:
    """Give a record as what `json.dumps` takes, under the same field names.

    Instants become ISO 8601 in UTC with Z, tuples lists. TypeError for an object that is no part of a record.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    # Before sequences: Hits is both, and its reason must not be lost.
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(held) for key, held in value.items()}
    if isinstance(value, Sequence):
        return [json_value(held) for held in value]
    raise TypeError(f"{type(value).__name__} is no part of a record: {value!r}")


def print_json(value: object) -> None:
    """Print a record as JSON on stdout."""
    typer.echo(json.dumps(json_value(value), ensure_ascii=False, indent=2))


# ---------------------------------------------------------------- words for people


def _printable(text: str) -> str:
    return text.translate(_CONTROLS)


def print_text(text: str = "") -> None:
    """Print text on stdout, without what would steer the terminal."""
    typer.echo(_printable(text))


def print_aside(text: str) -> None:
    """One line on stderr."""
    typer.echo(" ".join(_printable(text).splitlines()), err=True)


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns, as wide as they need to be: neither a terminal nor a pipe gets anything cut or folded."""
    from rich.cells import cell_len

    lines = [headings, *([_printable(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for *cells, last in lines:
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=False)]
        print_text("  ".join([*padded, last]))


def _instant(instant: datetime | None) -> str:
    """Write an instant for people: UTC, to the second; a day's first instant as the day alone."""
    if instant is None:
        return "open"
    plain = f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    return plain.removesuffix(" 00:00:00Z")


def _validity(start: datetime, end: datetime | None) -> str:
    return f"from {_instant(start)}" + ("" if end is None else f" until {_instant(end)}")


def print_summaries(summaries: Sequence[DocumentSummary]) -> None:
    """Print documents as a table."""
    print_table(
        ("doc_id", "version", "lang", "status", "valid from", "valid to", "chunks", "title"),
        (
            (s.doc_id, s.version, s.lang, s.status, _instant(s.valid_from), _instant(s.valid_to),
             str(s.chunk_count), s.title)
            for s in summaries
        ),
    )  # fmt: skip


_OUTCOMES = ("added", "updated", "unchanged", "superseded", "missing", "withdrawn", "skipped", "failed")


def print_ingest_report(report: IngestReport) -> None:
    """Print the counts of an ingest, and what they count."""
    if report.dry_run:
        print_text("dry run: nothing was written; a real run would give")
    elif _refused(report.gate):
        print_text("refused by the gate: nothing was written; the change would have given")
    for outcome in _OUTCOMES:
        entries = getattr(report, outcome)
        print_text(f"{outcome:<14} {len(entries):>6}")
        if outcome != "unchanged":
            for entry in entries:
                print_text(f"  {_entry(entry)}")
    print_text(f"{'texts embedded':<14} {report.embedded:>6}")
    if report.stale_answers:
        print_text(f"{'answers stale':<14} {report.stale_answers:>6}  (evidencedesk answers --stale)")
    print_gate(report.gate)
    for note in report.notes:
        print_text(f"note: {note}")
    if not any(getattr(report, outcome) for outcome in _OUTCOMES):
        print_text("note: the folder holds no Markdown or text file")


def _entry(entry: str | Skipped | Failed) -> str:
    if isinstance(entry, Skipped):
        return f"{entry.path}: {entry.reason}"
    if isinstance(entry, Failed):
        place = entry.path if entry.line is None else f"{entry.path}, line {entry.line}"
        # Most messages name the place themselves.
        return entry.error if entry.error.startswith(entry.path) else f"{place}: {entry.error}"
    return entry


def print_update_report(report: UpdateReport) -> None:
    """Print what an update did."""
    would, stands = ("would be ", "would be") if _refused(report.gate) else ("", "is")
    print_text(f"{would}{report.action}: {report.doc_id} {stands} {report.status}; texts embedded: {report.embedded}")
    for doc_id in report.superseded:
        print_text(f"{would}superseded: {doc_id}")
    if report.stale_answers:
        print_text(f"recorded answers {would}gone stale: {report.stale_answers} (evidencedesk answers --stale)")
    print_gate(report.gate)
    for note in report.notes:
        print_text(f"note: {note}")


def _refused(gate: GateReport | None) -> bool:
    return gate is not None and not gate.accepted


def print_changes(changes: Sequence[StatusChange], otherwise: str) -> None:
    """Print changes of status, a line each; `otherwise` when there are none."""
    for change in changes:
        print_text(f"{change.doc_id}: {change.before} -> {change.after}")
    if not changes:
        print_text(otherwise)


def print_hit(rank: int, hit: Hit) -> None:
    """Print a hit: its label, the parts of its score, its text."""
    status = "" if hit.chunk.status == "current" else f"  ({hit.chunk.status})"
    print_text(f"{rank}. {hit.label}{status}")
    cosine = "none" if hit.cosine is None else f"{hit.cosine:.4f}"
    print_text(
        f"   score {hit.score:.4f}  bm25 {hit.bm25:.4f} (rank {hit.keyword_rank or '-'})"
        f"  cosine {cosine} (rank {hit.vector_rank or '-'})  {hit.chunk.location.path}"
    )
    # Flush left and whole, so that it can be quoted as it stands.
    print_text(hit.chunk.text)
    print_text()


def why_nothing(hits: Hits, as_of: str | None, filters: Mapping[str, str | None]) -> str:
    """Say in words why a search found nothing."""
    when = "now" if as_of is None else f"as of {as_of}"
    given = " ".join(f"{option} {value}" for option, value in filters.items() if value is not None)
    if hits.reason == "no_terms":
        return "the question holds no word or number to search for; words such as `the` do not count"
    if hits.reason == "nothing_in_force":
        return f"no document is in force {when}; `evidencedesk documents` lists what there is"
    return f"nothing in force {when} matches the question" + (f" with {given}" if given else "")


def print_chunk(chunk: Chunk, title: str) -> None:
    """Print one chunk with its label and standing."""
    from evidencedesk import retrieval

    print_text(retrieval.label(chunk, title))
    print_text(f"{chunk.status}, version {chunk.version}, lang {chunk.lang}, {chunk.location.path}")
    print_text()
    print_text(chunk.text)


def print_document(document: Document) -> None:
    """Print a document: its standing, then its chunks."""
    from evidencedesk import retrieval

    print_text(f"{document.title} [{document.doc_id}]")
    print_text(f"{document.status}, valid {_validity(document.valid_from, document.valid_to)}")
    print_text(f"version {document.version}, lang {document.lang}, family {document.family}, {document.path}")
    for key, value in document.metadata.items():
        plain = value if isinstance(value, str) else json.dumps(json_value(value), ensure_ascii=False)
        print_text(f"{key}: {plain}")
    for chunk in document.chunks:
        print_text()
        print_text(retrieval.label(chunk, document.title))
        print_text(chunk.text)


def print_answer(answer: Answer) -> None:
    """Print an answer and where each cited text stands, or why there is none."""
    if answer.abstained:
        print_text(f"no answer ({answer.reason}): {answer.detail}")
    else:
        print_text(answer.text)
        print_text()
        for citation in answer.citations:
            print_text(citation.label)
    if answer.answer_id is not None:
        print_aside(f"note: recorded as answer {answer.answer_id}")


def print_explanation(answer: Answer) -> None:
    """Print which stage decided, the candidates with their scores, and what each claim rests on."""
    from evidencedesk import guard

    print_text()
    print_text(f"decided by     {_STAGE_OF[answer.reason]}")
    assessment = answer.assessment
    if assessment is not None:
        print_text(f"guard          {assessment.state}: {guard.explain(assessment, answer.hits.reason)}")
    print_text(f"embedder       {answer.embedder or 'none: judged by the words'}")
    print_text(f"model          {answer.model or 'not called'}")
    for rank, hit in enumerate(answer.hits, 1):
        cosine = "none" if hit.cosine is None else f"{hit.cosine:.4f}"
        print_text(
            f"candidate {rank}    cosine {cosine}  bm25 {hit.bm25:.4f}  idf share {hit.idf_share:.2f}  {hit.label}"
        )
    print_claims(answer.claims)


_STAGE_OF: Mapping[AnswerReason, str] = {
    "no_result": "retrieval: nothing was found",
    "weak": "the guard, before a model was called",
    "ambiguous": "the guard, before a model was called",
    "uncalibrated": "the guard, before a model was called",
    "model_failed": "the model: no reply",
    "bad_output": "the parser: the reply cannot be used",
    "model_abstained": "what answers: the model, or the quoting of sentences",
    "unknown_citation": "the citation check: a cited id is no evidence",
    "unsupported_claim": "the citation check: a claim is not supported",
    "ok": "the citation check: everything holds",
}


def print_claims(claims: Sequence[Claim]) -> None:
    """Print each claim with its verdict, and what became of each of its citations."""
    for claim in claims:
        print_text(f"{claim.verdict:<14} {claim.text}")
        print_text(f"               {claim.reason}")
        for citation in claim.citations:
            print_text(f"  {citation.verdict:<12} {citation.label or citation.cited}")
            if citation.quote:
                print_text(f"               “{' '.join(citation.quote.split())}”")


def print_recorded(answer: RecordedAnswer) -> None:
    """Print a recorded answer and what of it went stale."""
    about = "" if answer.as_of is None else f"  as of {_instant(answer.as_of)}"
    print_text(f"{answer.answer_id}  {_instant(answer.asked_at)}{about}  {answer.reason}")
    print_text(f"   {answer.question}")
    print_text(f"   {answer.text or answer.detail}")
    for stale in answer.stale:
        print_text(f"   stale: {stale}")


def print_gate(gate: GateReport | None) -> None:
    """Print what a gate found, when there was one."""
    if gate is None:
        return
    print_text()
    judged = f" ({gate.rule})" if gate.rule else ""
    print_text(f"gate: accepted{judged}" if gate.accepted else f"gate: refused{judged}; nothing of it was written")
    for objection in gate.objections:
        print_text(f"  {objection}")
    print_flips(gate.flips, "every case came out as before")
    for change in gate.changes:
        same = change.old_doc_id == change.new_doc_id
        print_text(f"{change.old_doc_id} corrected" if same else f"{change.old_doc_id} -> {change.new_doc_id}")
        for sign, sentences in (("-", change.removed), ("+", change.added)):
            for sentence in sentences:
                print_text(f"  {sign} {sentence}")


def print_flips(flips: Sequence[Flip], otherwise: str) -> None:
    """Print the cases that came out otherwise; `otherwise` when there are none."""
    for flip in flips:
        print_text(f"case {flip.case_id}: {flip.before or 'not asked'} -> {flip.after}  {flip.question}")
    if not flips:
        print_text(otherwise)


def print_evaluation(report: EvaluationReport) -> None:
    """Print the tables of an evaluation, every rate as n of N with its interval."""
    print_text(f"cases {len(report.cases)}, documents in force {report.documents_in_force}")
    print_text(f"embedder {report.embedder or 'none: keyword search'}; answers by {report.model}")
    print_text()
    print_table(
        ("tag", "mode", "recall@1", "recall@3", f"recall@{report.k}", "MRR", f"nDCG@{report.k}"),
        (
            (row.tag, row.mode, *map(_rate, (row.recall_at_1, row.recall_at_3, row.recall_at_k)),
             _mean(row.mrr), _mean(row.ndcg_at_k))
            for row in report.retrieval
        ),
    )  # fmt: skip
    if report.sweep:
        print_text()
        print_table(
            ("min_score", "min_margin", "unanswerable answered", "answerable turned away", "wrong top document"),
            (
                (f"{row.min_score:g}", f"{row.min_margin:g}",
                 *map(_rate, (row.unanswerable_answered, row.answerable_turned_away, row.wrong_top)))
                for row in report.sweep
            ),
        )  # fmt: skip
    print_text(report.separation)
    print_text()
    guarded = report.guarded
    for name, rate in (
        ("answered", guarded.answered), ("wrong", guarded.wrong),
        ("unanswerable answered", guarded.unanswerable_answered),
        ("answerable turned away", guarded.answerable_turned_away), ("errors", guarded.errors),
    ):  # fmt: skip
        print_text(f"{name:<24} {rate}")
    # What quotes sentences stands in a model's place.
    calls = "quotings, no model" if report.model == "quoting" else "model calls"
    print_text(f"{calls:<24} {guarded.model_calls} of {len(report.cases)}")
    print_text(f"{'reasons':<24} " + ", ".join(f"{reason} {count}" for reason, count in guarded.reasons.items()))
    for case in report.cases:
        if not case.ok:
            print_text(f"{case.outcome}: {case.case_id} {case.question}")
            print_text(f"  {case.why}")
    if report.run_id is not None:
        print_aside(f"note: kept as run {report.run_id}")


def _rate(rate: Rate) -> str:
    return "-" if rate.value is None else f"{rate.count:g} of {rate.of}"


def _mean(rate: Rate) -> str:
    return "-" if rate.value is None else f"{rate.value:.3f}"


def print_calibration(report: CalibrationReport) -> None:
    """Print what a calibration found."""
    print_text(f"cases {report.case_count}, embedder {report.embedder or 'none: keyword search'}")
    print_text(report.promise)
    print_text()
    print_text(f"{'pass':<24} {report.answered}")
    print_text(f"{'wrong, of these':<24} {report.wrong}")
    print_text(f"{'answerable turned away':<24} {report.turned_away}")
    print_text(f"{'AUROC':<24} {_figure(report.auroc)} (area under risk and coverage {_figure(report.aurc)})")
    print_text()
    guard = report.guard
    print_table(
        ("signal", "weight", "mean", "deviation", "AUROC alone"),
        (
            (name, f"{weight:.2f}", f"{mean:.3f}", f"{deviation:.3f}", _figure(report.auroc_of[name]))
            for name, weight, mean, deviation in zip(
                guard.signals, guard.weights, guard.means, guard.deviations, strict=True
            )
        ),
    )
    print_text(f"answered from a probability of {guard.threshold:.3f}")
    if report.fit_id is not None:
        print_text("this guard is kept and judges from now on; `evidencedesk calibrate --reset` takes it back")


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def print_attacks(report: AttackReport) -> None:
    """Print what share of each kind of attack is blocked, and what came through."""
    from evidencedesk.evaluation.attacks import CONTROLS

    for kind, rate in report.claims.blocked.items():
        print_text(f"{kind:<16} blocked {rate}" + ("  (true: none should be)" if kind in CONTROLS else ""))
    print_text(f"{'off the corpus':<16} refused {report.questions_refused}")
    for judged in report.claims.passed:
        print_text(f"passed: {judged.attack.kind} [{judged.attack.chunk_id}] {judged.attack.claim}")
    for judged in report.claims.turned_away:
        reason = judged.support.reason if judged.support else judged.error
        print_text(f"turned away though true: [{judged.attack.chunk_id}] {judged.attack.claim}: {reason}")
    for answer in report.answered:
        print_text(f"answered: {answer.question}: {answer.text}")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show a bar on stderr where that is a terminal; what it gives is to be called after each file."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    path_column = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    columns = (
        BarColumn(bar_width=20),
        TextColumn("{task.fields[counts]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[path]}", markup=False, table_column=path_column),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console, expand=True, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("ingest", total=None, counts="reading the folder", path="")

        def draw(progress: IngestProgress) -> None:
            done, total = progress.files_done, progress.files_total
            counts = f"{done}/{total} files, {progress.texts_embedded} texts embedded"
            bar.update(task, total=total, completed=done, counts=counts, path=_printable(progress.path))

        yield draw


@contextmanager
def counting_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on stderr where that is a terminal; what it gives is called with (done, in all)."""
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class Notes(logging.Handler):
    """Shows the library's warnings as notes on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        print_aside(f"note: {record.getMessage()}")


NOTES = Notes()
"""One handler, however often the program starts."""
