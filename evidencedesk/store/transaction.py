"""Writing the base tables: the only writer of documents, chunks and the desk's settings."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from evidencedesk import schema
from evidencedesk.models import Base, ChunkRow, DeskRow, DocumentRow, EmbedderRow, VectorRow
from evidencedesk.records import EmbedderIdentity, Passage, SourceDocument, StatusChange
from evidencedesk.store.snapshot import Snapshot, chunks, content_hash, documents, read_once
from evidencedesk.versions import settle, version_sort_key

_RECENT_STATES = 1000
"""Kept in the file: a process that slept through more of them reads everything anew."""

# Put together once, as those of reading are.
_INSERT_DOCUMENT, _INSERT_CHUNK = sa.insert(documents), sa.insert(chunks)
_JUDGE = (
    sa.update(documents)
    .where(documents.c.doc_key == sa.bindparam("key"))
    .values({name: sa.bindparam(name) for name in ("status", "valid_from", "valid_to", "change_number")})
)


class Transaction(Snapshot):
    """One write transaction. What the indexes derive from a change is the caller's to write, in the same one."""

    def __init__(self, connection: sa.Connection, now: datetime, outer: Transaction | None = None) -> None:
        """`outer`: the transaction that this one is a part of."""
        super().__init__(connection, now)
        self._changes_before: int = self.change_count if outer is None else outer._changes_before
        self.remembered: dict[object, Any] = {} if outer is None else outer.remembered
        """What the indexes keep in memory of the state inside; shared with the parts, gone with the transaction."""

    @property
    def uncommitted(self) -> int:
        """Rows that this transaction has changed so far, its parts included; a part that was undone still counts."""
        return self.change_count - self._changes_before

    def set_up(
        self, *, text_version: str, chunker_version: str, max_chunk_chars: int,
        embedder: EmbedderIdentity | None,
    ) -> None:  # fmt: skip
        """Write the desk's one row into a new file."""
        self.connection.execute(
            sa.insert(DeskRow).values(
                desk_key=1, created_at=self.now, text_version=text_version, chunker_version=chunker_version,
                max_chunk_chars=max_chunk_chars,
                embedder_key=None if embedder is None else self.embedder_key(embedder),
            )
        )  # fmt: skip

    @property
    def change_count(self) -> int:
        """Rows that this connection has changed since it was opened."""
        return int(self.connection.exec_driver_sql("SELECT total_changes()").scalar_one())

    @read_once
    def change_number(self) -> int:
        """The number of the state that this transaction makes; documents that it touches bear it."""
        return self.state.change_number + 1

    def stamp(self) -> None:
        """Mark the state that this transaction leaves; at random, so that one that was rolled back never returns."""
        generation, number = secrets.token_hex(16), self.change_number
        self.connection.exec_driver_sql("UPDATE state SET generation = ?, change_number = ?", (generation, number))
        self.connection.exec_driver_sql(
            "DELETE FROM recent_states WHERE change_number <= ?", (number - _RECENT_STATES,)
        )
        self.connection.exec_driver_sql(
            "INSERT INTO recent_states (change_number, generation) VALUES (?, ?)", (number, generation)
        )

    def embedder_key(self, embedder: EmbedderIdentity) -> int:
        """The key of an embedder in this file; it gets one when it has none."""
        columns = {"name": embedder.name, "dimension": embedder.dimension, "fingerprint": embedder.fingerprint}
        key = self.connection.scalar(sa.select(EmbedderRow.embedder_key).filter_by(**columns))
        if key is None:
            key = inserted_key(self.connection.execute(sa.insert(EmbedderRow).values(columns)))
        return int(key)

    def put_document(
        self, source: SourceDocument, passages: Sequence[tuple[Passage, str, int]], *, root: str
    ) -> list[int]:
        """Store a document and its chunks, given as (passage, hash of the indexed text, terms in it); keys in order.

        A document of the same doc_id is replaced: its chunks go (with their postings), its number and the time
        it came in stay, and so does a withdrawal by hand. The new row is `scheduled` until `settle_line` has judged
        its line.
        """
        values = {
            "family": source.family, "version": source.version, "version_sort": version_sort_key(source.version),
            "lang": source.lang, "title": source.title,
            "effective_from": source.effective_from, "effective_to": source.effective_to, "changed_at": self.now,
            "root": root, "path": source.path,
            "content_hash": content_hash(source), "source": source.source,
            "author_metadata": dict(source.metadata), "valid_from": source.effective_from or self.now, "valid_to": None,
            "change_number": self.change_number,
        }  # fmt: skip
        former = self.stored(source.doc_id)
        if former is None:
            inserted = self.connection.execute(
                _INSERT_DOCUMENT, {"doc_id": source.doc_id, "came_in_at": self.now, "status": "scheduled", **values}
            )
            doc_key = inserted_key(inserted)
        else:
            doc_key = former.doc_key
            self.connection.execute(sa.delete(ChunkRow).where(ChunkRow.doc_key == doc_key))
            status = "scheduled"
            if former.status == "withdrawn":
                if former.pruned:
                    self.reinstate(doc_key)
                else:
                    status = "withdrawn"
            self.connection.execute(
                sa.update(DocumentRow).where(DocumentRow.doc_key == doc_key).values(status=status, **values)
            )
        rows = [
            {
                "doc_key": doc_key, "ordinal": passage.ordinal, "heading": passage.heading,
                "line_start": passage.line_start, "line_end": passage.line_end, "preamble": passage.preamble,
                "text": passage.text, "text_hash": text_hash, "term_count": term_count,
            }
            for passage, text_hash, term_count in passages
        ]  # fmt: skip
        if rows:
            self.connection.execute(_INSERT_CHUNK, rows)
        return self.chunk_keys(doc_key)

    def set_derived(self, chunk_key: int, text_hash: str, term_count: int) -> None:
        """Write what is derived from a chunk's indexed text, where it is not so already."""
        differs = sa.or_(ChunkRow.text_hash != text_hash, ChunkRow.term_count != term_count)
        changed = self.connection.execute(
            sa.update(ChunkRow)
            .where(ChunkRow.chunk_key == chunk_key, differs)
            .values(text_hash=text_hash, term_count=term_count)
        )
        if changed.rowcount:
            its_document = sa.select(ChunkRow.doc_key).where(ChunkRow.chunk_key == chunk_key).scalar_subquery()
            self.connection.execute(
                sa.update(DocumentRow)
                .where(DocumentRow.doc_key == its_document)
                .values(change_number=self.change_number)
            )

    def restore_schema_objects(self) -> None:
        """Make the views anew, and indexes that someone dropped."""
        schema.drop_views(self.connection)
        schema.create_views(self.connection)
        for table in Base.metadata.sorted_tables:
            for index in table.indexes:
                index.create(self.connection, checkfirst=True)

    def withdraw(self, doc_key: int, reason: str, *, pruned: bool) -> None:
        """Take a document out of force from now on; `settle_line` then judges its line."""
        values = {
            "status": "withdrawn", "withdrawn_at": self.now, "withdrawn_reason": reason, "pruned": pruned,
            "change_number": self.change_number,
        }  # fmt: skip
        self.connection.execute(sa.update(DocumentRow).where(DocumentRow.doc_key == doc_key).values(values))

    def reinstate(self, doc_key: int) -> None:
        """Undo a withdrawal, as if it had never been; `settle_line` then judges its line."""
        values = {
            "status": "scheduled", "withdrawn_at": None, "withdrawn_reason": None, "pruned": False,
            "change_number": self.change_number,
        }  # fmt: skip
        self.connection.execute(sa.update(DocumentRow).where(DocumentRow.doc_key == doc_key).values(values))

    def use_embedder(self, embedder: EmbedderIdentity | None) -> None:
        """Let another embedder's vectors answer; those of the former go."""
        former = None if self.settings is None else self.settings.embedder_key
        key = None if embedder is None else self.embedder_key(embedder)
        self.connection.execute(sa.update(DeskRow).values(embedder_key=key))
        if former is not None and former != key:
            self.connection.execute(sa.delete(VectorRow).where(VectorRow.embedder_key == former))
            self.connection.execute(sa.delete(EmbedderRow).where(EmbedderRow.embedder_key == former))
        self.__dict__.pop("settings", None)  # read again

    def move(self, doc_key: int, *, root: str, path: str) -> None:
        """Note that an unchanged document's file has another root or path now."""
        self.connection.execute(
            sa.update(DocumentRow).where(DocumentRow.doc_key == doc_key).values(root=root, path=path)
        )

    def settle_line(self, family: str, lang: str) -> list[tuple[int, StatusChange]]:
        """Write status and validity of a line as the rule says now; gives the changes of status, by document key.

        Does not touch the lexical statistics: `bm25.settle_line` does both.
        """
        stored = {document.doc_id: document for document in self.stored_in_line(family, lang)}
        standings = settle(self.line_facts(family, lang), self.now)
        # Whoever stops being current goes first: two current documents are impossible even for a moment.
        for standing in sorted(standings, key=lambda s: s.status == "current"):
            former = stored[standing.doc_id]
            judged = (standing.status, standing.valid_from, standing.valid_to)
            if (former.status, former.valid_from, former.valid_to) != judged:
                self.connection.execute(
                    _JUDGE,
                    {
                        "key": former.doc_key, "status": standing.status, "valid_from": standing.valid_from,
                        "valid_to": standing.valid_to, "change_number": self.change_number,
                    },
                )  # fmt: skip
        return [
            (stored[s.doc_id].doc_key, StatusChange(s.doc_id, stored[s.doc_id].status, s.status))
            for s in standings
            if stored[s.doc_id].status != s.status
        ]

    def note_next_change(self) -> None:
        """Keep the next instant at which time alone changes what is in force."""
        next_change_at = self.next_change_at()
        if self.settings is None or next_change_at != self.settings.next_change_at:
            self.connection.execute(sa.update(DeskRow).values(next_change_at=next_change_at))
        self.__dict__.pop("settings", None)  # read again


def inserted_key(result: sa.CursorResult[Any]) -> int:
    """The key that the database gave to the one row that was inserted."""
    key = result.inserted_primary_key
    if key is None:
        raise LookupError("the statement inserted no row")
    return int(key[0])
