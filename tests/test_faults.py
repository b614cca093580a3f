"""What a disk, an embedder, a folder or a clock may do: a typed error that says it, and nothing lost.

Statements that fail at every point of a write are the harness's affair (`python -m benchmarks.faults`).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import Clock, assert_as_before, found, leave_a_log, make_source, open_desk, python, write_source
from sqlalchemy import event

from benchmarks.crash.states import state_of
from evidencedesk import Desk, OpenAIEmbedder, RagCase, ToyEmbedder
from evidencedesk.errors import (
    BadVectors,
    DeskFull,
    EmbedderError,
    EmbedderUnavailable,
    ReadOnlyDesk,
    StoreFailure,
)
from evidencedesk.evaluation.gate import Gate

CHECKOUT = Path(__file__).resolve().parent.parent
OLD_FILES = CHECKOUT / "tests" / "old_files"
LONG = "\n\n".join(f"## Part {n}\n\nBikes of kind {n} are kept in store {n}." for n in range(40))
NEW = make_source(LONG, heading=None, doc_id="shop-v2")
GATE = Gate([RagCase(id="red", question="Which bikes are red?", expected_doc_ids=("shop",), answerable=True)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "desk.db"
    with open_desk(target, [make_source()], embedder="toy"):
        pass
    return target


# ---------------------------------------------------------------- a full disk

WRITES: dict[str, Callable[[Desk], object]] = {
    "update": lambda desk: desk.update_document(NEW),
    "gated update": lambda desk: desk.update_document(NEW, gate=GATE),
    "reembed": lambda desk: desk.reembed(ToyEmbedder(8192)),
    "evaluate": lambda desk: [desk.evaluate(GATE.cases) for _ in range(6)],
    "record": lambda desk: desk.ask("Which bikes are red? " * 1000, record=True),
}


@contextmanager
def room_for(desk: Desk, pages: int) -> Iterator[None]:
    """Let the file grow by that many pages at most."""

    def limit(raw: Any, _record: object) -> None:
        used = raw.execute("PRAGMA page_count").fetchone()[0]
        raw.execute(f"PRAGMA max_page_count = {used + pages}")

    event.listen(desk.engine, "connect", limit)
    desk.engine.dispose()
    yield
    event.remove(desk.engine, "connect", limit)
    desk.engine.dispose()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_wherever_a_write_finds_the_disk_full_it_is_undone_and_the_desk_goes_on(
    path: Path, write: Callable[[Desk], object]
) -> None:
    """BR-25: at each page that may be the last one; then there is room again, and the same object goes on."""
    with open_desk(path, embedder="toy") as desk:
        full = 0
        for pages in range(12):
            with room_for(desk, pages):
                try:
                    write(desk)
                except DeskFull:
                    full += 1
                    assert_as_before(desk)
                else:
                    break
        assert full > 0
        write(desk)
        assert desk.check().problems == ()


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of that size."""
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


needs_mount = pytest.mark.skipif(shutil.which("mount") is None or os.name != "posix", reason="needs mount")


@needs_mount
def test_a_disk_that_is_really_full_loses_nothing(tmp_path: Path) -> None:
    """BR-25: on a file system of 3 MB, at each of many fillings; the next run completes when there is room."""
    for n in range(30):
        write_source(tmp_path / "docs", f"{n}.md", LONG.replace("Bikes", f"Bikes {n}"), heading=None, doc_id=f"d{n}-v1")
    full = 0
    with small_disk(tmp_path / "disk", "3m") as disk:
        filler = disk / "filler"
        for kilobytes in range(0, 1400, 200):
            for old in disk.iterdir():
                old.unlink()
            path = disk / "desk.db"
            with open_desk(path, [make_source()], embedder="toy") as desk:
                filler.write_bytes(bytes(kilobytes * 1024))
                try:
                    desk.ingest(tmp_path / "docs")
                except DeskFull:
                    full += 1
                    assert desk.check().problems == ()
                    assert all(len(desk.document(d.doc_id).chunks) == 40 for d in desk.documents()[:-1])
            filler.unlink()
            with open_desk(path, embedder="toy") as desk:
                assert "shop-v1:c0" in found(desk, "red bikes")
                assert desk.check().problems == ()
    assert full > 2


