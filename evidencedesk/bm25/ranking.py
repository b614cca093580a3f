"""The best chunks by exact BM25, and the exact BM25 of given chunks.

`best` follows MaxScore (Turtle and Flood, "Query evaluation: strategies and optimizations", 1995), a term at a time.
No chunk of a segment can get more from a term than the term's best tf would give to the shortest chunk that holds it.
Terms come in falling bound; once the score of the k-th best is above what the terms that are left can give together,
no chunk that was not met yet can get in, and those that were met are looked up instead of listed. Before that point,
only chunks with a tf high enough to get in yet are taken up. Sums made on the way are in another order than a score's,
so they are compared with some slack, and what may get in is scored anew in the right order.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.bm25.lists import PostingList
from evidencedesk.bm25.memory import state_of
from evidencedesk.bm25.scoring import Statistics, parts
from evidencedesk.bm25.state import Eligible, InForce, Positions, State
from evidencedesk.store import Scope, Snapshot, in_lists

_SLACK = 1e-9
"""Relative; sums of a few doubles in another order differ by some 1e-15."""
_SAMPLE = 64
"""Candidates, or twice the depth, that are scored at once to learn what the k-th best has at least."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of the question that stands in some chunk."""

    term: str
    idf: float
    packed: PostingList | None
    rows: Positions


@dataclass(frozen=True, slots=True)
class Scores:
    """The exact BM25 of given chunks, term by term."""

    chunk_keys: tuple[int, ...]
    parts_of: Mapping[str, NDArray[np.float64]]
    """What each term adds to each of the chunks, terms in the order of addition; 0.0 where a chunk lacks it."""
    idf_of: Mapping[str, float]
    """The idf of every distinct term of the question, those that stand nowhere included."""

    def total(self, terms: Collection[str] | None = None) -> dict[int, float]:
        """Score by chunk key, of all terms or only of some; those above 0."""
        found = np.zeros(len(self.chunk_keys))
        for term, added in self.parts_of.items():
            if terms is None or term in terms:
                found += added
        return {key: score for key, score in zip(self.chunk_keys, found.tolist(), strict=True) if score > 0}

    def idf_shares(self) -> dict[int, float]:
        """Share of the question's idf weight whose terms a chunk holds, in 0..1, by chunk key; those above 0."""
        total = sum(self.idf_of.values())
        held = np.zeros(len(self.chunk_keys))
        for term, added in self.parts_of.items():
            held += np.where(added > 0, self.idf_of[term], 0.0)
        return {
            key: min(1.0, weight / total)
            for key, weight in zip(self.chunk_keys, held.tolist(), strict=True)
            if weight > 0
        }


def statistics(snapshot: Snapshot, terms: Iterable[str], scope: Scope) -> Statistics:
    """N, total length and each term's n over the chunks in force in the scope's time; its filters do not count."""
    state = state_of(snapshot)
    return state.statistics(snapshot.connection, terms, state.in_force(snapshot.connection, scope))[0]


def best(snapshot: Snapshot, terms: Iterable[str], scope: Scope, depth: int) -> list[tuple[int, float]]:
    """The `depth` chunks in scope with the highest exact BM25: (chunk key, score), best first, ties by chunk id.

    Only chunks that hold one of the terms; fewer than `depth` when there are fewer.
    """
    state, in_force, eligible, weighed, _ = _prepare(snapshot, terms, scope)
    if not weighed or not in_force.average_length:
        return []
    rows_keys, rows_scores = _score_rows(state, in_force, eligible, weighed)
    floor = _kth(rows_scores, depth)
    packed = [term for term in weighed if term.packed is not None]
    slots = eligible.few
    if slots is None:
        slots = _candidates(packed, state, in_force, eligible, depth, floor)
    scores = _totals(packed, slots, in_force.norms(state.packed.lengths[slots]))
    keys = np.concatenate([state.packed.chunk_keys[slots[scores > 0]], rows_keys])
    return _ranked(snapshot.connection, keys, np.concatenate([scores[scores > 0], rows_scores]), depth)


def scores_of(snapshot: Snapshot, terms: Iterable[str], scope: Scope, chunk_keys: Iterable[int]) -> Scores:
    """The exact BM25 of those of the given chunks that are in scope."""
    state, in_force, eligible, weighed, idf_of = _prepare(snapshot, terms, scope)
    return _scores_in(state, in_force, eligible, weighed, idf_of, chunk_keys)


