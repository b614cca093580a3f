"""Which documents are in force when, and which vectors their chunks have: what turns a scope into a set of vectors.

Kept as arrays, because a scope may leave a million vectors. A roster is made from the tables once, stored as one row,
and brought up to a newer state by reading the documents that have changed since: each bears the number of its last
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.models import VectorRosterRow, table_of
from evidencedesk.store import Scope
from evidencedesk.vectors.codes import DamagedCodes, read_array

DOCUMENT = np.dtype(
    [("doc_key", "<i8"), ("valid_from", "<i8"), ("valid_to", "<i8"), ("language", "<i4"), ("current", "u1")]
)
CHUNK = np.dtype([("document", "<i4"), ("vector_key", "<i8")])
_OPEN_END = np.iinfo(np.int64).max
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_rosters = table_of(VectorRosterRow)


@dataclass(frozen=True, slots=True)
class Roster:
    """The documents and chunks of one state of the file."""

    change_number: int
    """Documents that bear a higher one have changed since."""
    through_key: int
    """Vectors with a higher number have come since."""
    languages: tuple[str, ...]
    """Tags in lower case."""
    documents: NDArray[Any]
    """Records of DOCUMENT, by doc_key; instants in microseconds since 1970, UTC."""
    chunk_documents: NDArray[np.int32]
    """Place of its document, for each chunk that has a vector."""
    chunk_vectors: NDArray[np.int64]
    """Number of its vector."""

    def in_scope(self, scope: Scope, of_family: Sequence[int] | None = None) -> NDArray[np.bool_]:
        """Which documents are in scope, shape (documents,). `of_family`: the keys of the documents of its family."""
        documents = self.documents
        if scope.as_of is None:
            found: NDArray[np.bool_] = documents["current"] != 0
        else:
            instant = _microseconds(scope.as_of)
            found = (documents["valid_from"] <= instant) & (documents["valid_to"] > instant)
        if scope.lang is not None:
            wanted = scope.lang.lower()
            spoken = [tag == wanted or tag.startswith(f"{wanted}-") for tag in self.languages]
            found &= np.array([*spoken, False])[documents["language"]]
        if of_family is not None:
            found &= np.isin(documents["doc_key"], np.array(of_family, dtype=np.int64))
        return found

    def vectors_of(self, in_scope: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The numbers of the vectors of the chunks of those documents; one that chunks share comes repeatedly."""
        return self.chunk_vectors[in_scope[self.chunk_documents]]

    def comparable(self) -> tuple[bytes, list[str], bytes]:
        """Equal for rosters that say the same, however their languages and chunks are ordered."""
        documents = self.documents.copy()
        documents["language"] = 0
        spoken = [self.languages[number] for number in self.documents["language"]]
        order = np.lexsort((self.chunk_vectors, self.chunk_documents))
        chunks = np.stack([self.chunk_documents[order], self.chunk_vectors[order]])
        return documents.tobytes(), spoken, chunks.tobytes()


def empty_roster() -> Roster:
    """Of no document; every document has changed since."""
    return Roster(-1, -1, (), np.zeros(0, DOCUMENT), np.zeros(0, np.int32), np.zeros(0, np.int64))


