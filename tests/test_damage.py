"""A file that was damaged, that lost its log or got another one's, or that is looked at while it is open."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import assert_as_before, found, leave_a_log, make_source, open_desk, python

from benchmarks.crash.states import state_of
from evidencedesk import Desk, ToyEmbedder, schema
from evidencedesk.errors import NotADesk, StoreError, StoreFailure

LONG = "\n\n".join(f"## Part {n}\n\nBikes of kind {n} are kept in store {n}." for n in range(40))
NEW = make_source(doc_id="shop-v2")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "desk.db"
    with open_desk(target, [make_source()], embedder="toy"):
        pass
    return target


# ---------------------------------------------------------------- a damaged file


def outcome(path: Path, sound: dict[str, Any], expected: list[str]) -> str:
    """What becomes of a file that was damaged: told, or harmless, for nothing that it holds is another."""
    try:
        with open_desk(path, embedder="toy") as desk:
            hits, problems = found(desk, "red bikes"), desk.check().problems
            return "told" if problems else "harmless" if (hits, state_of(path)) == (expected, sound) else "silent"
    except StoreError:
        return "told"


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    target = tmp_path / "desk.db"
    sources = [make_source(LONG, heading=None, doc_id="parts-v1"), make_source(), make_source(doc_id="shop-v2")]
    with open_desk(target, sources, embedder="toy") as desk:
        assert desk.check().ok
    return target


def test_a_page_of_noise_is_told(filled: Path, tmp_path: Path) -> None:
    """At every fourth page: a typed error, or a problem that `check` names; where neither, the page held nothing."""
    sound, whole, noise = state_of(filled), filled.read_bytes(), random.Random(3)
    with open_desk(filled, embedder="toy") as desk:
        expected = found(desk, "red bikes")
    outcomes = []
    for start in range(8192, len(whole), 4 * 8192):
        damaged = tmp_path / f"{start}.db"
        damaged.write_bytes(whole[:start] + noise.randbytes(8192) + whole[start + 8192 :])
        outcomes.append(outcome(damaged, sound, expected))
    assert "silent" not in outcomes
    assert outcomes.count("told") > len(outcomes) / 2


@pytest.mark.parametrize("kept", [1, 99, 100, 4096, 8192, 0.5, -8192, -4096])
def test_a_file_that_was_cut_off_is_told(filled: Path, kept: float) -> None:
    """In its header, at a page, within one."""
    sound, whole = state_of(filled), filled.read_bytes()
    with open_desk(filled, embedder="toy") as desk:
        expected = found(desk, "red bikes")
    size = int(kept * len(whole)) if isinstance(kept, float) else kept % len(whole)
    filled.write_bytes(whole[:size])
    assert outcome(filled, sound, expected) == "told"


def test_a_byte_that_changed_in_a_text_is_told(filled: Path) -> None:
    """SQLite keeps no checksums; the hashes of the documents tell it."""
    whole = filled.read_bytes()
    at = [n for n in range(len(whole)) if whole.startswith(b"kind 7 are", n)]
    assert len(at) >= 2, "the source and the chunk"
    for place in at:
        filled.write_bytes(whole[: place + 5] + b"8" + whole[place + 6 :])
        with open_desk(filled, embedder="toy") as desk:
            assert not desk.check().ok, place


def test_a_bit_that_flipped_in_a_vector_is_told(filled: Path) -> None:
    """In each of the ten highest bits of a number but its sign; what lower ones change, no cosine shows."""
    with open_desk(filled, embedder="toy") as desk, desk.engine.connect() as sql:
        blob = sql.exec_driver_sql("SELECT embedding FROM vectors").scalars().first()
    whole, largest = filled.read_bytes(), int(np.abs(np.frombuffer(blob, "<f4")).argmax())
    (start,) = (n for n in range(len(whole)) if whole.startswith(blob, n))
    number = int.from_bytes(blob[4 * largest : 4 * largest + 4], "little")
    for bit in range(21, 31):
        changed = (number ^ 1 << bit).to_bytes(4, "little")
        place = start + 4 * largest
        filled.write_bytes(whole[:place] + changed + whole[place + 4 :])
        with open_desk(filled, embedder="toy") as desk:
            assert [problem.kind for problem in desk.check().problems] == ["vector damaged"], bit


# ---------------------------------------------------------------- logs that are gone, or another file's


def test_a_log_that_a_killed_process_left_is_played(path: Path) -> None:
    leave_a_log(path)
    with open_desk(path, embedder="toy", read_only=True) as desk:
        assert [d.doc_id for d in desk.documents()] == ["late-v1", "shop-v1"]
    with open_desk(path, embedder="toy") as desk:
        assert [d.doc_id for d in desk.documents()] == ["late-v1", "shop-v1"]
        assert desk.check().problems == ()


def test_without_its_log_a_file_is_in_a_former_state_whole(path: Path) -> None:
    """Nothing in the file can say that there was more; what is there is of one state."""
    leave_a_log(path).unlink()
    with open_desk(path, embedder="toy") as desk:
        assert_as_before(desk)


@pytest.mark.parametrize("copy", ["a backup", "a copy that went its own way", "another desk"])
def test_the_log_of_another_file_is_refused_and_neither_is_touched(path: Path, tmp_path: Path, copy: str) -> None:
    """A copy is put into the place of a file whose writer was killed, and the log forgotten. SQLite would play it."""
    kept = tmp_path / "kept.db"
    with open_desk(path, embedder="toy") as desk:
        desk.backup(kept)
    if copy == "another desk":
        kept.unlink()
        with open_desk(kept, [make_source("Red bikes.", doc_id=f"other-{n}-v1") for n in range(9)], embedder="toy"):
            pass
    elif copy == "a copy that went its own way":
        shutil.copy(path, kept)
        with open_desk(kept, [make_source(doc_id="own-v1")], embedder="toy"):
            pass
    log = leave_a_log(path)
    shutil.copy(kept, path)
    before = path.read_bytes(), log.read_bytes()
    for options in ({}, {"read_only": True}, {"upgrade": True}):
        with pytest.raises(StoreFailure, match=r"desk\.db-wal beside it is the write-ahead log of another file"):
            Desk.open(path, embedder="toy", **options)
    assert (path.read_bytes(), log.read_bytes()) == before
    log.rename(tmp_path / "moved away")
    with open_desk(path, embedder="toy") as desk, open_desk(kept, embedder="toy") as copied:
        assert [d.doc_id for d in desk.documents()] == [d.doc_id for d in copied.documents()]
        assert desk.check().problems == ()


def test_a_log_beside_an_empty_file_is_not_thrown_away(path: Path) -> None:
    """SQLite drops it there, and with it what could be recovered."""
    log = leave_a_log(path)
    before = log.read_bytes()
    path.write_bytes(b"")
    with pytest.raises(NotADesk, match=r"its write-ahead log desk\.db-wal is there; move that away"):
        Desk.open(path, embedder="toy")
    assert log.read_bytes() == before


HALF_DONE = """
import os, sys
from evidencedesk.connections import find_driver
raw = find_driver().module.connect(sys.argv[1], isolation_level=None)
raw.execute("PRAGMA cache_size = 1")
raw.execute("BEGIN IMMEDIATE")
raw.execute("UPDATE documents SET title = 'half done'")
raw.execute("CREATE TABLE filling (x)")
raw.executemany("INSERT INTO filling VALUES (randomblob(9000))", [()] * 50)
os._exit(0)
"""


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_whose_first_opening_was_killed_can_be_opened_again(path: Path, tmp_path: Path, read_only: bool) -> None:
    """A backup has no write-ahead log until it is opened; a kill in that moment leaves a journal to be undone."""
    copy = tmp_path / "copy.db"
    with open_desk(path, embedder="toy") as desk:
        desk.backup(copy)
    assert python(HALF_DONE, copy).returncode == 0
    assert copy.with_name("copy.db-journal").stat().st_size > 0
    with open_desk(copy, embedder="toy", read_only=read_only) as desk:
        assert_as_before(desk)
        assert desk.documents()[0].title == "Shop rules"


LOCKED = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)  # the bytes that SQLite's readers share
except BlockingIOError:
    print("locked")
"""


