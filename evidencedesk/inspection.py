"""`check`: is the file sound, and is everything that was derived still what a rebuild would give? Reads only."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from evidencedesk import bm25, schema, vectors
from evidencedesk.chunking import holds
from evidencedesk.embeddings import Embedder, embed_in_batches, identity
from evidencedesk.errors import DeskDamaged, EmbedderMismatch, StoreFailure
from evidencedesk.records import CheckReport, Problem
from evidencedesk.store import Settings, Snapshot, Store
from evidencedesk.text import tokens
from evidencedesk.versions import settle, version_sort_key

# The next steps; a test takes each of them after each kind of damage.
_RESTORE = "restore a backup"
_COMPACT = "run `evidencedesk compact` (Desk.compact), which makes it anew"
_EMBED = "run `evidencedesk compact`, then ingest the folder again, which embeds what is missing"
_REEMBED = "run `evidencedesk reembed none`, then reembed with its embedder, which makes every vector anew"
_SAME_TEXT = 0.99
"""Cosine of two vectors of one text; processors and endpoints differ in the last digits."""
_TEXTS_AT_ONCE = 256


def check(store: Store, embedder: Embedder | None = None) -> CheckReport:
    """Look at the whole file in one snapshot; reads everything, so it takes a while on a large one.

    With the file's own `embedder` every text is embedded again and compared with its vector, behind that snapshot:
    nothing else tells a vector that stands in another's place. EmbedderMismatch for another embedder.
    """
    driver = store.database.driver
    how = "loaded" if driver.loads_vec else f"not loaded ({driver.problem}); vectors are scanned with numpy, exactly"
    facts = {
        "file": store.database.path,
        "schema": schema.HEAD,
        "sqlite": f"{driver.module.sqlite_version} through {driver.name}",
        "sqlite-vec": how,
    }
    problems: list[Problem] = []
    try:
        with store.read("checking") as snapshot:
            facts.update(_facts(snapshot))
            for look in (
                _database_problems,
                _line_problems,
                _document_problems,
                _posting_problems,
                _statistics_problems,
                _vector_problems,
            ):
                problems += look(snapshot)
    except (DeskDamaged, StoreFailure) as error:
        problems.append(Problem("damaged", "file", error.problem, _RESTORE))
    # Rows that hold what no column of ours may hold, such as a number for a date, end a look with one of these.
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        problems.append(Problem("damaged", "rows", f"{type(error).__name__}: {error}", _RESTORE))
    if embedder is not None:
        problems += _foreign_vectors(store, embedder)
    return CheckReport(tuple(problems), facts)


def can_be_made_anew(report: CheckReport) -> bool:
    """Whether everything that was found is derived, so that compacting mends it and loses nothing."""
    return all(problem.next_step == _COMPACT for problem in report.problems)


def _facts(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    settings = snapshot.settings
    if settings is not None:
        yield "embedder", str(settings.embedder or "none: keyword search only")
        yield "text analysis", settings.text_version
        yield "chunker", f"{settings.chunker_version}, at most {settings.max_chunk_chars} characters"
    summaries = snapshot.summaries()
    counted = Counter(summary.status for summary in summaries)
    yield "documents", ", ".join(f"{count} {status}" for status, count in sorted(counted.items())) or "none"
    yield "chunks", str(sum(summary.chunk_count for summary in summaries))
    stored, unused = vectors.counts(snapshot.connection)
    yield (
        "vectors",
        str(stored) + (f", {unused} of them of texts that no chunk has; compact drops them" if unused else ""),
    )
    yield "next change", str(settings.next_change_at) if settings and settings.next_change_at else "none known"


def _database_problems(snapshot: Snapshot) -> Iterator[Problem]:
    for (line,) in snapshot.pragma("integrity_check"):
        if line != "ok":
            yield Problem("damaged", "file", str(line), _RESTORE)
    for table, row, parent, _ in snapshot.pragma("foreign_key_check"):
        yield Problem("dangling reference", f"{table} row {row}", f"its {parent} row is gone", _RESTORE)
    views = snapshot.definitions_of("view")
    for name, statement in schema.view_statements().items():
        if views.get(name) != statement:
            yield Problem("view missing", name, "it was dropped or changed", _COMPACT)
    for name in sorted(schema.index_names() - snapshot.definitions_of("index").keys()):
        detail = "two current documents of a line are possible" if name.startswith("ux_") else "look-ups are slow"
        yield Problem("index missing", name, detail, _COMPACT)


def _line_problems(snapshot: Snapshot) -> Iterator[Problem]:
    for stale in snapshot.staleness():
        if stale.problem == "outdated_but_current":
            yield Problem("outdated but current", stale.doc_id, "a newer version of its line has begun", _COMPACT)
    # Statuses of the snapshot's own instant: what has only come due is no problem, reads and the next write know it.
    summary_of = {summary.doc_id: summary for summary in snapshot.summaries()}
    for family, lang in snapshot.lines():
        for standing in settle(snapshot.line_facts(family, lang), snapshot.now):
            stored = summary_of[standing.doc_id]
            if standing.sort_key != version_sort_key(stored.version):
                yield Problem("wrong version order", standing.doc_id, f"version {stored.version}", _RESTORE)
            if (stored.valid_from, stored.valid_to) != (standing.valid_from, standing.valid_to):
                found = f"{stored.valid_from} to {stored.valid_to}"
                rule = f"{standing.valid_from} to {standing.valid_to}"
                yield Problem("wrong validity", standing.doc_id, f"{found}, by the rule {rule}", _COMPACT)
            elif stored.status != standing.status:
                found = f"{stored.status}, by the rule {standing.status}"
                yield Problem("wrong status", standing.doc_id, found, _COMPACT)
    settings = snapshot.settings
    if settings is None and summary_of:
        yield Problem("damaged", "desk", "the row of its settings is gone", _RESTORE)
    newest, last = snapshot.newest_state, snapshot.last_change_number
    if newest not in (None, snapshot.state) or last > snapshot.state.change_number:
        detail = f"it says change {snapshot.state.change_number}; {newest or 'no state'} and change {last} are there"
        yield Problem("wrong state", "state", detail, _RESTORE)
    if settings is not None and not snapshot.something_is_due and settings.next_change_at != snapshot.next_change_at():
        found = f"kept {settings.next_change_at}, by the validities {snapshot.next_change_at()}"
        yield Problem("wrong next change", "desk", found, _COMPACT)


def _document_problems(snapshot: Snapshot) -> Iterator[Problem]:
    for doc_key, stored_hash in snapshot.content_hashes():
        chunks = snapshot.derived_chunks(doc_key)
        source = snapshot.source(doc_key)
        if not chunks:
            yield Problem("chunk missing", f"document {doc_key}", "it has no chunk", _RESTORE)
        if snapshot.hash_of(doc_key) != stored_hash:
            yield Problem(
                "content differs from its hash", f"document {doc_key}", "its row was changed by hand", _RESTORE
            )
        for ordinal, (stored, text_hash, _) in enumerate(chunks.values()):
            chunk, place = stored.chunk, stored.chunk.location
            above = "\n".join(line for line in (stored.title, place.heading) if line)
            if chunk.id != f"{chunk.doc_id}:c{ordinal}":
                detail = f"the one before it has another number than c{ordinal - 1}" if ordinal else "it is the first"
                yield Problem("chunk missing", chunk.id, detail, _RESTORE)
            elif not f"{chunk.indexed_text}\n".startswith(f"{above}\n" if above else ""):
                detail = "it is not what stands in front of the indexed text"
                yield Problem("heading differs", chunk.id, detail, _RESTORE)
            if not holds(source, place.line_start, place.line_end, chunk.text):
                detail = f"lines {place.line_start}-{place.line_end} of its source do not"
                yield Problem("lines do not hold the text", chunk.id, detail, _RESTORE)
            if hashlib.sha256(chunk.indexed_text.encode("utf-8")).hexdigest() != text_hash:
                yield Problem(
                    "hash differs from the text", chunk.id, "another text's vector may answer for it", _COMPACT
                )


def _posting_problems(snapshot: Snapshot) -> Iterator[Problem]:
    """Compares what the index holds of every chunk with the chunk's text and status."""
    for stored in bm25.every_posting(snapshot.connection):
        if isinstance(stored, bm25.DamagedSegment):
            yield Problem("postings damaged", stored.where, stored.problem, _COMPACT)
            continue
        of_chunk, doc_key_of = dict(stored.of_chunk), snapshot.document_keys(stored.first_key, stored.last_key)
        for key, found, _, term_count in snapshot.derived_between(stored.first_key, stored.last_key):
            terms = tokens(found.chunk.indexed_text)
            if of_chunk.pop(key, {}) != Counter(terms) or term_count != len(terms):
                yield Problem(
                    "postings differ from the text", found.chunk.id, "keyword search is wrong for it", _COMPACT
                )
            elif stored.facts_of_chunk is not None and stored.facts_of_chunk.get(key) != (doc_key_of[key], term_count):
                detail = "its document or its length is another in the keyword index"
                yield Problem("postings differ from the text", found.chunk.id, detail, _COMPACT)
        for key in of_chunk:
            yield Problem("postings without a chunk", f"{stored.where}, chunk {key}", "the chunk is gone", _COMPACT)
        if stored.in_force is not None:
            current = snapshot.current_chunk_keys(stored.first_key, stored.last_key)
            if differing := sorted(stored.in_force ^ current):
                detail = (
                    f"what is in force is not so by the documents for {len(differing)} chunks, first {differing[0]}"
                )
                yield Problem("marks differ", stored.where, detail, _COMPACT)


