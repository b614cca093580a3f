"""What a file needs over the years: withdraw, prune, another embedder, backup, compact."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import numpy as np
import pytest
from builders import Clock, found, make_source, open_desk, write_source

from benchmarks import concurrency
from evidencedesk import CallableEmbedder, Desk, StatusChange, connections, counting
from evidencedesk.embeddings import ToyEmbedder
from evidencedesk.errors import EmbedderError, EmbedderMismatch, EvidenceDeskError, NotFound
from evidencedesk.index import upkeep


def two_versions() -> list[object]:
    return [
        make_source("Old bikes.", doc_id="rule-v1", effective_from="2024-01-01"),
        make_source("New bikes.", doc_id="rule-v2", effective_from="2025-01-01"),
    ]


# ---------------------------------------------------------------- withdraw


def test_withdrawing_brings_nothing_older_back_and_keeps_the_past() -> None:
    clock = Clock(datetime(2026, 6, 1, tzinfo=UTC))
    with open_desk(sources=two_versions(), clock=clock, embedder="toy") as desk:
        assert desk.withdraw("rule-v2", reason="unlawful") == (StatusChange("rule-v2", "current", "withdrawn"),)
        for mode in ("keyword", "vector", "hybrid"):
            assert found(desk, "bikes", mode=mode) == []
        assert found(desk, "bikes", as_of="2024-06-01") == ["rule-v1:c0"]
        assert found(desk, "bikes", as_of="2025-06-01") == ["rule-v2:c0"]
        assert found(desk, "bikes", as_of="2026-06-02") == []
        assert desk.withdraw("rule-v2", reason="again") == ()
        with desk.engine.connect() as sql:
            query = "SELECT withdrawn_reason FROM document_history WHERE doc_id = 'rule-v2'"
            assert sql.exec_driver_sql(query).scalar() == "unlawful"
        desk.update_document(make_source("Third bikes.", doc_id="rule-v3"))
        assert found(desk, "bikes") == ["rule-v3:c0"]
        assert desk.check().ok


def test_a_scheduled_version_that_is_withdrawn_replaces_nothing() -> None:
    clock = Clock()
    soon = make_source("Soon bikes.", doc_id="rule-v3", effective_from="2026-07-01")
    with open_desk(sources=[*two_versions(), soon], clock=clock) as desk:
        desk.withdraw("rule-v3", reason="taken back")
        clock.advance(days=60)
        assert found(desk, "bikes") == ["rule-v2:c0"]
        assert desk.check().ok


def test_a_text_that_was_withdrawn_by_hand_stays_so(tmp_path: Path) -> None:
    """Whatever its file does; the report says so each time."""
    write_source(tmp_path, "a.md", "Bikes.", doc_id="a-v1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        desk.withdraw("a-v1", reason="unlawful")
        write_source(tmp_path, "a.md", "Bikes, changed.", doc_id="a-v1")
        report = desk.ingest(tmp_path)
        assert report.updated == ("a-v1",)
        assert report.notes == ("a-v1 stays withdrawn: it was withdrawn by hand; give the text a new version",)
        assert found(desk, "bikes") == []
        (tmp_path / "a.md").unlink()
        assert desk.ingest(tmp_path, prune=True).missing == ()
        write_source(tmp_path, "a.md", "Bikes again.", doc_id="a-v1")
        desk.ingest(tmp_path)
        assert found(desk, "bikes") == []
        assert desk.check().ok


def test_withdrawing_needs_a_document_and_a_reason() -> None:
    with open_desk(sources=two_versions()) as desk:
        with pytest.raises(NotFound, match="rule-v9"):
            desk.withdraw("rule-v9", reason="x")
        with pytest.raises(ValueError, match="reason"):
            desk.withdraw("rule-v2", reason=" ")
        assert found(desk, "bikes") == ["rule-v2:c0"]


# ---------------------------------------------------------------- prune


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for n in range(10):
        write_source(folder, f"{n}.md", f"Bikes, text {n}.", doc_id=f"d{n}-v1")
    return folder


def test_a_pruned_document_returns_with_its_file(ten: Path) -> None:
    """BR-81: reported by default, withdrawn when asked, reinstated when its file is back."""
    with open_desk(embedder="toy") as desk:
        desk.ingest(ten)
        text = (ten / "3.md").read_text()
        (ten / "3.md").unlink()
        assert (desk.ingest(ten).missing, desk.ingest(ten).withdrawn) == (("d3-v1",), ())
        report = desk.ingest(ten, prune=True)
        assert (report.missing, report.withdrawn) == (("d3-v1",), ("d3-v1",))
        assert "d3-v1:c0" not in found(desk, "bikes", k=20)
        assert desk.ingest(ten, prune=True).missing == ()
        (ten / "3.md").write_text(text)
        report = desk.ingest(ten)
        assert (report.updated, report.embedded) == (("d3-v1",), 0)
        assert report.notes == ("d3-v1 is reinstated: its file is back",)
        assert "d3-v1:c0" in found(desk, "bikes", k=20)
        assert desk.ingest(ten).unchanged == tuple(f"d{n}-v1" for n in range(10))
        assert desk.check().ok


def test_a_superseded_document_whose_file_is_gone_stays_where_it_is(ten: Path) -> None:
    write_source(ten, "9b.md", "Bikes, newer.", doc_id="d9-v2")
    with open_desk() as desk:
        desk.ingest(ten)
        (ten / "9.md").unlink()
        report = desk.ingest(ten, prune=True)
        assert (report.missing, report.withdrawn) == (("d9-v1",), ())
        assert desk.document("d9-v1").status == "superseded"


def test_pruning_more_than_a_fifth_is_refused_unless_confirmed(ten: Path) -> None:
    """Likelier the folder is the wrong one; nothing is lost and the exit is not clean."""
    with open_desk() as desk:
        desk.ingest(ten)
        for n in range(3):
            (ten / f"{n}.md").unlink()
        report = desk.ingest(ten, prune=True)
        assert report.withdrawn == ()
        (failed,) = report.failed
        assert "3 of 10 documents of the root docs would be withdrawn, more than 20%" in failed.error
        assert len(found(desk, "bikes", k=20)) == 10
        assert desk.ingest(ten, prune=True, prune_limit=0.3).withdrawn == ("d0-v1", "d1-v1", "d2-v1")
        with pytest.raises(ValueError, match="prune_limit"):
            desk.ingest(ten, prune=True, prune_limit=30)


def test_nothing_is_pruned_while_a_file_fails(ten: Path) -> None:
    """The file that cannot be read may be the missing document under a new name."""
    with open_desk() as desk:
        desk.ingest(ten)
        (ten / "3.md").rename(ten / "renamed.md")
        (ten / "renamed.md").write_text("---\ndoc_id: [\n---\n")
        report = desk.ingest(ten, prune=True)
        assert (report.withdrawn, len(report.failed)) == ((), 1)
        assert "nothing was pruned" in report.notes[0]


def test_a_dry_run_of_a_prune_withdraws_nothing(ten: Path) -> None:
    with open_desk() as desk:
        desk.ingest(ten)
        (ten / "3.md").unlink()
        assert desk.ingest(ten, prune=True, dry_run=True).withdrawn == ("d3-v1",)
        assert desk.document("d3-v1").status == "current"


# ---------------------------------------------------------------- another embedder


def test_another_embedder_takes_over_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, two_versions(), embedder="toy") as desk, open_desk(path, embedder="toy") as other:
        seen: list[tuple[int, int]] = []
        wide = ToyEmbedder(64)
        report = desk.reembed(wide, progress=lambda done, total: seen.append((done, total)))
        assert (report.texts, report.embedded, seen) == (2, 2, [(2, 2)])
        assert found(desk, "bikes", mode="vector") == ["rule-v2:c0"]
        desk.update_document(make_source("Helmets.", doc_id="hat-v1"))
        assert desk.check().ok
        with desk.engine.connect() as sql:
            assert sql.exec_driver_sql("SELECT count(*), count(DISTINCT embedder_key) FROM vectors").one() == (3, 1)
        for action in (
            lambda: other.search("bikes"),
            lambda: other.update_document(make_source("Gloves.", doc_id="glove-v1")),
        ):
            with pytest.raises(EmbedderMismatch):
                action()
    with open_desk(path, embedder="auto") as desk:
        assert desk.settings.embedder.dimension == 64


def test_a_run_that_was_stopped_goes_on_and_the_former_vectors_answer_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_REEMBED_BATCH", 4)
    sources = [make_source(f"Bikes, text {n}.", doc_id=f"d{n}-v1") for n in range(10)]
    calls: list[int] = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        calls.append(len(texts))
        if len(calls) == 2:
            raise RuntimeError("no power")
        return np.ones((len(texts), 3), dtype=np.float32)

    new = CallableEmbedder(embed, name="new", dimension=3, fingerprint="1")
    with open_desk(tmp_path / "desk.db", sources, embedder="toy") as desk:
        with pytest.raises(EmbedderError, match="no power"):
            desk.reembed(new)
        assert len(found(desk, "bikes", mode="vector")) == 10
        assert desk.check().ok
        report = desk.reembed(new)
        assert (report.texts, report.embedded, calls) == (10, 6, [4, 4, 4, 2])
        assert desk.check().ok


def test_text_that_came_in_meanwhile_is_embedded_before_the_switch(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, two_versions(), embedder="toy") as desk, open_desk(path, embedder="toy") as other:

        def embed(texts: Sequence[str]) -> np.ndarray:
            if not other.history("rule")[-1].doc_id.endswith("v3"):
                other.update_document(make_source("Third bikes.", doc_id="rule-v3"))
            return np.ones((len(texts), 3), dtype=np.float32)

        report = desk.reembed(CallableEmbedder(embed, name="new", dimension=3))
        assert (report.texts, report.embedded) == (3, 3)
        assert desk.check().ok


def test_a_keyword_desk_gets_vectors_and_loses_them_again() -> None:
    with open_desk(sources=two_versions()) as desk:
        embedder = counting(ToyEmbedder())
        desk.reembed(embedder)
        assert found(desk, "bikes", mode="vector") == ["rule-v2:c0"]
        desk.reembed(None)
        assert desk.search("bikes").mode == "keyword"
        with desk.engine.connect() as sql:
            assert sql.exec_driver_sql("SELECT count(*) FROM vectors").scalar() == 0
        assert desk.check().ok


# ---------------------------------------------------------------- backup and compact


def test_a_backup_is_a_desk_of_its_own(tmp_path: Path) -> None:
    with open_desk(tmp_path / "desk.db", two_versions(), embedder="toy") as desk:
        desk.backup(tmp_path / "copy.db")
        desk.update_document(make_source("Third bikes.", doc_id="rule-v3"))
        with pytest.raises(FileExistsError, match="never replaces"):
            desk.backup(tmp_path / "copy.db")
    with open_desk(tmp_path / "copy.db", embedder="auto") as copy:
        assert found(copy, "bikes") == ["rule-v2:c0"]
        assert copy.check().ok


def test_a_backup_of_a_file_opened_for_reading(tmp_path: Path) -> None:
    with open_desk(tmp_path / "desk.db", two_versions()):
        pass
    with Desk.open(tmp_path / "desk.db", embedder="none", read_only=True) as desk:
        desk.backup(tmp_path / "copy.db")
    with open_desk(tmp_path / "copy.db") as copy:
        assert found(copy, "bikes") == ["rule-v2:c0"]


def test_a_backup_is_whole_whenever_it_is_made(tmp_path: Path) -> None:
    """Under load: two threads write, and each copy holds every document whole and passes the check."""
    stop, failures = threading.Event(), []

    def write(number: int) -> None:
        try:
            for edition in itertools.count():
                if stop.is_set():
                    return
                desk.update_document(concurrency.source(0, number, edition + 1))
        except BaseException as error:  # noqa: BLE001 - a thread's failure is the test's
            failures.append(error)

    with Desk.open(tmp_path / "desk.db", embedder="toy") as desk:
        threads = [threading.Thread(target=write, args=(number,)) for number in (0, 1)]
        for thread in threads:
            thread.start()
        try:
            for number in range(6):
                desk.backup(tmp_path / f"copy{number}.db")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert failures == []
    for number in range(6):
        with Desk.open(tmp_path / f"copy{number}.db") as copy:
            assert copy.check().problems == ()
            seen: dict[str, set[str]] = {}
            for hit in copy.search("writer part edition", k=100):
                seen.setdefault(hit.chunk.doc_id, set()).add(hit.chunk.text.partition("edition ")[2].partition(".")[0])
            assert all(len(editions) == 1 for editions in seen.values())
            copy.update_document(make_source("Restored, and written to."))


def test_a_backup_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that fails leaves nothing behind, and nothing is replaced; a private file has private copies."""
    path = tmp_path / "desk.db"
    with open_desk(path, two_versions()) as desk:
        path.chmod(0o600)
        (tmp_path / "there.db").write_text("mine")
        with pytest.raises(FileExistsError):
            desk.store.database.copy_to(tmp_path / "there.db")
        assert (tmp_path / "there.db").read_text() == "mine"
        monkeypatch.setattr(connections.os, "fsync", lambda _: (_ for _ in ()).throw(OSError("no power")))
        with pytest.raises(OSError, match="no power"):
            desk.backup(tmp_path / "copy.db")
        monkeypatch.undo()
        with pytest.raises(EvidenceDeskError):
            desk.backup(tmp_path / "nowhere" / "copy.db")
        assert sorted(file.name for file in tmp_path.iterdir() if "copy" in file.name or "there" in file.name) == [
            "there.db"
        ]
        monkeypatch.setattr(connections.os, "link", lambda *_: (_ for _ in ()).throw(OSError("no hard links here")))
        desk.backup(tmp_path / "copy.db")
        assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    with open_desk(tmp_path / "copy.db") as copy:
        assert copy.check().ok


