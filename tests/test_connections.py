"""The driver, the recipe for a connection, transactions and what becomes of driver errors."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from builders import found, make_source, open_desk, opened

from evidencedesk import connections
from evidencedesk.connections import Driver, connect_database, find_driver
from evidencedesk.errors import DeskBusy, DeskClosed, DeskFull, DriverMissing, ReadOnlyDesk, StoreFailure


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "desk.db"
    with open_desk(target, [make_source()]):
        pass
    return target


def test_one_driver_is_probed_and_loads_sqlite_vec() -> None:
    driver = find_driver()
    assert driver is find_driver()
    assert driver.loads_vec


def test_a_driver_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(connections.DRIVER_VARIABLE, "no_such_driver")
    with pytest.raises(DriverMissing, match="no_such_driver"):
        find_driver.__wrapped__()


def test_every_connection_has_the_whole_recipe(path: Path) -> None:
    """BR-03: whichever connection comes first, and after the pool was emptied."""
    with opened(path) as database:
        for _ in range(2):
            with database.read() as one, database.read() as two:
                for connection in (one, two):
                    assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
                    assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
                    assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 30_000
                    blob = np.array([1, 0], dtype="<f4").tobytes()
                    assert connection.exec_driver_sql("SELECT vec_distance_cosine(?, ?)", (blob, blob)).scalar() == 0.0
                    with pytest.raises(Exception, match="not authorized"):
                        connection.exec_driver_sql("SELECT load_extension('anything')")
            database.engine.dispose()


class _NoExtensions(sqlite3.Connection):
    """A connection of a Python that was built without extension loading."""

    @property
    def enable_load_extension(self) -> None:
        raise AttributeError("'sqlite3.Connection' object has no attribute 'enable_load_extension'")


def test_without_extension_loading_search_gives_the_same_hits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR-01 and BR-02: a numpy scan answers, exactly, and `check` says so."""
    sources = [make_source(f"Bikes number {n} are red.", doc_id=f"shop-{n}-v1") for n in range(20)]
    with open_desk(tmp_path / "a.db", sources, embedder="toy") as desk:
        expected = desk.search("red bikes", mode="vector")

    real_connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: real_connect(*args, factory=_NoExtensions, **options)
    )
    driver = connections._probe("sqlite3")
    assert not driver.loads_vec
    monkeypatch.setattr(connections, "find_driver", lambda: driver)
    with open_desk(tmp_path / "b.db", sources, embedder="toy") as desk:
        assert desk.search("red bikes", mode="vector") == expected
        assert "not loaded" in desk.check().facts["sqlite-vec"]


def test_the_driver_order_prefers_one_that_loads_sqlite_vec(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(name: str) -> Driver:
        if name == "sqlean":
            raise DriverMissing(path="SQLite", problem="sqlean: not installed")
        return Driver(name, None, loads_vec=name == "sqlite3")

    monkeypatch.setattr(connections, "_probe", probe)
    assert find_driver.__wrapped__().name == "sqlite3"


def test_a_writer_waits_for_the_lock_and_then_says_so(path: Path) -> None:
    """BR-19: a bounded, named error."""
    with opened(path) as first, opened(path, busy_timeout_seconds=0.05) as second:
        with first.write("holding"), pytest.raises(DeskBusy, match="another writer held the lock") as caught:
            with second.write("waiting"):
                pass
        assert caught.value.waited_seconds == 0.05
        with second.write("now free"):
            pass


def test_a_reader_is_not_kept_by_a_writer_and_sees_one_snapshot(path: Path) -> None:
    with opened(path) as database, database.read() as reader:
        before = reader.exec_driver_sql("SELECT title FROM documents").scalar()
        with database.write("renaming") as writer:
            writer.exec_driver_sql("UPDATE documents SET title = 'Other'")
        assert reader.exec_driver_sql("SELECT title FROM documents").scalar() == before
    with opened(path) as database, database.read() as later:
        assert later.exec_driver_sql("SELECT title FROM documents").scalar() == "Other"


def test_a_failed_transaction_is_rolled_back_whole(path: Path) -> None:
    with opened(path) as database:

        def fail() -> None:
            with database.write("failing") as connection:
                connection.exec_driver_sql("DELETE FROM documents")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        with database.read() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM chunks").scalar() == 1


def test_a_full_disk_rolls_back_and_the_former_state_answers(path: Path) -> None:
    """BR-25: simulated by a page limit just above the present size."""
    database = connect_database(path)
    with database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    with open_desk(path) as desk:
        with desk.engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(DeskFull, match=r"desk\.db: no room left while storing shop-v2"):
            desk.update_document(make_source("word " * 50_000, doc_id="shop-v2"))
        assert found(desk, "bikes") == ["shop-v1:c0"]
        assert desk.check().ok
    database.close()


def test_a_read_only_database_refuses_writes(path: Path) -> None:
    with opened(path, read_only=True) as database:
        with pytest.raises(ReadOnlyDesk, match="opened for reading only"), database.write("trying"):
            pass
        with pytest.raises(ReadOnlyDesk), database.read() as connection:
            connection.exec_driver_sql("DELETE FROM documents")


def test_a_closed_database_says_so(path: Path) -> None:
    database = connect_database(path)
    database.close()
    with pytest.raises(DeskClosed, match="open it again"), database.read():
        pass


def test_threads_share_one_desk(path: Path) -> None:
    """BR-23: eight readers and one updater on one object."""
    failures: list[BaseException] = []

    def guarded(action: object) -> None:
        try:
            action()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - a thread's failure is the test's
            failures.append(error)

    with open_desk(path) as desk:

        def read() -> None:
            for _ in range(20):
                assert len(desk.search("bikes")) == 1

        def write() -> None:
            for n in range(10):
                desk.update_document(make_source(f"Bikes are red, says text {n}."))

        threads = [threading.Thread(target=guarded, args=(action,)) for action in [*[read] * 8, write]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_an_in_memory_desk_is_shared_by_threads_too() -> None:
    with open_desk(sources=[make_source()]) as desk:
        results: list[list[str]] = []
        threads = [threading.Thread(target=lambda: results.append(found(desk, "bikes"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [["shop-v1:c0"]] * 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_desk_reopens_itself_after_a_fork(path: Path) -> None:
    """Run in a process of its own: forking this one would take pytest's threads along."""
    code = f"""
import os
from evidencedesk import Desk
desk = Desk.open({str(path)!r}, embedder="none")
assert len(desk.search("bikes")) == 1
pid = os.fork()
if pid == 0:
    os._exit(0 if len(desk.search("bikes")) == 1 and desk.promote() == () else 1)
assert os.waitpid(pid, 0)[1] == 0
assert desk.promote() == ()
assert len(desk.search("bikes")) == 1 and desk.check().ok
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_unknown_driver_error_keeps_its_cause(path: Path) -> None:
    with (
        opened(path) as database,
        pytest.raises(StoreFailure, match="while looking: no such table: nowhere") as caught,
    ):
        with database.read("looking") as connection:
            connection.exec_driver_sql("SELECT * FROM nowhere")
    assert caught.value.__cause__ is not None