def _statistics_problems(snapshot: Snapshot) -> Iterator[Problem]:
    kept = bm25.kept_statistics(snapshot.connection)
    try:
        counted = bm25.rebuilt_statistics(snapshot.connection)
    except bm25.DamagedPostings:
        return  # named above, and nothing can be counted
    if kept[:2] != counted[:2]:
        detail = f"kept N = {kept[0]}, length {kept[1]}; counted N = {counted[0]}, length {counted[1]}"
        yield Problem("BM25 totals differ", "lexical_totals", detail, _COMPACT)
    for term in sorted(kept[2].keys() | counted[2].keys()):
        if kept[2].get(term) != counted[2].get(term):
            detail = f"kept n = {kept[2].get(term, 0)}, counted n = {counted[2].get(term, 0)}"
            yield Problem("BM25 term differs", term, detail, _COMPACT)


def _vector_problems(snapshot: Snapshot) -> Iterator[Problem]:
    settings: Settings | None = snapshot.settings
    if settings is None or settings.embedder_key is None or settings.embedder is None:
        return
    every = [text_hash for doc_key, _ in snapshot.content_hashes() for text_hash in snapshot.text_hashes(doc_key)]
    missing = vectors.missing(snapshot.connection, settings.embedder_key, every)
    if missing:
        yield Problem("vectors missing", f"{len(missing)} texts", "see the view index_gaps", _EMBED)
    for text_hash in vectors.damaged(snapshot.connection, settings.embedder_key, settings.embedder.dimension):
        yield Problem("vector damaged", text_hash, "wrong width, or not of length 1", _EMBED)
    for sentence in vectors.code_problems(snapshot.connection, settings.embedder_key, snapshot.state.change_number):
        yield Problem("vector codes differ", "vector_codes", sentence, _COMPACT)


