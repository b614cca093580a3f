"""Recorded answers: what was answered from what, kept with a copy of the cited text, and which of them went stale."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from evidencedesk import schema
from evidencedesk.models import AnswerCitationRow, AnswerClaimRow, AnswerHitRow, AnswerRow, table_of
from evidencedesk.records import Answer, CalibratedGuard, RecordedAnswer, RecordedCitation, StaleCitation, Thresholds
from evidencedesk.store.snapshot import Snapshot, in_lists
from evidencedesk.store.transaction import Transaction, inserted_key

_answers = table_of(AnswerRow)
_citations = table_of(AnswerCitationRow)
_VIEWS_CLOCK = "strftime('%Y-%m-%d %H:%M:%f', 'now')"


def put_answer(transaction: Transaction, answer: Answer, *, checker: str, code_version: str) -> int:
    """Store an answer with its hits, claims and citations; gives its number. Writes."""
    assessment = answer.assessment
    if assessment is None:
        raise ValueError("an answer without an assessment cannot be recorded")
    values = assessment.values if isinstance(assessment.values, Thresholds) else None
    fitted = assessment.values if isinstance(assessment.values, CalibratedGuard) else None
    connection = transaction.connection
    inserted = connection.execute(
        sa.insert(AnswerRow).values(
            asked_at=answer.asked_at or transaction.now, as_of=answer.as_of, question=storable(answer.question),
            text=storable(answer.text), abstained=answer.abstained, reason=answer.reason,
            detail=storable(answer.detail), guard_state=assessment.state, guard_measure=assessment.measure,
            top=assessment.top, margin=assessment.margin, min_score=values and values.min_score,
            min_margin=values and values.min_margin, missing_weight=values and values.missing_weight,
            probability=assessment.probability, threshold=fitted and fitted.threshold,
            values_source=assessment.values and assessment.values.source,
            embedder=None if answer.embedder is None else str(answer.embedder), model=storable(answer.model),
            checker=checker, code_version=code_version,
        )
    )  # fmt: skip
    key = inserted_key(inserted)
    hits = [
        {
            "answer_key": key, "rank": rank, "chunk_id": hit.chunk.id, "label": hit.label, "score": hit.score,
            "bm25": hit.bm25, "cosine": hit.cosine, "keyword_rank": hit.keyword_rank,
            "vector_rank": hit.vector_rank, "idf_share": hit.idf_share,
            "other_script": hit.foreign,
        }
        for rank, hit in enumerate(answer.hits, 1)
    ]  # fmt: skip
    claims, citations = [], []
    for number, claim in enumerate(answer.claims, 1):
        claims.append(
            {
                "answer_key": key, "claim_number": number, "text": storable(claim.text), "verdict": claim.verdict,
                "reason": storable(claim.reason),
            }
        )  # fmt: skip
        for place, citation in enumerate(claim.citations, 1):
            chunk, support = citation.chunk, citation.support
            citations.append(
                {
                    "answer_key": key, "claim_number": number, "citation_number": place,
                    "cited": storable(citation.cited), "verdict": citation.verdict,
                    "support": support and support.verdict, "support_reason": support and storable(support.reason),
                    "chunk_id": chunk and chunk.id, "doc_id": chunk and chunk.doc_id, "family": chunk and chunk.family,
                    "lang": chunk and chunk.lang, "version": chunk and chunk.version, "label": citation.label,
                    "path": chunk and chunk.location.path, "line_start": chunk and chunk.location.line_start,
                    "line_end": chunk and chunk.location.line_end, "text": chunk and chunk.text,
                    "quote": citation.quote,
                }
            )  # fmt: skip
    for table, rows in ((AnswerHitRow, hits), (AnswerClaimRow, claims), (AnswerCitationRow, citations)):
        if rows:
            connection.execute(sa.insert(table), rows)
    return key


def storable(text: str) -> str:
    """What people and models wrote, as UTF-8 can hold it: a lone surrogate becomes `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def recorded_answers(snapshot: Snapshot, *, stale: bool = False, limit: int | None = None) -> list[RecordedAnswer]:
    """Recorded answers, newest first, each with those of its citations that went stale; with `stale` only such."""
    stale_of: dict[int, list[StaleCitation]] = {}
    query = sa.select(_answers).order_by(_answers.c.answer_key.desc()).limit(limit)
    if stale:
        stale_of = _stale_citations(snapshot)
        rows: list[Any] = [
            row
            for keys in in_lists(sorted(stale_of, reverse=True)[:limit])
            for row in snapshot.connection.execute(query.where(_answers.c.answer_key.in_(keys)))
        ]
    else:
        rows = list(snapshot.connection.execute(query))
        stale_of = _stale_citations(snapshot, first=rows[-1].answer_key) if rows else {}
    citations_of: dict[int, list[RecordedCitation]] = {}
    for keys in in_lists(row.answer_key for row in rows):
        cited = sa.select(_citations).where(_citations.c.answer_key.in_(keys))
        for row in snapshot.connection.execute(
            cited.order_by(_citations.c.answer_key, _citations.c.claim_number, _citations.c.citation_number)
        ):
            citations_of.setdefault(row.answer_key, []).append(
                RecordedCitation(row.cited, row.verdict, row.chunk_id, row.label, row.quote, row.text)
            )
    return [
        RecordedAnswer(
            row.answer_key, row.asked_at, row.as_of, row.question, row.text, row.abstained, row.reason, row.detail,
            row.model, tuple(citations_of.get(row.answer_key, ())), tuple(stale_of.get(row.answer_key, ())),
        )
        for row in rows
    ]  # fmt: skip


def _stale_citations(snapshot: Snapshot, first: int = 0) -> dict[int, list[StaleCitation]]:
    """Of the answers from that number on."""
    found: dict[int, list[StaleCitation]] = {}
    columns = "answer_id, old_chunk_id, old_doc_id, new_doc_id, why, cited_sentence, sentence_changed"
    for row in _query_view(
        snapshot, columns, where="answer_id >= :first", order="answer_id DESC, claim_number, old_chunk_id", first=first
    ):
        changed = None if row.sentence_changed is None else bool(row.sentence_changed)
        found.setdefault(row.answer_id, []).append(
            StaleCitation(row.old_chunk_id, row.old_doc_id, row.new_doc_id, row.why, row.cited_sentence, changed)
        )
    return found


def _query_view(
    snapshot: Snapshot, columns: str, *, where: str = "1", order: str = "1", **facts: str | int
) -> list[sa.Row[Any]]:
    """Rows of the view `stale_answers`, judged by the snapshot's own instant instead of SQLite's clock."""
    view = schema.view_statements()["stale_answers"].partition(" AS\n")[2]
    if _VIEWS_CLOCK not in view:
        raise LookupError(f"the view stale_answers does not read the clock as {_VIEWS_CLOCK}")
    view = view.replace(_VIEWS_CLOCK, ":now")
    statement = sa.text(f"SELECT DISTINCT {columns} FROM ({view}) WHERE {where} ORDER BY {order}")
    now = snapshot.now.replace(tzinfo=None).isoformat(" ", "microseconds")
    return list(snapshot.connection.execute(statement, {"now": now, **facts}))


def stale_answer_ids(snapshot: Snapshot, lines: Collection[tuple[str, str]]) -> set[int]:
    """Numbers of the recorded answers that went stale by a document of one of the lines (family, language)."""
    if snapshot.connection.execute(sa.select(_answers.c.answer_key).limit(1)).first() is None:
        return set()
    return {
        row.answer_id
        for family, lang in lines
        for row in _query_view(
            snapshot, "answer_id", where="family = :family AND lang = :lang", family=family, lang=lang
        )
    }


@contextmanager
def newly_stale(transaction: Transaction, lines: Collection[tuple[str, str]]) -> Iterator[set[int]]:
    """Gives a set that holds, after the block, the answers that what was written in it made stale."""
    before = stale_answer_ids(transaction, lines)
    found: set[int] = set()
    yield found
    found |= stale_answer_ids(transaction, lines) - before


def forget_answers(
    transaction: Transaction, *, answer_ids: Collection[int] | None = None, before: datetime | None = None
) -> int:
    """Delete recorded answers by number, and those asked before an instant; gives how many. Writes.

    What is deleted is overwritten with zeros in the file; former pages may lie in the write-ahead log until it is
    next emptied.
    """
    connection = transaction.connection
    connection.exec_driver_sql("PRAGMA secure_delete = ON")
    deleted = 0
    if before is not None:
        deleted += connection.execute(sa.delete(AnswerRow).where(_answers.c.asked_at < before)).rowcount
    for keys in in_lists(answer_ids or ()):
        deleted += connection.execute(sa.delete(AnswerRow).where(_answers.c.answer_key.in_(keys))).rowcount
    return deleted
