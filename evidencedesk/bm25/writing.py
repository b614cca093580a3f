"""Writing the index, inside the caller's transaction: chunks come, enter into force, leave it, and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.bm25.packing import SEGMENT_CHUNKS, PostingArrays
from evidencedesk.bm25.segments import (
    Content,
    drop_segments,
    fold_when_due,
    mark,
    packed_through,
    segments,
    write_segment,
)
from evidencedesk.records import StatusChange, join_indexed
from evidencedesk.store import Transaction, in_lists
from evidencedesk.text import tokens

_REBUILD_BATCH = 4096
"""Chunks whose terms a rebuild holds in memory at a time."""


def add_chunks(connection: sa.Connection, terms_of: Mapping[int, Sequence[str]]) -> None:
    """Store the postings of new chunks (chunk key -> its terms, repeated). They count once they enter into force.

    They stay rows until a later write folds them; what has gathered before is folded first when it is due.
    """
    if not terms_of:
        return
    fold_when_due(connection, min(terms_of))
    counts = {key: Counter(terms) for key, terms in terms_of.items()}
    held = Counter(term for counted in counts.values() for term in counted)
    keys = _number(connection, held)
    rows = [
        (keys[term], chunk_key, frequency)
        for chunk_key, counted in counts.items()
        for term, frequency in counted.items()
    ]
    if rows:
        connection.exec_driver_sql(
            "INSERT INTO lexical_postings (term_key, chunk_key, frequency) VALUES (?, ?, ?)", rows
        )


def enter_force(connection: sa.Connection, doc_key: int) -> None:
    """Count a document's chunks into the statistics; the caller has just made it current."""
    _count(connection, doc_key, 1)


def leave_force(connection: sa.Connection, doc_key: int) -> None:
    """Take a document's chunks out of the statistics; call before its chunks are deleted."""
    _count(connection, doc_key, -1)


def settle_line(transaction: Transaction, family: str, lang: str) -> list[StatusChange]:
    """Settle a line of versions and carry every change of what is in force into the statistics."""
    changes = transaction.settle_line(family, lang)
    for doc_key, change in changes:
        if change.before == "current":
            leave_force(transaction.connection, doc_key)
        if change.after == "current":
            enter_force(transaction.connection, doc_key)
    return [change for _, change in changes]


def remove_chunks(connection: sa.Connection, doc_key: int) -> None:
    """Delete the postings of a document's chunks, and the terms that no other chunk holds.

    Postings that are packed are marked as gone; a later fold, or `rebuild`, drops them from the file. A document in
    force leaves it first (`leave_force`).
    """
    held = _terms_held(connection, doc_key)
    _add_to(connection, "chunks_held", {key: -count for key, count in held.items()})
    mine = "SELECT chunk_key FROM chunks WHERE doc_key = ?"
    connection.exec_driver_sql(f"DELETE FROM lexical_postings WHERE chunk_key IN ({mine})", (doc_key,))
    for some in in_lists(held):
        connection.exec_driver_sql(
            f"DELETE FROM lexical_terms WHERE chunks_held = 0 AND term_key IN ({_places(some)})", tuple(some)
        )
    mark(connection, _packed_chunks(connection, doc_key), in_force=False, removed=True)