def refreshed(roster: Roster, connection: sa.Connection, embedder_key: int, change_number: int) -> Roster:
    """The roster of the state that the connection sees, whose number is given: reads what has changed since."""
    since, through = roster.change_number, roster.through_key
    newest = connection.exec_driver_sql("SELECT max(vector_key) FROM vectors").scalar_one()
    newest = through if newest is None else newest
    rows = connection.exec_driver_sql(
        # The plus makes SQLite sort the few that it finds by their change, not walk all documents in order.
        "SELECT doc_key, valid_from, valid_to, lower(lang), status = 'current' FROM documents "
        "WHERE change_number > ? ORDER BY +doc_key",
        (since,),
    ).all()
    if not rows and newest <= through:
        return replace(roster, change_number=change_number)
    pairs = [
        *connection.exec_driver_sql(
            # CROSS JOIN fixes the order: without statistics SQLite may begin with all vectors.
            "SELECT d.doc_key, v.vector_key FROM documents d CROSS JOIN chunks c ON c.doc_key = d.doc_key "
            "CROSS JOIN vectors v ON v.embedder_key = ? AND v.text_hash = c.text_hash WHERE d.change_number > ? ",
            (embedder_key, since),
        ).all(),
        # A text that was there before its vector: another embedder's is stored, or one that was damaged is made again.
        *connection.exec_driver_sql(
            "SELECT d.doc_key, v.vector_key FROM vectors v CROSS JOIN chunks c ON c.text_hash = v.text_hash "
            "CROSS JOIN documents d ON d.doc_key = c.doc_key "
            "WHERE v.vector_key > ? AND +v.embedder_key = ? AND d.change_number <= ?",
            (through, embedder_key, since),
        ).all(),
    ]
    languages = tuple(dict.fromkeys([*roster.languages, *(row[3] for row in rows)]))
    changed = np.zeros(len(rows), DOCUMENT)
    changed["doc_key"] = [row[0] for row in rows]
    changed["valid_from"] = np.array([row[1] for row in rows], dtype="datetime64[us]").astype(np.int64)
    ends = np.array([row[2] for row in rows], dtype="datetime64[us]")
    changed["valid_to"] = np.where(np.isnat(ends), _OPEN_END, ends.astype(np.int64))
    number_of = {tag: number for number, tag in enumerate(languages)}
    changed["language"] = [number_of[row[3]] for row in rows]
    changed["current"] = [row[4] for row in rows]
    known = np.isin(changed["doc_key"], roster.documents["doc_key"])
    documents = np.concatenate([roster.documents, changed[~known]])
    if not _ascending(documents["doc_key"]):
        # Numbers of documents only grow, so new ones belong at the end; someone has written rows by hand.
        return refreshed(empty_roster(), connection, embedder_key, change_number)
    documents[np.searchsorted(documents["doc_key"], changed["doc_key"])] = changed
    touched = np.zeros(len(documents), dtype=bool)
    touched[np.searchsorted(documents["doc_key"], changed["doc_key"])] = True
    stays = ~touched[roster.chunk_documents]
    new_documents = np.array([row[0] for row in pairs], dtype=np.int64)
    new_vectors = np.array([row[1] for row in pairs], dtype=np.int64)
    return Roster(
        change_number,
        max(through, newest),
        languages,
        documents,
        np.concatenate(
            [roster.chunk_documents[stays], np.searchsorted(documents["doc_key"], new_documents).astype(np.int32)]
        ),
        np.concatenate([roster.chunk_vectors[stays], new_vectors]),
    )


def _ascending(keys: NDArray[np.int64]) -> bool:
    return bool((keys[1:] > keys[:-1]).all())


def _microseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)


def stored_roster(connection: sa.Connection, embedder_key: int) -> Roster:
    """The roster that the file keeps, of some former state; an empty one where there is none.

    DamagedCodes when it cannot be.
    """
    row = connection.execute(sa.select(_rosters).where(_rosters.c.embedder_key == embedder_key)).one_or_none()
    if row is None:
        return empty_roster()
    documents, chunks = read_array(row.documents, DOCUMENT), read_array(row.chunks, CHUNK)
    places = chunks["document"].astype(np.int32)
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(documents):
        raise DamagedCodes("a chunk of a document that is not there")
    if len(documents) and not 0 <= int(documents["language"].min()) <= int(documents["language"].max()) < len(
        row.languages
    ):
        raise DamagedCodes("a document in a language that is not there")
    return Roster(
        row.change_number,
        row.through_key,
        tuple(row.languages),
        documents,
        places,
        chunks["vector_key"].astype(np.int64),
    )


def store_roster(connection: sa.Connection, embedder_key: int, roster: Roster) -> None:
    """Keep a roster in the file, in the place of the former one."""
    chunks = np.zeros(len(roster.chunk_documents), CHUNK)
    chunks["document"], chunks["vector_key"] = roster.chunk_documents, roster.chunk_vectors
    connection.execute(sa.delete(_rosters).where(_rosters.c.embedder_key == embedder_key))
    connection.execute(
        sa.insert(_rosters).values(
            embedder_key=embedder_key,
            change_number=roster.change_number,
            through_key=roster.through_key,
            languages=list(roster.languages),
            documents=roster.documents.tobytes(),
            chunks=chunks.tobytes(),
        )
    )
