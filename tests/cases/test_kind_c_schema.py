"""Kind C: the schema and its migrations. What no other test proves whole."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import Unplugged, after_writing_statement, make_source, open_desk, opened, unplug

from evidencedesk import Desk, schema
from evidencedesk.errors import SchemaTooNew

TESTS = Path(__file__).resolve().parent.parent
CHECKOUT = TESTS.parent
OLDEST = TESTS / "old_files" / f"{schema.REVISIONS[0]}.db"


def everything_in(path: Path) -> list[tuple[object, ...]]:
    """The whole schema and every row of every table."""
    with opened(path) as database, database.read() as sql:
        master = sql.exec_driver_sql("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
        tables = [name for kind, name, _ in master if kind == "table" and not name.startswith("sqlite_")]
        rows = [tuple(row) for name in tables for row in sql.exec_driver_sql(f'SELECT * FROM "{name}"')]
        return [tuple(entry) for entry in master] + rows


# ---------------------------------------------------------------- BR-28: a revision from the future


@pytest.mark.parametrize(
    "revision", ["9999", f"{int(schema.HEAD) + 1:04}", "ffff", f"{schema.HEAD}a", "ক", "x" * 200, "0001,0002"]
)
@pytest.mark.parametrize("open_it", [
    lambda path: Desk.open(path, embedder=None), lambda path: Desk.open(path, read_only=True),
    lambda path: Desk.open(path, upgrade=True), Desk.upgrade,
], ids=["write", "read", "open to upgrade", "upgrade"])  # fmt: skip
def test_whatever_revision_is_not_known_is_named_and_nothing_is_written(
    tmp_path: Path, revision: str, open_it: Callable[[Path], object]
) -> None:
    """BR-28: the stored revision, the one that this package has, and what to do."""
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    with opened(path) as database, database.write("testing") as sql:
        sql.exec_driver_sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = ?", (revision,))
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew) as caught:
        open_it(path)
    assert (caught.value.facts["found"], caught.value.facts["head"]) == (revision, schema.HEAD)
    assert "pip install -U evidencedesk" in str(caught.value)
    assert path.read_bytes() == before
    beside = {file.name: file.stat().st_size for file in tmp_path.iterdir() if file.name != "desk.db"}
    assert beside.pop("desk.db-shm", 0) >= 0
    assert beside in ({}, {"desk.db-wal": 0}), "no copy is set aside, and the log holds nothing"


# ---------------------------------------------------------------- BR-29: a migration that stops half way


def test_an_upgrade_that_stops_after_any_statement_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """BR-29: every statement of every migration, from the oldest schema on; the same file is then upgraded."""
    path = tmp_path / "desk.db"
    shutil.copy(OLDEST, path)
    before = everything_in(path)
    with after_writing_statement(0, unplug) as seen:
        trial = tmp_path / "trial.db"
        shutil.copy(OLDEST, trial)
        assert Desk.upgrade(trial) is not None
    statements = len(seen)
    assert statements > 50, "views dropped and made, tables made and rebuilt, rows moved, the revision set each time"
    for number in range(1, statements + 1):
        with after_writing_statement(number, unplug), pytest.raises(Unplugged):
            Desk.upgrade(path)
        if number % 10 == 0 or number == statements:
            assert everything_in(path) == before, f"after statement {number}: {seen[number - 1]}"
        for copy in tmp_path.glob("desk.db.schema-*"):
            copy.unlink()
    assert everything_in(path) == before
    assert Desk.upgrade(path) is not None
    assert everything_in(path)[:50] == everything_in(trial)[:50]
    with open_desk(path, embedder="auto") as desk:
        assert desk.check().ok


KILLED_UPGRADE = """
import os, signal, sys
sys.path[:0] = sys.argv[3:]
from builders import after_writing_statement
from evidencedesk import Desk
with after_writing_statement(int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)):
    Desk.upgrade(sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("number", [2, 40])
def test_an_upgrade_that_is_killed_is_done_whole_by_the_next(tmp_path: Path, number: int) -> None:
    """BR-29: kill -9 in the transaction; the write-ahead log that stays behind holds nothing that counts."""
    path = tmp_path / "desk.db"
    shutil.copy(OLDEST, path)
    before = everything_in(path)
    done = subprocess.run(
        [sys.executable, "-c", KILLED_UPGRADE, path, str(number), str(TESTS), str(CHECKOUT)],
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert everything_in(path) == before
    assert Desk.upgrade(path) is not None
    with open_desk(path, embedder="auto") as desk:
        assert desk.search("How long do I have to return a bike?")[0].chunk.id == "kc-returns-v3:c0"
        assert desk.check().ok


# ---------------------------------------------------------------- BR-31: what is not ours

OF_THE_HOST = {
    "a table whose name looks like a helper's": "CREATE TABLE x_data (a); INSERT INTO x_data VALUES (1)",
    "a table beside ours": "CREATE TABLE documents_rowids (a); INSERT INTO documents_rowids VALUES (1)",
    "a virtual table": "CREATE VIRTUAL TABLE words USING fts5(body); INSERT INTO words VALUES ('bike')",
    "a view on our table": "CREATE VIEW mine AS SELECT doc_id FROM documents",
    "a view on a table that a migration rebuilds": "CREATE VIEW mine AS SELECT embedder_key FROM vectors",
    "a view on our view": "CREATE VIEW mine AS SELECT doc_id FROM current_documents",
    "a view that is broken": "CREATE VIEW mine AS SELECT * FROM nowhere",
    "a trigger that logs": "CREATE TABLE log (a); CREATE TRIGGER mine AFTER INSERT ON documents "
    "BEGIN INSERT INTO log SELECT count(*) FROM current_documents; END",
}


def add_to(path: Path, script: str) -> None:
    with opened(path) as database, database.engine.connect() as sql:
        sql.connection.driver_connection.executescript(script)


def names_in(path: Path) -> set[str]:
    with opened(path) as database, database.read() as sql:
        return {name for (name,) in sql.exec_driver_sql("SELECT name FROM sqlite_master")}


@pytest.mark.parametrize("script", OF_THE_HOST.values(), ids=OF_THE_HOST)
def test_what_a_host_or_an_analyst_put_into_the_file_survives_and_stops_nothing(tmp_path: Path, script: str) -> None:
    """BR-31: an upgrade from the oldest schema, compaction and inspection leave it alone; ours is known by its models."""
    path = tmp_path / "desk.db"
    shutil.copy(OLDEST, path)
    before = names_in(path)
    add_to(path, script)
    added = names_in(path) - before
    assert added
    assert Desk.upgrade(path) is not None
    with open_desk(path, embedder="auto") as desk:
        desk.update_document(make_source("Bikes are blue.", doc_id="mine-v1"))
        desk.compact()
        assert desk.check().problems == ()
    assert added <= names_in(path)
    if "VIEW mine" in script and "nowhere" not in script:
        with opened(path) as database, database.read() as sql:
            assert sql.exec_driver_sql("SELECT count(*) FROM mine").scalar() > 0


def test_alembic_sees_no_drift_beside_a_hosts_tables(tmp_path: Path) -> None:
    """BR-31: neither `x_data` nor a virtual table's helpers are compared, dropped or written into a migration."""
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()], embedder="toy"):
        pass
    for script in list(OF_THE_HOST.values())[:3]:
        add_to(path, script)
    words = ["-m", "alembic", "-c", str(CHECKOUT / "alembic.ini"), "-x", f"db={path}", "check"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "No new upgrade operations detected" in done.stdout + done.stderr
    assert {"x_data", "documents_rowids", "words_data"} <= names_in(path)
