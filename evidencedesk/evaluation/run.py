"""Asks every case of one state of a file: what each leg ranks, what the guard says, what comes of asking.

Retrieval of all cases is read in one snapshot, or inside one open transaction (the gate). A case that fails is a result
too: it is counted and shown, and never leaves a denominator.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from evidencedesk import guard, rag, retrieval
from evidencedesk.cases import RagCase
from evidencedesk.embeddings import Embedder
from evidencedesk.evaluation.report import (
    CaseResult,
    EvaluationReport,
    guarded_run,
    retrieval_rows,
    separation,
    sweep_rows,
)
from evidencedesk.rag import Answerer, Reads
from evidencedesk.records import Answer, EmbedderIdentity, Guard, Hit, Hits, Mode, Outcome
from evidencedesk.release import VERSION
from evidencedesk.retrieval import Question
from evidencedesk.store import Snapshot, Store, StoredCase, put_run, storable

Prepare = Callable[[str], Question]
"""Reads a question and embeds it; raises when that fails."""
JudgeOf = Callable[[Snapshot, EmbedderIdentity | None, Embedder | None], Guard | None]
"""Gives what judges questions with vectors of an embedder (None: without vectors), as `rag.guard_of` does."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case with its question embedded, or why that failed."""

    case: RagCase
    question: Question | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class _Retrieved:
    ranked: Mapping[Mode, tuple[str, ...]]
    candidates: Hits
    as_of: datetime | None


def prepare(cases: Iterable[RagCase], ask: Prepare) -> list[Prepared]:
    """Embed every question, outside of any snapshot. ValueError without cases, or when two have one id."""
    prepared = []
    for case in cases:
        try:
            prepared.append(Prepared(case, ask(case.question)))
        except Exception as error:  # noqa: BLE001 - whatever a host's embedder raises is that case's result
            prepared.append(Prepared(case, None, f"{type(error).__name__}: {error}"))
    ids = [each.case.id for each in prepared]
    if not ids:
        raise ValueError("there is no case to evaluate")
    if len(set(ids)) < len(ids):
        raise ValueError("two cases have the same id")
    return prepared


def evaluate(
    reads: Reads,
    prepared: Sequence[Prepared],
    answerer: Answerer,
    *,
    k: int = 10,
    mode: Mode = "hybrid",
    grid: Iterable[tuple[float, float]] | None = None,
    judge_of: JudgeOf = rag.guard_of,
) -> EvaluationReport:
    """Ask every case. `mode` is how the guard's candidates are searched. Reads only.

    `grid`: pairs of min_score and min_margin for the sweep; None: some around what was observed. CalibrationOutdated
    when the file's guard cannot judge.
    """
    embedder = next((p.question.embedder for p in prepared if p.question and p.question.embedder), None)
    with reads.read("evaluating") as snapshot:
        started_at, generation = snapshot.now, snapshot.generation
        in_force = len(snapshot.summaries(status="current"))
        askers = {each.question.embedder for each in prepared if each.question}
        judges = {asked_by: judge_of(snapshot, asked_by, answerer.embedder) for asked_by in askers}
        retrieved = [_retrieve(snapshot, each, k, mode, embedder) for each in prepared]
    judge = judges.get(embedder)
    results = [
        _asked(reads, each, found, answerer, judges, started_at)
        for each, found in zip(prepared, retrieved, strict=True)
    ]
    return EvaluationReport(
        run_id=None, started_at=started_at, cases_hash=cases_hash(each.case for each in prepared), k=k,
        embedder=embedder, values=judge, generation=generation, documents_in_force=in_force,
        code_version=VERSION, model=answerer.llm.name, checker=answerer.checker.name,
        retrieval=retrieval_rows(results, k), sweep=sweep_rows(results, judge, grid),
        guarded=guarded_run(results), separation=separation(results, judge), cases=tuple(results),
    )  # fmt: skip


def cases_hash(cases: Iterable[RagCase]) -> str:
    """SHA-256, in hexadecimal, of what the cases ask and expect; their order does not count."""
    rows = sorted(json.dumps(case.model_dump(), ensure_ascii=False, sort_keys=True) for case in cases)
    return hashlib.sha256("\n".join(rows).encode("utf-8", "replace")).hexdigest()