@needs_mount
@pytest.mark.parametrize("action", ["backup", "compact", "upgrade", "create"])
def test_what_needs_a_second_file_and_has_no_room_leaves_nothing_behind(tmp_path: Path, action: str) -> None:
    with small_disk(tmp_path / "disk", "900k") as disk:
        path = disk / "desk.db"
        if action == "backup":
            with open_desk(path, [make_source()]) as desk:
                with pytest.raises(DeskFull, match=r"copying it to copy\.db"):
                    desk.backup(disk / "copy.db")
                assert_as_before(desk)
            left = ["desk.db"]
        elif action == "compact":
            with open_desk(path, [make_source()]) as desk:
                with pytest.raises(DeskFull):
                    desk.compact()
                assert_as_before(desk)
            left = ["desk.db"]
        elif action == "upgrade":
            shutil.copy(OLD_FILES / "0005.db", path)
            with pytest.raises(DeskFull):
                Desk.upgrade(path)
            left = ["desk.db"]
            assert_upgrades(path, tmp_path / "elsewhere.db")
        else:
            (disk / "filler").write_bytes(bytes(600 * 1024))
            with pytest.raises(DeskFull, match=r"disk/desk\.db"):
                Desk.open(path, embedder="none")
            left = ["filler"]
        assert sorted(p.name for p in disk.iterdir()) == left


def assert_upgrades(path: Path, elsewhere: Path) -> None:
    """The file of a former schema is whole: where there is room it upgrades, and answers."""
    shutil.copy(path, elsewhere)
    Desk.upgrade(elsewhere)
    with open_desk(elsewhere, embedder="auto") as desk:
        assert found(desk, "How long do I have to return a bike?")[0] == "kc-returns-v3:c0"
        assert desk.check().problems == ()


# ---------------------------------------------------------------- rights

AS_NOBODY = """
import os, sys
import evidencedesk, evidencedesk.desk
from builders import make_source, open_desk, found
from evidencedesk.connections import find_driver
find_driver()  # whatever has to be loaded is, before the rights go
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
path = sys.argv[1]
def told(action):
    try:
        return action()
    except evidencedesk.errors.EvidenceDeskError as error:
        return f"{type(error).__name__}: {error}"
def read(**options):
    with open_desk(path, embedder="toy", **options) as desk:
        return found(desk, "red bikes"), desk.check().ok
def write():
    with open_desk(path, embedder="toy") as desk:
        return desk.update_document(make_source(doc_id="shop-v2"))
print(told(lambda: read(read_only=True)))
print(told(read))
print(told(write))
"""
ANSWERS = "(['shop-v1:c0'], True)"
needs_rights = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX rights")


@pytest.fixture
def shared(path: Path) -> Iterator[Path]:
    """The desk in a folder that anybody may enter, which pytest's are not."""
    place = Path("/tmp") if Path("/tmp").is_dir() else path.parent.parent
    folder = place / f"evidencedesk-{os.getpid()}"
    folder.mkdir(mode=0o755)
    shutil.copy(path, folder)
    yield folder / path.name
    folder.chmod(0o755)
    shutil.rmtree(folder)