def explained(snapshot: Snapshot, terms: Iterable[str], chunk_key: int) -> dict[str, float]:
    """What each of the terms that it holds adds to a chunk's score, in force or not, with the statistics of today."""
    state, in_force, _, weighed, idf_of = _prepare(snapshot, terms, snapshot.scope())
    every = Eligible(
        np.ones(state.packed.size, dtype=np.bool_), None, np.ones(len(state.unpacked_keys), dtype=np.bool_)
    )
    found = _scores_in(state, in_force, every, weighed, idf_of, [chunk_key])
    return {term: float(added[0]) for term, added in found.parts_of.items() if added[0] > 0}


def _scores_in(
    state: State, in_force: InForce, eligible: Eligible, terms: Sequence[_Term], idf_of: Mapping[str, float],
    chunk_keys: Iterable[int],
) -> Scores:  # fmt: skip
    # Not np.unique, and below not np.isin: in a new process they import numpy.ma, which takes longer than the search.
    wanted = np.array(sorted(set(chunk_keys)), dtype=np.int64)
    slots, is_packed = state.packed.slots_of(wanted)
    slots = slots[is_packed]
    slots = slots[eligible.holds(slots)]
    positions = _positions_of(wanted, state.unpacked_keys)
    positions = positions[eligible.unpacked[positions]]
    keys = np.concatenate([state.packed.chunk_keys[slots], state.unpacked_keys[positions]])
    parts_of: dict[str, NDArray[np.float64]] = {}
    if len(keys) and in_force.average_length:
        norm = in_force.norms(np.concatenate([state.packed.lengths[slots], state.unpacked_lengths[positions]]))
        for term in terms:
            in_rows = np.zeros(len(state.unpacked_keys), dtype=np.int64)
            in_rows[term.rows[0]] = term.rows[1]
            packed = np.zeros(len(slots)) if term.packed is None else term.packed.at(slots)
            parts_of[term.term] = parts(term.idf, np.concatenate([packed, in_rows[positions]]), norm)
    return Scores(tuple(keys.tolist()), parts_of, idf_of)


