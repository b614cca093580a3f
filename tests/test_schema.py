"""The file's identity, its creation, and refusing or upgrading other schemas."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import found, make_source, open_desk, opened

from benchmarks.crash.states import state_of
from evidencedesk import Desk, schema
from evidencedesk.connections import find_driver
from evidencedesk.errors import (
    DeskDamaged,
    DeskMissing,
    NotADesk,
    SchemaTooNew,
    SchemaTooOld,
    StoreError,
)
from evidencedesk.models import Base

DRIVER = find_driver()
CHECKOUT = Path(__file__).parent.parent
OLD_FILES = Path(__file__).parent / "old_files"
HEAD, REVISIONS = schema.HEAD, schema.REVISIONS


def normalised_schema(connection: sa.Connection) -> dict[str, str]:
    """Every statement of sqlite_master but the views and Alembic's table, white space and order of constraints apart."""
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'view'")
    tables = {}
    for name, sql in rows:
        if name == schema.VERSION_TABLE or name.startswith("sqlite_"):
            continue
        # Without the last bracket: a column that was added later stands in front of it.
        parts = " ".join(sql.split()).replace(" )", ")").removesuffix(")").split(",")
        tables[name] = " ".join(sorted(part.strip() for part in parts))
    return tables


def set_revision(path: Path, revision: str) -> None:
    with opened(path) as database, database.write("testing") as connection:
        connection.exec_driver_sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = ?", (revision,))


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the migrations that a test may add to."""
    copy = tmp_path / "a folder with spaces % বাংলা"
    shutil.copytree(schema.migrations_folder(), copy)
    monkeypatch.setattr(schema, "migrations_folder", lambda: copy)
    return copy


def add_revision(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    (folder / "versions" / "9999_test.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision = '9999'\ndown_revision = {HEAD!r}\n\ndef upgrade():\n{body}\n"
    )
    monkeypatch.setattr(schema, "HEAD", "9999")
    monkeypatch.setattr(schema, "REVISIONS", (*REVISIONS, "9999"))


def test_the_migrations_make_just_the_models(tmp_path: Path) -> None:
    """Compared as SQL text, because autogenerate misses partial indexes and checks."""
    schema.create(tmp_path / "desk.db")
    with opened(tmp_path / "desk.db") as migrated, migrated.read() as connection:
        by_migrations = normalised_schema(connection)
    with opened(tmp_path / "models.db") as plain, plain.write("testing") as connection:
        Base.metadata.create_all(connection)
        by_models = normalised_schema(connection)
    assert by_migrations == by_models


def test_every_table_and_column_says_what_it_is() -> None:
    for mapper in Base.registry.mappers:
        assert mapper.class_.__doc__
        assert all(column.doc for column in mapper.columns), mapper


def test_the_head_known_to_the_code_is_the_head_of_the_migrations() -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(schema.migrations_folder()))
    assert scripts.get_current_head() == schema.HEAD
    assert tuple(reversed([s.revision for s in scripts.walk_revisions()])) == schema.REVISIONS


def test_a_new_file_is_ours_and_only_its_own_view_names_are_in_it(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    assert not schema.exists(path)
    schema.create(path)
    assert schema.exists(path)
    assert [p.name for p in tmp_path.iterdir()] == ["desk.db"]
    with opened(path) as database, database.read() as connection:
        names = {row[0] for row in connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'view'")}
        assert connection.exec_driver_sql("PRAGMA page_size").scalar() == 8192
    assert names == schema.view_names()
    assert "current_documents" in names


def test_an_empty_file_becomes_a_desk(tmp_path: Path) -> None:
    """mktemp makes the file first."""
    path = tmp_path / "desk.db"
    path.touch()
    with open_desk(path, [make_source()]) as desk:
        assert found(desk, "bikes") == ["shop-v1:c0"]


@pytest.mark.parametrize("empty", [True, False])
def test_many_who_create_one_file_at_once_share_it(tmp_path: Path, empty: bool) -> None:
    """Nobody's first document is lost, an empty file that was there included."""
    path = tmp_path / "desk.db"
    if empty:
        path.touch()
    code = (
        "import sys; sys.path.insert(0, sys.argv[3])\n"
        "from builders import *\n"
        "with open_desk(sys.argv[1], [make_source(doc_id=f'd{sys.argv[2]}-v1')]): pass"
    )
    tests = str(Path(__file__).parent)
    several = [subprocess.Popen([sys.executable, "-c", code, str(path), str(n), tests]) for n in range(4)]
    assert [one.wait() for one in several] == [0, 0, 0, 0]
    with open_desk(path) as desk:
        assert [d.doc_id for d in desk.documents()] == [f"d{n}-v1" for n in range(4)]
    assert [p.name for p in tmp_path.iterdir()] == ["desk.db"]


