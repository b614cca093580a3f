"""`check`: is the file sound, and is everything that was derived still what a rebuild would give? Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from evidencedesk import bm25, schema, vectors
from evidencedesk.chunking import holds
from evidencedesk.records import CheckReport, Problem
from evidencedesk.store import Settings, Snapshot, Store
from evidencedesk.text import tokens
from evidencedesk.versions import settle

_RESTORE = "restore a backup"
_REWRITE = "bring the document in again: update_document, or `evidencedesk update FILE`"


def check(store: Store, now: datetime) -> CheckReport:
    """Look at the whole file in one snapshot; reads everything, so it takes a while on a large one."""
    driver = store.database.driver
    facts = {
        "file": store.database.path,
        "schema": schema.HEAD,
        "sqlite": f"{driver.module.sqlite_version} through {driver.name}",
        "sqlite-vec": "loaded"
        if driver.loads_vec
        else f"not loaded ({driver.problem}); vectors are scanned with numpy, exactly",
    }
    with store.read("checking") as snapshot:
        problems = list(_database_problems(snapshot))
        settings = snapshot.settings()
        if settings is not None:
            facts["embedder"] = str(settings.embedder or "none: keyword search only")
            facts["text analysis"] = settings.text_version
            facts["chunker"] = f"{settings.chunker_version}, at most {settings.max_chunk_chars} characters"
            problems += _vector_problems(snapshot, settings)
        problems += _standing_problems(snapshot, now)
        problems += _chunk_problems(snapshot)
        problems += _statistics_problems(snapshot)
        summaries = snapshot.summaries()
        counted = Counter(summary.status for summary in summaries)
        facts["documents"] = ", ".join(f"{count} {status}" for status, count in sorted(counted.items())) or "none"
        facts["chunks"] = str(sum(summary.chunk_count for summary in summaries))
        facts["next change"] = str(settings.next_change_at) if settings and settings.next_change_at else "none known"
    return CheckReport(tuple(problems), facts)


def _database_problems(snapshot: Snapshot) -> Iterator[Problem]:
    for (line,) in snapshot.pragma("integrity_check"):
        if line != "ok":
            yield Problem("damaged", "file", str(line), _RESTORE)
    for table, row, parent, _ in snapshot.pragma("foreign_key_check"):
        yield Problem("dangling reference", f"{table} row {row}", f"its {parent} row is gone", _RESTORE)
    present = snapshot.names_of("view")
    for name in sorted(schema.view_names() - present):
        yield Problem("view missing", name, "it was dropped", f"run its statement again: migrations/views/{name}.sql")
    if "ux_documents_one_current" not in snapshot.names_of("index"):
        yield Problem(
            "index missing", "ux_documents_one_current", "two current documents of a line are possible", _RESTORE
        )


def _standing_problems(snapshot: Snapshot, now: datetime) -> Iterator[Problem]:
    status_of = {summary.doc_id: summary for summary in snapshot.summaries()}
    for stale in snapshot.staleness():
        if stale.problem == "outdated_but_current":
            yield Problem("outdated but current", stale.doc_id, "a newer version of its line has begun", _REWRITE)
    for family, lang in snapshot.lines():
        for standing in settle(snapshot.line_facts(family, lang), now):
            stored = status_of[standing.doc_id]
            if (stored.valid_from, stored.valid_to) != (standing.valid_from, standing.valid_to):
                found = f"{stored.valid_from} to {stored.valid_to}"
                rule = f"{standing.valid_from} to {standing.valid_to}"
                yield Problem("wrong validity", standing.doc_id, f"{found}, by the rule {rule}", _REWRITE)
            elif stored.status != standing.status and not _came_due(snapshot, now):
                found = f"{stored.status}, by the rule {standing.status}"
                yield Problem("wrong status", standing.doc_id, found, _REWRITE)


def _came_due(snapshot: Snapshot, now: datetime) -> bool:
    """Time has passed since the last write: reads know that, and the next write or `promote` puts it right."""
    settings = snapshot.settings()
    return settings is not None and settings.next_change_at is not None and settings.next_change_at <= now


def _chunk_problems(snapshot: Snapshot) -> Iterator[Problem]:
    for doc_key in snapshot.doc_keys():
        keys = snapshot.chunk_keys(doc_key)
        stored = snapshot.chunks(keys)
        postings = bm25.postings_of(snapshot.connection, keys)
        source = ""
        for key in keys:
            chunk = stored[key].chunk
            place = chunk.location
            source = source or snapshot.source(chunk.doc_id)
            if not holds(source, place.line_start, place.line_end, chunk.text):
                yield Problem(
                    "lines do not hold the text", chunk.id, f"lines {place.line_start}-{place.line_end}", _REWRITE
                )
            if postings.get(key, {}) != Counter(tokens(chunk.indexed_text)):
                yield Problem("postings differ from the text", chunk.id, "search by keyword is wrong for it", _REWRITE)


def _statistics_problems(snapshot: Snapshot) -> Iterator[Problem]:
    kept = bm25.kept_statistics(snapshot.connection)
    counted = bm25.rebuilt_statistics(snapshot.connection)
    if kept[:2] != counted[:2]:
        detail = f"kept N = {kept[0]}, length {kept[1]}; counted N = {counted[0]}, length {counted[1]}"
        yield Problem("BM25 totals differ", "lexical_totals", detail, _REWRITE)
    for term in sorted(kept[2].keys() | counted[2].keys()):
        if kept[2].get(term) != counted[2].get(term):
            detail = f"kept n = {kept[2].get(term, 0)}, counted n = {counted[2].get(term, 0)}"
            yield Problem("BM25 term differs", term, detail, _REWRITE)


def _vector_problems(snapshot: Snapshot, settings: Settings) -> Iterator[Problem]:
    if settings.embedder_key is None or settings.embedder is None:
        return
    every = [text_hash for doc_key in snapshot.doc_keys() for text_hash in snapshot.text_hashes(doc_key)]
    missing = vectors.missing(snapshot.connection, settings.embedder_key, every)
    if missing:
        yield Problem("vectors missing", f"{len(missing)} texts", "see the view index_gaps", "ingest the folder again")
    for text_hash in vectors.damaged(snapshot.connection, settings.embedder_key, settings.embedder.dimension):
        yield Problem("vector damaged", text_hash, "wrong width, or not of length 1", _RESTORE)