@pytest.mark.skipif(os.name != "posix", reason="the locks are POSIX's")
@pytest.mark.parametrize("look", [Desk.upgrade, lambda path: Desk.open(path, embedder="toy").close(), schema.exists])
def test_a_second_look_at_the_file_does_not_take_the_locks_of_the_first(
    path: Path, look: Callable[..., object]
) -> None:
    """Closing any descriptor of a file drops all locks of the process on it; another one then takes the log away."""
    with open_desk(path, embedder="toy") as desk:
        desk.update_document(NEW)
        look(path)
        assert python(LOCKED, path).stdout == "locked\n"
    assert python(LOCKED, path).stdout == ""


def test_threads_that_open_one_file_at_once_keep_their_locks(path: Path) -> None:
    desks: list[Desk] = []
    threads = [threading.Thread(target=lambda: desks.append(Desk.open(path, embedder="toy"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(desks) == 8
    assert all(found(desk, "red bikes") == ["shop-v1:c0"] for desk in desks)
    assert python(LOCKED, path).stdout == "locked\n"
    for desk in desks:
        desk.close()


def test_a_file_without_settings_gets_the_default_embedder_as_a_new_one_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever made it was killed before it wrote them, or is just about to: no desk loses its vectors by that."""
    monkeypatch.setattr("evidencedesk.embeddings.default_embedder", ToyEmbedder)
    schema.create(tmp_path / "desk.db")
    with open_desk(tmp_path / "desk.db", [make_source()], embedder="auto") as desk:
        assert desk.settings.embedder.name == "toy"
        assert found(desk, "red bikes", mode="vector") == ["shop-v1:c0"]