@needs_rights
@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o755), (0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
def test_without_the_right_to_write_reading_works_and_writing_says_so(shared: Path, file: int, folder: int) -> None:
    """BR-22: the file, its folder, or both."""
    shared.chmod(file)
    shared.parent.chmod(folder)
    before = shared.read_bytes()
    done = python(AS_NOBODY, shared)
    reading, _, writing = done.stdout.splitlines()
    assert reading == ANSWERS, done.stdout + done.stderr
    assert writing.startswith(f"ReadOnlyDesk: {shared} cannot be written: ")
    assert shared.read_bytes() == before


@needs_rights
def test_what_a_killed_writer_left_is_read_or_told_in_a_read_only_folder(shared: Path) -> None:
    """BR-22: with an uncheckpointed -wal beside it; the newer pages are never left out in silence."""
    leave_a_log(shared)
    for log in shared.parent.iterdir():
        log.chmod(0o444)
    shared.parent.chmod(0o555)
    before = {p.name: p.read_bytes() for p in shared.parent.iterdir() if not p.name.endswith("-shm")}
    done = python(AS_NOBODY, shared)
    for line in done.stdout.splitlines():
        assert line == "(['late-v1:c0', 'shop-v1:c0'], True)" or line.startswith("ReadOnlyDesk: "), done.stdout
    assert len(done.stdout.splitlines()) == 3, done.stderr
    assert before.items() <= {p.name: p.read_bytes() for p in shared.parent.iterdir()}.items()


@needs_mount
def test_a_file_system_that_became_read_only_is_read_and_not_written(tmp_path: Path) -> None:
    """What a kernel does with a failing disk; it holds for the superuser too."""
    with small_disk(tmp_path / "disk", "4m") as disk:
        path = disk / "desk.db"
        with open_desk(path, [make_source()], embedder="toy"):
            pass
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with open_desk(path, embedder="toy", read_only=True) as desk:
            assert_as_before(desk)
        with pytest.raises(ReadOnlyDesk), open_desk(path, embedder="toy") as desk:
            desk.update_document(NEW)
        with pytest.raises(ReadOnlyDesk):
            Desk.open(disk / "new.db", embedder="none")
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        with open_desk(path, embedder="toy") as desk:
            assert desk.update_document(NEW).superseded == ("shop-v1",)


# ---------------------------------------------------------------- input and output errors


def test_statements_that_fail_at_any_point_are_typed_errors_and_lose_nothing() -> None:
    """A disk I/O error, a full disk and a lock, with and without SQLite ending the transaction by itself."""
    operations = ("gated ingest, accepted", "upgrade from 0001")
    code = f"import sys\nfrom benchmarks import faults\nsys.exit(faults.main(['--faults', '12', '--operations', *{operations!r}]))"
    done = python(code)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\n12 statements that fail, 0 faults, " in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the harness forks")
def test_the_harness_finds_an_error_that_is_not_ours_and_one_that_is_swallowed() -> None:
    code = """
import sys
from benchmarks import faults
from evidencedesk import connections
{sabotage}
sys.exit(faults.main(["--faults", "3", "--operations", "withdraw"]))
"""
    untyped = python(code.format(sabotage="connections.translate = lambda *given: RuntimeError(given)"))
    assert untyped.returncode == 1
    assert "RuntimeError was raised instead of StoreFailure" in untyped.stdout
    swallowed = """
from evidencedesk import Desk, errors
real = Desk.withdraw
def withdraw(*given, **options):
    try:
        return real(*given, **options)
    except errors.StoreError:
        return ()
Desk.withdraw = withdraw
"""
    silent = python(code.format(sabotage=swallowed))
    assert silent.returncode == 1
    assert "nothing was raised instead of DeskBusy" in silent.stdout


