"""What a reader sees of a file, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.crash.operations import QUESTIONS, RUN_AT
from evidencedesk import Desk, bm25, schema
from evidencedesk.connections import connect_database

State = dict[str, list[tuple[Any, ...]]]

_OF_EACH_DOCUMENT = "SELECT {} FROM chunks c JOIN documents d ON d.doc_key = c.doc_key"
_OF_EACH_VECTOR = (
    "SELECT e.name, e.dimension, e.fingerprint, v.text_hash, v.embedding "
    "FROM vectors v JOIN embedders e ON e.embedder_key = v.embedder_key"
)
_PLAIN = ("documents", "desk", "embedders", "lexical_terms", "lexical_totals")
_PLAIN += ("answers", "answer_hits", "answer_claims", "answer_citations", "guard_fits", "guard_weights")
_NUMBERS_ONLY = {"doc_key", "chunk_key", "term_key", "embedder_key", "change_number"}
"""Columns whose values depend on how often something was tried."""


def state_of(path: Path) -> State | None:
    """All that a file holds, whatever its revision, without what merely numbers rows; None when there is no file.

    Not the packed postings and codes, which `Desk.check` compares with the text, nor evaluations, of which there is one
    for each run of a gate.
    """
    if not path.exists():
        return None
    with closing(connect_database(path, read_only=True)) as database, database.read() as connection:

        def rows(query: str) -> list[tuple[Any, ...]]:
            return sorted((tuple(row) for row in connection.exec_driver_sql(query)), key=repr)

        def columns(table: str, leaving_out: set[str] = _NUMBERS_ONLY) -> list[str]:
            names = [row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({table})")]
            return [name for name in names if name not in leaving_out]

        state = {"revision": [(schema.revision_of(connection),)]}
        for table in _PLAIN:
            if names := columns(table):
                state[f"{table} columns"] = [tuple(names)]
                state[table] = rows(f"SELECT {', '.join(names)} FROM {table}")
        if names := columns("chunks"):
            state["chunks"] = rows(_OF_EACH_DOCUMENT.format(", ".join(["d.doc_id", *(f"c.{name}" for name in names)])))
            state["vectors"] = rows(_OF_EACH_VECTOR)
        return state


def is_set_up(state: State | None) -> bool:
    """Whether it is a desk of this package's schema, with its settings."""
    return state is not None and state["revision"] == [(schema.HEAD,)] and state["desk"] != []


@dataclass(frozen=True, slots=True)
class Look:
    """A file at the head, as a reader sees it."""

    found: list[tuple[Any, ...]]
    """What searches find, with every score."""
    problems: list[str]


def look_at(path: Path) -> Look:
    """Search a file and look for what is wrong with it; writes nothing."""
    with Desk.open(path, read_only=True, clock=lambda: RUN_AT) as desk:
        found = [
            (mode, hit.chunk, hit.score, hit.bm25, hit.cosine, hit.keyword_rank, hit.vector_rank)
            for question, mode in QUESTIONS
            for hit in desk.search(question, mode=mode)
        ]
        problems = [f"check: {p.kind} in {p.subject}: {p.detail}" for p in desk.check().problems]
        with desk.store.read() as snapshot:
            if bm25.kept_statistics(snapshot.connection) != bm25.rebuilt_statistics(snapshot.connection):
                problems.append("the kept statistics are not those of a rebuild")
            query = (
                "SELECT run_key FROM runs r "
                "WHERE case_count <> (SELECT count(*) FROM run_cases c WHERE c.run_key = r.run_key)"
            )
            runs = snapshot.connection.exec_driver_sql(query)
            problems += [f"run {run} lacks cases" for (run,) in runs]
    return Look(found, problems)


def damaged(path: Path) -> Iterator[str]:
    """What SQLite itself finds wrong with a file of any revision."""
    with closing(connect_database(path, read_only=True)) as database, database.read() as connection:
        for pragma in ("integrity_check", "foreign_key_check"):
            for row in connection.exec_driver_sql(f"PRAGMA {pragma}"):
                if tuple(row) != ("ok",):
                    yield f"{pragma}: {tuple(row)}"


def torn(states: Sequence[State | None]) -> Iterator[str]:
    """Each document that in some state has neither its former text and chunks, whole, nor its new ones."""

    def texts(state: State | None) -> dict[str, tuple[Any, ...]]:
        if state is None:
            return {}
        return {
            row["doc_id"]: (row["source"], [chunk for chunk in state["chunks"] if chunk[0] == row["doc_id"]])
            for row in (dict(zip(state["documents columns"][0], values, strict=True)) for values in state["documents"])
        }

    former, new = texts(states[0]), texts(states[-1])
    for number, state in enumerate(states):
        between = texts(state)
        for doc_id in former.keys() | between.keys():
            if between.get(doc_id) not in (former.get(doc_id), new.get(doc_id)):
                yield f"state {number}: {doc_id} is neither as it was nor as it will be"