def test_creating_where_another_process_was_first_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    schema.create(path)
    with open_desk(path) as desk:
        assert found(desk, "bikes") == ["shop-v1:c0"]


@pytest.mark.parametrize("content", [b"# not a database\n", b"SQLite format 3\x00" + b"\0" * 50, os.urandom(4096)])
def test_what_is_no_desk_is_refused_and_not_touched(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    with pytest.raises(NotADesk, match=r"notes\.db is not an evidencedesk file"):
        Desk.open(path)
    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["notes.db"]


def test_another_programs_database_is_refused_before_a_byte_is_written(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    raw = DRIVER.module.connect(str(path))
    raw.execute("CREATE TABLE host (x)")
    raw.commit()
    raw.close()
    before = path.read_bytes()
    with pytest.raises(NotADesk, match="another program's SQLite database"):
        Desk.open(path, embedder="none", upgrade=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["", "pipe", "x" * 300, "nul\0"])
def test_what_is_no_file_is_no_desk(tmp_path: Path, name: str) -> None:
    """A folder, a pipe, a name that cannot be: nothing is replaced, nothing waits."""
    if name == "pipe":
        os.mkfifo(tmp_path / name)
    with pytest.raises(NotADesk):
        Desk.open(tmp_path / name, embedder="none")
    assert len(list(tmp_path.iterdir())) == (1 if name == "pipe" else 0)


def test_a_link_is_followed_to_where_it_leads(tmp_path: Path) -> None:
    """Also where it leads nowhere yet, or to an empty file: the link stays a link."""
    link, target = tmp_path / "desk.db", tmp_path / "data" / "real.db"
    target.parent.mkdir()
    link.symlink_to(target)
    with open_desk(link, [make_source()]) as desk:
        assert found(desk, "bikes") == ["shop-v1:c0"]
    assert link.is_symlink()
    assert target.stat().st_size > 0


def test_an_empty_file_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    path.touch(mode=0o600)
    with open_desk(path, [make_source()]):
        pass
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_old_write_ahead_log_never_comes_back_in_a_new_file(tmp_path: Path) -> None:
    """A killed process leaves one; SQLite would play it into whatever lies at the path."""
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from builders import *\n"
        "with open_desk(sys.argv[1], [make_source()]): os._exit(0)"
    )
    path = tmp_path / "desk.db"
    subprocess.run([sys.executable, "-c", code, str(path), str(Path(__file__).parent)], check=True)
    assert path.with_name("desk.db-wal").stat().st_size > 0
    path.unlink()
    with pytest.raises(NotADesk, match="its write-ahead log desk.db-wal is there; move that away"):
        Desk.open(path, embedder="none")
    assert not path.exists()


def test_a_file_without_its_revision_is_damaged_not_old(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    with opened(path) as database, database.write("testing") as connection:
        connection.exec_driver_sql(f"DELETE FROM {schema.VERSION_TABLE}")
    for action in (lambda: Desk.open(path), lambda: Desk.upgrade(path)):
        with pytest.raises(DeskDamaged, match="revision is gone"):
            action()
    assert [p.name for p in tmp_path.glob("*.schema-*")] == []


def test_a_file_without_its_settings_is_damaged_not_new(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    with opened(path) as database, database.write("testing") as connection:
        connection.exec_driver_sql("DELETE FROM desk")
    with pytest.raises(DeskDamaged, match="its settings is gone"), open_desk(path):
        pass


def test_a_change_of_folder_does_not_move_the_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with open_desk("desk.db", [make_source()]) as desk:
        monkeypatch.chdir(tmp_path / "elsewhere")
        desk.engine.dispose()
        assert found(desk, "bikes") == ["shop-v1:c0"]


@pytest.mark.parametrize("options", [{"read_only": True}, {"create": False}])
def test_a_missing_file_is_only_made_when_that_was_meant(tmp_path: Path, options: dict[str, bool]) -> None:
    with pytest.raises(DeskMissing, match="there is no such file"):
        Desk.open(tmp_path / "desk.db", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeskMissing, match="nowhere"):
        Desk.open(tmp_path / "nowhere" / "desk.db", embedder="none")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_file_is_refused_with_both_revisions(tmp_path: Path, read_only: bool) -> None:
    """BR-28: a stored revision that this package does not know."""
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    set_revision(path, "zz99")
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match=f"schema zz99.*schema {HEAD}.*Update the package"):
        Desk.open(path, read_only=read_only, upgrade=not read_only)
    assert path.read_bytes() == before


def test_an_older_file_is_refused_with_the_command_and_upgraded_when_asked(
    tmp_path: Path, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    add_revision(migrations, monkeypatch, "    op.add_column('documents', sa.Column('extra', sa.Text()))")
    with pytest.raises(SchemaTooOld, match=f"has schema {HEAD}, this package needs 9999. Run `evidencedesk upgrade"):
        Desk.open(path)
    with open_desk(path, upgrade=True) as desk:
        assert found(desk, "bikes") == ["shop-v1:c0"]
    (copy,) = tmp_path.glob(f"desk.db.schema-{HEAD}.*")
    with opened(copy) as database, database.read() as connection:
        assert schema.revision_of(connection) == HEAD
        assert connection.exec_driver_sql("SELECT count(*) FROM chunks").scalar() == 1
    assert schema.upgrade(path) is None


def test_a_migration_that_fails_half_way_leaves_the_file_as_it_was(
    tmp_path: Path, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-29: the driver must not commit between statements; a later try succeeds."""
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    add_revision(
        migrations, monkeypatch,
        "    op.create_table('half', sa.Column('x', sa.Integer()))\n    op.execute('INSERT INTO nowhere VALUES (1)')",
    )  # fmt: skip
    with pytest.raises(StoreError, match="changing the schema"):
        schema.upgrade(path)
    with opened(path) as database, database.read() as connection:
        assert schema.revision_of(connection) == HEAD
        names = {row[0] for row in connection.exec_driver_sql("SELECT name FROM sqlite_master")}
        assert "half" not in names
        assert schema.view_names() <= names
    add_revision(migrations, monkeypatch, "    op.create_table('half', sa.Column('x', sa.Integer()))")
    assert schema.upgrade(path) is not None


def test_a_table_rebuild_in_a_migration_keeps_child_rows(
    tmp_path: Path, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With foreign keys on, dropping the old `documents` would cascade to every chunk."""
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    add_revision(
        migrations, monkeypatch,
        "    with op.batch_alter_table('documents', table_kwargs={'sqlite_autoincrement': True}) as batch:\n"
        "        batch.add_column(sa.Column('extra', sa.Text()))\n        batch.alter_column('title', nullable=True)",
    )  # fmt: skip
    schema.upgrade(path)
    with opened(path) as database, database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM chunks").scalar() == 1
        assert connection.exec_driver_sql("SELECT count(*) FROM chunk_locations").scalar() == 1


def alembic(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "alembic", "-c", str(CHECKOUT / "alembic.ini"), *arguments],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_alembics_own_command_makes_a_desk_and_sees_no_drift(tmp_path: Path) -> None:
    """BR-04 and BR-31: from the shipped env.py on an empty file, and with data in it."""
    path = tmp_path / "desk.db"
    assert alembic("-x", f"db={path}", "upgrade", "head", cwd=tmp_path).returncode == 0
    with open_desk(path, [make_source()]) as desk:
        assert found(desk, "bikes") == ["shop-v1:c0"]
    drift = alembic("-x", f"db={path}", "check", cwd=tmp_path)
    assert "No new upgrade operations detected" in drift.stdout + drift.stderr


AS_NOBODY = """
import os, sys
import evidencedesk, evidencedesk.desk
from evidencedesk.connections import find_driver
find_driver()  # whatever has to be loaded is, before the rights go
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
path = sys.argv[1]
with evidencedesk.Desk.open(path, read_only=True) as desk:
    print(desk.search("bikes")[0].chunk.id, desk.check().ok, flush=True)
    # Whoever may write the folder changes the file: the reader sees it, though SQLite was told that it cannot.
    sys.stdin.readline()
    print(desk.search("bikes")[0].chunk.id, desk.check().ok)
for action in (lambda: evidencedesk.Desk.open(path, embedder="none").promote(), lambda: evidencedesk.Desk.open(path + "2", embedder="none")):
    try:
        action()
    except evidencedesk.errors.ReadOnlyDesk as error:
        print(error)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX rights")
def test_a_read_only_file_in_a_read_only_folder_can_be_read() -> None:
    """BR-22: nothing but reading is wanted, so nothing is asked of the folder; a write says what is the matter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "desk.db"
        with open_desk(path, [make_source()]):
            pass
        assert not path.with_name("desk.db-wal").exists()
        path.chmod(0o444)
        folder.chmod(0o555)
        try:
            with subprocess.Popen(
                [sys.executable, "-c", AS_NOBODY, str(path)], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            ) as reader:  # fmt: skip
                first = reader.stdout.readline()
                folder.chmod(0o755)
                path.chmod(0o644)
                with open_desk(path, [make_source("Bikes are blue.", doc_id="shop-v2")]):
                    pass
                folder.chmod(0o555)
                rest, errors = reader.communicate("go on\n")
        finally:
            folder.chmod(0o755)
    assert errors == ""
    assert first == "shop-v1:c0 True\n"
    second, *refused = rest.splitlines()
    assert second == "shop-v2:c0 True"
    assert [line.split(" cannot be written")[0] for line in refused] == [str(path), f"{path}2"]


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_a_file_of_every_former_schema_upgrades_and_still_answers(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "desk.db"
    shutil.copy(OLD_FILES / f"{revision}.db", path)
    with pytest.raises(SchemaTooOld):
        Desk.open(path)
    copy = Desk.upgrade(path)
    assert copy is not None
    with open_desk(path, embedder="auto") as desk:
        assert desk.search("How long do I have to return a bike?")[0].chunk.id == "kc-returns-v3:c0"
        assert desk.check().ok
        desk.withdraw("kc-tradein-v1", reason="the offer has ended")
        assert desk.check().ok
        before = desk.search("How long do I have to return a bike?", k=20)
        desk.compact()
        assert desk.search("How long do I have to return a bike?", k=20) == before
        assert desk.check().ok


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_an_upgrade_that_fails_in_the_end_leaves_every_row_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    """BR-29: all tables are migrated, and only the views cannot be made; the next upgrade succeeds."""
    path = tmp_path / "desk.db"
    shutil.copy(OLD_FILES / f"{revision}.db", path)
    before = state_of(path)
    assert before is not None
    assert before["revision"] == [(revision,)]
    assert len(before["chunks"]) == 36
    real = schema.create_views

    def fail(connection: sa.Connection) -> None:
        real(connection)
        connection.exec_driver_sql("CREATE VIEW current_documents AS SELECT 1")

    with monkeypatch.context() as failing:
        failing.setattr(schema, "create_views", fail)
        with pytest.raises(StoreError, match="changing the schema"):
            Desk.upgrade(path)
    assert state_of(path) == before
    assert Desk.upgrade(path) is not None
    after = state_of(path)
    assert after is not None
    assert [row["doc_id"] for row in rows_of(after, "documents")] == [
        row["doc_id"] for row in rows_of(before, "documents")
    ]
    assert after["chunks"] == before["chunks"]
    assert after["vectors"] == before["vectors"]


def rows_of(state: dict[str, list[tuple[object, ...]]], table: str) -> list[dict[str, object]]:
    return [dict(zip(state[f"{table} columns"][0], row, strict=True)) for row in state[table]]


SLOWLY = """
import sys, time
from pathlib import Path
from evidencedesk import Desk, schema
path, inside, waiting = map(Path, sys.argv[1:])
real = schema.run_migrations
def slowly(connection):
    real(connection)
    inside.touch()
    until = time.monotonic() + 30
    while not waiting.exists() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.5)  # so that the other one stands before the lock
schema.run_migrations = slowly
print(Desk.upgrade(path))
"""
AT_THE_SAME_TIME = """
import sys, time
from pathlib import Path
from evidencedesk import Desk
path, inside, waiting = map(Path, sys.argv[1:])
while not inside.exists():
    time.sleep(0.01)
waiting.touch()
print(Desk.upgrade(path))
with Desk.open(path) as desk:
    print(desk.search("How long do I have to return a bike?")[0].chunk.id)
"""


def test_of_two_who_upgrade_at_once_one_does_it_and_the_other_waits_and_goes_on(tmp_path: Path) -> None:
    """The second one comes while all is migrated and nothing is committed yet."""
    path = tmp_path / "desk.db"
    shutil.copy(OLD_FILES / "0001.db", path)
    arguments = [str(path), str(tmp_path / "inside"), str(tmp_path / "waiting")]
    both = [
        subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, cwd=CHECKOUT)
        for code in (SLOWLY, AT_THE_SAME_TIME)
    ]
    did, waited = (one.communicate()[0].splitlines() for one in both)
    (copy,) = tmp_path.glob("desk.db.schema-0001.*")
    assert did == [str(copy)]
    assert waited == ["None", "kc-returns-v3:c0"]
    assert [one.returncode for one in both] == [0, 0]


@pytest.mark.parametrize("revision", [REVISIONS[0], REVISIONS[-2]])
def test_many_who_open_an_old_file_at_once_share_one_upgrade(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "desk.db"
    shutil.copy(OLD_FILES / f"{revision}.db", path)
    code = (
        "import sys; sys.path.insert(0, sys.argv[3])\n"
        "from builders import *\n"
        "with open_desk(sys.argv[1], [make_source(doc_id=f'd{sys.argv[2]}-v1')], embedder='auto', upgrade=True): pass"
    )
    tests = str(Path(__file__).parent)
    several = [subprocess.Popen([sys.executable, "-c", code, str(path), str(n), tests], cwd=CHECKOUT) for n in range(3)]
    assert [one.wait() for one in several] == [0, 0, 0]
    assert len(list(tmp_path.glob("desk.db.schema-*"))) == 1
    with open_desk(path, embedder="auto") as desk:
        assert {d.doc_id for d in desk.documents()} > {f"d{n}-v1" for n in range(3)}
        assert desk.check().problems == ()