def test_after_two_hundred_updates_compacting_brings_the_file_near_a_fresh_one(tmp_path: Path) -> None:
    """BR-18: two hundred corrections in any order; within 1.3 times what an ingest of the same folder makes."""
    folder, random = tmp_path / "docs", Random(18)
    words = ["bike", "helmet", "lamp", "bell", "saddle", "chain", "spoke", "tyre"]
    for n in range(12):
        write_source(folder, f"{n}.md", f"Text {n}. " * 40, doc_id=f"d{n}-v1")
    with open_desk(tmp_path / "desk.db", embedder="toy") as desk:
        desk.ingest(folder)
        for number in range(200):
            n, body = random.randrange(12), f"Edition {number}. {' '.join(random.choices(words, k=40))}."
            assert desk.update_document(write_source(folder, f"{n}.md", body, doc_id=f"d{n}-v1")).action == "updated"
        desk.compact()
        assert desk.check().ok
    with open_desk(tmp_path / "fresh.db", embedder="toy") as fresh:
        fresh.ingest(folder)
    sizes = [(tmp_path / name).stat().st_size for name in ("desk.db", "fresh.db")]
    assert sizes[0] <= 1.3 * sizes[1]


@pytest.mark.parametrize("hard_links", [True, False])
def test_a_backup_never_replaces_what_came_there_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard_links: bool
) -> None:
    """On a file system without hard links too; the copy has its name only once it is whole."""
    link, target = os.link, tmp_path / "copy.db"
    arrives = False

    def linking(building: Path, name: Path) -> None:
        assert not target.exists()
        if arrives:
            target.write_text("mine")
        if not hard_links:
            raise OSError("Operation not supported")
        link(building, name)

    monkeypatch.setattr(os, "link", linking)
    with open_desk(tmp_path / "desk.db", two_versions()) as desk:
        desk.backup(target)
        with open_desk(target) as copy:
            assert found(copy, "bikes") == ["rule-v2:c0"]
        target.unlink()
        arrives = True
        with pytest.raises(FileExistsError):
            desk.backup(target)
    assert target.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["copy.db", "desk.db"]


def test_compacting_brings_the_file_near_a_fresh_one(tmp_path: Path) -> None:
    """BR-18: one document replaced twenty times; superseded text stays, only what nobody has any more goes."""

    def body(number: int) -> str:
        return "\n\n".join(f"## Part {n}\n\nText {n} of edition {number} about bikes." for n in range(100))

    with open_desk(tmp_path / "desk.db", embedder="toy") as desk:
        for number in range(20):
            desk.update_document(make_source(body(number), heading=None))
        desk.compact()
        assert desk.check().ok
    with open_desk(tmp_path / "fresh.db", [make_source(body(19), heading=None)], embedder="toy") as fresh:
        fresh.compact()
    sizes = [(tmp_path / name).stat().st_size for name in ("desk.db", "fresh.db")]
    assert sizes[0] <= 1.1 * sizes[1]
