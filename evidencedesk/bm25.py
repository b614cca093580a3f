"""The lexical index: postings of every chunk, statistics of the chunks in force, exact BM25.

Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009) with the idf that stays above
zero, as Lucene has it:

    score(q, d) = sum over distinct terms t of q:  idf(t) * tf / (tf + k1 * (1 - b + b * len(d) / avg_len))
    idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))

N, n and avg_len are those of the chunks in force: today's are rows of the file, kept by the transaction that
changes a chunk or a status; those of another instant are counted from the postings. Filters on language or family
never change them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.models import LexicalTotalsRow, PostingRow, TermRow, table_of
from evidencedesk.records import Passage, SourceDocument, StatusChange, require_count
from evidencedesk.store import Scope, Store, Transaction, chunk_heads, chunks, documents, in_lists, open_store
from evidencedesk.text import tokens

K1 = 1.2
B = 0.75

_terms = table_of(TermRow)
_postings = table_of(PostingRow)
_totals = table_of(LexicalTotalsRow)


# ---------------------------------------------------------------- writing, inside the caller's transaction


def add_chunks(connection: sa.Connection, terms_of: Mapping[int, Sequence[str]]) -> None:
    """Store the postings of new chunks (chunk key -> its terms, repeated). They count once they enter into force."""
    counts = {key: Counter(terms) for key, terms in terms_of.items()}
    keys = _term_keys(connection, sorted({term for counted in counts.values() for term in counted}))
    rows = [
        {"term_key": keys[term], "chunk_key": chunk_key, "frequency": frequency}
        for chunk_key, counted in counts.items()
        for term, frequency in counted.items()
    ]
    if rows:
        connection.execute(sa.insert(PostingRow), rows)


def _term_keys(connection: sa.Connection, terms: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}

    def look_up(some: Sequence[str]) -> None:
        for part in in_lists(some):
            query = sa.select(_terms.c.term, _terms.c.term_key).where(_terms.c.term.in_(part))
            found.update((term, key) for term, key in connection.execute(query))

    look_up(terms)
    new = [term for term in terms if term not in found]
    if new:
        connection.execute(sa.insert(TermRow), [{"term": term, "chunks_in_force": 0} for term in new])
        look_up(new)
    return found


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


def rebuild(transaction: Transaction, terms_of: Mapping[int, Sequence[str]]) -> None:
    """Make the index anew from the terms of every chunk, by key; the statistics follow the stored statuses."""
    connection = transaction.connection
    for table in (PostingRow, TermRow):
        connection.execute(sa.delete(table))
    connection.execute(sa.update(_totals).values(chunks_in_force=0, terms_in_force=0))
    add_chunks(connection, terms_of)
    for doc_key in connection.scalars(sa.select(documents.c.doc_key).where(Scope().in_force())).all():
        enter_force(connection, doc_key)


def _count(connection: sa.Connection, doc_key: int, sign: int) -> None:
    mine = sa.select(chunks.c.chunk_key).where(chunks.c.doc_key == doc_key)
    of_terms = (
        sa.select(_postings.c.term_key, sa.func.count())
        .where(_postings.c.chunk_key.in_(mine))
        .group_by(_postings.c.term_key)
    )
    changes = [{"key": key, "change": sign * count} for key, count in connection.execute(of_terms)]
    if changes:
        connection.execute(
            sa.update(_terms)
            .where(_terms.c.term_key == sa.bindparam("key"))
            .values(chunks_in_force=_terms.c.chunks_in_force + sa.bindparam("change")),
            changes,
        )
    count, length = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(chunks.c.term_count), 0)).where(
            chunks.c.doc_key == doc_key
        )
    ).one()
    connection.execute(
        sa.update(_totals).values(
            chunks_in_force=_totals.c.chunks_in_force + sign * count,
            terms_in_force=_totals.c.terms_in_force + sign * length,
        )
    )


def remove_chunks(connection: sa.Connection, doc_key: int) -> None:
    """Delete the postings of a document's chunks, and the terms that no other chunk holds.

    A document in force leaves it first (`leave_force`): the statistics are counted from the postings.
    """
    mine = sa.select(chunks.c.chunk_key).where(chunks.c.doc_key == doc_key)
    held = sa.select(_postings.c.term_key).where(_postings.c.chunk_key.in_(mine)).distinct()
    terms = list(connection.scalars(held))
    connection.execute(sa.delete(PostingRow).where(PostingRow.chunk_key.in_(mine)))
    used = sa.exists().where(_postings.c.term_key == _terms.c.term_key)
    for some in in_lists(terms):
        connection.execute(sa.delete(TermRow).where(TermRow.term_key.in_(some), ~used))


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs to know of the chunks in force in a scope."""

    chunk_count: int
    total_length: int
    document_frequency: Mapping[str, int]
    """n of each term that was asked about; 0 for a term that stands nowhere in force."""

    @property
    def average_length(self) -> float:
        """Terms in a chunk on average; 0.0 when there is none."""
        return self.total_length / self.chunk_count if self.chunk_count else 0.0

    def idf(self, term: str) -> float:
        """ln(1 + (N - n + 0.5) / (n + 0.5)); above 0 for every n <= N."""
        n = self.document_frequency.get(term, 0)
        return math.log(1 + (max(self.chunk_count, n) - n + 0.5) / (n + 0.5))


