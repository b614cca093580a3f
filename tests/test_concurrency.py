"""Many readers and writers over one file: threads, processes, forks, asyncio hosts, and a reader that stays."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from builders import found, make_source, open_desk

from benchmarks import concurrency
from benchmarks.concurrency import DOCUMENTS, PARTS, faults, source
from evidencedesk import Desk, connections
from evidencedesk.connections import connect_database
from evidencedesk.records import Chunk, Hit, Hits, Location


def test_readers_see_one_state_and_writers_finish(tmp_path: Path) -> None:
    """BR-23 and BR-19: four processes, some of two threads; each answer is whole, in force and of one state."""
    path = tmp_path / "desk.db"
    outcomes, longest = concurrency.run(path, seconds=5, readers=4, writers=2)
    assert [fault for outcome in outcomes for fault in outcome.faults] == []
    assert [outcome.kind for outcome in outcomes if outcome.done == 0] == []
    assert sum(outcome.kind == "writer" for outcome in outcomes) == 2
    assert longest < 2 * connections.LOG_LIMIT_BYTES
    with Desk.open(path, embedder="toy") as desk:
        assert desk.check().problems == ()


def hits_of(*editions: tuple[int, int, int], version: int = 1, status: str = "current") -> Hits:
    """Hits of (document, edition, part) of one writer."""
    hits = []
    for document, edition, part in editions:
        text = f"Writer 0 document {document} part {part} edition {edition}. Bikes."
        name = f"w0-d{document}-v{version}"
        place = Location("a.md", "", 1, 1)
        chunk = Chunk(f"{name}:c{part}", name, f"{version}", "en", status, text, text, place)  # type: ignore[arg-type]
        hits.append(Hit(chunk, "", 1.0, 1.0, None, 1, None))
    return Hits(tuple(hits), None, "keyword")


def test_the_harness_sees_each_kind_of_mixture() -> None:
    """What cannot fail proves nothing."""
    oldest, newest = ({(0, n): edition for n in range(DOCUMENTS)} for edition in (4, 6))

    def wrong(hits: Hits, *, whole: bool = False) -> str:
        return " ".join(faults(hits, whole, oldest, newest))

    assert wrong(hits_of((0, 5, 0), (0, 5, 1), (1, 4, 0))) == ""
    assert "in editions [4, 5]" in wrong(hits_of((0, 4, 0), (0, 5, 1)))
    assert "two states in one answer" in wrong(hits_of((0, 4, 0), (1, 5, 0)))
    assert "two states in one answer" in wrong(hits_of((0, 6, 0), (1, 4, 0)))
    assert "not 4 to 6" in wrong(hits_of((0, 3, 0)))
    assert "not 4 to 6" in wrong(hits_of((0, 7, 0)))
    assert "is superseded" in wrong(hits_of((0, 5, 0), status="superseded"))
    every = [(document, 5, part) for document in range(DOCUMENTS) for part in range(PARTS)]
    assert wrong(hits_of(*every), whole=True) == ""
    assert "with 4 of 5 parts" in wrong(hits_of(*every[1:]), whole=True)
    assert "5 of 6 documents" in wrong(hits_of(*every[PARTS:]), whole=True)
    assert source(0, 1, 7).doc_id == source(0, 1, 8).doc_id
    assert source(0, 2, 7).doc_id != source(0, 2, 8).doc_id


# ---------------------------------------------------------------- asyncio


def test_an_asyncio_host_calls_the_desk_from_threads(tmp_path: Path) -> None:
    """Searches, questions and updates at once through `asyncio.to_thread`; the loop itself is never blocked."""

    async def serve(desk: Desk) -> tuple[list[list[str]], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        searches = [asyncio.to_thread(found, desk, "red bikes", k=1) for _ in range(40)]
        updates = [
            asyncio.to_thread(desk.update_document, make_source(f"Lamps, text {n}.", doc_id=f"lamp{n}-v1"))
            for n in range(8)
        ]
        answers = [asyncio.to_thread(desk.ask, "Which colour have bikes?") for _ in range(5)]
        results = await asyncio.gather(*searches, *updates, *answers)
        ticking.cancel()
        return results[:40], ticks

    with open_desk(tmp_path / "desk.db", [make_source("Bikes are red.")], embedder="toy") as desk:
        results, ticks = asyncio.run(serve(desk))
        assert results == [["shop-v1:c0"]] * 40
        assert ticks > 1
        assert len(desk.documents()) == 9
        assert desk.check().ok


def test_a_call_that_nobody_waits_for_any_more_still_ends_whole(tmp_path: Path) -> None:
    """A cancelled task leaves its thread at work: the update is committed, and no connection stays behind."""

    async def give_up(desk: Desk) -> None:
        task = asyncio.create_task(asyncio.to_thread(desk.update_document, make_source("Bikes are blue.")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with open_desk(tmp_path / "desk.db", [make_source("Bikes are red.")], embedder="toy") as desk:
        asyncio.run(give_up(desk))  # which waits for its threads
        assert desk.search("bikes")[0].chunk.text == "Bikes are blue."
        assert desk.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


# ---------------------------------------------------------------- forks


def run_apart(code: str) -> None:
    """In a process of its own: forking this one would take pytest's threads along."""
    place = Path(__file__).parent
    path = os.pathsep.join([str(place), str(place.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
def test_children_forked_while_threads_work_can_read_and_write(tmp_path: Path) -> None:
    """SQLite's memory of this process's locks goes to the child; a fork therefore waits for transactions."""
    run_apart(f"""
import os, threading
from builders import make_source, open_desk
with open_desk({str(tmp_path / "desk.db")!r}, [make_source("Bikes are red.")], embedder="toy") as desk:
    stop, errors = threading.Event(), []
    def work(action):
        while not stop.is_set():
            try:
                action()
            except BaseException as error:
                errors.append(error)
    actions = [lambda: desk.search("bikes"), lambda: desk.update_document(make_source("Lamps. " * 200, doc_id="a-v1")),
               lambda: desk.update_document(make_source(f"Bells {{os.urandom(2)}}.", doc_id="b-v1"))]
    threads = [threading.Thread(target=work, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for number in range(10):
        pid = os.fork()
        if pid == 0:
            good = False
            try:
                good = desk.search("bikes")[0].chunk.id == "shop-v1:c0"
                desk.update_document(make_source("Of a child.", doc_id=f"child{{number}}-v1"))
            finally:
                os._exit(0 if good else 1)
        assert os.waitpid(pid, 0)[1] == 0, number
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(desk.documents()) == 13
    assert desk.check().ok
""")


@needs_fork
def test_a_child_keeps_its_desk_when_the_parent_closes_its_own(tmp_path: Path) -> None:
    """Nothing of the parent's is open in the child, so that neither takes the log away from under the other."""
    path = str(tmp_path / "desk.db")
    run_apart(f"""
import os
from builders import make_source, open_desk
from evidencedesk import Desk
ready, go = os.pipe(), os.pipe()
with open_desk({path!r}, [make_source("Bikes are red.")], embedder="toy") as desk:
    desk.search("bikes")
    pid = os.fork()
    if pid == 0:
        good = False
        try:
            desk.update_document(make_source("First of the child.", doc_id="c1-v1"))
            os.write(ready[1], b"x"); os.read(go[0], 1)
            desk.update_document(make_source("Second of the child.", doc_id="c2-v1"))
            good = len(desk.documents()) == 4 and desk.check().ok
        finally:
            os._exit(0 if good else 1)
    os.read(ready[0], 1)
with Desk.open({path!r}, embedder="toy") as other:
    other.update_document(make_source("Of the parent.", doc_id="p-v1"))
os.write(go[1], b"x")
assert os.waitpid(pid, 0)[1] == 0
with Desk.open({path!r}, embedder="toy") as last:
    assert len(last.documents()) == 4 and last.check().ok
""")


@needs_fork
def test_a_fork_does_not_wait_for_ever(tmp_path: Path) -> None:
    """A session that another thread keeps open delays a fork by FORK_WAIT_SECONDS at most."""
    run_apart(f"""
import os, threading
from builders import make_source, open_desk
from evidencedesk import connections
connections.FORK_WAIT_SECONDS = 0.1
with open_desk({str(tmp_path / "desk.db")!r}, [make_source("Bikes are red.")]) as desk:
    held, end = threading.Event(), threading.Event()
    def hold():
        with desk.session() as session:
            session.connection()
            held.set()
            end.wait()
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    end.set()
    thread.join()
    assert len(desk.search("bikes")) == 1
""")


# ---------------------------------------------------------------- a reader that stays


def log_bytes(path: Path) -> int:
    log = path.with_name(f"{path.name}-wal")
    return log.stat().st_size if log.exists() else 0


def test_a_reader_that_stays_keeps_its_snapshot_and_the_log_is_cut_once_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LOG_LIMIT_BYTES", 400_000)
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source("Bikes are red.")], embedder="toy") as desk:
        with desk.session() as session:
            query = connections.sa.text("SELECT text FROM current_chunks")
            assert session.execute(query).scalars().all() == ["Bikes are red."]
            for number in range(40):
                desk.update_document(make_source(f"Bikes are number {number}. " + "Word " * 2000))
            assert log_bytes(path) > 2 * 400_000
            assert session.execute(query).scalars().all() == ["Bikes are red."]
            assert desk.search("bikes")[0].chunk.text.startswith("Bikes are number 39.")
        for number in range(3):
            desk.update_document(make_source(f"Bikes are blue {number}."))
        assert log_bytes(path) <= 400_000
        assert desk.check().ok


def test_with_no_reader_the_log_stays_below_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LOG_LIMIT_BYTES", 400_000)
    path = tmp_path / "desk.db"
    with open_desk(path, embedder="toy") as desk:
        for number in range(15):
            desk.update_document(make_source(f"Bikes are number {number}. " + "Word " * 2000))
            assert log_bytes(path) <= 400_000


def test_readers_that_always_overlap_do_not_keep_the_log_from_being_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite by itself begins the log anew only when it happens to find nobody reading."""
    monkeypatch.setattr(connections, "LOG_LIMIT_BYTES", 400_000)
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source("Bikes are red.")], embedder="toy") as desk:
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set():
                with desk.store.read() as snapshot:
                    snapshot.summaries()

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            cut = 0
            for number in range(25):
                before = log_bytes(path)
                desk.update_document(make_source(f"Bikes are number {number}. " + "Word " * 2000))
                cut += log_bytes(path) < before
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert cut


def test_no_verb_of_the_desk_holds_a_snapshot_when_it_is_done(tmp_path: Path) -> None:
    """So that nothing but a host's own session or connection can keep the log."""
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source("Bikes are red.")], embedder="toy") as desk:
        for verb in (
            lambda: desk.search("bikes"),
            lambda: desk.search("bikes", mode="vector", as_of="2030-01-01"),
            lambda: desk.search("nothing like it", family="none"),
            lambda: desk.ask("Which colour have bikes?", record=True),
            lambda: desk.assess("Which colour have bikes?"),
            lambda: desk.verify("Bikes are red. [shop-v1:c0]"),
            lambda: desk.answers(stale=True),
            desk.documents,
            lambda: desk.document("shop"),
            lambda: desk.chunk("shop-v1:c0"),
            lambda: desk.history("shop"),
            desk.staleness,
            desk.check,
            lambda: desk.attack(per_kind=2),
            lambda: desk.backup(tmp_path / "copy.db"),
        ):
            verb()
            desk.update_document(make_source(f"Bikes are red. {os.urandom(4).hex()}"))
            # TRUNCATE succeeds only when nobody reads from the log: (busy, pages in it, pages carried over).
            other = connect_database(path)
            with other.engine.connect() as connection:
                raw = connection.connection.driver_connection
                raw.execute("PRAGMA busy_timeout = 0")
                assert tuple(raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()) == (0, 0, 0)
            other.close()


def test_compacting_leaves_no_log_behind(tmp_path: Path) -> None:
    """SQLite's VACUUM writes the whole file into the log."""
    path = tmp_path / "desk.db"
    sources = [make_source(f"Bikes, text {n}. " + "Word " * 500, doc_id=f"d{n}-v1") for n in range(20)]
    with open_desk(path, sources, embedder="toy") as desk:
        desk.compact()
        assert log_bytes(path) == 0
        assert len({hit.chunk.doc_id for hit in desk.search("bikes", k=100)}) == 20