def _positions_of(wanted: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where those of the wanted keys that are there stand among the keys; both are ascending."""
    positions = np.searchsorted(keys, wanted)
    inside = positions < len(keys)
    positions = positions[inside]
    found: NDArray[np.intp] = positions[keys[positions] == wanted[inside]]
    return found


def _prepare(
    snapshot: Snapshot, terms: Iterable[str], scope: Scope
) -> tuple[State, InForce, Eligible, list[_Term], dict[str, float]]:
    connection = snapshot.connection
    state = state_of(snapshot)
    in_force = state.in_force(connection, scope)
    figures, key_of, lists, rows = state.statistics(connection, terms, in_force)
    idf_of = {term: figures.idf(term) for term in figures.document_frequency}
    weighed = [_Term(term, idf_of[term], lists.get(key), rows[key]) for term, key in key_of.items()]
    return state, in_force, state.eligible(connection, scope, in_force), weighed, idf_of


def _score_rows(
    state: State, in_force: InForce, eligible: Eligible, terms: Sequence[_Term]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(keys, scores) of the unpacked chunks that match: few enough to score each."""
    scores = np.zeros(len(state.unpacked_keys))
    if not len(scores):
        return state.unpacked_keys, scores
    norm = in_force.norms(state.unpacked_lengths)
    for term in terms:
        positions, frequencies = term.rows
        scores[positions] += parts(term.idf, frequencies, norm[positions])
    found = np.flatnonzero((scores > 0) & eligible.unpacked)
    return state.unpacked_keys[found], scores[found]


def _totals(terms: Sequence[_Term], slots: NDArray[np.int32], norm: NDArray[np.float64]) -> NDArray[np.float64]:
    scores = np.zeros(len(slots))
    for term in terms:
        if term.packed is not None:
            scores += parts(term.idf, term.packed.at(slots), norm)
    return scores


def _candidates(
    terms: Sequence[_Term], state: State, in_force: InForce, eligible: Eligible, depth: int, threshold: float
) -> NDArray[np.int32]:
    """Slots among which are all that can be among the best; `threshold`: a score that `depth` others have."""
    bounded = sorted(((_bound(term, in_force), term) for term in terms), key=lambda pair: -pair[0])
    order = [term for _, term in bounded]
    rest = [sum(bound for bound, _ in bounded[place:]) for place in range(len(bounded) + 1)]
    lengths = state.packed.lengths
    slots, sums, norm = np.zeros(0, dtype=np.int32), np.zeros(0), np.zeros(0)
    met: NDArray[np.bool_] | None = None
    for place, term in enumerate(order):
        postings, after = term.packed, rest[place + 1]
        if postings is None:
            continue
        if len(slots):
            sums = sums + parts(term.idf, postings.at(slots), norm)
            # Learnt before new ones are taken up, for it keeps most of them out.
            threshold = max(threshold, _learnt(order[place + 1 :], slots, sums, norm, depth))
            stays = sums + after >= threshold * (1 - _SLACK)
            slots, sums, norm = slots[stays], sums[stays], norm[stays]
        if threshold <= rest[place] * (1 + _SLACK):
            new, frequencies = postings.at_least(_least_frequency(term, in_force, threshold * (1 - _SLACK) - after))
            if eligible.packed is not None:
                is_new = eligible.packed[new]
                if met is not None:
                    is_new &= ~met[new]
                new, frequencies = new[is_new], frequencies[is_new]
            if met is None:
                met = np.zeros(state.packed.size, dtype=np.bool_)
            met[new] = True
            new_norm = in_force.norms(lengths[new])
            slots, norm = np.concatenate([slots, new]), np.concatenate([norm, new_norm])
            sums = np.concatenate([sums, parts(term.idf, frequencies, new_norm)])
    return slots[sums >= threshold * (1 - _SLACK)]


def _bound(term: _Term, in_force: InForce) -> float:
    if term.packed is None:
        return 0.0
    return float(
        parts(term.idf, term.packed.best_frequencies, in_force.norms(term.packed.shortest_lengths)).max(initial=0.0)
    )


def _least_frequency(term: _Term, in_force: InForce, needed: float) -> int:
    """The lowest tf with which a chunk can get `needed` from a term, be it as short as the shortest that holds it."""
    if needed <= 0 or term.packed is None:
        return 1
    share = needed / term.idf
    if share >= 1:
        return 1 << 32
    norm = float(in_force.norms(term.packed.shortest_lengths).min())
    return max(1, math.ceil(share * norm / (1 - share) * (1 - _SLACK)))


def _learnt(
    others: Sequence[_Term], slots: NDArray[np.int32], sums: NDArray[np.float64], norm: NDArray[np.float64], depth: int
) -> float:
    """A score that `depth` chunks have, as far as it can be learnt from those with the highest sums so far."""
    if len(slots) < depth:
        return 0.0
    if not others:
        return _kth(sums, depth)
    size = min(len(slots), max(_SAMPLE, 2 * depth))
    chosen = np.argpartition(sums, len(sums) - size)[len(sums) - size :] if size < len(sums) else slice(None)
    full = sums[chosen] + _totals(others, slots[chosen], norm[chosen])
    return _kth(full, depth)


def _kth(scores: NDArray[np.float64], depth: int) -> float:
    """The `depth`-th highest score; 0.0 when there are fewer."""
    if len(scores) < depth:
        return 0.0
    return float(np.partition(scores, len(scores) - depth)[len(scores) - depth])


def _ranked(
    connection: sa.Connection, keys: NDArray[np.int64], scores: NDArray[np.float64], depth: int
) -> list[tuple[int, float]]:
    """The best `depth`, best first; chunk ids are read of tied chunks only."""
    if len(keys) > depth:
        stays = scores >= _kth(scores, depth)
        keys, scores = keys[stays], scores[stays]
    order = np.argsort(-scores, kind="stable")
    keys, scores = keys[order], scores[order]
    same = scores[1:] == scores[:-1]
    if same.any():
        tied = np.append(same, False) | np.insert(same, 0, False)
        id_of = _ids(connection, keys[tied].tolist())
        pairs = zip(keys.tolist(), scores.tolist(), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], id_of.get(pair[0], "")))[:depth]
    return list(zip(keys[:depth].tolist(), scores[:depth].tolist(), strict=True))


def _ids(connection: sa.Connection, keys: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for some in in_lists(keys):
        query = (
            "SELECT c.chunk_key, d.doc_id || ':c' || c.ordinal FROM chunks c JOIN documents d ON d.doc_key = c.doc_key "
            f"WHERE c.chunk_key IN ({', '.join('?' * len(some))})"
        )
        found.update((row[0], row[1]) for row in connection.exec_driver_sql(query, tuple(some)))
    return found
