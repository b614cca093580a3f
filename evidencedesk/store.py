"""Reading and writing the base tables: the only writer of documents, chunks and the desk's settings.

A `Snapshot` reads inside one read transaction, a `Transaction` writes inside one write transaction. Both give
and take records; the two indexes (bm25, vectors) work over the same connection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from evidencedesk import schema
from evidencedesk.connections import MEMORY, Database, Driver, connect_database, find_driver
from evidencedesk.embeddings import EmbedderIdentity
from evidencedesk.errors import DeskMissing, NotFound
from evidencedesk.models import ChunkRow, DeskRow, DocumentRow, EmbedderRow, table_of
from evidencedesk.records import (
    Chunk,
    Document,
    DocumentSummary,
    Location,
    Passage,
    SourceDocument,
    Stale,
    Status,
    StatusChange,
    join_indexed,
)
from evidencedesk.versions import VersionFacts, settle, version_sort_key

_T = TypeVar("_T")
_IN_LIST = 10_000
"""Values in one IN list: older SQLite libraries take at most 32,766."""

documents = table_of(DocumentRow)
chunks = table_of(ChunkRow)
chunk_id = documents.c.doc_id + ":c" + sa.cast(chunks.c.ordinal, sa.Text)
"""The SQL expression of a chunk's id, over documents joined with chunks."""


# ---------------------------------------------------------------- what callers get and give


@dataclass(frozen=True, slots=True)
class Scope:
    """Which documents a search may see. Statistics follow `as_of` alone; `lang` and `family` only filter."""

    as_of: datetime | None = None
    """None: what is current in the file; else what was in force at that instant (UTC)."""
    lang: str | None = None
    family: str | None = None

    def in_force(self) -> sa.ColumnElement[bool]:
        """The condition on `documents` for being in force."""
        if self.as_of is None:
            return documents.c.status == "current"
        return sa.and_(
            documents.c.valid_from <= self.as_of,
            sa.or_(documents.c.valid_to.is_(None), documents.c.valid_to > self.as_of),
        )

    def passes(self) -> sa.ColumnElement[bool]:
        """The condition on `documents` for passing the filters. `en` takes `en-GB` too (RFC 4647, basic filtering)."""
        conditions: list[sa.ColumnElement[bool]] = [sa.true()]
        if self.lang is not None:
            tag, wanted = sa.func.lower(documents.c.lang), self.lang.lower()
            conditions.append(sa.or_(tag == wanted, sa.func.substr(tag, 1, len(wanted) + 1) == wanted + "-"))
        if self.family is not None:
            conditions.append(documents.c.family == self.family)
        return sa.and_(*conditions)


