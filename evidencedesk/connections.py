"""The SQLite library, the recipe for a connection, and transactions. Everything that opens the file does it here."""

from __future__ import annotations

import functools
import importlib
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool, StaticPool

from evidencedesk.errors import (
    DeskBusy,
    DeskClosed,
    DeskDamaged,
    DeskFull,
    DriverMissing,
    EvidenceDeskError,
    ReadOnlyDesk,
    StoreFailure,
)

MEMORY = ":memory:"
DRIVER_VARIABLE = "EVIDENCEDESK_SQLITE_DRIVER"
BUSY_TIMEOUT_SECONDS = 30.0
_CACHE_KIB = 16_384
"""Pages that a connection keeps, when it has use for so many: a document's words lie all over the table of terms."""
PAGE_SIZE_BYTES = 8192
"""A vector of 384 floats wastes a quarter of a page of 4096; WAL cannot change it later."""
LOG_LIMIT_BYTES = 32 * 1024 * 1024
"""A write-ahead log that is longer is cut after the next write that no reader keeps from it."""
FORK_WAIT_SECONDS = 10.0
"""How long a fork waits for transactions of other threads to end."""
_CUT_WAIT_SECONDS = 0.2

_WRITE = "evidencedesk_write"
_POOL_SIZE = 8
_open_here: dict[int, tuple[int, int]] = {}
"""Device and inode of the file of each connection of this process, and of each attempt to make one."""
_past_sqlite = threading.Lock()
"""Held while a file is looked at past SQLite: no connection to it begins meanwhile."""
# Pools of a parent process: a forked child must neither use nor close their connections.
_abandoned_pools: list[object] = []


@dataclass(frozen=True, slots=True)
class Driver:
    """A DBAPI module for SQLite that works here."""

    name: str
    module: Any
    loads_vec: bool
    """Whether it can load sqlite-vec; without it a numpy function of the same name scans, exactly and slower."""
    problem: str = ""
    """Why sqlite-vec could not be loaded."""


@functools.cache
def find_driver() -> Driver:
    """The SQLite driver of this process, probed once: the one that EVIDENCEDESK_SQLITE_DRIVER names, else the best.

    Order: pysqlite3, sqlean, then the standard library's. One driver serves all files of a process, for two
    SQLite libraries in one process break each other's locks. DriverMissing when none can be imported.
    """
    if named := os.environ.get(DRIVER_VARIABLE):
        try:
            return _probe(named)
        except DriverMissing as error:
            problem = f"{DRIVER_VARIABLE} says {named} ({error.problem}); pysqlite3, sqlean and sqlite3 are known"
            raise DriverMissing(path="SQLite", problem=problem) from error
    tried: list[str] = []
    without_vec: Driver | None = None
    for name in ("pysqlite3", "sqlean", "sqlite3"):
        try:
            driver = _probe(name)
        except DriverMissing as error:
            tried.append(error.problem)
            continue
        if driver.loads_vec:
            return driver
        without_vec = driver
    if without_vec is None:
        raise DriverMissing(path="SQLite", problem="; ".join(tried))
    return without_vec


def _probe(name: str) -> Driver:
    try:
        module = importlib.import_module(name)
        connection = module.connect(MEMORY)
    except (ImportError, AttributeError) as error:
        raise DriverMissing(path="SQLite", problem=f"{name}: {error}") from error
    try:
        _load_vec(connection)
    # Builds fail in several ways: no such method, loading not authorised, a binary for another platform.
    except (AttributeError, ImportError, OSError, module.Error) as error:
        return Driver(name, module, loads_vec=False, problem=f"{type(error).__name__}: {error}")
    finally:
        connection.close()
    return Driver(name, module, loads_vec=True)


def _load_vec(connection: Any) -> None:
    import sqlite_vec

    connection.enable_load_extension(True)
    try:
        sqlite_vec.load(connection)
    finally:
        connection.enable_load_extension(False)


def _cosine_distance(left: bytes, right: bytes) -> float:
    """What sqlite-vec's vec_distance_cosine gives for two float32 blobs, where that cannot be loaded."""
    a, b = np.frombuffer(left, "<f4").astype(np.float64), np.frombuffer(right, "<f4").astype(np.float64)
    return float(1.0 - a @ b / np.sqrt((a @ a) * (b @ b)))