@dataclass(frozen=True, slots=True)
class TermMatches:
    """The chunks in scope that hold a term, and what it adds to each one's score."""

    term: str
    chunk_keys: NDArray[np.int64]
    parts: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Matches:
    """Every chunk in scope that shares a term with the question, with its exact BM25."""

    chunk_keys: NDArray[np.int64]
    """Ascending, distinct."""
    scores: NDArray[np.float64]
    """Same shape: all above 0."""
    terms: tuple[TermMatches, ...]
    """By term, in the order in which the parts are added."""
    idf_of: Mapping[str, float]
    """The idf of every distinct term of the question, those that stand nowhere included."""

    def idf_shares(self) -> dict[int, float]:
        """Share of the question's idf weight whose terms a chunk holds, in 0..1, by chunk key."""
        total = sum(self.idf_of.values())
        held: dict[int, float] = {}
        for matches in self.terms:
            for key in matches.chunk_keys.tolist():
                held[key] = held.get(key, 0.0) + self.idf_of[matches.term]
        return {key: min(1.0, weight / total) for key, weight in held.items()}

    def restricted(self, terms: Iterable[str]) -> dict[int, float]:
        """Scores that only some of the question's terms give, by chunk key."""
        wanted = set(terms)
        scores: dict[int, float] = {}
        for matches in self.terms:
            if matches.term in wanted:
                for key, part in zip(matches.chunk_keys.tolist(), matches.parts.tolist(), strict=True):
                    scores[key] = scores.get(key, 0.0) + part
        return scores


def match(
    connection: sa.Connection, terms: Iterable[str], scope: Scope, chunk_keys: Collection[int] | None = None
) -> Matches:
    """Exact BM25 of every chunk in scope that holds one of the terms; with `chunk_keys`, of those chunks only."""
    distinct = sorted(set(terms))
    columns = (
        _terms.c.term,
        _postings.c.chunk_key,
        _postings.c.frequency,
        chunks.c.term_count,
        scope.passes().label("eligible"),
    )
    rows_of: dict[str, list[tuple[int, int, int, bool]]] = {term: [] for term in distinct}
    query = (
        sa.select(*columns)
        .join_from(_terms, _postings)
        .join(chunks, chunks.c.chunk_key == _postings.c.chunk_key)
        .join(documents, documents.c.doc_key == chunks.c.doc_key)
        .where(scope.in_force())
        .order_by(_postings.c.chunk_key)
    )
    if scope.as_of is None:
        # Today's n is a kept row. Another day's is counted from these rows, so there the filters wait.
        query = query.where(scope.passes())
        if chunk_keys is not None:
            query = query.where(_postings.c.chunk_key.in_(chunk_keys))
    for some in in_lists(distinct):
        for term, key, frequency, length, eligible in connection.execute(query.where(_terms.c.term.in_(some))):
            rows_of[term].append((key, frequency, length, bool(eligible)))
    statistics = _statistics(connection, scope, {term: len(rows) for term, rows in rows_of.items()})
    idf_of = {term: statistics.idf(term) for term in distinct}
    matched: list[TermMatches] = []
    for term in distinct:
        eligible_rows = [row[:3] for row in rows_of[term] if row[3] and (chunk_keys is None or row[0] in chunk_keys)]
        if eligible_rows:
            keys, frequencies, lengths = np.array(eligible_rows, dtype=np.int64).T
            matched.append(TermMatches(term, keys, _part(statistics, term, frequencies, lengths)))
    if not matched:
        nothing = np.zeros(0, dtype=np.int64)
        return Matches(nothing, np.zeros(0), (), idf_of)
    every_key, place = np.unique(np.concatenate([m.chunk_keys for m in matched]), return_inverse=True)
    scores = np.zeros(len(every_key))
    # One addition after the other in the order of terms, so that `score` and `explain` give the same last digit.
    np.add.at(scores, place, np.concatenate([m.parts for m in matched]))
    return Matches(every_key, scores, tuple(matched), idf_of)