@dataclass(frozen=True, slots=True)
class Settings:
    """The desk's one row."""

    created_at: datetime
    text_version: str
    chunker_version: str
    max_chunk_chars: int
    embedder_key: int | None
    embedder: EmbedderIdentity | None
    next_change_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the write way needs to know of a document that is there."""

    doc_key: int
    doc_id: str
    family: str
    lang: str
    version_sort: str
    status: Status
    root: str
    path: str
    content_hash: str


def content_hash(source: str) -> str:
    """SHA-256 of a source text, in hexadecimal."""
    return hashlib.sha256(source.encode("utf-8")).hexdigest()


# ---------------------------------------------------------------- reading


class Snapshot:
    """One consistent state of the file."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def settings(self) -> Settings | None:
        """The desk's settings; None in a file that nobody has set up yet."""
        row = self.connection.execute(
            sa.select(table_of(DeskRow), EmbedderRow.name, EmbedderRow.dimension, EmbedderRow.fingerprint).join_from(
                DeskRow, EmbedderRow, isouter=True
            )
        ).one_or_none()
        if row is None:
            return None
        embedder = None if row.name is None else EmbedderIdentity(row.name, row.dimension, row.fingerprint)
        return Settings(
            row.created_at,
            row.text_version,
            row.chunker_version,
            row.max_chunk_chars,
            row.embedder_key,
            embedder,
            row.next_change_at,
        )

    def scope_at(
        self, as_of: datetime | None, now: datetime, *, lang: str | None = None, family: str | None = None
    ) -> Scope:
        """The scope of a search: as of an instant, or of today.

        Where an instant has passed at which something changes and no write has applied it yet, today's scope
        is judged by validity too, so that the clock alone never lets an outdated text answer.
        """
        if as_of is None:
            settings = self.settings()
            if settings is not None and settings.next_change_at is not None and settings.next_change_at <= now:
                as_of = now
        return Scope(as_of, lang, family)

    def stored(self, doc_id: str) -> StoredDocument | None:
        """What is stored under a doc_id."""
        return next(self._stored(documents.c.doc_id == doc_id), None)

    def stored_under(self, root: str) -> list[StoredDocument]:
        """Every document that came from the named root, by doc_id."""
        return list(self._stored(documents.c.root == root))

    def stored_in_line(self, family: str, lang: str) -> list[StoredDocument]:
        """Every document of a line of versions, by version."""
        return sorted(
            self._stored(sa.and_(documents.c.family == family, documents.c.lang == lang)), key=lambda d: d.version_sort
        )

    def _stored(self, condition: sa.ColumnElement[bool]) -> Iterator[StoredDocument]:
        columns = [documents.c[name] for name in StoredDocument.__dataclass_fields__]
        query = sa.select(*columns).where(condition).order_by(documents.c.doc_id)
        return (StoredDocument(*row) for row in self.connection.execute(query).all())

    def summaries(
        self, *, family: str | None = None, lang: str | None = None, status: Status | None = None
    ) -> list[DocumentSummary]:
        """Documents without their chunks, ordered by family, language and version."""
        counted = sa.select(sa.func.count()).where(chunks.c.doc_key == documents.c.doc_key)
        names = [name for name in DocumentSummary.__dataclass_fields__ if name != "chunk_count"]
        query = (
            sa.select(*(documents.c[name] for name in names), counted.scalar_subquery().label("chunk_count"))
            .where(Scope(lang=lang, family=family).passes())
            .order_by(documents.c.family, documents.c.lang, documents.c.version_sort)
        )
        if status is not None:
            query = query.where(documents.c.status == status)
        return [DocumentSummary(**row) for row in self.connection.execute(query).mappings()]

    def doc_keys(self) -> list[int]:
        """The key of every document, by doc_id."""
        return list(self.connection.scalars(sa.select(documents.c.doc_key).order_by(documents.c.doc_id)))

    def chunk_keys(self, doc_key: int) -> list[int]:
        """The keys of a document's chunks, in order."""
        query = sa.select(chunks.c.chunk_key).where(chunks.c.doc_key == doc_key).order_by(chunks.c.ordinal)
        return list(self.connection.scalars(query))

    def pragma(self, name: str) -> list[tuple[object, ...]]:
        """The rows that a pragma of SQLite gives."""
        return [tuple(row) for row in self.connection.exec_driver_sql(f"PRAGMA {name}")]

    def names_of(self, kind: str) -> set[str]:
        """The names of the tables, views or indexes of the file."""
        rows = self.connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = ?", (kind,))
        return {row[0] for row in rows}

    def document(self, doc_id: str) -> Document:
        """A document with its chunks. NotFound when there is none of that doc_id."""
        row = self.connection.execute(sa.select(documents).where(documents.c.doc_id == doc_id)).one_or_none()
        if row is None:
            raise NotFound(kind="document", name=doc_id)
        keys = self.chunk_keys(row.doc_key)
        found = self.chunks(keys)
        return Document(
            row.doc_id,
            row.family,
            row.version,
            row.lang,
            row.title,
            row.status,
            row.valid_from,
            row.valid_to,
            tuple(found[key].chunk for key in keys),
            row.path,
            row.author_metadata,
        )

    def source(self, doc_id: str) -> str:
        """The whole source text of a document. NotFound when there is none of that doc_id."""
        text = self.connection.scalar(sa.select(documents.c.source).where(documents.c.doc_id == doc_id))
        if text is None:
            raise NotFound(kind="document", name=doc_id)
        return str(text)

    def text_hashes(self, doc_key: int) -> list[str]:
        """What names the vectors of a document's chunks, in order."""
        query = sa.select(chunks.c.text_hash).where(chunks.c.doc_key == doc_key).order_by(chunks.c.ordinal)
        return list(self.connection.scalars(query))

    def chunk_key(self, name: str) -> int:
        """The key of a chunk by its id. NotFound when there is none."""
        doc_id, _, ordinal = name.rpartition(":c")
        if doc_id and ordinal.isascii() and ordinal.isdigit() and ordinal == str(int(ordinal)):
            key = self.connection.scalar(
                sa.select(chunks.c.chunk_key)
                .join(documents, documents.c.doc_key == chunks.c.doc_key)
                .where(documents.c.doc_id == doc_id, chunks.c.ordinal == int(ordinal))
            )
            if key is not None:
                return int(key)
        raise NotFound(kind="chunk", name=name)

    def chunks(self, keys: Iterable[int]) -> dict[int, StoredChunk]:
        """Chunks by key, each with what a label needs; keys that are not there are left out."""
        found: dict[int, StoredChunk] = {}
        columns = (
            chunks.c.chunk_key, chunk_id.label("chunk_id"), documents.c.doc_id, documents.c.version, documents.c.lang,
            documents.c.status, documents.c.title, documents.c.path, chunks.c.text, chunks.c.preamble, chunks.c.heading,
            chunks.c.line_start, chunks.c.line_end,
        )  # fmt: skip
        for some in in_lists(keys):
            query = sa.select(*columns).join_from(chunks, documents).where(chunks.c.chunk_key.in_(some))
            for row in self.connection.execute(query):
                location = Location(row.path, row.heading, row.line_start, row.line_end)
                indexed = join_indexed(row.preamble, row.text)
                chunk = Chunk(row.chunk_id, row.doc_id, row.version, row.lang, row.status, row.text, indexed, location)
                found[row.chunk_key] = StoredChunk(chunk, row.title)
        return found

    def holds_chunks(self, scope: Scope, *, filtered: bool = True) -> bool:
        """Whether any chunk is in scope; `filtered=False` leaves language and family out."""
        query = sa.select(sa.literal(1)).select_from(chunks).join(documents).where(scope.in_force())
        if filtered:
            query = query.where(scope.passes())
        return self.connection.execute(query.limit(1)).first() is not None

    def staleness(self) -> list[Stale]:
        """Every document behind a higher version of its line that has begun; by doc_id."""
        newer = sa.alias(documents)
        behind = sa.exists().where(
            newer.c.family == documents.c.family,
            newer.c.lang == documents.c.lang,
            newer.c.version_sort > documents.c.version_sort,
            newer.c.status != "scheduled",
            sa.or_(newer.c.withdrawn_at.is_(None), newer.c.withdrawn_at > newer.c.valid_from),
        )
        query = (
            sa.select(documents.c.doc_id, documents.c.version, documents.c.status)
            .where(behind).order_by(documents.c.doc_id)
        )  # fmt: skip
        return [
            Stale(row.doc_id, row.version, "outdated_but_current" if row.status == "current" else "superseded")
            for row in self.connection.execute(query)
        ]

    def line_facts(self, family: str, lang: str) -> list[VersionFacts]:
        """What the rule needs to know of a line of versions."""
        query = sa.select(
            documents.c.doc_id, documents.c.version_sort, documents.c.came_in_at, documents.c.effective_from,
            documents.c.effective_to, documents.c.withdrawn_at,
        ).where(documents.c.family == family, documents.c.lang == lang)  # fmt: skip
        return [VersionFacts(*row) for row in self.connection.execute(query)]

    def lines(self) -> list[tuple[str, str]]:
        """Every line of versions: (family, lang)."""
        query = sa.select(documents.c.family, documents.c.lang).distinct()
        return [(row.family, row.lang) for row in self.connection.execute(query)]

    def next_change_at(self, now: datetime) -> datetime | None:
        """The first instant after `now` at which a validity begins or ends."""
        instants = [
            self.connection.scalar(
                sa.select(sa.func.min(column)).where(column > now, documents.c.status != "withdrawn")
            )
            for column in (documents.c.valid_from, documents.c.valid_to)
        ]
        return min((instant for instant in instants if instant is not None), default=None)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk and the title of its document."""

    chunk: Chunk
    title: str


def chunk_ids(connection: sa.Connection, keys: Iterable[int]) -> dict[int, str]:
    """Chunk ids by key."""
    found: dict[int, str] = {}
    for some in in_lists(keys):
        query = sa.select(chunks.c.chunk_key, chunk_id).join_from(chunks, documents).where(chunks.c.chunk_key.in_(some))
        found.update((key, name) for key, name in connection.execute(query))
    return found


def in_lists(values: Iterable[_T]) -> Iterator[list[_T]]:
    """Values in lists that every SQLite takes as one IN."""
    every = list(values)
    for start in range(0, len(every), _IN_LIST):
        yield every[start : start + _IN_LIST]


def inserted_key(result: sa.CursorResult[Any]) -> int:
    """The key that the database gave to the one row that was inserted."""
    key = result.inserted_primary_key
    if key is None:
        raise LookupError("the statement inserted no row")
    return int(key[0])


# ---------------------------------------------------------------- writing


class Transaction(Snapshot):
    """One write transaction. What the indexes derive from a change is the caller's to write, in the same one."""

    def set_up(
        self, *, now: datetime, text_version: str, chunker_version: str, max_chunk_chars: int,
        embedder: EmbedderIdentity | None,
    ) -> None:  # fmt: skip
        """Write the desk's one row into a new file."""
        self.connection.execute(
            sa.insert(DeskRow).values(
                desk_key=1, created_at=now, text_version=text_version, chunker_version=chunker_version,
                max_chunk_chars=max_chunk_chars,
                embedder_key=None if embedder is None else self._embedder_key(embedder),
            )
        )  # fmt: skip

    def _embedder_key(self, embedder: EmbedderIdentity) -> int:
        columns = {"name": embedder.name, "dimension": embedder.dimension, "fingerprint": embedder.fingerprint}
        key = self.connection.scalar(sa.select(EmbedderRow.embedder_key).filter_by(**columns))
        if key is None:
            key = inserted_key(self.connection.execute(sa.insert(EmbedderRow).values(columns)))
        return int(key)

    def put_document(
        self, source: SourceDocument, passages: Sequence[tuple[Passage, str, int]], *, root: str, now: datetime
    ) -> list[int]:
        """Store a document and its chunks, given as (passage, hash of the indexed text, terms in it); keys in order.

        A document of the same doc_id is replaced: its chunks go (with their postings), its number and the time
        it came in stay, and so does a withdrawal. The new row is `scheduled` until `settle_line` has judged its line.
        """
        values = {
            "family": source.family, "version": source.version, "version_sort": version_sort_key(source.version),
            "lang": source.lang, "title": source.title,
            "effective_from": source.effective_from, "effective_to": source.effective_to, "changed_at": now,
            "root": root, "path": source.path,
            "content_hash": content_hash(source.source), "source": source.source,
            "author_metadata": dict(source.metadata), "valid_from": source.effective_from or now, "valid_to": None,
        }  # fmt: skip
        former = self.stored(source.doc_id)
        if former is None:
            inserted = self.connection.execute(
                sa.insert(DocumentRow).values(doc_id=source.doc_id, came_in_at=now, status="scheduled", **values)
            )
            doc_key = inserted_key(inserted)
        else:
            doc_key = former.doc_key
            self.connection.execute(sa.delete(ChunkRow).where(ChunkRow.doc_key == doc_key))
            status = former.status if former.status == "withdrawn" else "scheduled"
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
            self.connection.execute(sa.insert(ChunkRow), rows)
        return self.chunk_keys(doc_key)

    def move(self, doc_key: int, *, root: str, path: str) -> None:
        """Note that an unchanged document's file has another root or path now."""
        self.connection.execute(
            sa.update(DocumentRow).where(DocumentRow.doc_key == doc_key).values(root=root, path=path)
        )

    def settle_line(self, family: str, lang: str, now: datetime) -> list[tuple[int, StatusChange]]:
        """Write status and validity of a line as the rule says at `now`; gives what changed, by document key."""
        stored = {document.doc_id: document for document in self.stored_in_line(family, lang)}
        standings = settle(self.line_facts(family, lang), now)
        # Whoever stops being current goes first: two current documents are impossible even for a moment.
        for standing in sorted(standings, key=lambda s: s.status == "current"):
            self.connection.execute(
                sa.update(DocumentRow)
                .where(DocumentRow.doc_key == stored[standing.doc_id].doc_key)
                .values(status=standing.status, valid_from=standing.valid_from, valid_to=standing.valid_to)
            )
        return [
            (stored[s.doc_id].doc_key, StatusChange(s.doc_id, stored[s.doc_id].status, s.status))
            for s in standings
            if stored[s.doc_id].status != s.status
        ]

    def due_lines(self, now: datetime) -> list[tuple[str, str]]:
        """Lines in which time alone has changed something since they were settled: (family, lang)."""
        query = (
            sa.select(documents.c.family, documents.c.lang)
            .where(
                sa.or_(
                    sa.and_(documents.c.status == "scheduled", documents.c.valid_from <= now),
                    sa.and_(documents.c.status == "current", documents.c.valid_to <= now),
                )
            )
            .distinct()
        )
        return [(row.family, row.lang) for row in self.connection.execute(query)]

    def note_next_change(self, now: datetime) -> None:
        """Keep the next instant at which time alone changes what is in force."""
        self.connection.execute(sa.update(DeskRow).values(next_change_at=self.next_change_at(now)))


