"""Kind B: several readers and writers, rights and room. What no other test proves whole."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from builders import found, make_source, open_desk, write_source
from typer.testing import CliRunner

from evidencedesk import Desk, connections
from evidencedesk.cli import app

# ---------------------------------------------------------------- BR-22: reading where nothing may be written

KILLED_WRITER = """
import os, signal, sys
from evidencedesk import Desk, parse_document
desk = Desk.open(sys.argv[1], embedder="none")
desk.update_document(parse_document("---\\ndoc_id: shop-v2\\nlang: en\\n---\\nBikes are blue.\\n", "shop.md"))
os.kill(os.getpid(), signal.SIGKILL)
"""
READER_WITHOUT_RIGHTS = """
import os, sys
import evidencedesk.desk
from evidencedesk.connections import find_driver
find_driver()  # whatever has to be loaded is, before the rights go
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    with evidencedesk.Desk.open(sys.argv[1], read_only=True) as desk:
        print(desk.search("bikes")[0].chunk.id, desk.check().ok)
except evidencedesk.errors.StoreFailure as error:
    print("refused:", error)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX rights")
def test_a_log_that_only_a_writer_can_read_is_named_and_never_passed_over() -> None:
    """BR-22: a -wal without its -shm in a folder that the reader may not write; who only reads is told so as a reader."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "desk.db"
        with open_desk(path, [make_source()]):
            pass
        subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path)], check=False)
        assert (folder / "desk.db-wal").stat().st_size > 0
        (folder / "desk.db-shm").unlink()
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        try:
            done = subprocess.run(
                [sys.executable, "-c", READER_WITHOUT_RIGHTS, str(path)], capture_output=True, text=True, check=True
            )
        finally:
            folder.chmod(0o755)
    assert done.stdout.startswith(f"refused: {path}: the database failed while ")
    assert "-wal" in done.stdout
    assert "cannot be written" not in done.stdout, "nobody wanted to write"


# ---------------------------------------------------------------- BR-23: one desk, many threads


def test_every_verb_may_be_called_from_any_thread_of_a_pool(tmp_path: Path) -> None:
    """BR-23: as a web service does it, from a pool of its own and through asyncio; one desk, opened elsewhere."""
    sources = [make_source(f"Bike number {n} is red.", doc_id=f"shop-{n}-v1") for n in range(8)]
    with open_desk(tmp_path / "desk.db", sources, embedder="toy") as desk:
        verbs = [
            lambda: len(desk.search("red bikes", k=20)) == 8,
            lambda: desk.ask("Which colour has bike number 3?", record=True).reason != "",
            lambda: desk.verify("Bike number 3 is red. [shop-3-v1:c0]").ok,
            lambda: desk.check().ok,
            lambda: desk.document("shop-5").doc_id == "shop-5-v1",
            lambda: desk.update_document(make_source("Bike number 7 is red.", doc_id="shop-7-v1")) is not None,
            lambda: desk.promote() == (),
        ]

        async def serve() -> list[bool]:
            return await asyncio.gather(*[asyncio.to_thread(verb) for verb in verbs * 3])

        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(verb) for verb in verbs * 3]
            assert all(asyncio.run(serve()))
            assert all(call.result() for call in calls)
        assert desk.check().ok
    with ThreadPoolExecutor(1) as pool:
        opened_there = pool.submit(Desk.open, tmp_path / "desk.db").result()
    assert found(opened_there, "bikes", k=20)
    opened_there.close()


# ---------------------------------------------------------------- BR-25: no room


@pytest.mark.parametrize("command", ["update", "ingest"])
def test_a_command_without_room_says_which_file_and_what_it_was_doing(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-25: exit code 1 and one line; what was stored before still answers, and a later run completes."""
    db, folder = tmp_path / "desk.db", tmp_path / "texts"
    with open_desk(db, [make_source()]) as desk, desk.engine.connect() as sql:
        pages = sql.exec_driver_sql("PRAGMA page_count").scalar()
    file = write_source(folder, "big.md", "word " * 50_000, doc_id="big-v1")
    prepare = connections._prepare

    def prepare_limited(raw: object, *arguments: object) -> None:
        prepare(raw, *arguments)  # type: ignore[arg-type]
        raw.execute(f"PRAGMA max_page_count = {pages + 2}")  # type: ignore[attr-defined]

    words = [command, str(file if command == "update" else folder), "--db", str(db)]
    with monkeypatch.context() as patch:
        patch.setattr(connections, "_prepare", prepare_limited)
        refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 1
    (line,) = refused.stderr.splitlines()
    assert line.startswith(f"error: {db}: no room left while storing big-v1")
    with open_desk(db) as desk:
        assert found(desk, "bikes") == ["shop-v1:c0"]
        assert desk.check().ok
    assert CliRunner().invoke(app, words).exit_code == 0
    with open_desk(db) as desk:
        assert found(desk, "word")
