"""The file's identity and schema: whose file it is, which revision it has, how it is made and upgraded."""

from __future__ import annotations

import os
import re
import stat
import struct
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from evidencedesk.connections import Database, connect_database, first_bytes, log_size, rows_without_log
from evidencedesk.errors import (
    DeskDamaged,
    DeskMissing,
    NotADesk,
    ReadOnlyDesk,
    SchemaTooNew,
    SchemaTooOld,
    StoreError,
    StoreFailure,
)
from evidencedesk.models import Base

APPLICATION_ID = 0x45764473
"""In the header of every file of ours: "EvDs"."""
VERSION_TABLE = "evidencedesk_version"
"""Alembic's table, under a name that never meets a host's own."""
REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007")
"""Every revision in migrations/versions, oldest first, known without importing Alembic; a test keeps it true."""
HEAD = REVISIONS[-1]

_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_OFFSET = 68
_WRITE_VERSION_OFFSET, _ROLLBACK = 18, 1
"""A file that never had a write-ahead log since it was made, as a backup is until it is opened."""
_alembic_lock = threading.Lock()  # Alembic's command API keeps its context in module globals


def migrations_folder() -> Path:
    """The folder of the migrations: inside an installed package, or at the top of a checkout."""
    inside = Path(__file__).parent / "migrations"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "migrations"


def exists(path: Path) -> bool:
    """Whether there is a desk at `path`: False when there is no file or an empty one. Writes nothing.

    Reads the header as bytes, because opening a foreign file with SQLite may already change it. NotADesk when
    the file is something else or cannot be read, StoreFailure when a write-ahead log of another file lies beside it.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise NotADesk(path=str(path), problem="it is a folder or a device, no file")
        log_bytes = log_size(path.resolve(), "-wal")
        header = first_bytes(path, 100)
    except FileNotFoundError:
        return False
    except (OSError, ValueError) as error:
        raise NotADesk(path=str(path), problem=f"it cannot be read: {error}") from error
    if header is None:
        return True  # this process has it open, and looked at it before
    if not header:
        return False
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise NotADesk(path=str(path), problem="it is no SQLite database")
    (application_id,) = struct.unpack_from(">I", header, _APPLICATION_ID_OFFSET)
    if application_id != APPLICATION_ID:
        raise NotADesk(path=str(path), problem="it is another program's SQLite database")
    if header[_WRITE_VERSION_OFFSET] == _ROLLBACK and log_bytes and log_size(path.resolve(), "-wal"):
        raise _log_of_another_file(path)
    return True


def state_in_file(path: Path) -> tuple[int, str] | None:
    """Number and generation of the state that the file alone is in, where there is a write-ahead log beside it.

    None when there is no log, and when that cannot be said. Read it before the snapshot that `require_own_log` gets.
    """
    if not log_size(path.resolve(), "-wal"):
        return None
    found = rows_without_log(path.resolve(), "SELECT change_number, generation FROM state")
    return (int(found[0][0]), str(found[0][1])) if found is not None and len(found) == 1 else None


def require_own_log(connection: sa.Connection, path: Path, in_file: tuple[int, str] | None) -> None:
    """StoreFailure when the write-ahead log beside a file is another one's: its own only leads on from what it holds.

    Such a log is left when a killed process's file is replaced by a copy, and SQLite would play it into that.
    """
    if in_file is None:
        return
    rows = connection.exec_driver_sql("SELECT change_number, generation FROM recent_states")
    recent = {row[0]: row[1] for row in rows}
    number, generation = in_file
    if recent and number >= min(recent) and recent.get(number) != generation:
        raise _log_of_another_file(path)


def _log_of_another_file(path: Path) -> StoreFailure:
    log = f"{path.resolve().name}-wal"
    problem = f"{log} beside it is the write-ahead log of another file, which was there before; move {log} away"
    return StoreFailure(path=str(path), stage="opening", problem=problem)


def create(path: Path) -> None:
    """Make a new desk at `path`, whole or not at all; does nothing when another process was first.

    It is built beside its place and then linked into it, so no process ever sees half a schema. An empty file
    that is there already, and a file system without hard links, get it in place, under the write lock.
    """
    if not path.parent.is_dir():
        raise DeskMissing(path=str(path), missing=f"folder as {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise ReadOnlyDesk(path=str(path), problem="its folder is read-only, so no file can be made there")
    path = path.resolve()  # a link that leads nowhere yet: the file is made where it leads
    if log_size(path, "-wal") and not (path.exists() and path.stat().st_size):
        # SQLite would play it into the new file, and deleted documents would come back; or drop it, and with it what
        # could be mended by somebody who knows how.
        raise NotADesk(
            path=str(path), problem=f"it is gone, but its write-ahead log {path.name}-wal is there; move that away"
        )
    building = path.with_name(f".{path.name}.new-{os.getpid()}-{threading.get_ident()}")
    try:
        with closing(connect_database(building, journal=None)) as database:
            initialise(database)
        os.link(building, path)
    except FileExistsError:
        if path.stat().st_size == 0:
            _initialise_in_place(path)
    except OSError:
        _initialise_in_place(path)
    except StoreError as error:
        raise type(error)(**{**error.facts, "path": str(path)}) from error
    finally:
        building.unlink(missing_ok=True)


def _initialise_in_place(path: Path) -> None:
    with closing(connect_database(path, journal=None)) as database:
        initialise(database)


def initialise(database: Database) -> None:
    """Write identity and schema into a database, in one transaction, unless it holds something by then."""
    with database.upgrading() as connection:
        if needs_identity(connection):
            write_identity(connection)
            run_migrations(connection)


def needs_identity(connection: sa.Connection) -> bool:
    """Whether the database is still empty."""
    return not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar()


def write_identity(connection: sa.Connection) -> None:
    """Mark the database as ours."""
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")


def run_migrations(connection: sa.Connection) -> None:
    """Bring the schema to the head over an open write transaction of `Database.upgrading`."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    # ConfigParser would read a per cent sign in the path as a placeholder.
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    with _alembic_lock:
        command.upgrade(config, "head")


