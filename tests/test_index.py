"""The write way: ingest a folder, update a document, and what the reports say."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from builders import MOMENT, Clock, found, make_source, open_desk, write_source

from evidencedesk import CallableEmbedder, Desk, counting
from evidencedesk.embeddings import ToyEmbedder
from evidencedesk.errors import (
    DocumentConflict,
    EmbedderError,
    EmbedderMismatch,
    EmbedderUnavailable,
    FrontMatterError,
    NoContentError,
    SettingsMismatch,
    UnreadableSource,
)
from evidencedesk.records import IngestProgress, IngestReport, Skipped


def total_changes(desk: Desk) -> tuple[object, ...]:
    """Every row of every base table: equal before and after when nothing was written."""
    with desk.engine.connect() as sql:
        tables = (
            "desk",
            "documents",
            "chunks",
            "vectors",
            "lexical_terms",
            "lexical_changes",
            "lexical_unpacked",
            "lexical_segments",
            "lexical_marks",
            "lexical_packed",
            "lexical_totals",
            "embedders",
        )
        return tuple(tuple(sql.exec_driver_sql(f"SELECT * FROM {table}").all()) for table in tables)


def test_a_second_run_embeds_nothing_and_writes_nothing(tmp_path: Path) -> None:
    """BR-77: whatever the modification times say; one document has more chunks than an embedding batch."""
    body = "\n\n".join(f"## Part {n}\n\nText number {n}." for n in range(70))
    write_source(tmp_path, "long.md", body, heading=None, doc_id="long-v1")
    for n in range(10):
        write_source(tmp_path, f"sub/short-{n}.md", f"Short text {n}.", doc_id=f"short-{n}-v1")
    embedder = counting(ToyEmbedder())
    with open_desk(embedder=embedder) as desk:
        first = desk.ingest(tmp_path)
        assert (len(first.added), first.embedded, embedder.documents) == (11, 80, 80)
        before = total_changes(desk)
        for path in tmp_path.rglob("*.md"):
            os.utime(path, (1, 1))
        second = desk.ingest(tmp_path)
        assert second == IngestReport(unchanged=first.added)
        assert embedder.documents == 80
        assert total_changes(desk) == before


def test_one_bad_file_stops_nothing_and_is_never_recorded_as_done(tmp_path: Path) -> None:
    """BR-66 and BR-83."""
    write_source(tmp_path, "a.md", doc_id="a-v1")
    (tmp_path / "b.md").write_bytes(b"---\ndoc_id: b-v1\n---\nText \x97 here\n")
    write_source(tmp_path, "c.md", doc_id="c-v1", status="nonsense")
    write_source(tmp_path, "d.md", doc_id="d-v1")
    with open_desk() as desk:
        report = desk.ingest(tmp_path)
        assert report.added == ("a-v1", "d-v1")
        assert [(failed.path, failed.line) for failed in report.failed] == [("b.md", 4), ("c.md", 5)]
        write_source(tmp_path, "b.md", doc_id="b-v1")
        write_source(tmp_path, "c.md", doc_id="c-v1")
        assert desk.ingest(tmp_path).added == ("b-v1", "c-v1")


def test_a_file_that_breaks_leaves_its_former_text_answering(tmp_path: Path) -> None:
    """BR-85: unreadable, wrong front matter, empty."""
    write_source(tmp_path, "a.md", "Former text.", doc_id="a-v1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        for broken in (b"\xff\xfe", b"---\ndoc_id: [\n---\nNew.\n", b"", b"---\ndoc_id: a-v1\n---\n"):
            (tmp_path / "a.md").write_bytes(broken)
            report = desk.ingest(tmp_path)
            assert len(report.failed) == 1
            assert report.missing == ()
            assert found(desk, "former") == ["a-v1:c0"]


def test_an_embedder_that_fails_changes_nothing() -> None:
    """BR-85."""
    failing = False

    def embed(texts: Sequence[str]) -> np.ndarray:
        if failing:
            raise RuntimeError("no power")
        return np.ones((len(texts), 2), dtype=np.float32)

    with open_desk(
        sources=[make_source("Former text.")], embedder=CallableEmbedder(embed, name="x", dimension=2)
    ) as desk:
        before = total_changes(desk)
        failing = True
        with pytest.raises(EmbedderError, match="no power"):
            desk.update_document(make_source("New text."))
        assert total_changes(desk) == before


def test_two_files_that_claim_one_doc_id_are_both_refused(tmp_path: Path) -> None:
    """BR-86: which one was first never decides."""
    write_source(tmp_path, "a.md", "One text.", doc_id="rule-v1")
    write_source(tmp_path, "b.md", "Another text.", doc_id="rule", version="1")
    write_source(tmp_path, "c.md", "Third.", doc_id="other-v1")
    with open_desk() as desk:
        report = desk.ingest(tmp_path)
        assert report.added == ("other-v1",)
        assert [failed.path for failed in report.failed] == ["a.md", "b.md"]
        assert all("a.md" in failed.error and "b.md" in failed.error for failed in report.failed)


def test_two_doc_ids_for_one_version_of_a_line_are_refused(tmp_path: Path) -> None:
    write_source(tmp_path, "a.md", "One text.", doc_id="rule-v1-bn", lang="bn")
    write_source(tmp_path, "b.md", "Another text.", doc_id="rule-bn-v1", lang="bn")
    with open_desk() as desk:
        assert len(desk.ingest(tmp_path).failed) == 2
        desk.update_document(make_source(doc_id="rule-v1-bn", lang="bn"))
        with pytest.raises(DocumentConflict, match="both are version 1 of rule in bn"):
            desk.update_document(make_source(doc_id="rule-bn-v1", lang="bn"))


def test_two_files_with_the_same_document_are_stored_once(tmp_path: Path) -> None:
    write_source(tmp_path, "a.md", doc_id="rule-v1")
    write_source(tmp_path, "b.md", doc_id="rule-v1")
    with open_desk() as desk:
        report = desk.ingest(tmp_path)
        assert (report.added, report.skipped) == (("rule-v1",), (Skipped("b.md", "the same document as a.md"),))


def test_equal_texts_in_two_documents_are_two_documents(tmp_path: Path) -> None:
    """BR-80 and BR-88: a hash is no identity; the same footer in twenty files, five times in one."""
    for n in range(20):
        write_source(tmp_path, f"{n}.md", "\n\nFooter.\n" * 5, heading=None, doc_id=f"doc{n}-v1", title="T")
    with open_desk(embedder="toy") as desk:
        report = desk.ingest(tmp_path)
        assert (len(report.added), report.embedded) == (20, 1)
        write_source(tmp_path, "3.md", "Changed.", heading=None, doc_id="doc3-v1", title="T")
        (tmp_path / "4.md").unlink()
        report = desk.ingest(tmp_path)
        assert (report.updated, report.missing) == (("doc3-v1",), ("doc4-v1",))
        assert len(found(desk, "footer", mode="keyword", k=100)) == 19


def test_only_what_changed_is_embedded_again(tmp_path: Path) -> None:
    """BR-79: one middle section removed; its chunk is gone, the others are not embedded again."""
    sections = [f"## Part {n}\n\nText {word}." for n, word in enumerate(["alpha", "beta", "gamma", "delta", "eta"])]
    write_source(tmp_path, "a.md", "\n\n".join(sections), heading=None, doc_id="a-v1")
    with open_desk(embedder="toy") as desk:
        assert desk.ingest(tmp_path).embedded == 5
        write_source(tmp_path, "a.md", "\n\n".join(sections[:2] + sections[3:]), heading=None, doc_id="a-v1")
        report = desk.ingest(tmp_path)
        assert (report.updated, report.embedded) == (("a-v1",), 0)
        assert len(desk.document("a-v1").chunks) == 4
        assert found(desk, "gamma", mode="keyword") == []
        assert desk.check().ok


@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_a_replaced_text_is_nowhere(mode: str) -> None:
    """BR-72, BR-73, BR-15: a changed number, and a document that became shorter."""
    long = "\n\n".join(f"## Part {n}\n\nOld words {n}." for n in range(10))
    with open_desk(sources=[make_source(long, heading=None)], embedder="toy") as desk:
        desk.update_document(make_source("## Part 0\n\nNew words.", heading=None))
        hits = desk.search("old words part 7", mode=mode, k=50)
        assert [hit.chunk.text for hit in hits] == ["New words."]


@pytest.mark.parametrize("text", ["Bikes are blue.", "Bikes are red.", "Bikes  are red."])
def test_a_one_chunk_document_survives_every_update(text: str) -> None:
    """BR-75: changed, equal and white space only."""
    with open_desk(sources=[make_source("Bikes are red.")], embedder="toy") as desk:
        desk.update_document(make_source(text))
        assert [hit.chunk.text for hit in desk.search("bikes", mode="vector")] == [text]
        assert desk.check().ok


def test_chunk_keys_are_never_used_again() -> None:
    with open_desk(sources=[make_source()]) as desk:
        seen = set()
        for n in range(3):
            desk.update_document(make_source(f"Text {n}."))
            with desk.engine.connect() as sql:
                seen.update(row[0] for row in sql.exec_driver_sql("SELECT chunk_key FROM chunks"))
        assert len(seen) == 3


def test_missing_files_are_reported_and_a_rename_is_followed(tmp_path: Path) -> None:
    """BR-81: with a doc_id in the file a rename is the same document; without one it is another."""
    write_source(tmp_path, "a.md", doc_id="a-v1")
    (tmp_path / "plain.md").write_text("# Plain\n\nPlain text.\n")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        (tmp_path / "sub").mkdir()
        (tmp_path / "a.md").rename(tmp_path / "sub" / "A.md")
        (tmp_path / "plain.md").rename(tmp_path / "renamed.md")
        report = desk.ingest(tmp_path)
        assert (report.added, report.updated, report.missing) == (("renamed-v1",), ("a-v1",), ("plain-v1",))
        assert desk.chunk("a-v1:c0").location.path == "sub/A.md"
        assert desk.ingest(tmp_path).missing == ("plain-v1",)


def test_a_file_overwritten_by_its_next_version_is_not_missing(tmp_path: Path) -> None:
    write_source(tmp_path, "rule.md", "Old.", doc_id="rule", version="1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        write_source(tmp_path, "rule.md", "New.", doc_id="rule", version="2")
        report = desk.ingest(tmp_path)
        assert (report.added, report.superseded, report.missing) == (("rule-v2",), ("rule-v1",), ())
        write_source(tmp_path, "rule.md", "Renamed.", doc_id="other", version="1")
        assert desk.ingest(tmp_path).missing == ("rule-v2",)


def test_folders_are_kept_apart_by_their_root(tmp_path: Path) -> None:
    write_source(tmp_path / "one", "a.md", doc_id="a-v1")
    write_source(tmp_path / "two", "b.md", doc_id="b-v1")
    with open_desk() as desk:
        desk.ingest(tmp_path / "one")
        assert desk.ingest(tmp_path / "two").missing == ()
        assert desk.ingest(tmp_path / "two", root="one").missing == ("a-v1",)


def test_an_update_keeps_the_root_and_path_of_what_was_ingested(tmp_path: Path) -> None:
    path = write_source(tmp_path, "sub/a.md", doc_id="a-v1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        write_source(tmp_path, "sub/a.md", "Changed.", doc_id="a-v1")
        assert desk.update_document(path).action == "updated"
        assert desk.ingest(tmp_path).unchanged == ("a-v1",)


def test_a_status_that_disagrees_is_reported_and_the_rule_wins(tmp_path: Path) -> None:
    write_source(tmp_path, "1.md", "Old.", doc_id="rule-v1", status="current")
    write_source(tmp_path, "2.md", "New.", doc_id="rule-v2", status="current")
    with open_desk() as desk:
        for _ in range(2):
            (note,) = desk.ingest(tmp_path).notes
            assert note == "1.md: its front matter says current, but rule-v1 is superseded by its version and dates"
        assert found(desk, "old new") == ["rule-v2:c0"]


def test_a_rehearsal_reports_the_same_and_keeps_nothing(tmp_path: Path) -> None:
    write_source(tmp_path, "1.md", "Old.", doc_id="rule-v1", status="current")
    write_source(tmp_path, "2.md", "New.", doc_id="rule-v2")
    write_source(tmp_path, "bad.md", doc_id="bad-v1", lang="!")
    embedder = counting(ToyEmbedder())
    with open_desk(sources=[make_source()], embedder=embedder) as desk:
        before, calls = total_changes(desk), embedder.documents
        rehearsed = desk.ingest(tmp_path, dry_run=True)
        assert total_changes(desk) == before
        assert embedder.documents == calls
        done = desk.ingest(tmp_path)
        assert rehearsed.dry_run
        assert [getattr(rehearsed, f) for f in ("added", "superseded", "failed", "embedded", "notes")] == [
            getattr(done, f) for f in ("added", "superseded", "failed", "embedded", "notes")
        ]
        assert desk.ingest(tmp_path, dry_run=True).unchanged == done.added


def test_progress_counts_files_and_texts(tmp_path: Path) -> None:
    for n in range(3):
        write_source(tmp_path, f"{n}.md", f"Text {n}.", doc_id=f"d{n}-v1")
    seen: list[IngestProgress] = []
    with open_desk(embedder="toy") as desk:
        desk.ingest(tmp_path, progress=seen.append)
    # After each batch of texts, and after each file.
    assert seen == [IngestProgress(done, 3, n + 1, f"{n}.md") for n in range(3) for done in (n, n + 1)]


def test_an_interrupted_run_leaves_whole_documents_and_goes_on(tmp_path: Path) -> None:
    for n in range(4):
        write_source(tmp_path, f"{n}.md", f"Text {n}.", doc_id=f"d{n}-v1")

    def stop(progress: IngestProgress) -> None:
        if progress.files_done == 2:
            raise KeyboardInterrupt

    with open_desk() as desk:
        with pytest.raises(KeyboardInterrupt):
            desk.ingest(tmp_path, progress=stop)
        assert [d.doc_id for d in desk.documents()] == ["d0-v1", "d1-v1"]
        report = desk.ingest(tmp_path)
        assert (report.added, report.unchanged) == (("d2-v1", "d3-v1"), ("d0-v1", "d1-v1"))


def test_embedding_happens_before_the_write_lock(tmp_path: Path) -> None:
    """BR-20: while a slow embedder works, others write and read."""
    path = tmp_path / "desk.db"
    embedding, go_on = threading.Event(), threading.Event()

    def slow(texts: Sequence[str]) -> np.ndarray:
        if any("slow" in text for text in texts):
            embedding.set()
            assert go_on.wait(20)
        return np.ones((len(texts), 2), dtype=np.float32)

    embedder = CallableEmbedder(slow, name="x", dimension=2)
    with open_desk(path, embedder=embedder) as desk:
        thread = threading.Thread(target=desk.update_document, args=(make_source("slow text", doc_id="slow-v1"),))
        thread.start()
        assert embedding.wait(20)
        desk.update_document(make_source("quick text", doc_id="quick-v1"))
        assert found(desk, "text", mode="keyword") == ["quick-v1:c0"]
        go_on.set()
        thread.join()
        assert len(found(desk, "text", mode="keyword")) == 2


def _update_many(path: str, name: str, count: int) -> None:
    with Desk.open(path, embedder="none") as desk:
        for n in range(count):
            desk.documents()
            desk.update_document(make_source(f"Text {n} of {name}.", doc_id=f"{name}-v1"))


def test_two_processes_update_one_file(tmp_path: Path) -> None:
    """BR-19: both read first and write later, fifty times each; both finish and nothing is lost."""
    path = str(tmp_path / "desk.db")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_update_many, args=(path, name, 50)) for name in ("left", "right")]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    with open_desk(path, clock=Clock(datetime.now(UTC))) as desk:
        assert sorted(desk.chunk(f"{name}-v1:c0").text for name in ("left", "right")) == [
            "Text 49 of left.",
            "Text 49 of right.",
        ]
        assert desk.check().ok


def test_without_its_embedder_a_desk_refuses_new_text_and_searches_by_keyword(tmp_path: Path) -> None:
    """Never a silent gap: what is ingested has vectors or is refused."""
    write_source(tmp_path, "a.md", doc_id="a-v1")
    host = CallableEmbedder(lambda texts: np.ones((len(texts), 2), dtype=np.float32), name="hosts", dimension=2)
    with open_desk(tmp_path / "desk.db", [make_source()], embedder=host):
        pass
    for embedder in ("auto", "none"):
        with open_desk(tmp_path / "desk.db", embedder=embedder) as desk:
            for action in (lambda d=desk: d.ingest(tmp_path), lambda d=desk: d.update_document(tmp_path / "a.md")):
                with pytest.raises(EmbedderUnavailable, match=r"hosts.*mode=\"keyword\""):
                    action()
            with pytest.raises(EmbedderUnavailable):
                desk.search("bikes")
            assert found(desk, "bikes", mode="keyword") == ["shop-v1:c0"]


def test_another_chunk_size_is_noticed(tmp_path: Path) -> None:
    """BR-72: a change of settings is refused with both values, never mixed."""
    with open_desk(tmp_path / "desk.db", [make_source()], chunk_chars=200):
        pass
    with (
        pytest.raises(SettingsMismatch, match="chunk_chars 200, not 300"),
        open_desk(tmp_path / "desk.db", chunk_chars=300),
    ):
        pass
    with open_desk(tmp_path / "desk.db", chunk_chars=200) as desk:
        long = make_source("A sentence of some length stands here. " * 30)
        desk.update_document(long)
        assert max(len(chunk.text) for chunk in desk.document("shop-v1").chunks) <= 200


def test_other_text_analysis_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_desk(tmp_path / "desk.db", [make_source()]):
        pass
    monkeypatch.setattr("evidencedesk.desk.TEXT_VERSION", "999")
    with pytest.raises(SettingsMismatch, match="text analysis 1, not 999"), open_desk(tmp_path / "desk.db"):
        pass


@pytest.mark.parametrize(
    ("source", "error"), [("---\nlang: !!\n---\nx\n", FrontMatterError), ("---\ndoc_id: a-v1\n---\n", NoContentError)]
)
def test_an_update_from_a_bad_file_names_it(tmp_path: Path, source: str, error: type[Exception]) -> None:
    (tmp_path / "bad.md").write_text(source)
    with open_desk() as desk, pytest.raises(error, match=r"bad\.md"):
        desk.update_document(tmp_path / "bad.md")


def test_a_document_without_language_date_or_family_is_stored_and_found(tmp_path: Path) -> None:
    """BR-13: lang is `und`, never NULL, and can be filtered on."""
    (tmp_path / "notes.txt").write_text("Just a bike note.\n")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        assert found(desk, "bike", lang="und", family="notes") == ["notes-v1:c0"]


def test_both_spellings_of_a_letter_are_one_document(tmp_path: Path) -> None:
    """BR-49: U+09DF against U+09AF U+09BC, in doc_ids and in look-ups."""
    with open_desk() as desk:
        assert desk.update_document(make_source(doc_id="নিয়ম-v1", lang="bn")).action == "added"
        assert desk.update_document(make_source("Other.", doc_id="নিয়ম-v1", lang="bn")).action == "updated"
        assert desk.document("নিয়ম-v1") == desk.document("নিয়ম-v1")


def test_a_correction_keeps_when_the_document_came_in() -> None:
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    with open_desk(sources=[make_source("First.")], clock=clock) as desk:
        clock.advance(days=10)
        desk.update_document(make_source("Corrected."))
        (document,) = desk.history("shop")
        assert document.valid_from == datetime(2026, 1, 1, tzinfo=UTC)
        assert [hit.chunk.text for hit in desk.search("corrected", as_of="2026-01-02")] == ["Corrected."]


def test_a_document_that_changes_language_leaves_its_old_line() -> None:
    with open_desk(sources=[make_source("One.", doc_id="a-v1"), make_source("Two.", doc_id="a-v2")]) as desk:
        desk.update_document(make_source("Two.", doc_id="a-v2", lang="de"))
        assert {(d.doc_id, d.lang, d.status) for d in desk.documents()} == {
            ("a-v1", "en", "current"),
            ("a-v2", "de", "current"),
        }
        assert desk.check().ok


def test_the_shipped_corpus_embeds_each_of_its_texts_once() -> None:
    """36 chunks with 36 different indexed texts: 36 embedded first, none then; two questions, two."""
    corpus = Path(__file__).parent.parent / "corpus"
    embedder = counting(ToyEmbedder())
    with open_desk(embedder=embedder) as desk:
        first = desk.ingest(corpus)
        assert (first.embedded, embedder.documents, first.failed, first.notes) == (36, 36, (), ())
        assert first.superseded == ("kc-returns-v2",)
        assert desk.ingest(corpus).embedded == 0
        desk.search("How long do I have to return a bike?")
        desk.search("RD2-24")
        assert (embedder.documents, embedder.queries) == (36, 2)


def test_a_file_that_changes_while_it_is_read_is_left_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_source(tmp_path, "a.md", "Before.", doc_id="a-v1")
    from evidencedesk.index import folder

    real = folder.read_document
    looks = []

    def changing(root: Path, path: str) -> object:
        looks.append(path)
        if len(looks) == 2:
            write_source(tmp_path, "a.md", "Meanwhile.", doc_id="a-v1")
        return real(root, path)

    monkeypatch.setattr(folder, "read_document", changing)
    with open_desk() as desk:
        (failed,) = desk.ingest(tmp_path).failed
        assert "changed while it was read" in failed.error
        assert desk.ingest(tmp_path).added == ("a-v1",)


def test_a_copy_of_the_folder_elsewhere_is_the_same_root(tmp_path: Path) -> None:
    write_source(tmp_path / "x" / "docs", "a.md", doc_id="a-v1")
    shutil.copytree(tmp_path / "x" / "docs", tmp_path / "y" / "docs")
    with open_desk() as desk:
        desk.ingest(tmp_path / "x" / "docs")
        assert desk.ingest(tmp_path / "y" / "docs").unchanged == ("a-v1",)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with open_desk() as desk, pytest.raises(FileNotFoundError, match="nowhere"):
        desk.ingest(tmp_path / "nowhere")


def test_readers_see_the_old_or_the_new_text_while_it_is_replaced(tmp_path: Path) -> None:
    """BR-20: never both, never neither."""
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source("Bikes, text 0.")]) as desk:
        stop = threading.Event()
        seen: list[list[str]] = []

        def read() -> None:
            while not stop.is_set():
                seen.append([hit.chunk.doc_id for hit in desk.search("bikes", mode="keyword")])
                time.sleep(0.001)

        reader = threading.Thread(target=read)
        reader.start()
        for number in range(2, 22):
            desk.update_document(make_source(f"Bikes, text {number}.", doc_id=f"shop-v{number}"))
        stop.set()
        reader.join()
    assert seen
    assert all(len(hits) == 1 for hits in seen)


def test_what_cannot_be_looked_at_is_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without rights, or a file that became a link, says nothing about its documents."""
    from evidencedesk.index import folder

    write_source(tmp_path, "sub/a.md", doc_id="a-v1")
    write_source(tmp_path, "b.md", doc_id="b-v1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        unread = [Skipped("sub", "cannot be read: Permission denied"), Skipped("b.md", "a symbolic link")]
        monkeypatch.setattr(folder, "find_sources", lambda _root: ([], unread))
        assert desk.ingest(tmp_path).missing == ()
        monkeypatch.setattr(folder, "find_sources", lambda _root: ([], []))
        assert desk.ingest(tmp_path).missing == ("a-v1", "b-v1")


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_ingest_of_an_unchanged_folder_applies_what_has_come_due(tmp_path: Path, dry_run: bool) -> None:
    clock = Clock(datetime(2026, 1, 1, tzinfo=UTC))
    write_source(tmp_path, "1.md", "Old.", doc_id="rule-v1", effective_from="2025-01-01")
    write_source(tmp_path, "2.md", "New.", doc_id="rule-v2", effective_from="2026-02-01")
    with open_desk(clock=clock) as desk:
        desk.ingest(tmp_path)
        clock.advance(days=60)
        report = desk.ingest(tmp_path, dry_run=dry_run)
        assert (report.unchanged, report.superseded) == (("rule-v1", "rule-v2"), ("rule-v1",))
        with desk.engine.connect() as sql:
            statuses = [row[0] for row in sql.exec_driver_sql("SELECT status FROM documents ORDER BY doc_id")]
        assert statuses == (["current", "scheduled"] if dry_run else ["superseded", "current"])


def test_what_cannot_be_stored_is_not_embedded(tmp_path: Path) -> None:
    """A conflict is found before the embedder is asked, on every run."""
    write_source(tmp_path, "a.md", "Some text.", doc_id="rule-bn-v1", lang="bn")
    embedder = counting(ToyEmbedder())
    with open_desk(sources=[make_source(doc_id="rule-v1-bn", lang="bn")], embedder=embedder) as desk:
        for _ in range(2):
            report = desk.ingest(tmp_path)
            assert ([failed.path for failed in report.failed], report.embedded) == (["a.md"], 0)
        assert embedder.documents == 1


def test_one_file_says_nothing_about_the_others_of_its_folder(tmp_path: Path) -> None:
    write_source(tmp_path, "a.md", doc_id="a-v1")
    write_source(tmp_path, "b.md", doc_id="b-v1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        report = desk.ingest(tmp_path / "a.md")
        assert (report.unchanged, report.missing) == (("a-v1",), ())


def test_a_renamed_file_that_is_refused_is_not_missing(tmp_path: Path) -> None:
    write_source(tmp_path, "a.md", "One.", doc_id="rule-v1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        (tmp_path / "a.md").rename(tmp_path / "renamed.md")
        write_source(tmp_path, "rival.md", "Two.", doc_id="rule-v1")
        report = desk.ingest(tmp_path)
        assert (len(report.failed), report.missing) == (2, ())


def test_an_update_does_not_give_a_nameless_file_a_second_name(tmp_path: Path) -> None:
    """Without a doc_id a file is named by its path in the folder, which a bare path does not say."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "plain.md").write_text("# Plain\n\nText.\n")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        with pytest.raises(UnreadableSource, match="may be sub/plain.md.*write a doc_id.*or ingest the folder"):
            desk.update_document(tmp_path / "sub" / "plain.md")
        (tmp_path / "other.md").write_text("# Other\n\nText.\n")
        assert desk.update_document(tmp_path / "other.md").doc_id == "other-v1"


def test_a_host_may_change_anything_of_a_parsed_document() -> None:
    """Not only the text counts: title, dates and metadata are stored too."""
    source = make_source()
    with open_desk(sources=[source]) as desk:
        for change in (
            {"title": "New"},
            {"effective_to": datetime(2027, 1, 1, tzinfo=UTC)},
            {"metadata": {"owner": "x"}},
        ):
            source = replace(source, **change)
            assert desk.update_document(source).action == "updated"
            assert desk.update_document(source).action == "unchanged"
        assert desk.document("shop-v1").title == "New"
        assert desk.check().ok


def test_without_its_endpoint_a_run_ends_at_once(tmp_path: Path) -> None:
    """What is wrong with the embedder is no file's fault, and no other file would do better."""
    for n in range(5):
        write_source(tmp_path, f"{n}.md", f"Text {n}.", doc_id=f"d{n}-v1")
    calls = []

    def embed(texts: Sequence[str]) -> np.ndarray:
        calls.append(texts)
        raise EmbedderUnavailable(embedder="x", problem="nobody answers")

    with open_desk(embedder=CallableEmbedder(embed, name="x", dimension=2)) as desk:
        with pytest.raises(EmbedderUnavailable, match="nobody answers"):
            desk.ingest(tmp_path)
    assert len(calls) == 1


def test_a_rehearsal_holds_no_lock_and_needs_no_right_to_write(tmp_path: Path) -> None:
    write_source(tmp_path / "docs", "a.md", doc_id="a-v1")
    with open_desk(tmp_path / "desk.db", [make_source()]):
        pass
    with open_desk(tmp_path / "desk.db", read_only=True) as reader, open_desk(tmp_path / "desk.db") as writer:

        def write_meanwhile(_progress: IngestProgress) -> None:
            writer.update_document(make_source("Meanwhile.", doc_id="other-v1"))

        assert reader.ingest(tmp_path / "docs", dry_run=True, progress=write_meanwhile).added == ("a-v1",)
        assert [d.doc_id for d in writer.documents()] == ["other-v1", "shop-v1"]


def test_an_embedder_that_cannot_say_who_it_is_leaves_no_file_behind(tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError)):
        Desk.open(tmp_path / "desk.db", embedder=CallableEmbedder(len, name="", dimension=2))
    assert list(tmp_path.iterdir()) == []


def test_two_folders_that_claim_one_doc_id_do_not_destroy_each_other(tmp_path: Path) -> None:
    """Within one run and across runs; the way out is in the message."""
    for folder, text in (("one", "Red."), ("two", "Green.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "b.md").write_text(text)
    with open_desk() as desk:
        desk.ingest(tmp_path / "one")
        (failed,) = desk.ingest(tmp_path / "two").failed
        assert "b.md of the folder one" in failed.error
        assert desk.chunk("b-v1:c0").text == "Red."
        assert desk.ingest(tmp_path / "two", root="one").updated == ("b-v1",)


def test_an_update_never_writes_over_another_nameless_file(tmp_path: Path) -> None:
    write_source(tmp_path, "a.md", "Red.", doc_id=None, title=None, lang=None)
    write_source(tmp_path, "sub/a.md", "Green.", doc_id=None, title=None, lang=None)
    with open_desk() as desk:
        desk.ingest(tmp_path)
        with pytest.raises(UnreadableSource, match="write a doc_id"):
            desk.update_document(tmp_path / "sub" / "a.md")
        assert [desk.chunk(name).text for name in ("a-v1:c0", "sub/a-v1:c0")] == ["Red.", "Green."]


def test_a_scheduled_version_that_was_taken_back_in_its_file_is_missing(tmp_path: Path) -> None:
    write_source(tmp_path, "p.md", "Now.", doc_id="p", version="1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        write_source(tmp_path, "p.md", "Soon.", doc_id="p", version="2", effective_from="2026-09-01")
        assert desk.ingest(tmp_path).missing == ("p-v1",)
        write_source(tmp_path, "p.md", "Now.", doc_id="p", version="1")
        assert desk.ingest(tmp_path).missing == ("p-v2",)


def test_an_embedder_that_changes_under_an_open_desk_is_refused() -> None:
    embedder = CallableEmbedder(lambda texts: np.ones((len(texts), 2), dtype=np.float32), name="x", dimension=2)
    with open_desk(sources=[make_source()], embedder=embedder) as desk:
        embedder.fingerprint = "changed"
        with pytest.raises(EmbedderMismatch):
            desk.update_document(make_source("New text."))
        assert desk.check().ok


def test_a_clock_that_steps_back_undoes_nothing() -> None:
    """NTP, or two hosts: what came in is in, corrections included."""
    clock = Clock()
    with open_desk(sources=[make_source("First."), make_source("Second.", doc_id="shop-v2")], clock=clock) as desk:
        clock.advance(seconds=-5)
        desk.update_document(make_source("Corrected.", doc_id="shop-v2"))
        assert [hit.chunk.text for hit in desk.search("first corrected")] == ["Corrected."]
        clock.advance(seconds=10)
        assert desk.check().ok


@pytest.mark.parametrize(
    "change",
    [
        {"doc_id": "plain"},
        {"doc_id": ""},
        {"family": ""},
        {"doc_id": "নিয়\u09bc-v1"},
        {"effective_from": MOMENT, "effective_to": MOMENT},
    ],
)
def test_a_document_that_no_file_could_give_is_refused(change: dict[str, object]) -> None:
    source = replace(make_source(), **change)
    with open_desk() as desk:
        if change.get("doc_id") == "নিয়\u09bc-v1":
            source = replace(source, doc_id="\u09df-v1")
        with pytest.raises(ValueError, match="doc_id|effective_to"):
            desk.update_document(source)
        with pytest.raises(NoContentError):
            desk.update_document(replace(make_source(), sections=()))
        assert desk.documents() == []


def test_files_of_another_kind_are_named(tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(b"%PDF")
    with open_desk() as desk:
        assert desk.ingest(tmp_path).skipped == (Skipped("scan.pdf", "not a Markdown or text file"),)


def test_a_folder_that_cannot_be_listed_says_nothing_about_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evidencedesk.index import folder

    write_source(tmp_path, "a.md", doc_id="a-v1")
    with open_desk() as desk:
        desk.ingest(tmp_path)
        monkeypatch.setattr(
            folder, "find_sources", lambda _root: ([], [Skipped(".", "cannot be read: Permission denied")])
        )
        assert desk.ingest(tmp_path).missing == ()


def test_texts_beyond_what_the_embedder_reads_are_noted(tmp_path: Path) -> None:
    write_source(tmp_path, "a.md", "Long text. " * 20, doc_id="a-v1")
    ones = lambda texts: np.ones((len(texts), 2), dtype=np.float32)  # noqa: E731
    short = CallableEmbedder(ones, name="short-sighted", dimension=2, max_chars=100)
    with open_desk(embedder=short) as desk:
        (note,) = desk.ingest(tmp_path).notes
        assert note == "a-v1: 1 of its texts are longer than short-sighted reads, and were cut by it"
        assert desk.ingest(tmp_path).notes == ()
