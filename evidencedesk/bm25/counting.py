"""N, n and the lengths: as the file keeps them, as they were on another day, and counted anew for proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.bm25.packing import DamagedPostings, PostingArrays
from evidencedesk.bm25.segments import UNBOUNDED, packed_through, read_content, read_rows, segments, wrong_bounds

_BATCH = 4096
"""Unpacked chunks that are looked at together."""


@dataclass(frozen=True, slots=True)
class StoredPostings:
    """What the index holds of the chunks with keys from `first_key` on, up to `last_key`."""

    where: str
    """What to call the place in a report."""
    first_key: int
    last_key: int
    of_chunk: dict[int, dict[str, int]]
    """Term -> tf, by the key of the chunk; chunks that the index takes for gone left out."""
    in_force: set[int] | None
    """Keys of the chunks that the index takes for being in force; None: it takes that from their documents."""
    facts_of_chunk: dict[int, tuple[int, int]] | None
    """(key of its document, terms in it) as the index has them; None: it takes them from the chunk's row."""


@dataclass(frozen=True, slots=True)
class DamagedSegment:
    """A segment whose bytes cannot be what was written."""

    where: str
    problem: str


def kept_totals(connection: sa.Connection) -> tuple[int, int]:
    """(N, total length) of the chunks in force, as kept."""
    query = "SELECT chunks_in_force, terms_in_force FROM lexical_totals"
    row = connection.exec_driver_sql(query).one_or_none()
    if row is None:
        raise LookupError("the row of lexical_totals is gone; `evidencedesk check` says what to do")
    return row[0], row[1]


def kept_statistics(connection: sa.Connection) -> tuple[int, int, dict[str, int]]:
    """(N, total length, n by term) as the file keeps them; terms with n = 0 left out."""
    count, length = kept_totals(connection)
    query = (
        "SELECT term, chunks_in_force + coalesce(change, 0) FROM lexical_terms t "
        "LEFT JOIN lexical_changes c ON c.term_key = t.term_key"
    )
    return count, length, {row[0]: row[1] for row in connection.exec_driver_sql(query) if row[1]}


def rebuilt_statistics(connection: sa.Connection) -> tuple[int, int, dict[str, int]]:
    """(N, total length, n by term) counted anew from the postings and statuses, for comparing with the kept rows."""
    joined = "FROM chunks c JOIN documents d ON d.doc_key = c.doc_key WHERE d.status = 'current'"
    count, length = connection.exec_driver_sql(f"SELECT count(*), coalesce(sum(c.term_count), 0) {joined}").one()
    query = f"SELECT c.chunk_key {joined} ORDER BY c.chunk_key"
    current = np.fromiter((row[0] for row in connection.exec_driver_sql(query)), dtype=np.int64)
    return count, length, _by_term(connection, _count(connection, current))


def _count(connection: sa.Connection, chunk_keys: NDArray[np.int64]) -> dict[int, int]:
    """In how many of the given chunks (keys ascending) each term stands, by the term's number."""
    counts: dict[int, int] = {}

    def count(postings: PostingArrays, counted: NDArray[np.bool_]) -> None:
        found, times = np.unique(postings.term_keys[counted[postings.numbers]], return_counts=True)
        for term_key, n in zip(found.tolist(), times.tolist(), strict=True):
            counts[term_key] = counts.get(term_key, 0) + n

    for segment in segments(connection):
        content = read_content(connection, segment)
        count(content.postings, np.isin(content.chunk_keys, chunk_keys) & ~content.removed)
    rows_keys, rows = read_rows(connection, chunk_keys[chunk_keys > packed_through(connection)].tolist())
    count(rows, np.ones(len(rows_keys), dtype=np.bool_))
    return counts


def _by_term(connection: sa.Connection, counts: dict[int, int]) -> dict[str, int]:
    term_of = dict(_terms(connection))
    return {term_of.get(key, f"term {key}"): n for key, n in counts.items() if n}


def _terms(connection: sa.Connection) -> Iterator[tuple[int, str]]:
    for row in connection.exec_driver_sql("SELECT term_key, term FROM lexical_terms"):
        yield row[0], row[1]