@dataclass(frozen=True, slots=True)
class Store:
    """A database that holds a desk at the head of the schema."""

    database: Database

    @contextmanager
    def read(self, stage: str = "reading") -> Iterator[Snapshot]:
        """One snapshot until the block ends."""
        with self.database.read(stage) as connection:
            yield Snapshot(connection)

    @contextmanager
    def write(self, stage: str) -> Iterator[Transaction]:
        """One write transaction; commits at the end of the block, rolls back when it raises."""
        with self.database.write(stage) as connection:
            yield Transaction(connection)


def open_store(
    path: Path | str,
    *,
    read_only: bool = False,
    create: bool = True,
    upgrade: bool = False,
    driver: Driver | None = None,
) -> Store:
    """The store at `path` (`:memory:`: one that lives in this process only).

    No file: made when `create`, else DeskMissing. An older schema: SchemaTooOld, or upgraded when `upgrade`, with
    a copy set aside. A newer one: SchemaTooNew. Another program's file: NotADesk. None of them writes to the file.
    """
    found = driver or find_driver()
    if str(path) == MEMORY:
        database = connect_database(MEMORY, driver=found)
        schema.initialise(database)
        return Store(database)
    file = Path(path)
    if not schema.exists(file):
        if read_only or not create:
            raise DeskMissing(path=str(file), missing="file")
        schema.create(file, found)
    elif upgrade and not read_only:
        schema.upgrade(file, found)
    # The look at the revision sets nothing, so that a file that is refused stays as it is.
    looking = connect_database(file, read_only=True, journal=None, driver=found)
    try:
        with looking.read("reading its schema") as connection:
            schema.require_head(connection, str(file))
    finally:
        looking.close()
    return Store(connect_database(file, read_only=read_only, driver=found))