def revision_of(connection: sa.Connection) -> str:
    """The file's revision; "none" when it has no version table."""
    tables = connection.exec_driver_sql(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (VERSION_TABLE,)
    ).fetchall()
    if not tables:
        return "none"
    found = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()
    return "none" if found is None else str(found)


def require_head(connection: sa.Connection, path: str) -> None:
    """SchemaTooOld or SchemaTooNew, naming both revisions, unless the file is at the head."""
    found = revision_of(connection)
    if found == HEAD:
        return
    if found == "none" and not needs_identity(connection):
        raise DeskDamaged(path=path, problem=f"the row of its schema's revision is gone from {VERSION_TABLE}")
    if found == "none" or found in REVISIONS:
        raise SchemaTooOld(path=path, found=found, head=HEAD)
    raise SchemaTooNew(path=path, found=found, head=HEAD)


def upgrade(path: Path) -> Path | None:
    """Bring the file at `path` to the head in one transaction, after setting a copy aside.

    Returns the path of the copy, or None when the file was at the head already. On any failure the file is as it
    was. SchemaTooNew and NotADesk before anything is written. Writes.
    """
    if not exists(path):
        raise DeskMissing(path=str(path), missing="file")
    with closing(connect_database(path, read_only=True)) as looking, looking.read() as connection:
        if _is_at_head(connection, str(path)):
            return None
    with closing(connect_database(path)) as database, database.upgrading() as connection:
        # Looked at again under the lock: another process may have upgraded it, or written, meanwhile.
        if _is_at_head(connection, str(path)):
            return None
        copy = _set_aside(database, path, revision_of(connection))
        run_migrations(connection)
    return copy


def _is_at_head(connection: sa.Connection, path: str) -> bool:
    try:
        require_head(connection, path)
    except SchemaTooOld:
        return False
    return True


def _set_aside(database: Database, path: Path, found: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    copy = path.with_name(f"{path.name}.schema-{found}.{stamp}")
    try:
        database.copy_to(copy)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return copy


def view_names() -> set[str]:
    """The names of the views that a file at the head has."""
    return set(view_statements())


def view_statements() -> dict[str, str]:
    """The statement of each view that a file at the head has, by name, without the comments above it."""
    statements = {}
    for file in sorted((migrations_folder() / "views").glob("*.sql")):
        statement = re.sub(r"\A(?:--.*\n)*", "", file.read_text(encoding="utf-8")).strip()
        if not statement.startswith(f"CREATE VIEW {file.stem} AS"):
            raise ValueError(f"{file.name} must hold CREATE VIEW {file.stem} AS ...")
        statements[file.stem] = statement
    return statements


def index_names() -> set[str]:
    """The names of the indexes that a file at the head has, apart from those of constraints."""
    return {str(index.name) for table in Base.metadata.tables.values() for index in table.indexes}


def drop_views(connection: sa.Connection) -> None:
    """Drop the views that are ours: a migration cannot change a table under them."""
    for name in view_statements():
        connection.exec_driver_sql(f'DROP VIEW IF EXISTS "{name}"')


def create_views(connection: sa.Connection) -> None:
    """Make every view, one file of migrations/views a view, named as the file."""
    for statement in view_statements().values():
        connection.exec_driver_sql(statement)
