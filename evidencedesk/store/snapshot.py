"""Reading the base tables: one consistent state of the file, given as records."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import sqlalchemy as sa

from evidencedesk.errors import NotFound
from evidencedesk.models import ChunkRow, DeskRow, DocumentRow, EmbedderRow, table_of
from evidencedesk.records import (
    Chunk,
    Document,
    DocumentSummary,
    EmbedderIdentity,
    Location,
    SourceDocument,
    Stale,
    Status,
    join_indexed,
)
from evidencedesk.versions import VersionFacts, settle

_T = TypeVar("_T")
_IN_LIST = 10_000
"""Values in one IN list: older SQLite libraries take at most 32,766."""
_CHUNK_ID = re.compile(r"(.+):c(0|[1-9][0-9]{0,9})", re.DOTALL)

documents = table_of(DocumentRow)
chunks = table_of(ChunkRow)
chunk_id = documents.c.doc_id + ":c" + sa.cast(chunks.c.ordinal, sa.Text)
"""The SQL expression of a chunk's id, over documents joined with chunks."""


# What every search reads, put together once: SQLAlchemy takes longer to build such a statement than SQLite to run it.
# Tables, not mapped classes: the first statement over one of these configures the mappers of all of them.
_desk, _embedders = table_of(DeskRow), table_of(EmbedderRow)
_SETTINGS = sa.select(_desk, _embedders.c.name, _embedders.c.dimension, _embedders.c.fingerprint).join_from(
    _desk, _embedders, isouter=True
)
_BY_KEY = chunks.c.chunk_key.in_(sa.bindparam("keys", expanding=True))
_HEADS = (
    sa.select(chunks.c.chunk_key, chunk_id.label("chunk_id"), documents.c.lang, documents.c.family)
    .join_from(chunks, documents)
    .where(_BY_KEY)
)
_CHUNKS = (
    sa.select(
        chunks.c.chunk_key, chunk_id.label("chunk_id"), documents.c.doc_id, documents.c.version, documents.c.lang,
        documents.c.family, documents.c.status, documents.c.title, documents.c.path, chunks.c.text,
        chunks.c.preamble, chunks.c.heading, chunks.c.line_start, chunks.c.line_end,
    )
    .join_from(chunks, documents)
    .where(_BY_KEY)
)  # fmt: skip


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
class State:
    """A committed state of the file."""

    generation: str
    """Random: no other state of any file has it."""
    change_number: int
    """One more than that of the state before."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the write way needs to know of a document that is there."""

    doc_key: int
    doc_id: str
    family: str
    lang: str
    version_sort: str
    status: Status
    valid_from: datetime
    valid_to: datetime | None
    root: str
    path: str
    content_hash: str
    pruned: bool


_STORED = sa.select(*(documents.c[name] for name in StoredDocument.__dataclass_fields__))
_OF_LINE = sa.and_(documents.c.family == sa.bindparam("family"), documents.c.lang == sa.bindparam("lang"))
_STORED_AS = _STORED.where(documents.c.doc_id == sa.bindparam("doc_id"))
_STORED_UNDER = _STORED.where(documents.c.root == sa.bindparam("root")).order_by(documents.c.doc_id)
_STORED_IN_LINE = _STORED.where(_OF_LINE).order_by(documents.c.version_sort)
_FACTS_OF_LINE = sa.select(
    documents.c.doc_id, documents.c.version_sort, documents.c.came_in_at, documents.c.effective_from,
    documents.c.effective_to, documents.c.withdrawn_at,
).where(_OF_LINE)  # fmt: skip
_KEYS_OF_DOCUMENT = (
    sa.select(chunks.c.chunk_key).where(chunks.c.doc_key == sa.bindparam("doc_key")).order_by(chunks.c.ordinal)
)
_LATER = sa.bindparam("now", type_=documents.c.valid_from.type)
_NEXT_CHANGES = sa.select(
    sa.select(sa.func.min(documents.c.valid_from))
    .where(
        documents.c.valid_from > _LATER,
        documents.c.effective_from.is_not(None),
        documents.c.status.not_in(("withdrawn", "current")),
    )
    .scalar_subquery(),
    sa.select(sa.func.min(documents.c.valid_to))
    .where(documents.c.valid_to > _LATER, documents.c.status.not_in(("withdrawn", "superseded")))
    .scalar_subquery(),
)