class _Forks:
    """Keeps a fork and the connections of other threads apart.

    SQLite remembers in memory which locks this process holds. A child inherits that memory but none of the locks: what
    was locked when it was forked stays locked for it for ever, and what it takes for its own lock keeps nobody out. So
    a fork waits until no other thread uses a connection, keeps them from getting one, and closes those that are idle.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._thread_of: dict[object, int] = {}
        self._forks = 0
        """That have begun and not ended: two threads may fork at once."""

    def take(self, get: Callable[[], ConnectionPoolEntry]) -> ConnectionPoolEntry:
        """What `get` gives, noted as used by this thread; waits while another thread forks."""
        mine, getting = threading.get_ident(), object()
        with self._changed:
            # Who uses one already may have another: the fork waits for the first one anyway.
            self._changed.wait_for(lambda: not self._forks or mine in self._thread_of.values())
            self._thread_of[getting] = mine
        try:
            entry = get()
            with self._changed:
                self._thread_of[entry] = mine
        finally:
            self.give_back(getting)
        return entry

    def give_back(self, entry: object) -> None:
        """Note that a connection is no longer used."""
        with self._changed:
            self._thread_of.pop(entry, None)
            self._changed.notify_all()

    def begin(self) -> None:
        """Before a fork."""
        mine = threading.get_ident()
        with self._changed:
            self._forks += 1
            self._changed.wait_for(lambda: set(self._thread_of.values()) <= {mine}, FORK_WAIT_SECONDS)
        for pool in list(_pools):
            pool.dispose()

    def end(self) -> None:
        """After it, in the parent."""
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()


_forks = _Forks()
_pools: weakref.WeakSet[_Pool] = weakref.WeakSet()


class _Pool(QueuePool):
    """Connections to one file, none of which is used or open while another thread forks."""

    __module__ = QueuePool.__module__  # under which SQLAlchemy logs

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        _pools.add(self)

    def _do_get(self) -> ConnectionPoolEntry:
        return _forks.take(super()._do_get)

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        super()._do_return_conn(record)
        _forks.give_back(record)


def _before_fork() -> None:
    _forks.begin()


def _after_fork() -> None:
    _forks.end()


def _begin_anew() -> None:
    """In a child: the lock may have been held by a thread that is not here."""
    global _forks, _pools
    _forks, _pools = _Forks(), weakref.WeakSet()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_begin_anew)


@dataclass(slots=True)
class Database:
    """One database file (or `:memory:`), its engine and its two kinds of transaction. Safe to share between threads."""

    path: str
    driver: Driver
    read_only: bool
    busy_timeout_seconds: float
    _make_engine: Callable[[], sa.Engine]
    _one_at_a_time: AbstractContextManager[Any]
    _current: sa.Engine
    _pid: int
    _closed: bool = False
    _immutable_mark: tuple[int, ...] = ()
    _kept_log_bytes: int = 0
    """What a reader kept from being cut when it was last tried."""
    _reopening: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def read(self, stage: str = "reading") -> Iterator[sa.Connection]:
        """A read transaction: one snapshot of the file until the block ends."""
        with (
            self._errors(stage),
            self._unchanged(),
            self._one_at_a_time,
            self.engine.connect() as connection,
            connection.begin(),
        ):
            # A deferred BEGIN takes its snapshot with the first read; everything in the block is to see the same.
            connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
            yield connection

    def require_open(self) -> None:
        """DeskClosed after `close`."""
        if self._closed:
            raise DeskClosed(path=self.path)

    def require_writable(self) -> None:
        """ReadOnlyDesk for a database that was opened for reading."""
        if self.read_only:
            raise ReadOnlyDesk(path=self.path, problem="it was opened for reading only")

    @contextmanager
    def write(self, stage: str) -> Iterator[sa.Connection]:
        """A write transaction that begins with the write lock; commits at the end of the block, else rolls back."""
        self.require_writable()
        with self._errors(stage), self._one_at_a_time, self.engine.connect() as plain:
            connection = plain.execution_options(**{_WRITE: True})
            with connection.begin():
                yield connection
            size = self._log_bytes()
            if size <= LOG_LIMIT_BYTES:
                self._kept_log_bytes = 0
            elif size > LOG_LIMIT_BYTES + self._kept_log_bytes:
                self._cut_log(connection)
                self._kept_log_bytes = self._log_bytes()

    @contextmanager
    def upgrading(self) -> Iterator[sa.Connection]:
        """A write transaction for migrations: foreign keys are off in it, and checked before it commits."""
        with self._errors("changing the schema"), self.engine.connect() as plain:
            connection = plain.execution_options(**{_WRITE: True})
            # With them on, a table rebuild would delete every child row; inside a transaction the pragma is ignored.
            _raw(connection).execute("PRAGMA foreign_keys = OFF")
            # Else a view of the host's own that names one of our views, which are dropped meanwhile, stops the upgrade,
            # and one that names a table which is rebuilt is left with the name of the former one.
            _raw(connection).execute("PRAGMA legacy_alter_table = ON")
            # Takes effect in a file that is still empty, and only outside a transaction.
            _raw(connection).execute(f"PRAGMA page_size = {PAGE_SIZE_BYTES}")
            try:
                with connection.begin():
                    yield connection
                    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
                    if broken:
                        raise DeskDamaged(path=self.path, problem=f"the migration would break {len(broken)} references")
            finally:
                _raw(connection).execute("PRAGMA foreign_keys = ON")
                _raw(connection).execute("PRAGMA legacy_alter_table = OFF")

    def copy_to(self, target: Path) -> None:
        """Write a compacted copy of one consistent state, the write-ahead log included, to a new file.

        Whole or not at all: what a killed run leaves has another name. The copy has the permissions of its original.
        FileExistsError when there is something by then.
        """
        stage = f"copying it to {target.name}"
        building = target.with_name(f".{target.name}.new-{secrets.token_hex(8)}")
        mode = 0o600 if self.path == MEMORY else Path(self.path).stat().st_mode & 0o777
        # VACUUM runs outside of transactions only, so not on a connection that has begun one.
        with self._errors(stage), self._one_at_a_time, self.engine.connect() as connection:
            try:
                with suppress(OSError):  # where nothing can be made, SQLite says so
                    os.close(os.open(building, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
                _raw(connection).execute("VACUUM INTO ?", (str(building),))
                with building.open("rb+") as file:
                    os.fsync(file.fileno())
                _name(building, target)
            finally:
                building.unlink(missing_ok=True)

    def vacuum(self) -> None:
        """Give unused pages back to the file system. Needs up to twice the file's size while it works. Writes."""
        with self._errors("giving space back"), self._one_at_a_time, self.engine.connect() as connection:
            _raw(connection).execute("VACUUM")
            # The whole file was written into the log, and only what is carried over shortens the file.
            self._cut_log(connection)

    def _log_bytes(self) -> int:
        try:
            return Path(f"{self.path}-wal").stat().st_size
        except OSError:  # in memory, or no log there
            return 0

    def _cut_log(self, connection: sa.Connection) -> None:
        """Carry the log over into the file and empty it, unless a reader needs it for longer than a moment.

        SQLite carries over by itself, but begins the log anew only when it finds no reader in it, and with many readers
        there is always one. Asked like this it waits for those that are there, while new ones read from the file. One
        that stays keeps the log growing until it ends: then it is tried again when as much has come on top.
        """
        raw = _raw(connection)
        # What was written is committed and safe in the log, whatever becomes of this.
        with suppress(self.driver.module.Error):
            raw.execute(f"PRAGMA busy_timeout = {int(_CUT_WAIT_SECONDS * 1000)}")
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        raw.execute(f"PRAGMA busy_timeout = {int(self.busy_timeout_seconds * 1000)}")

    def close(self) -> None:
        """Close every connection; a later transaction raises DeskClosed."""
        self._closed = True
        if self._pid == os.getpid():
            self._current.dispose()

    @property
    def engine(self) -> sa.Engine:
        """The engine of this process; after a fork the child gets one of its own. DeskClosed after `close`."""
        if self._closed:
            raise DeskClosed(path=self.path)
        if self._pid != os.getpid():
            if self.path == MEMORY:
                raise StoreFailure(path=self.path, stage="opening", problem="an in-memory desk does not survive a fork")
            with self._reopening:
                if self._pid != os.getpid():
                    _abandoned_pools.append(self._current.pool)
                    self._current = self._make_engine()
                    self._pid = os.getpid()
        return self._current

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Where SQLite was told that the file does not change: look whether that is so, before and after.

        Before: reconnect, and the newer state is read. After: StoreFailure, for what was read may be mixed.
        """
        path = Path(self.path)
        if self.path == MEMORY or not self.read_only or not _must_be_immutable(path):
            yield
            return
        mark = _mark_of(path)
        if mark != self._immutable_mark:
            self.engine.dispose()
            self._immutable_mark = mark
        yield
        if _mark_of(path) != mark:
            problem = "another process changed the file while it was read from a read-only folder; run it again"
            raise StoreFailure(path=self.path, stage="reading", problem=problem)

    @contextmanager
    def _errors(self, stage: str) -> Iterator[None]:
        try:
            yield
        except (sa.exc.DBAPIError, self.driver.module.Error) as error:
            found = _problem(error)
            if self.read_only and "unable to open" in found.lower():
                problem = (
                    "it cannot be opened for reading with your rights; where a -wal file beside it holds newer pages, "
                    "SQLite has to write a -shm file into the folder: let somebody who may write there open it once, "
                    "or copy the file together with its -wal"
                )
                raise StoreFailure(path=self.path, stage=stage, problem=problem) from error
            raise translate(found, self.path, stage, self.busy_timeout_seconds) from error
        except sa.exc.NoResultFound as error:
            raise DeskDamaged(path=self.path, problem="a row that every desk has is gone") from error


def _problem(error: BaseException) -> str:
    """What the driver reported.

    A full or failing disk may let SQLite end the transaction by itself. Undoing a part of it then fails as well, and
    of the two only the first says what is the matter.
    """
    problem, before = str(getattr(error, "orig", error)), error.__context__
    while "no such savepoint" in problem and before is not None:
        problem, before = str(getattr(before, "orig", before)), before.__context__
    return problem


@contextmanager
def _unless_open_here(path: Path) -> Iterator[bool]:
    """True when the file may be opened and closed past SQLite until the block ends.

    Not while this process has a connection to it: closing any descriptor of a file, POSIX drops every lock that the
    process has on it, and another process may then take the write-ahead log away from under the connection.
    """
    with _past_sqlite:
        yield _identity(path) not in list(_open_here.values())


def first_bytes(path: Path, count: int) -> bytes | None:
    """How the file begins; None when this process has a connection to it. OSError when it cannot be read."""
    with _unless_open_here(path) as free:
        if not free:
            return None
        with path.open("rb") as file:
            return file.read(count)


def rows_without_log(path: Path, query: str) -> list[tuple[Any, ...]] | None:
    """What a query gives of the file alone, without its write-ahead log.

    None when this process has a connection to it, or when it does not answer, as while a checkpoint moves its pages.
    """
    module = find_driver().module
    with _unless_open_here(path) as free:
        if not free:
            return None
        raw = module.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            return [tuple(row) for row in raw.execute(query)]
        except module.Error:
            return None
        finally:
            raw.close()


def _forget_who_looked() -> None:
    """A fork may happen while another thread looks; the child has no such thread."""
    global _past_sqlite  # noqa: PLW0603 - a lock that may be held cannot be let go by the child
    _past_sqlite = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_who_looked)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def log_size(path: Path, suffix: Literal["-wal", "-journal"]) -> int:
    """Bytes of a log beside the file; 0 when there is none, as after another process has just put it away."""
    try:
        return path.with_name(path.name + suffix).stat().st_size
    except FileNotFoundError:
        return 0


def translate(problem: str, path: str, stage: str, waited_seconds: float) -> EvidenceDeskError:
    """The typed error for what the driver reported; by its text, which is the same in every driver."""
    lowered = problem.lower()
    if "locked" in lowered or "busy" in lowered:
        return DeskBusy(path=path, waited_seconds=waited_seconds)
    if "readonly" in lowered or "read-only" in lowered:
        return ReadOnlyDesk(path=path, problem="the file or its folder is read-only")
    if "unable to open" in lowered:
        return ReadOnlyDesk(
            path=path, problem="the file, or the -wal and -shm files beside it, cannot be opened with your rights"
        )
    if "disk is full" in lowered or "disk full" in lowered:
        return DeskFull(path=path, stage=stage)
    if "malformed" in lowered or "not a database" in lowered or "corrupt" in lowered:
        return DeskDamaged(path=path, problem=problem)
    return StoreFailure(path=path, stage=stage, problem=problem)


def connect_database(
    path: Path | str,
    *,
    read_only: bool = False,
    journal: Literal["WAL"] | None = "WAL",
    busy_timeout_seconds: float = BUSY_TIMEOUT_SECONDS,
) -> Database:
    """The database at `path`, with every connection made by the same recipe. Opens nothing until the first use.

    `journal=None` leaves the journal mode as it is, which writes nothing to a file that is only looked at.
    """
    found = find_driver()
    # The real place, once: a later change of folder does not move it, and the -wal lies beside it, not beside a link.
    name = str(path) if str(path) == MEMORY else str(Path(path).resolve())

    def connect() -> Any:
        uri = MEMORY
        if name == MEMORY:
            raw = found.module.connect(MEMORY, isolation_level=None, check_same_thread=False)
        else:
            # Our own BEGIN, so isolation_level is None: the driver's own transactions begin too late to lock in time.
            with _opening(Path(name)) as opened:
                uri = _uri(Path(name), read_only)
                raw = found.module.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
                opened(raw)
        try:
            _prepare(raw, found, busy_timeout_seconds)
            if read_only and "?mode=rw" in uri:
                raw.execute("PRAGMA query_only = ON")
            if not read_only and journal is not None and name != MEMORY:
                _use_wal(raw, name)
        except BaseException:
            raw.close()
            _open_here.pop(id(raw), None)
            raise
        return raw

    def make_engine() -> sa.Engine:
        pooling: dict[str, Any] = (
            {"poolclass": StaticPool}
            if name == MEMORY
            else {"poolclass": _Pool, "pool_size": _POOL_SIZE, "max_overflow": -1}
        )
        engine = sa.create_engine("sqlite://", module=found.module, creator=connect, **pooling)
        event.listen(engine, "begin", _begin)
        event.listen(engine, "close", lambda raw, _record: _open_here.pop(id(raw), None))
        return engine

    lock = threading.RLock() if name == MEMORY else nullcontext()
    return Database(name, found, read_only, busy_timeout_seconds, make_engine, lock, make_engine(), os.getpid())


def _uri(path: Path, read_only: bool) -> str:
    if not read_only:
        return f"{path.as_uri()}?mode=rwc"
    # What a process that was killed left half done is undone with the first look, and for that SQLite has to write.
    mode = "rw" if log_size(path, "-journal") and os.access(path, os.W_OK) else "ro"
    return f"{path.as_uri()}?mode={mode}" + ("&immutable=1" if _must_be_immutable(path) else "")


def _must_be_immutable(path: Path) -> bool:
    """Whether the file can only be read by telling SQLite that it does not change.

    A WAL database wants to make its -shm file even for reading. Where the folder forbids that and neither a -wal holds
    newer pages nor a -journal older ones, nothing is missed; whoever may write the folder may still change the file, so
    `read` looks.
    """
    return not os.access(path.parent, os.W_OK) and not log_size(path, "-wal") and not log_size(path, "-journal")


def _mark_of(path: Path) -> tuple[int, ...]:
    """What changes when another process writes the file."""
    found = path.stat()
    return (found.st_ino, found.st_size, found.st_mtime_ns, log_size(path, "-wal"))


def _prepare(raw: Any, driver: Driver, busy_timeout_seconds: float) -> None:
    # First the patience: the statements after it may already meet another process's lock.
    raw.execute(f"PRAGMA busy_timeout = {int(busy_timeout_seconds * 1000)}")
    if driver.loads_vec:
        _load_vec(raw)
    else:
        raw.create_function("vec_distance_cosine", 2, _cosine_distance, deterministic=True)
    raw.execute("PRAGMA foreign_keys = ON")
    # A view or trigger that somebody put into the file may not call functions that do more than compute.
    raw.execute("PRAGMA trusted_schema = OFF")
    # What is deleted is overwritten: a forgotten question must not stand in the file's unused bytes.
    raw.execute("PRAGMA secure_delete = ON")
    raw.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")


def _use_wal(raw: Any, path: str) -> None:
    # Readers keep their snapshot while one writer works. Some file systems cannot do it and say so only in the answer.
    mode = raw.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode.lower() != "wal":
        raise StoreFailure(
            path=path, stage="opening", problem=f"this file system cannot keep a write-ahead log (journal mode {mode})"
        )
    # A log that was longer once does not stay so when it is begun anew.
    raw.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT_BYTES}")


@contextmanager
def _opening(path: Path) -> Iterator[Callable[[Any], None]]:
    """Keeps others from looking at the file past SQLite while a connection is made, and as long as it lasts."""
    attempt = object()
    with _past_sqlite:
        if (before := _identity(path)) is not None:
            _open_here[id(attempt)] = before

    def opened(raw: Any) -> None:
        if (made := _identity(path)) is not None:
            _open_here[id(raw)] = made

    try:
        yield opened
    finally:
        _open_here.pop(id(attempt), None)


def _name(building: Path, target: Path) -> None:
    """Give a finished file its name; FileExistsError rather than replace another one."""
    try:
        os.link(building, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError(f"{target} is there already") from None
        building.rename(target)


def _begin(connection: sa.Connection) -> None:
    # A transaction that reads first and writes later cannot be upgraded once another writer got in between: so
    # writes take the lock at once and wait for it.
    writes = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _raw(connection: sa.Connection) -> Any:
    return connection.connection.driver_connection