REAL_ERROR = """
import sys
from builders import make_source, open_desk
from evidencedesk.errors import StoreError
with open_desk(sys.argv[1], embedder="toy") as desk:
    open(sys.argv[2], "w").close()
    try:
        desk.update_document(make_source("Blue.", doc_id="shop-v2"))
    except StoreError as error:
        print(type(error).__name__, flush=True)
    else:
        print("written", flush=True)
    print([d.doc_id for d in desk.documents()], desk.check().ok)
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which makes system calls fail")
@pytest.mark.parametrize(("code", "error"), [("EIO", "StoreFailure"), ("ENOSPC", "DeskFull")])
def test_system_calls_that_fail_are_typed_errors_and_lose_nothing(tmp_path: Path, code: str, error: str) -> None:
    """What SQLite really does when the disk fails under it, at the first and at the twentieth page written."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "tests")])}
    for nth in (1, 20):
        path = tmp_path / f"{nth}.db"
        with open_desk(path, [make_source()], embedder="toy"):
            pass
        trace = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=pwrite64"]
        trace += ["-e", f"inject=pwrite64:error={code}:when={nth}+"]
        done = subprocess.run(
            [*trace, sys.executable, "-c", REAL_ERROR, str(path), str(tmp_path / "begun")],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.stdout:
            pytest.skip(f"strace may not trace here: {done.stderr[-200:]}")
        assert done.stdout.splitlines()[0] in (error, "StoreFailure"), done.stdout + done.stderr
        with open_desk(path, embedder="toy") as desk:
            assert_as_before(desk)
            assert desk.update_document(NEW).superseded == ("shop-v1",)
            assert desk.check().problems == ()


def test_a_read_that_fails_is_told_and_the_next_one_answers(path: Path) -> None:
    with open_desk(path, embedder="toy") as desk:

        def fail(_connection: object, cursor: object, statement: str, *_rest: object) -> None:
            if "FROM chunks" in statement:
                raise desk.store.database.driver.module.OperationalError("disk I/O error")

        event.listen(desk.engine, "before_cursor_execute", fail)
        for read in (lambda: desk.search("red bikes"), lambda: desk.ask("Which bikes are red?")):
            with pytest.raises(StoreFailure, match="disk I/O error"):
                read()
        event.remove(desk.engine, "before_cursor_execute", fail)
        assert_as_before(desk)


# ---------------------------------------------------------------- an embedder that fails


class Faulty(ToyEmbedder):
    """The toy embedder until it is told to fail."""

    fault: Callable[[np.ndarray], object] | None = None

    def embed_documents(self, texts: Sequence[str]) -> Any:
        made = super().embed_documents(texts)
        return made if self.fault is None else self.fault(made)

    embed_queries = embed_documents


def broken(_vectors: np.ndarray) -> object:
    raise OSError("no power")


FAULTS = {
    "raises": (broken, EmbedderError, "no power"),
    "too few": (lambda made: made[:-1], BadVectors, "an array of shape"),
    "none": (lambda made: None, BadVectors, "no|values of type"),
    "too narrow": (lambda made: made[:, :-1], BadVectors, "an array of shape"),
    "not a number": (lambda made: made * np.nan, BadVectors, "gave NaN"),
    "infinite": (lambda made: made + np.inf, BadVectors, "infinite"),
    "zero": (lambda made: made * 0, BadVectors, "zero vector"),
}


@pytest.mark.parametrize(("fault", "error", "says"), FAULTS.values(), ids=FAULTS)
def test_what_an_embedder_may_do_is_told_and_changes_nothing(
    tmp_path: Path, fault: Callable[..., object], error: type[EmbedderError], says: str
) -> None:
    """BR-16 and BR-85: update, gated update, ingest, another embedder, search; keyword search answers throughout."""
    embedder = Faulty()
    write_source(tmp_path / "docs", "new.md", LONG, heading=None, doc_id="shop-v2")
    with open_desk(tmp_path / "desk.db", [make_source()], embedder=embedder) as desk:
        former = state_of(tmp_path / "desk.db")
        embedder.fault = fault
        writes = (lambda: desk.update_document(NEW), lambda: desk.update_document(NEW, gate=GATE))
        for write in writes:
            with pytest.raises(error, match=says):
                write()
        (failed,) = desk.ingest(tmp_path / "docs").failed
        assert failed.path == "new.md"
        (failed,) = desk.ingest(tmp_path / "docs", gate=GATE).failed
        assert failed.path == "new.md"
        other = Faulty(64)
        other.fault = fault
        with pytest.raises(error, match=says):
            desk.reembed(other)
        if error is not BadVectors or says != "zero vector":  # a question with nothing to embed is searched by keyword
            with pytest.raises(error, match=says):
                desk.search("red bikes", mode="vector")
        assert found(desk, "red bikes", mode="keyword") == ["shop-v1:c0"]
        assert {**state_of(tmp_path / "desk.db"), "embedders": []} == {**former, "embedders": []}
        embedder.fault = None
        assert_as_before(desk)
        assert desk.ingest(tmp_path / "docs").added == ("shop-v2",)
        assert desk.check().problems == ()


def test_an_endpoint_that_hangs_ends_the_run_after_its_time_out(tmp_path: Path) -> None:
    """The socket is open and nobody answers. Nothing is locked meanwhile, and what was stored answers."""
    pytest.importorskip("openai")
    write_source(tmp_path / "docs", "new.md", doc_id="shop-v2")
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        silent = OpenAIEmbedder(
            "model", base_url=f"http://127.0.0.1:{server.getsockname()[1]}/v1", dimension=256,
            timeout_seconds=0.2, max_retries=0,
        )  # fmt: skip
        with open_desk(tmp_path / "desk.db", [make_source()], embedder="toy") as desk:
            for run in (lambda: desk.reembed(silent), lambda: desk.reembed(silent)):
                with pytest.raises(EmbedderUnavailable, match=r"no answer from .* within 0\.2 seconds"):
                    run()
            assert_as_before(desk)
        with open_desk(tmp_path / "hanging.db", embedder=silent) as desk:
            with pytest.raises(EmbedderUnavailable, match=r"within 0\.2 seconds"):
                desk.ingest(tmp_path / "docs")
            assert desk.documents() == []


# ---------------------------------------------------------------- files that vanish or change


def at_look(number: int, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something just before the folder's files are read for the n-th time."""
    from evidencedesk.index import folder

    real, looks = folder.read_document, []

    def reading(root: Path, path: str) -> object:
        looks.append(path)
        if len(looks) == number:
            act()
        return real(root, path)

    monkeypatch.setattr(folder, "read_document", reading)


def swap_for_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "secret.md")


MISHAPS: dict[str, Callable[[Path], object]] = {
    "vanishes": Path.unlink,
    "changes": lambda path: write_source(path.parent, path.name, "Another text.", doc_id="shop-v1"),
    "is emptied": lambda path: path.write_bytes(b""),
    "is cut off within a letter": lambda path: path.write_bytes("বাইক".encode()[:-1]),
    "becomes a folder": lambda path: (path.unlink(), path.mkdir()),
    "becomes a link out of the folder": swap_for_link,
}


@pytest.mark.parametrize("look", [1, 2], ids=["after it was listed", "after it was looked at"])
@pytest.mark.parametrize("mishap", MISHAPS.values(), ids=MISHAPS)
def test_a_file_that_changes_under_a_run_fails_alone_and_its_former_text_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mishap: Callable[[Path], object], look: int
) -> None:
    """BR-85: never a mixture, never taken for gone, and nothing is pruned by such a run."""
    write_source(tmp_path, "secret.md", "Secret bikes.", doc_id="secret-v1")
    folder = tmp_path / "docs"
    write_source(folder, "a.md", doc_id="shop-v1")
    with open_desk(tmp_path / "desk.db", embedder="toy") as desk:
        desk.ingest(folder)
        write_source(folder, "a.md", "Bikes are red and blue.", doc_id="shop-v1")
        at_look(look, monkeypatch, lambda: mishap(folder / "a.md"))
        report = desk.ingest(folder, prune=True)
        if mishap is MISHAPS["changes"] and look == 1:
            assert (report.updated, report.failed) == (("shop-v1",), ())
            assert desk.chunk("shop-v1:c0").text == "Another text."
        else:
            assert [failed.path for failed in report.failed] == ["a.md"]
            assert (report.missing, report.withdrawn) == ((), ())
            assert desk.chunk("shop-v1:c0").text == "Bikes are red."
            assert_as_before(desk)
        assert found(desk, "secret", mode="keyword") == []