def content_hash(source: SourceDocument) -> str:
    """SHA-256, in hexadecimal, of all that is stored of a source: its text, and what was read from it or given."""
    return _hash_of(
        source.family,
        source.version,
        source.lang,
        source.title,
        source.effective_from,
        source.effective_to,
        dict(source.metadata),
        source.source,
    )


def _hash_of(*parts: object) -> str:
    written = [part.astimezone(UTC).isoformat() if isinstance(part, datetime) else part for part in parts]
    return hashlib.sha256(json.dumps(written, ensure_ascii=False, sort_keys=True).encode("utf-8")).hexdigest()


# ---------------------------------------------------------------- reading


class read_once(Generic[_T]):  # noqa: N801 - used as a decorator
    """A property that is computed once. It has no lock, as a snapshot is one thread's: a fork cannot leave one held."""

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> _T:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


class Snapshot:
    """One consistent state of the file, read at one instant.

    Between two writes time alone may change what is in force. Records that leave a snapshot have the status of
    its own instant; `StoredDocument` has the one that is stored, which the derived statistics follow.
    """

    def __init__(self, connection: sa.Connection, now: datetime) -> None:
        self.connection = connection
        self.now = now

    @read_once
    def settings(self) -> Settings | None:
        """The desk's settings; None in a file that nobody has set up yet."""
        row = self.connection.execute(_SETTINGS).one_or_none()
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

    @read_once
    def state(self) -> State:
        """Which committed state of the file this is; a write transaction gives the one that it started from."""
        row = self.connection.exec_driver_sql("SELECT generation, change_number FROM state").one_or_none()
        if row is None:
            raise LookupError("the row of state is gone; `evidencedesk check` says what to do")
        return State(row[0], row[1])

    @property
    def generation(self) -> str:
        """What names that state and no other."""
        return self.state.generation

    @property
    def newest_state(self) -> State | None:
        """The newest of the states that the file remembers: this one, unless rows were changed by hand."""
        query = "SELECT generation, change_number FROM recent_states ORDER BY change_number DESC LIMIT 1"
        row = self.connection.exec_driver_sql(query).one_or_none()
        return None if row is None else State(row[0], row[1])

    @property
    def last_change_number(self) -> int:
        """The highest change number of a document."""
        return self.connection.scalar(sa.select(sa.func.max(documents.c.change_number))) or 0

    @property
    def something_is_due(self) -> bool:
        """Whether an instant has passed at which something changes, and no write has applied it yet."""
        next_change_at = None if self.settings is None else self.settings.next_change_at
        return next_change_at is not None and next_change_at <= self.now

    def scope(self, as_of: datetime | None = None, *, lang: str | None = None, family: str | None = None) -> Scope:
        """The scope of a search: as of an instant, or of today.

        While something is due, today's scope is judged by validity too, so that the clock alone never lets an
        outdated text answer.
        """
        return Scope(self.now if as_of is None and self.something_is_due else as_of, lang, family)

    @read_once
    def _due_status(self) -> dict[str, Status]:
        """The status at this instant of documents whose stored one is due to change, by doc_id."""
        if not self.something_is_due:
            return {}
        return {
            standing.doc_id: standing.status
            for family, lang in self.due_lines()
            for standing in settle(self.line_facts(family, lang), self.now)
        }

    def due_lines(self) -> list[tuple[str, str]]:
        """Lines in which time alone has changed something since they were settled: (family, lang)."""
        query = (
            sa.select(documents.c.family, documents.c.lang)
            .where(
                sa.or_(
                    sa.and_(documents.c.status == "scheduled", documents.c.valid_from <= self.now),
                    sa.and_(documents.c.status == "current", documents.c.valid_to <= self.now),
                )
            )
            .distinct()
        )
        return [(row.family, row.lang) for row in self.connection.execute(query)]

    def stored(self, doc_id: str) -> StoredDocument | None:
        """What is stored under a doc_id."""
        row = self.connection.execute(_STORED_AS, {"doc_id": doc_id}).one_or_none()
        return None if row is None else StoredDocument(*row)

    def stored_under(self, root: str) -> list[StoredDocument]:
        """Every document that came from the named root, by doc_id."""
        return [StoredDocument(*row) for row in self.connection.execute(_STORED_UNDER, {"root": root})]

    def stored_in_line(self, family: str, lang: str) -> list[StoredDocument]:
        """Every document of a line of versions, by version."""
        rows = self.connection.execute(_STORED_IN_LINE, {"family": family, "lang": lang})
        return [StoredDocument(*row) for row in rows]

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
        found = [DocumentSummary(**row) for row in self.connection.execute(query).mappings()]
        at_now = [replace(summary, status=self._due_status.get(summary.doc_id, summary.status)) for summary in found]
        return [summary for summary in at_now if status is None or summary.status == status]

    def content_hashes(self) -> list[tuple[int, str]]:
        """(key, stored content hash) of every document, by doc_id."""
        query = sa.select(documents.c.doc_key, documents.c.content_hash).order_by(documents.c.doc_id)
        return [(row.doc_key, row.content_hash) for row in self.connection.execute(query)]

    def derived_chunks(self, doc_key: int) -> dict[int, tuple[StoredChunk, str, int]]:
        """A document's chunks by key, in order, each with the text hash and the term count that are stored for it."""
        query = sa.select(chunks.c.chunk_key, chunks.c.text_hash, chunks.c.term_count).where(
            chunks.c.doc_key == doc_key
        )
        rows = self.connection.execute(query.order_by(chunks.c.ordinal)).all()
        found = self.chunks(row.chunk_key for row in rows)
        return {row.chunk_key: (found[row.chunk_key], row.text_hash, row.term_count) for row in rows}

    def derived_between(
        self, first_key: int, last_key: int, batch: int = 1000
    ) -> Iterator[tuple[int, StoredChunk, str, int]]:
        """(key, chunk, text hash, term count) of the chunks with those keys, both included, in the order of keys."""
        query = (
            sa.select(chunks.c.chunk_key, chunks.c.text_hash, chunks.c.term_count)
            .where(chunks.c.chunk_key <= last_key)
            .order_by(chunks.c.chunk_key)
            .limit(batch)
        )
        while rows := self.connection.execute(query.where(chunks.c.chunk_key >= first_key)).all():
            found = self.chunks(row.chunk_key for row in rows)
            for row in rows:
                if row.chunk_key in found:
                    yield row.chunk_key, found[row.chunk_key], row.text_hash, row.term_count
            first_key = rows[-1].chunk_key + 1

    def document_keys(self, first_key: int, last_key: int) -> dict[int, int]:
        """The key of its document for each chunk with a key between those, both included."""
        query = sa.select(chunks.c.chunk_key, chunks.c.doc_key).where(chunks.c.chunk_key.between(first_key, last_key))
        return {row.chunk_key: row.doc_key for row in self.connection.execute(query)}

    def current_chunk_keys(self, first_key: int, last_key: int) -> set[int]:
        """The keys between those, both included, of the chunks whose documents are stored as current."""
        query = sa.select(chunks.c.chunk_key).join(documents).where(documents.c.status == "current")
        return set(self.connection.scalars(query.where(chunks.c.chunk_key.between(first_key, last_key))))

    def chunk_keys(self, doc_key: int) -> list[int]:
        """The keys of a document's chunks, in order."""
        return list(self.connection.scalars(_KEYS_OF_DOCUMENT, {"doc_key": doc_key}))

    def pragma(self, name: str) -> list[tuple[object, ...]]:
        """The rows that a pragma of SQLite gives."""
        return [tuple(row) for row in self.connection.exec_driver_sql(f"PRAGMA {name}")]

    def definitions_of(self, kind: str) -> dict[str, str | None]:
        """The statements that made the file's tables, views or indexes, by name."""
        rows = self.connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = ?", (kind,))
        return {row[0]: row[1] for row in rows}

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
            self._due_status.get(row.doc_id, row.status),
            row.valid_from,
            row.valid_to,
            tuple(found[key].chunk for key in keys),
            row.path,
            row.author_metadata,
        )

    def source(self, doc_key: int) -> str:
        """The whole source text of a document."""
        return str(
            self.connection.execute(sa.select(documents.c.source).where(documents.c.doc_key == doc_key)).scalar_one()
        )

    def hash_of(self, doc_key: int) -> str:
        """The content hash that a document's stored columns give: `content_hash` of what it was made from."""
        columns = ("family", "version", "lang", "title", "effective_from", "effective_to", "author_metadata", "source")
        row = self.connection.execute(
            sa.select(*(documents.c[name] for name in columns)).where(documents.c.doc_key == doc_key)
        ).one()
        return _hash_of(*row)

    def paths_ending_in(self, name: str) -> list[str]:
        """Paths of ingested files with that file name, in whatever folder."""
        query = sa.select(documents.c.path).where(documents.c.root != "").order_by(documents.c.path)
        return [path for path in self.connection.scalars(query) if path.rpartition("/")[2] == name]

    def text_hashes(self, doc_key: int) -> list[str]:
        """What names the vectors of a document's chunks, in order."""
        query = sa.select(chunks.c.text_hash).where(chunks.c.doc_key == doc_key).order_by(chunks.c.ordinal)
        return list(self.connection.scalars(query))

    def indexed_texts(self) -> dict[str, str]:
        """Every different indexed text of the file, by what names its vectors."""
        query = sa.select(chunks.c.text_hash, chunks.c.preamble, chunks.c.text)
        return {row.text_hash: join_indexed(row.preamble, row.text) for row in self.connection.execute(query)}

    def texts_of(self, text_hashes: Iterable[str]) -> dict[str, str]:
        """The indexed text of each of the hashes that some chunk has."""
        query = sa.select(chunks.c.text_hash, chunks.c.preamble, chunks.c.text)
        return {
            row.text_hash: join_indexed(row.preamble, row.text)
            for some in in_lists(text_hashes)
            for row in self.connection.execute(query.where(chunks.c.text_hash.in_(some)))
        }

    def chunk_key(self, name: str) -> int:
        """The key of a chunk by its id. NotFound when there is none."""
        if parts := _CHUNK_ID.fullmatch(name):
            key = self.connection.scalar(
                sa.select(chunks.c.chunk_key)
                .join(documents, documents.c.doc_key == chunks.c.doc_key)
                .where(documents.c.doc_id == parts[1], chunks.c.ordinal == int(parts[2]))
            )
            if key is not None:
                return int(key)
        raise NotFound(kind="chunk", name=name)

    def find_chunk(self, name: str, scope: Scope) -> tuple[StoredChunk, bool] | None:
        """A chunk by its id, and whether its document is in force in the scope's time; None when there is none."""
        try:
            name.encode()  # half a character is in no id, and no database takes it
            key = self.chunk_key(name)
        except (NotFound, UnicodeEncodeError):
            return None
        in_force = sa.select(scope.in_force()).select_from(chunks.join(documents)).where(chunks.c.chunk_key == key)
        return self.chunks([key])[key], bool(self.connection.scalar(in_force))

    def chunks(self, keys: Iterable[int]) -> dict[int, StoredChunk]:
        """Chunks by key, each with what a label needs; keys that are not there are left out."""
        found: dict[int, StoredChunk] = {}
        for some in in_lists(keys):
            for row in self.connection.execute(_CHUNKS, {"keys": some}):
                location = Location(row.path, row.heading, row.line_start, row.line_end)
                indexed = join_indexed(row.preamble, row.text)
                status = self._due_status.get(row.doc_id, row.status)
                chunk = Chunk(
                    row.chunk_id, row.doc_id, row.version, row.lang, status, row.text, indexed, location, row.family
                )  # fmt: skip
                found[row.chunk_key] = StoredChunk(chunk, row.title)
        return found

    def languages_of(self, family: str, scope: Scope) -> list[str]:
        """The languages in which a family has a document in force in the scope's time."""
        query = sa.select(documents.c.lang).where(scope.in_force(), documents.c.family == family)
        return list(self.connection.scalars(query.distinct().order_by(documents.c.lang)))

    def holds_chunks(self, scope: Scope) -> bool:
        """Whether any chunk is in scope."""
        query = sa.select(chunks.c.chunk_key).join(documents).where(scope.in_force(), scope.passes())
        return self.connection.execute(query.limit(1)).first() is not None

    def staleness(self) -> list[Stale]:
        """Every document behind a higher version of its line that has begun; by doc_id."""
        newer = sa.alias(documents)
        behind = sa.exists().where(
            newer.c.family == documents.c.family,
            newer.c.lang == documents.c.lang,
            newer.c.version_sort > documents.c.version_sort,
            newer.c.valid_from <= self.now,
            sa.or_(newer.c.withdrawn_at.is_(None), newer.c.withdrawn_at > newer.c.valid_from),
        )
        query = (
            sa.select(documents.c.doc_id, documents.c.version, documents.c.status)
            .where(behind).order_by(documents.c.doc_id)
        )  # fmt: skip
        return [
            Stale(
                row.doc_id,
                row.version,
                "outdated_but_current" if self._due_status.get(row.doc_id, row.status) == "current" else "superseded",
            )
            for row in self.connection.execute(query)
        ]

    def line_facts(self, family: str, lang: str) -> list[VersionFacts]:
        """What the rule needs to know of a line of versions."""
        rows = self.connection.execute(_FACTS_OF_LINE, {"family": family, "lang": lang})
        return [VersionFacts(*row) for row in rows]

    def lines(self) -> list[tuple[str, str]]:
        """Every line of versions: (family, lang)."""
        query = sa.select(documents.c.family, documents.c.lang).distinct()
        return [(row.family, row.lang) for row in self.connection.execute(query)]

    def next_change_at(self) -> datetime | None:
        """The first instant after this one at which a validity begins or ends.

        What has come in, or was superseded, by a clock that was ahead of this one does not do so again.
        """
        instants = self.connection.execute(_NEXT_CHANGES, {"now": self.now}).one()
        return min((instant for instant in instants if instant is not None), default=None)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk and the title of its document."""

    chunk: Chunk
    title: str


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """What ranking needs to know of a chunk, without its text."""

    id: str
    lang: str
    family: str


def chunk_heads(connection: sa.Connection, keys: Iterable[int]) -> dict[int, ChunkHead]:
    """Id, language and family of chunks, by key."""
    found: dict[int, ChunkHead] = {}
    for some in in_lists(keys):
        rows = connection.execute(_HEADS, {"keys": some})
        found.update((row.chunk_key, ChunkHead(row.chunk_id, row.lang, row.family)) for row in rows)
    return found


def in_lists(values: Iterable[_T]) -> Iterator[list[_T]]:
    """Values in lists that every SQLite takes as one IN."""
    every = list(values)
    for start in range(0, len(every), _IN_LIST):
        yield every[start : start + _IN_LIST]


def tuples(result: sa.CursorResult[Any]) -> list[tuple[Any, ...]]:
    """All rows as plain tuples: to make SQLAlchemy's row objects takes longer than such a query."""
    found = [] if result.cursor is None else list(result.cursor.fetchall())
    result.close()
    return found
