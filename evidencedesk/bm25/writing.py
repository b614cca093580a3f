"""Writing the index, inside the caller's transaction: chunks come, enter into force, leave it, and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, islice

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.bm25.packing import SEGMENT_CHUNKS, PostingArrays, pack_rows
from evidencedesk.bm25.segments import (
    Content,
    drop_segments,
    fold_when_due,
    mark,
    packed_through,
    read_rows,
    segments,
    write_segment,
)
from evidencedesk.records import StatusChange, join_indexed
from evidencedesk.store import Transaction, in_lists, tuples
from evidencedesk.text import tokens

_REBUILD_BATCH = 4096
"""Chunks whose terms a rebuild holds in memory at a time."""


def add_chunks(connection: sa.Connection, terms_of: Mapping[int, Sequence[str]]) -> None:
    """Store the postings of new chunks (chunk key -> its terms, repeated). They count once they enter into force.

    They stay in rows of their own until a later write folds them; what has gathered before is folded first when it is
    due.
    """
    if not terms_of:
        return
    fold_when_due(connection, min(terms_of))
    counts = {key: Counter(terms) for key, terms in terms_of.items()}
    key_of = _number(connection, dict.fromkeys(chain.from_iterable(counts.values())))
    rows = [
        (chunk_key, *pack_rows([(key_of[term], frequency) for term, frequency in counted.items()]))
        for chunk_key, counted in counts.items()
    ]
    connection.exec_driver_sql(
        "INSERT INTO lexical_unpacked (chunk_key, term_keys, frequencies) VALUES (?, ?, ?)", rows
    )


def leave_force(connection: sa.Connection, doc_key: int) -> None:
    """Take a document's chunks out of the statistics; call before its chunks are deleted."""
    _count(connection, {doc_key: -1})


def settle_line(transaction: Transaction, family: str, lang: str) -> list[StatusChange]:
    """Settle a line of versions and carry every change of what is in force into the statistics."""
    changes = transaction.settle_line(family, lang)
    signs = {doc_key: (change.after == "current") - (change.before == "current") for doc_key, change in changes}
    _count(transaction.connection, {doc_key: sign for doc_key, sign in signs.items() if sign})
    return [change for _, change in changes]


def remove_chunks(connection: sa.Connection, doc_key: int) -> None:
    """Delete the postings of a document's chunks.

    Postings that are packed are marked as gone; a later fold, or `rebuild`, drops them from the file, and `rebuild`
    drops the terms that no chunk holds any more. A document in force leaves it first (`leave_force`).
    """
    mine = "SELECT chunk_key FROM chunks WHERE doc_key = ?"
    connection.exec_driver_sql(f"DELETE FROM lexical_unpacked WHERE chunk_key IN ({mine})", (doc_key,))
    query = f"{mine} AND chunk_key <= ? ORDER BY chunk_key"
    packed = connection.exec_driver_sql(query, (doc_key, packed_through(connection))).scalars().all()
    mark(connection, packed, in_force=False, removed=True)


