"""The store: documents, chunks, settings and recorded answers in one database file.

A `Snapshot` reads inside one read transaction, a `Transaction` writes inside one write transaction. Both give and
take records; the two indexes (bm25, vectors) work over the same connection.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evidencedesk import schema
from evidencedesk.connections import MEMORY, Database, connect_database
from evidencedesk.errors import DeskMissing
from evidencedesk.store.answers import forget_answers, newly_stale, put_answer, recorded_answers, storable
from evidencedesk.store.evaluations import (
    StoredCase,
    forget_guards,
    put_guard,
    put_run,
    run_outcomes,
    stored_guard,
)
from evidencedesk.store.snapshot import (
    ChunkHead,
    Scope,
    Settings,
    Snapshot,
    State,
    StoredDocument,
    chunk_heads,
    chunk_id,
    chunks,
    content_hash,
    documents,
    in_lists,
    tuples,
)
from evidencedesk.store.transaction import Transaction

__all__ = [
    "ChunkHead",
    "Scope",
    "Settings",
    "Snapshot",
    "State",
    "Store",
    "StoredCase",
    "StoredDocument",
    "Transaction",
    "chunk_heads",
    "chunk_id",
    "chunks",
    "content_hash",
    "documents",
    "forget_answers",
    "forget_guards",
    "in_lists",
    "newly_stale",
    "open_store",
    "put_answer",
    "put_guard",
    "put_run",
    "recorded_answers",
    "run_outcomes",
    "storable",
    "stored_guard",
    "tuples",
    "utc_now",
]


@dataclass(frozen=True, slots=True)
class Store:
    """A database that holds a desk at the head of the schema."""

    database: Database
    clock: Callable[[], datetime]

    def now(self) -> datetime:
        """The clock's instant, UTC."""
        return self.clock().astimezone(UTC)

    @contextmanager
    def read(self, stage: str = "reading") -> Iterator[Snapshot]:
        """One snapshot until the block ends."""
        with self.database.read(stage) as connection:
            yield Snapshot(connection, self.now())

    @contextmanager
    def write(self, stage: str) -> Iterator[Transaction]:
        """One write transaction; commits at the end of the block, rolls back when it raises."""
        with self.database.write(stage) as connection:
            transaction = Transaction(connection, self.now())
            yield transaction
            if transaction.uncommitted:
                transaction.stamp()

    def within(self, transaction: Transaction) -> Store:
        """The store as one open transaction sees it: its reads and writes are part of that one."""
        return _Within(self.database, self.clock, transaction)

    @contextmanager
    def private_copy(self) -> Iterator[Store]:
        """A store over a copy of the file that is gone when the block ends; the file itself is only read."""
        with tempfile.TemporaryDirectory(prefix="evidencedesk-") as folder:
            path = Path(folder) / "desk.db"
            self.database.copy_to(path)
            with closing(connect_database(path)) as database:
                yield Store(database, self.clock)


@dataclass(frozen=True, slots=True)
class _Within(Store):
    """Reads and writes inside an open transaction; a write that fails is undone to where it began."""

    transaction: Transaction

    @contextmanager
    def read(self, stage: str = "reading") -> Iterator[Snapshot]:
        # A new one each time: a snapshot keeps what it has read, and the transaction changes it.
        yield Transaction(self.transaction.connection, self.now(), self.transaction)

    @contextmanager
    def write(self, stage: str) -> Iterator[Transaction]:
        try:
            with self.transaction.connection.begin_nested():
                yield Transaction(self.transaction.connection, self.now(), self.transaction)
        except BaseException:
            # Rows that were changed and changed back count on, so the count does not tell the states apart.
            self.transaction.remembered.clear()
            raise


def utc_now() -> datetime:
    """The system's clock."""
    return datetime.now(UTC)


def open_store(
    path: Path | str,
    *,
    read_only: bool = False,
    create: bool = True,
    upgrade: bool = False,
    clock: Callable[[], datetime] = utc_now,
) -> Store:
    """The store at `path` (`:memory:`: one that lives in this process only).

    No file: made when `create`, else DeskMissing. An older schema: SchemaTooOld, or upgraded when `upgrade`, with
    a copy set aside. A newer one: SchemaTooNew. Another program's file: NotADesk. None of them writes to the file.
    """
    if str(path) == MEMORY:
        database = connect_database(MEMORY)
        schema.initialise(database)
        return Store(database, clock)
    file = Path(path)
    if not schema.exists(file):
        if read_only or not create:
            raise DeskMissing(path=str(file), missing="file")
        schema.create(file)
    elif upgrade and not read_only:
        schema.upgrade(file)
    # The look at the revision is another connection's, which sets nothing: a file that is refused stays as it is.
    in_file = schema.state_in_file(file)
    with closing(connect_database(file, read_only=True)) as looking, looking.read("reading its schema") as connection:
        schema.require_head(connection, str(file))
        schema.require_own_log(connection, file, in_file)
    return Store(connect_database(file, read_only=read_only), clock)