def _part(
    statistics: Statistics, term: str, frequency: NDArray[np.int64], length: NDArray[np.int64]
) -> NDArray[np.float64]:
    norm = K1 * (1 - B + B * length / statistics.average_length)
    return statistics.idf(term) * frequency / (frequency + norm)


def statistics(connection: sa.Connection, terms: Iterable[str], scope: Scope) -> Statistics:
    """N, total length and each term's n over the chunks in force in the scope's time; its filters do not count."""
    distinct = sorted(set(terms))
    counted = dict.fromkeys(distinct, 0)
    if scope.as_of is not None:
        for some in in_lists(distinct):
            counted.update(_counts(connection, scope, _terms.c.term.in_(some)))
    return _statistics(connection, scope, counted)


def _statistics(connection: sa.Connection, scope: Scope, counted: Mapping[str, int]) -> Statistics:
    if scope.as_of is None:
        count, length = _kept_totals(connection)
        query = sa.select(_terms.c.term, _terms.c.chunks_in_force)
        kept: dict[str, int] = {}
        for some in in_lists(counted):
            kept.update((term, n) for term, n in connection.execute(query.where(_terms.c.term.in_(some))))
        return Statistics(count, length, kept)
    count, length = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(chunks.c.term_count), 0))
        .select_from(chunks)
        .join(documents)
        .where(scope.in_force())
    ).one()
    return Statistics(count, length, dict(counted))


def _kept_totals(connection: sa.Connection) -> tuple[int, int]:
    row = connection.execute(sa.select(_totals.c.chunks_in_force, _totals.c.terms_in_force)).one_or_none()
    if row is None:
        raise LookupError("the row of lexical_totals is gone; `evidencedesk check` says what to do")
    return row.chunks_in_force, row.terms_in_force


# ---------------------------------------------------------------- proof


def rebuilt_statistics(connection: sa.Connection) -> tuple[int, int, dict[str, int]]:
    """(N, total length, n by term) counted anew from the postings and statuses, for comparing with the kept rows."""
    count, length = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(chunks.c.term_count), 0))
        .select_from(chunks)
        .join(documents)
        .where(Scope().in_force())
    ).one()
    return count, length, _counts(connection, Scope(), sa.true())


def _counts(connection: sa.Connection, scope: Scope, condition: sa.ColumnElement[bool]) -> dict[str, int]:
    """N of each term that stands in force in the scope's time, counted from the postings."""
    query = (
        sa.select(_terms.c.term, sa.func.count())
        .join_from(_terms, _postings)
        .join(chunks, chunks.c.chunk_key == _postings.c.chunk_key)
        .join(documents, documents.c.doc_key == chunks.c.doc_key)
        .where(condition, scope.in_force())
        .group_by(_terms.c.term)
    )
    return {term: n for term, n in connection.execute(query)}  # noqa: C416 - rows are no pairs to mypy


def kept_statistics(connection: sa.Connection) -> tuple[int, int, dict[str, int]]:
    """(N, total length, n by term) as the file keeps them; terms with n = 0 left out."""
    count, length = _kept_totals(connection)
    query = sa.select(_terms.c.term, _terms.c.chunks_in_force).where(_terms.c.chunks_in_force != 0)
    return count, length, {row.term: row[1] for row in connection.execute(query)}