def rebuild(transaction: Transaction, chunks: Iterable[tuple[int, Sequence[str]]]) -> None:
    """Make the index anew, all of it packed; the statistics follow the stored statuses.

    `chunks`: the key and the terms of every chunk, in the order of keys. They are read once, a segment at a time.
    """
    connection = transaction.connection
    drop_segments(connection, [segment.key for segment in segments(connection)])
    # Rows of segments that are gone would have no one to drop them.
    for table in ("lexical_packed", "lexical_marks", "lexical_unpacked", "lexical_changes", "lexical_terms"):
        connection.exec_driver_sql(f"DELETE FROM {table}")
    query = "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'lexical_terms'"
    first_key = int(connection.exec_driver_sql(query).scalar_one())
    number_of: dict[str, int] = {}
    current = np.zeros(0, dtype=np.int64)
    given, pending = iter(chunks), None
    while some := list(islice(given, _REBUILD_BATCH)):
        content = _content(connection, some, number_of, first_key)
        numbers = content.postings.term_keys - first_key
        current = _with_counts(current, numbers[content.in_force[content.postings.numbers]], len(number_of))
        if pending is not None and len(pending.chunk_keys) + len(some) > SEGMENT_CHUNKS:
            write_segment(connection, pending)
            pending = None
        pending = content if pending is None else pending.followed_by(content)
    if pending is not None:
        write_segment(connection, pending)
    rows = [
        (first_key + number, term, in_force)
        for (term, number), in_force in zip(number_of.items(), current.tolist(), strict=True)
    ]
    if rows:
        connection.exec_driver_sql("INSERT INTO lexical_terms (term_key, term, chunks_in_force) VALUES (?, ?, ?)", rows)
    query = (
        "SELECT count(*), coalesce(sum(c.term_count), 0) FROM chunks c JOIN documents d ON d.doc_key = c.doc_key "
        "WHERE d.status = 'current'"
    )
    totals = tuple(connection.exec_driver_sql(query).one())
    connection.exec_driver_sql("INSERT OR REPLACE INTO lexical_totals VALUES (1, ?, ?)", totals)


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


def _number(connection: sa.Connection, terms: Collection[str]) -> dict[str, int]:
    """The number of each term, new ones included."""
    keys = _term_keys(connection, terms)
    new = [(term,) for term in terms if term not in keys]
    if new:
        connection.exec_driver_sql("INSERT INTO lexical_terms (term, chunks_in_force) VALUES (?, 0)", new)
        keys |= _term_keys(connection, [term for (term,) in new])
    return keys


def _term_keys(connection: sa.Connection, terms: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in in_lists(terms):
        query = f"SELECT term, term_key FROM lexical_terms WHERE term IN ({_places(some)})"
        found.update(tuples(connection.exec_driver_sql(query, tuple(some))))
    return found


def _count(connection: sa.Connection, signs: Mapping[int, int]) -> None:
    """Count the chunks of documents in (1) or out (-1), by document key."""
    if not signs:
        return
    query = (
        "SELECT chunk_key, doc_key, term_count, preamble, text FROM chunks "
        f"WHERE doc_key IN ({_places(signs)}) ORDER BY chunk_key"
    )
    rows = tuples(connection.exec_driver_sql(query, tuple(signs)))
    through = packed_through(connection)
    by_key, by_term = Counter[int](), Counter[str]()
    sign_of = {row[0]: signs[row[1]] for row in rows}
    # Terms are read from the rows of chunks that are not packed; of those that are, from the text: a second index, by
    # chunk, would be as large as the first. `check` compares all of it with the text.
    unpacked, postings = read_rows(connection, [key for key in sign_of if key > through])
    signs_of_rows = np.array([sign_of[key] for key in unpacked.tolist()], dtype=np.int64)
    for term_key, number in zip(postings.term_keys.tolist(), postings.numbers.tolist(), strict=True):
        by_key[term_key] += int(signs_of_rows[number])
    for key, _, _, preamble, text in rows:
        if key <= through:
            for term in set(tokens(join_indexed(preamble, text))):
                by_term[term] += sign_of[key]
    for term, term_key in _term_keys(connection, by_term).items():
        by_key[term_key] += by_term[term]
    changes = sorted((term_key, change) for term_key, change in by_key.items() if change)
    if changes:
        connection.exec_driver_sql(
            "INSERT INTO lexical_changes (term_key, change) VALUES (?, ?) "
            "ON CONFLICT (term_key) DO UPDATE SET change = change + excluded.change",
            changes,
        )
    count, length = sum(sign_of.values()), sum(sign_of[row[0]] * row[2] for row in rows)
    connection.exec_driver_sql(
        "UPDATE lexical_totals SET chunks_in_force = chunks_in_force + ?, terms_in_force = terms_in_force + ?",
        (count, length),
    )
    for sign in set(signs.values()):
        mine = [row[0] for row in rows if row[0] <= through and sign_of[row[0]] == sign]
        mark(connection, mine, in_force=sign > 0)


def _places(values: Collection[object]) -> str:
    return ", ".join("?" * len(values))
