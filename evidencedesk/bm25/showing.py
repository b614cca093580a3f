"""For people who want to see the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from evidencedesk.bm25.ranking import best, explained, scores_of, statistics
from evidencedesk.bm25.writing import add_chunks, settle_line
from evidencedesk.errors import NotFound
from evidencedesk.records import Passage, SourceDocument, require_count
from evidencedesk.store import Snapshot, Store, chunk_heads, open_store
from evidencedesk.text import tokens


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
            return statistics(snapshot, [term], snapshot.scope()).idf(term)

    def explain(self, query: str, chunk_id: str) -> dict[str, float]:
        """What each term of the query adds to the chunk's score, by term; only terms that the chunk holds.

        NotFound when there is no such chunk. A chunk that is not in force is scored with today's statistics.
        """
        with self._desk.store.read() as snapshot:
            return explained(snapshot, tokens(query), self._key(snapshot, chunk_id))

    def score(self, query: str, chunk_id: str) -> float:
        """BM25 of a query and a chunk; 0.0 when they share no term. NotFound when there is no such chunk."""
        return sum(self.explain(query, chunk_id).values(), 0.0)

    def search(self, query: str, k: int = 10, allowed: Iterable[str] | None = None) -> list[tuple[str, float]]:
        """The best k chunks in force with a score above 0: (chunk id, score), best first, ties by id.

        `allowed` names the chunk ids that may be found; it does not change the statistics.
        """
        require_count("k", k)
        with self._desk.store.read() as snapshot:
            terms, scope = tokens(query), snapshot.scope()
            if allowed is not None:
                keys = self._keys(snapshot, allowed)
                score_of = scores_of(snapshot, terms, scope, keys).total()
            else:
                # Names that were given to `over` sort otherwise than the ids that the store made of them.
                score_of = dict(best(snapshot, terms, scope, max(k, len(self._names))))
            heads = chunk_heads(snapshot.connection, score_of)
        named = [(self._names.get(heads[key].id, heads[key].id), score) for key, score in score_of.items()]
        return sorted(named, key=lambda pair: (-pair[1], pair[0]))[:k]

    def _key(self, snapshot: Snapshot, chunk_id: str) -> int:
        return snapshot.chunk_key(next((stored for stored, name in self._names.items() if name == chunk_id), chunk_id))

    def _keys(self, snapshot: Snapshot, chunk_ids: Iterable[str]) -> list[int]:
        """The keys of those of the ids that are there."""
        keys = []
        for chunk_id in set(chunk_ids):
            try:
                keys.append(self._key(snapshot, chunk_id))
            except NotFound:
                continue
        return keys


def _one_term(word: str) -> str:
    found = tokens(word)
    # A code such as RD2-24 is a term as a whole, then its parts.
    if not found:
        raise ValueError(f"{word!r} holds no search term: it is a stop word or has no letter or digit")
    return found[0]