def remember(
    store: Store, report: EvaluationReport, *, kind: str = "evaluation", accepted: bool | None = None
) -> EvaluationReport:
    """Store a report with its cases; gives it with its number. Writes."""
    tables = {"retrieval": report.retrieval, "sweep": report.sweep, "guarded": report.guarded}
    run = {
        "kind": kind, "accepted": accepted, "started_at": report.started_at, "cases_hash": report.cases_hash,
        "case_count": len(report.cases), "generation": report.generation,
        "documents_in_force": report.documents_in_force,
        "embedder": None if report.embedder is None else str(report.embedder),
        "thresholds": guard.describe(report.values), "model": report.model, "checker": report.checker,
        "code_version": report.code_version,
        "report": {name: _plain(table) for name, table in tables.items()} | {"separation": report.separation},
    }  # fmt: skip
    with store.write("storing an evaluation") as transaction:
        return replace(report, run_id=put_run(transaction, run, [_stored(result, report) for result in report.cases]))


def _plain(table: Any) -> Any:
    """A table as JSON holds it."""
    if isinstance(table, tuple):
        return [asdict(row) for row in table]
    return asdict(table)


def _stored(result: CaseResult, report: EvaluationReport) -> StoredCase:
    judged = guard.assess(result.candidates, report.values) if result.candidates and report.values else None
    return StoredCase(
        case_id=result.case_id, question=storable(result.question), tags=",".join(result.tags),
        answerable=result.answerable, as_of=result.as_of, outcome=result.outcome, reason=result.reason,
        detail=storable(result.why), keyword_rank=result.rank("keyword"),
        vector_rank=result.rank("vector"), hybrid_rank=result.rank("hybrid"),
        top_chunk_id=result.candidates[0].chunk.id if result.candidates else None,
        top=None if judged is None else judged.top, margin=None if judged is None else judged.margin,
        cited=",".join(result.cited),
    )  # fmt: skip


def _retrieve(
    snapshot: Snapshot, each: Prepared, k: int, mode: Mode, embedder: EmbedderIdentity | None
) -> _Retrieved | str:
    """What each leg finds; the error, as text, when that fails."""
    if each.question is None:
        return each.error
    modes: tuple[Mode, ...] = ("keyword",) if embedder is None else ("keyword", "vector", "hybrid")
    try:
        at = retrieval.instant(each.case.as_of)
        scope = snapshot.scope(at)
        ranked = {
            one: _names(retrieval.search(snapshot, each.question, scope, k=k, mode=one), each.case)
            for one in modes
            if one == "keyword" or each.question.vector is not None
        }
        found = rag.candidates(snapshot, each.question, scope, mode=mode)
    except Exception as error:  # noqa: BLE001 - a case that fails is a result
        return f"{type(error).__name__}: {error}"
    return _Retrieved({one: ranked.get(one, ()) for one in modes}, found, at)


def _names(hits: Iterable[Hit], case: RagCase) -> tuple[str, ...]:
    """The documents of hits, each once, one that is expected under the name by which it is expected."""
    expected = set(case.expected_doc_ids)
    named = (hit.chunk.family if hit.chunk.family in expected else hit.chunk.doc_id for hit in hits)
    return tuple(dict.fromkeys(named))


def _asked(
    reads: Reads, each: Prepared, found: _Retrieved | str, answerer: Answerer,
    judges: Mapping[EmbedderIdentity | None, Guard | None], asked_at: datetime,
) -> CaseResult:  # fmt: skip
    case, question = each.case, each.question
    failed = CaseResult(
        case.id, case.question, case.tags, case.answerable, case.as_of, case.expected_doc_ids, {}, None, None, "", (),
        "error", model_called=False,
    )  # fmt: skip
    if isinstance(found, str) or question is None:
        return replace(failed, error=found if isinstance(found, str) else each.error)
    failed = replace(failed, ranked=found.ranked, candidates=found.candidates)
    try:
        answer = rag.answer_from(
            reads, question, found.candidates, answerer, judges[question.embedder], asked_at=asked_at,
            as_of=found.as_of,
        )  # fmt: skip
    except Exception as error:  # noqa: BLE001 - whatever a host's checker raises is that case's result
        return replace(failed, error=f"{type(error).__name__}: {error}")
    return replace(
        failed,
        reason=answer.reason,
        detail=answer.detail,
        cited=tuple(citation.chunk.id for citation in answer.citations if citation.chunk),
        outcome=_outcome(failed, answer),
        model_called=answer.model != "",
    )


def _outcome(case: CaseResult, answer: Answer) -> Outcome:
    if answer.abstained:
        return "turned_away" if case.answerable else "refused"
    # Every cited text is shown to the reader as evidence, so one that is not expected makes the answer wrong.
    cited = (citation.chunk for citation in answer.citations if citation.chunk)
    return "right" if case.answerable and all(map(case.expects, cited)) else "wrong"
