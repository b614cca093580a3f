"""The file's identity and schema: whose file it is, which revision it has, how it is made and upgraded."""

from __future__ import annotations

import os
import re
import struct
import threading
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from evidencedesk.connections import Database, Driver, open_database
from evidencedesk.errors import DeskMissing, NotADesk, ReadOnlyDesk, SchemaTooNew, SchemaTooOld, StoreFailure

APPLICATION_ID = 0x45764473
"""In the header of every file of ours: "EvDs"."""
VERSION_TABLE = "evidencedesk_version"
"""Alembic's table, under a name that never meets a host's own."""
HEAD = "0001"
"""The newest revision in migrations/versions, known without importing Alembic; a test keeps it true."""
REVISIONS = ("0001",)
"""Every revision, oldest first: one that is not here was made by a newer package."""

_MAGIC = b"SQLite format 3\x00"
_APPLICATION_ID_OFFSET = 68
_alembic_lock = threading.Lock()  # Alembic's command API keeps its context in module globals


def migrations_folder() -> Path:
    """The folder of the migrations: inside an installed package, or at the top of a checkout."""
    inside = Path(__file__).parent / "migrations"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "migrations"


def exists(path: Path) -> bool:
    """Whether there is a desk at `path`: False when there is no file or an empty one. Writes nothing.

    Reads the header as bytes, because opening a foreign file with SQLite may already change it. NotADesk when
    the file is something else.
    """
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except FileNotFoundError:
        return False
    except IsADirectoryError as error:
        raise NotADesk(path=str(path), problem="it is a folder") from error
    if not header:
        return False
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise NotADesk(path=str(path), problem="it is no SQLite database")
    (application_id,) = struct.unpack_from(">I", header, _APPLICATION_ID_OFFSET)
    if application_id != APPLICATION_ID:
        raise NotADesk(path=str(path), problem="it is another program's SQLite database")
    return True


def create(path: Path, driver: Driver) -> None:
    """Make a new desk at `path`, whole or not at all; does nothing when another process was first.

    It is built beside its place and then linked into it, so no process ever sees half a schema.
    """
    if not path.parent.is_dir():
        raise DeskMissing(path=str(path), missing=f"folder as {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise ReadOnlyDesk(path=str(path), problem="its folder is read-only, so no file can be made there")
    building = path.with_name(f".{path.name}.new-{os.getpid()}-{threading.get_ident()}")
    try:
        with open_database(building, journal=None, driver=driver) as database:
            initialise(database)
        if path.exists() and path.stat().st_size == 0:
            building.replace(path)
        else:
            _link(building, path)
    finally:
        building.unlink(missing_ok=True)


def _link(building: Path, path: Path) -> None:
    try:
        os.link(building, path)
    except FileExistsError:
        return  # another process made it meanwhile, as whole as ours
    except OSError:
        # A file system without hard links.
        if not path.exists():
            building.rename(path)


def initialise(database: Database) -> None:
    """Write identity and schema into an empty database, in one transaction."""
    with database.upgrading() as connection:
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
    if found == "none" or found in REVISIONS:
        raise SchemaTooOld(path=path, found=found, head=HEAD)
    raise SchemaTooNew(path=path, found=found, head=HEAD)


def upgrade(path: Path, driver: Driver) -> Path | None:
    """Bring the file at `path` to the head in one transaction, after setting a copy aside.

    Returns the path of the copy, or None when the file was at the head already (then nothing is written). On
    any failure the file is as it was. Writes.
    """
    with open_database(path, driver=driver) as database:
        with database.read() as connection:
            found = revision_of(connection)
        if found == HEAD:
            return None
        if found != "none" and found not in REVISIONS:
            raise SchemaTooNew(path=str(path), found=found, head=HEAD)
        copy = _set_aside(database, path, found)
        with database.upgrading() as connection:
            run_migrations(connection)
        return copy


def _set_aside(database: Database, path: Path, found: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    copy = path.with_name(f"{path.name}.schema-{found}.{stamp}")
    raw = database.engine.raw_connection()
    try:
        # VACUUM INTO copies one consistent state, the write-ahead log included.
        raw.cursor().execute("VACUUM INTO ?", (str(copy),))
    except database.driver.module.Error as error:
        copy.unlink(missing_ok=True)
        raise StoreFailure(path=str(path), stage=f"copying it to {copy.name}", problem=str(error)) from error
    finally:
        raw.close()
    return copy


def view_names() -> set[str]:
    """The names of the views that a file at the head has."""
    return set(_view_sources(migrations_folder() / "views"))


def _view_sources(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.sql"))}


def drop_views(connection: sa.Connection, folder: Path) -> None:
    """Drop the views that are ours: a migration cannot change a table under them."""
    for name in _view_sources(folder):
        connection.exec_driver_sql(f'DROP VIEW IF EXISTS "{name}"')


def create_views(connection: sa.Connection, folder: Path) -> None:
    """Make every view of `folder`, one file a view, named as the file."""
    for name, source in _view_sources(folder).items():
        statement = re.sub(r"^\s*--.*$", "", source, flags=re.MULTILINE).strip()
        if not statement.startswith(f"CREATE VIEW {name} AS"):
            raise ValueError(f"{name}.sql must hold CREATE VIEW {name} AS ...")
        connection.exec_driver_sql(statement)