# ---------------------------------------------------------------- by chunk, for proof


def every_posting(connection: sa.Connection) -> Iterator[StoredPostings | DamagedSegment]:
    """All that the index holds, by chunk, a stretch of keys at a time, and the segments that are damaged.

    The stretches follow each other and leave no key out: the last one is open at its end.
    """
    term_of = dict(_terms(connection))
    next_key = 0
    for segment in segments(connection):
        try:
            content = read_content(connection, segment)
        except DamagedPostings as error:
            yield DamagedSegment(f"segment {segment.key}", error.problem)
        else:
            of_chunk = _by_chunk(content.postings, content.chunk_keys, term_of)
            for key in content.chunk_keys[content.removed].tolist():
                of_chunk.pop(key, None)
            in_force = set(content.chunk_keys[content.in_force & ~content.removed].tolist())
            columns = (content.chunk_keys, content.document_keys, content.lengths)
            facts = {
                key: (doc_key, length) for key, doc_key, length in zip(*map(np.ndarray.tolist, columns), strict=True)
            }
            yield StoredPostings(f"segment {segment.key}", next_key, segment.last_key, of_chunk, in_force, facts)
            if content.chunk_keys[-1] != segment.last_key:
                yield DamagedSegment(f"segment {segment.key}", f"it ends with chunk {segment.last_key}, by its row")
            for term_key in wrong_bounds(connection, segment, content):
                where = f"segment {segment.key}, term {term_of.get(term_key, term_key)}"
                yield DamagedSegment(
                    where, "its bounds are not those of its postings, so that a search may pass it over"
                )
        next_key = segment.last_key + 1
    query = "SELECT chunk_key FROM lexical_unpacked WHERE chunk_key >= ? ORDER BY chunk_key"
    keys = [row[0] for row in connection.exec_driver_sql(query, (next_key,))]
    for start in range(0, max(len(keys), 1), _BATCH):
        some = keys[start : start + _BATCH]
        last_key = UNBOUNDED if start + _BATCH >= len(keys) else some[-1]
        yield StoredPostings("rows", next_key, last_key, _rows_by_chunk(connection, some, term_of), None, None)
        next_key = last_key + 1


def postings_of(connection: sa.Connection, chunk_keys: Iterable[int]) -> dict[int, dict[str, int]]:
    """Stored postings by chunk key: term -> frequency. Reads whole segments: ask for many chunks at once."""
    wanted = set(chunk_keys)
    term_of = dict(_terms(connection))
    found: dict[int, dict[str, int]] = {}
    for segment in segments(connection):
        mine = np.array(sorted(key for key in wanted if segment.first_key <= key <= segment.last_key), dtype=np.int64)
        if len(mine):
            content = read_content(connection, segment)
            held = (np.isin(content.chunk_keys, mine) & ~content.removed)[content.postings.numbers]
            some = PostingArrays(*(column[held] for column in content.postings))
            found |= _by_chunk(some, content.chunk_keys, term_of)
    found |= _rows_by_chunk(connection, wanted, term_of)
    return {key: postings for key, postings in found.items() if postings}


def _by_chunk(
    postings: PostingArrays, chunk_keys: NDArray[np.int64], term_of: dict[int, str]
) -> dict[int, dict[str, int]]:
    order = np.argsort(postings.numbers, kind="stable")
    found: dict[int, dict[str, int]] = {key: {} for key in chunk_keys.tolist()}
    for key, term_key, frequency in zip(
        chunk_keys[postings.numbers[order]].tolist(),
        postings.term_keys[order].tolist(),
        postings.frequencies[order].tolist(),
        strict=True,
    ):
        found[key][term_of.get(term_key, f"term {term_key}")] = frequency
    return found


def _rows_by_chunk(
    connection: sa.Connection, chunk_keys: Iterable[int], term_of: dict[int, str]
) -> dict[int, dict[str, int]]:
    keys, postings = read_rows(connection, chunk_keys)
    return _by_chunk(postings, keys, term_of)