def rebuild(transaction: Transaction, chunks: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Make the index anew, all of it packed; the statistics follow the stored statuses.

    `chunks`: the key and the terms of every chunk, in the order of keys. They are read once, a segment at a time.
    """
    connection = transaction.connection
    drop_segments(connection, [segment.key for segment in segments(connection)])
    # Rows of segments that are gone would have no one to drop them.
    for table in ("lexical_packed", "lexical_marks", "lexical_postings", "lexical_terms"):
        connection.exec_driver_sql(f"DELETE FROM {table}")
    query = "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'lexical_terms'"
    first_key = int(connection.exec_driver_sql(query).scalar_one())
    number_of: dict[str, int] = {}
    held, current = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    given, pending = iter(chunks), None
    while some := list(islice(given, _REBUILD_BATCH)):
        content = _content(connection, some, number_of, first_key)
        numbers = content.postings.term_keys - first_key
        held = _with_counts(held, numbers, len(number_of))
        current = _with_counts(current, numbers[content.in_force[content.postings.numbers]], len(number_of))
        if pending is not None and len(pending.chunk_keys) + len(some) > SEGMENT_CHUNKS:
            write_segment(connection, pending)
            pending = None
        pending = content if pending is None else pending.followed_by(content)
    if pending is not None:
        write_segment(connection, pending)
    rows = [
        (first_key + number, term, in_force, stored)
        for (term, number), in_force, stored in zip(number_of.items(), current.tolist(), held.tolist(), strict=True)
    ]
    if rows:
        connection.exec_driver_sql(
            "INSERT INTO lexical_terms (term_key, term, chunks_in_force, chunks_held) VALUES (?, ?, ?, ?)", rows
        )
    query = (
        "SELECT count(*), coalesce(sum(c.term_count), 0) FROM chunks c JOIN documents d ON d.doc_key = c.doc_key "
        "WHERE d.status = 'current'"
    )
    totals = tuple(connection.exec_driver_sql(query).one())
    connection.exec_driver_sql("UPDATE lexical_totals SET chunks_in_force = ?, terms_in_force = ?", totals)


def _content(
    connection: sa.Connection, chunks: Sequence[tuple[int, Sequence[str]]], number_of: dict[str, int], first_key: int
) -> Content:
    """Chunks that are stored, ready to be packed; terms that `number_of` lacks get the next numbers, from 0."""
    table = np.fromiter(
        chain.from_iterable(
            (number_of.setdefault(term, len(number_of)), number, tf)
            for number, (_, terms) in enumerate(chunks)
            for term, tf in Counter(terms).items()
        ),
        dtype=np.int64,
    ).reshape(-1, 3)
    keys = np.array([key for key, _ in chunks], dtype=np.int64)
    query = (
        "SELECT c.chunk_key, c.doc_key, d.status = 'current' FROM chunks c JOIN documents d ON d.doc_key = c.doc_key "
        "WHERE c.chunk_key BETWEEN ? AND ? ORDER BY c.chunk_key"
    )
    stored = connection.exec_driver_sql(query, (int(keys[0]), int(keys[-1]))).fetchall()
    if [row[0] for row in stored] != keys.tolist():
        raise ValueError("not every chunk was given, or not in the order of keys")
    return Content(
        keys, np.array([row[1] for row in stored], dtype=np.int64),
        np.array([len(terms) for _, terms in chunks], dtype=np.int64),
        np.array([row[2] for row in stored], dtype=np.bool_), np.zeros(len(keys), dtype=np.bool_),
        PostingArrays(table[:, 0] + first_key, table[:, 1], table[:, 2]),
    )  # fmt: skip


def _with_counts(counts: NDArray[np.int64], numbers: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The counts, `size` of them, with one more for each time that a number comes."""
    found = np.bincount(numbers, minlength=size)
    found[: len(counts)] += counts
    return found


def _number(connection: sa.Connection, held: Mapping[str, int]) -> dict[str, int]:
    """The number of each term, new ones included; `held` says in how many more chunks each stands from now on."""
    keys = _term_keys(connection, held)
    new = [(term, 0, count) for term, count in held.items() if term not in keys]
    _add_to(connection, "chunks_held", {key: held[term] for term, key in keys.items()})
    if new:
        connection.exec_driver_sql(
            "INSERT INTO lexical_terms (term, chunks_in_force, chunks_held) VALUES (?, ?, ?)", new
        )
        keys |= _term_keys(connection, [term for term, _, _ in new])
    return keys


def _term_keys(connection: sa.Connection, terms: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in in_lists(terms):
        query = f"SELECT term, term_key FROM lexical_terms WHERE term IN ({_places(some)})"
        found.update((row[0], row[1]) for row in connection.exec_driver_sql(query, tuple(some)))
    return found


def _count(connection: sa.Connection, doc_key: int, sign: int) -> None:
    held = _terms_held(connection, doc_key)
    _add_to(connection, "chunks_in_force", {key: sign * count for key, count in held.items()})
    query = "SELECT count(*), coalesce(sum(term_count), 0) FROM chunks WHERE doc_key = ?"
    count, length = connection.exec_driver_sql(query, (doc_key,)).one()
    connection.exec_driver_sql(
        "UPDATE lexical_totals SET chunks_in_force = chunks_in_force + ?, terms_in_force = terms_in_force + ?",
        (sign * count, sign * length),
    )
    mark(connection, _packed_chunks(connection, doc_key), in_force=sign > 0)


def _terms_held(connection: sa.Connection, doc_key: int) -> Counter[int]:
    """In how many chunks of a document each of its terms stands, by the term's number.

    Counted from rows where the chunks are not packed; where they are, from their text, which saves a second index
    by chunk. `check` compares all of it with the text.
    """
    query = (
        "SELECT term_key, count(*) FROM lexical_postings "
        "WHERE chunk_key IN (SELECT chunk_key FROM chunks WHERE doc_key = ?) GROUP BY term_key"
    )
    held = Counter({row[0]: row[1] for row in connection.exec_driver_sql(query, (doc_key,))})
    query = "SELECT preamble, text FROM chunks WHERE doc_key = ? AND chunk_key <= ?"
    packed = Counter[str]()
    for preamble, text in connection.exec_driver_sql(query, (doc_key, packed_through(connection))):
        packed.update(set(tokens(join_indexed(preamble, text))))
    key_of = _term_keys(connection, packed)
    held.update({key_of[term]: count for term, count in packed.items() if term in key_of})
    return held


def _packed_chunks(connection: sa.Connection, doc_key: int) -> list[int]:
    query = "SELECT chunk_key FROM chunks WHERE doc_key = ? AND chunk_key <= ? ORDER BY chunk_key"
    return [row[0] for row in connection.exec_driver_sql(query, (doc_key, packed_through(connection)))]


def _add_to(connection: sa.Connection, column: str, changes: Mapping[int, int]) -> None:
    """Change a count of terms, by the term's number."""
    if changes:
        connection.exec_driver_sql(
            f"UPDATE lexical_terms SET {column} = {column} + ? WHERE term_key = ?",
            [(change, key) for key, change in changes.items()],
        )


def _places(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