# ---------------------------------------------------------------- a clock that goes back


def test_what_was_done_under_a_clock_that_goes_back_is_right_once_it_goes_on(tmp_path: Path) -> None:
    """Two hosts, or a battery that is empty: one text is in force at any time, and nothing is lost."""
    versions = [
        make_source("Old bikes.", doc_id="rule-v1", effective_from="2024-01-01"),
        make_source("New bikes.", doc_id="rule-v2", effective_from="2026-05-30"),
    ]
    late = make_source("Bikes have bells.", doc_id="bell-v1")
    desks = {}
    for days_back in (0, 10):
        clock = Clock(datetime(2026, 6, 1, 12, tzinfo=UTC))
        with open_desk(tmp_path / f"{days_back}.db", versions, clock=clock, embedder="toy") as desk:
            clock.advance(days=-days_back)
            for act in (
                lambda desk=desk: desk.update_document(late),
                lambda desk=desk: desk.update_document(
                    make_source("New bikes!", doc_id="rule-v2", effective_from="2026-05-30")
                ),
                lambda desk=desk: desk.withdraw("bell-v1", reason="a mistake"),
                desk.promote,
                desk.compact,
            ):
                act()
                assert len(found(desk, "old new bikes", family="rule")) == 1
                assert [d.status for d in desk.history("rule")].count("current") == 1
            clock.advance(days=days_back + 1)
            desk.promote()
            assert desk.check().problems == ()
            desks[days_back] = (
                [(d.doc_id, d.status, desk.chunk(f"{d.doc_id}:c0").text) for d in desk.documents()],
                found(desk, "old new bikes"),
            )
    assert desks[10] == desks[0]