def _foreign_vectors(store: Store, embedder: Embedder) -> Iterator[Problem]:
    """Embeds every text again, in batches between which no snapshot is held."""
    given = identity(embedder)
    with store.read("checking") as snapshot:
        settings = snapshot.settings
        every = [text_hash for doc_key, _ in snapshot.content_hashes() for text_hash in snapshot.text_hashes(doc_key)]
    if settings is None or settings.embedder_key is None or settings.embedder != given:
        stored = str(settings.embedder if settings else None)
        raise EmbedderMismatch(embedder=str(given), stored=stored, given=str(given))
    for text_hashes in _batched(dict.fromkeys(every), _TEXTS_AT_ONCE):
        with store.read("checking") as snapshot:
            text_of = snapshot.texts_of(text_hashes)
            vector_of = vectors.stored(snapshot.connection, settings.embedder_key, given.dimension, text_hashes)
        names = [text_hash for text_hash in text_hashes if text_hash in vector_of and text_hash in text_of]
        made = embed_in_batches(embedder, [text_of[name] for name in names], [f"text {name[:12]}" for name in names])
        for name, vector in zip(names, made, strict=True):
            cosine = float(vector.astype(np.float64) @ vector_of[name])
            if cosine < _SAME_TEXT:
                detail = f"its cosine with the vector of its text is {cosine:.3f}; it is another text's"
                yield Problem("vector of another text", name, detail, _REEMBED)


def _batched(every: Iterable[str], size: int) -> Iterator[list[str]]:
    left = iter(every)
    while some := list(islice(left, size)):
        yield some