def postings_of(connection: sa.Connection, chunk_keys: Iterable[int]) -> dict[int, dict[str, int]]:
    """Stored postings by chunk key: term -> frequency."""
    found: dict[int, dict[str, int]] = {}
    for some in in_lists(chunk_keys):
        query = (
            sa.select(_postings.c.chunk_key, _terms.c.term, _postings.c.frequency)
            .join_from(_postings, _terms)
            .where(_postings.c.chunk_key.in_(some))
        )
        for key, term, frequency in connection.execute(query):
            found.setdefault(key, {})[term] = frequency
    return found


# ---------------------------------------------------------------- for people who want to see the numbers


class HasStore(Protocol):
    """What BM25 needs of a Desk."""

    @property
    def store(self) -> Store:
        """The open store."""


@dataclass(frozen=True, slots=True)
class _InMemory:
    store: Store


class BM25:
    """Exact BM25 over the chunks in force now of an open desk. Reads only; every call is one snapshot.

    By hand, over "red bike", "blue bike" and "red helmet": idf(red) = ln(1 + 1.5/2.5) = 0.4700, and each chunk
    is as long as the average, so score(red, d1) = 0.4700 / 2.2 = 0.2136.
    """

    def __init__(self, desk: HasStore) -> None:
        self._desk = desk
        self._names: dict[str, str] = {}

    @classmethod
    def over(cls, texts: Mapping[str, str]) -> BM25:
        """BM25 over a few texts by id, each one chunk, through an in-memory desk; for lessons and tests."""
        store = open_store(":memory:")
        ranking = cls(_InMemory(store))
        with store.write("storing texts") as transaction:
            for number, (name, text) in enumerate(texts.items()):
                source = SourceDocument(name, f"text-{number}-v1", f"text-{number}", "v1", "und", "", text, ())
                terms = tokens(text)
                passage = Passage(0, "", 1, text.count("\n") + 1, "", text)
                (key,) = transaction.put_document(source, [(passage, "", len(terms))], root="")
                add_chunks(transaction.connection, {key: terms})
                settle_line(transaction, source.family, source.lang)
                ranking._names[f"{source.doc_id}:c0"] = name
        return ranking

    def idf(self, term: str) -> float:
        """The inverse document frequency of a word, read as the index reads it."""
        term = _one_term(term)
        with self._desk.store.read() as snapshot:
            return statistics(snapshot.connection, [term], snapshot.scope()).idf(term)

    def explain(self, query: str, chunk_id: str) -> dict[str, float]:
        """What each term of the query adds to the chunk's score, by term; only terms that the chunk holds.

        NotFound when there is no such chunk. A chunk that is not in force is scored with today's statistics.
        """
        stored_id = next((stored for stored, name in self._names.items() if name == chunk_id), chunk_id)
        with self._desk.store.read() as snapshot:
            key = snapshot.chunk_key(stored_id)
            held = postings_of(snapshot.connection, [key]).get(key, {})
            terms = sorted(set(tokens(query)) & set(held))
            figures = statistics(snapshot.connection, terms, snapshot.scope())
            length = np.array([sum(held.values())])
            return {term: float(_part(figures, term, np.array([held[term]]), length)[0]) for term in terms}

    def score(self, query: str, chunk_id: str) -> float:
        """BM25 of a query and a chunk; 0.0 when they share no term. NotFound when there is no such chunk."""
        return sum(self.explain(query, chunk_id).values(), 0.0)

    def search(self, query: str, k: int = 10, allowed: Iterable[str] | None = None) -> list[tuple[str, float]]:
        """The best k chunks in force with a score above 0: (chunk id, score), best first, ties by id.

        `allowed` names the chunk ids that may be found; it does not change the statistics.
        """
        require_count("k", k)
        with self._desk.store.read() as snapshot:
            found = match(snapshot.connection, tokens(query), snapshot.scope())
            heads = chunk_heads(snapshot.connection, found.chunk_keys.tolist())
            named = [
                (self._names.get(heads[key].id, heads[key].id), score)
                for key, score in zip(found.chunk_keys.tolist(), found.scores.tolist(), strict=True)
            ]
        if allowed is not None:
            permitted = set(allowed)
            named = [pair for pair in named if pair[0] in permitted]
        return sorted(named, key=lambda pair: (-pair[1], pair[0]))[:k]


def _one_term(word: str) -> str:
    found = tokens(word)
    # A code such as RD2-24 is a term as a whole, then its parts.
    if not found:
        raise ValueError(f"{word!r} holds no search term: it is a stop word or has no letter or digit")
    return found[0]
