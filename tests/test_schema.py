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
from builders import found, make_source, open_desk

from evidencedesk import Desk, schema
from evidencedesk.connections import find_driver, open_database
from evidencedesk.errors import (
    DeskMissing,
    NotADesk,
    SchemaTooNew,
    SchemaTooOld,
    StoreError,
)
from evidencedesk.models import Base

DRIVER = find_driver()
CHECKOUT = Path(__file__).parent.parent


def normalised_schema(connection: sa.Connection) -> dict[str, str]:
    """Every statement of sqlite_master but the views and Alembic's table, white space and order of constraints apart."""
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'view'")
    tables = {}
    for name, sql in rows:
        if name == schema.VERSION_TABLE or name.startswith("sqlite_"):
            continue
        tables[name] = " ".join(sorted(" ".join(sql.replace("\n", " ").split()).replace(" )", ")").split(",")))
    return tables


def set_revision(path: Path, revision: str) -> None:
    with open_database(path) as database, database.write("testing") as connection:
        connection.exec_driver_sql(f"UPDATE {schema.VERSION_TABLE} SET version_num = ?", (revision,))


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the migrations that a test may add to."""
    copy = tmp_path / "a folder with spaces % বাংলা"
    shutil.copytree(schema.migrations_folder(), copy)
    monkeypatch.setattr(schema, "migrations_folder", lambda: copy)
    return copy


def add_revision(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    (folder / "versions" / "0002_test.py").write_text(
        f"import sqlalchemy as sa\nfrom alembic import op\nrevision = '0002'\ndown_revision = '0001'\n\ndef upgrade():\n{body}\n"
    )
    monkeypatch.setattr(schema, "HEAD", "0002")
    monkeypatch.setattr(schema, "REVISIONS", ("0001", "0002"))


def test_the_migrations_make_just_the_models(tmp_path: Path) -> None:
    """Compared as SQL text, because autogenerate misses partial indexes and checks."""
    schema.create(tmp_path / "desk.db", DRIVER)
    with open_database(tmp_path / "desk.db") as migrated, migrated.read() as connection:
        by_migrations = normalised_schema(connection)
    with open_database(tmp_path / "models.db") as plain, plain.write("testing") as connection:
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
    schema.create(path, DRIVER)
    assert schema.exists(path)
    assert [p.name for p in tmp_path.iterdir()] == ["desk.db"]
    with open_database(path) as database, database.read() as connection:
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


def test_creating_where_another_process_was_first_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    schema.create(path, DRIVER)
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


def test_a_folder_is_no_desk(tmp_path: Path) -> None:
    with pytest.raises(NotADesk, match="it is a folder"):
        Desk.open(tmp_path)


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
    with pytest.raises(SchemaTooNew, match="schema zz99.*schema 0001.*Update the package"):
        Desk.open(path, read_only=read_only, upgrade=not read_only)
    assert path.read_bytes() == before


def test_an_older_file_is_refused_with_the_command_and_upgraded_when_asked(
    tmp_path: Path, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    add_revision(migrations, monkeypatch, "    op.add_column('documents', sa.Column('extra', sa.Text()))")
    with pytest.raises(SchemaTooOld, match="has schema 0001, this package needs 0002. Run `evidencedesk upgrade"):
        Desk.open(path)
    with open_desk(path, upgrade=True) as desk:
        assert found(desk, "bikes") == ["shop-v1:c0"]
    (copy,) = tmp_path.glob("desk.db.schema-0001.*")
    with open_database(copy) as database, database.read() as connection:
        assert schema.revision_of(connection) == "0001"
        assert connection.exec_driver_sql("SELECT count(*) FROM chunks").scalar() == 1
    assert schema.upgrade(path, DRIVER) is None


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
        schema.upgrade(path, DRIVER)
    with open_database(path) as database, database.read() as connection:
        assert schema.revision_of(connection) == "0001"
        names = {row[0] for row in connection.exec_driver_sql("SELECT name FROM sqlite_master")}
        assert "half" not in names
        assert schema.view_names() <= names
    add_revision(migrations, monkeypatch, "    op.create_table('half', sa.Column('x', sa.Integer()))")
    assert schema.upgrade(path, DRIVER) is not None


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
    schema.upgrade(path, DRIVER)
    with open_database(path) as database, database.read() as connection:
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
            done = subprocess.run(
                [sys.executable, "-c", AS_NOBODY, str(path)], capture_output=True, text=True, check=False
            )
        finally:
            folder.chmod(0o755)
    assert done.stderr == ""
    read, *refused = done.stdout.splitlines()
    assert read == "shop-v1:c0 True"
    assert [line.split(" cannot be written")[0] for line in refused] == [str(path), f"{path}2"]
