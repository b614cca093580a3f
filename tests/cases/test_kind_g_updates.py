"""Kind G: updating, superseding, deleting. What no other test proves whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from builders import (
    Clock,
    Unplugged,
    after_writing_statement,
    found,
    make_source,
    markdown,
    open_desk,
    unplug,
    write_source,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from evidencedesk import Desk, IngestReport, ToyEmbedder, counting
from evidencedesk.records import SourceDocument

MODES = ("keyword", "vector", "hybrid")

# ---------------------------------------------------------------- BR-15, 72, 73, 75, 79: any succession of texts

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
successions = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=2, max_size=4
)  # fmt: skip


@settings(max_examples=12)
@given(successions)
def test_after_any_succession_of_texts_a_document_is_what_the_last_one_makes_it(texts: list[list[str]]) -> None:
    """BR-15, BR-72, BR-73, BR-75, BR-79: longer, shorter, one section less or turned round, equal; each text once."""
    embedder = counting(ToyEmbedder())
    seen: set[str] = set()
    with open_desk(embedder=embedder) as desk:
        for sections in texts:
            desk.update_document(with_sections(sections))
            seen.update(sections)
            assert embedder.documents == len(seen), "a text that was there before is not embedded again"
            assert [chunk.text for chunk in desk.document("shop-v1").chunks] == [
                f"Text of {word}." for word in sections
            ]
            for mode in MODES:
                hits = desk.search(" ".join(WORDS), mode=mode, k=100)
                assert sorted(hit.chunk.text for hit in hits) == sorted(f"Text of {word}." for word in sections)
            for word in set(WORDS) - set(sections):
                assert found(desk, word, mode="keyword") == []
        assert desk.check().ok


def with_sections(words: Sequence[str], doc_id: str = "shop-v1") -> SourceDocument:
    return make_source("\n\n".join(f"## Part\n\nText of {word}." for word in words), heading=None, doc_id=doc_id)


# ---------------------------------------------------------------- BR-77: nothing changed


class InBatches(ToyEmbedder):
    """Notes how many texts each call brought."""

    def __init__(self, batch_size: int) -> None:
        super().__init__(16)
        self.batch_size = batch_size
        self.calls: list[int] = []

    def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(len(texts))
        return super().embed_documents(texts)


@pytest.mark.parametrize("batch_size", [1, 100, 1000])
def test_a_second_run_calls_no_embedder_and_writes_nothing_whatever_the_batch(tmp_path: Path, batch_size: int) -> None:
    """BR-77: a document of more chunks than a batch holds, and many small ones; their times of change are others."""
    embedder = InBatches(batch_size)
    body = "\n\n".join(f"## Part {n}\n\nText number {n}." for n in range(250))
    write_source(tmp_path / "texts", "long.md", body, heading=None, doc_id="long-v1")
    for n in range(30):
        write_source(tmp_path / "texts", f"{n}.md", f"Short text {n}.", doc_id=f"short-{n}-v1")
    with open_desk(tmp_path / "desk.db", embedder=embedder) as desk:
        first = desk.ingest(tmp_path / "texts")
        assert (len(first.added), first.embedded, sum(embedder.calls)) == (31, 280, 280)
        assert max(embedder.calls) <= batch_size
        embedder.calls.clear()
        for file in (tmp_path / "texts").iterdir():
            os.utime(file, (1, 1))
        with after_writing_statement(0, unplug) as statements:
            assert desk.ingest(tmp_path / "texts") == IngestReport(unchanged=first.added)
        assert (embedder.calls, statements) == ([], [])


# ---------------------------------------------------------------- BR-80: one content, several documents

SAME = "Bikes are red."


def test_equal_contents_are_documents_of_their_own_and_each_follows_its_own_file(tmp_path: Path) -> None:
    """BR-80: one of two is changed, deleted, renamed; the same body in two families; a return to a former text."""
    for name in "xy":
        (tmp_path / f"{name}.md").write_text(SAME)
    with open_desk(embedder="toy") as desk:
        assert (desk.ingest(tmp_path).added, desk.ingest(tmp_path).unchanged) == (("x-v1", "y-v1"), ("x-v1", "y-v1"))
        for mode in MODES:
            assert sorted(found(desk, "bikes", mode=mode)) == ["x-v1:c0", "y-v1:c0"]
        (tmp_path / "y.md").write_text("Helmets are blue.")
        assert desk.ingest(tmp_path).updated == ("y-v1",)
        assert found(desk, "bikes", mode="keyword") == ["x-v1:c0"]
        (tmp_path / "y.md").write_text(SAME)
        assert desk.ingest(tmp_path).embedded == 0, "the text is known"
        (tmp_path / "x.md").unlink()
        assert desk.ingest(tmp_path, prune=True, prune_limit=1).withdrawn == ("x-v1",)
        assert found(desk, "bikes", mode="keyword") == ["y-v1:c0"]
        (tmp_path / "y.md").rename(tmp_path / "x.md")
        report = desk.ingest(tmp_path, prune=True, prune_limit=1)
        assert (report.updated, report.withdrawn) == (("x-v1",), ("y-v1",))
        assert found(desk, "bikes", mode="keyword") == ["x-v1:c0"]
        assert desk.check().ok


@pytest.mark.parametrize("embedder", ["toy", "none"])
def test_a_return_to_a_former_text_is_a_new_version_in_force(embedder: str) -> None:
    """BR-80: equal to a superseded version, which is neither revived nor in the way; the same body in two families."""
    texts = [SAME, "Bikes are blue.", SAME]
    sources = [
        make_source(text, doc_id=f"{family}-v{n}") for family in ("shop", "branch") for n, text in enumerate(texts, 1)
    ]
    with open_desk(sources=sources, embedder=embedder) as desk:
        assert [d.doc_id for d in desk.documents(status="current")] == ["branch-v3", "shop-v3"]
        assert sorted(found(desk, "red bikes", mode="keyword")) == ["branch-v3:c0", "shop-v3:c0"]
        assert [d.status for d in desk.history("shop")] == ["superseded", "superseded", "current"]
        assert desk.check().ok


# ---------------------------------------------------------------- BR-81: files that move

NAMES = ["a.md", "b.md", "c.md", "A.md", "sub/a.md", "sub/deep/b.md"]
layouts = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=5),
    min_size=2, max_size=3,
)  # fmt: skip


@settings(max_examples=12)
@given(layouts)
def test_whatever_moved_a_pruned_run_leaves_what_a_first_run_over_the_folder_gives(
    tmp_path_factory: pytest.TempPathFactory, layouts: list[dict[str, tuple[int, bool]]]
) -> None:
    """BR-81: deleted, renamed, moved to a subfolder, swapped, in another case; with a doc_id in the file and without."""
    place = tmp_path_factory.mktemp("moving")
    with open_desk() as desk:
        for layout in layouts:
            lay_out(place / "texts", layout)
            before = desk.documents(status="current")
            report = desk.ingest(place / "texts")
            assert report.withdrawn == (), "a file that is gone is reported, and its text stays until it is pruned"
            in_files = {*report.added, *report.updated, *report.unchanged}
            assert set(report.missing) == {d.doc_id for d in before} - in_files
            desk.ingest(place / "texts", prune=True, prune_limit=1)
            with open_desk() as fresh:
                fresh.ingest(place / "texts")
                assert in_force(desk) == in_force(fresh)
            assert desk.check().ok


def lay_out(folder: Path, layout: dict[str, tuple[int, bool]]) -> None:
    """Texts under these names; where a doc_id is asked for the text brings it, and only the first file of it does."""
    shutil.rmtree(folder, ignore_errors=True)
    named: set[int] = set()
    for name, (number, wants_doc_id) in layout.items():
        has_doc_id = wants_doc_id and number not in named
        named.add(number)
        doc_id = f"text{number}-v1" if has_doc_id else None
        write_source(folder, name, f"Text number {number}.", doc_id=doc_id, lang="en")


def in_force(desk: Desk) -> set[tuple[str, str, str]]:
    return {
        (chunk.id, chunk.text, chunk.location.path)
        for document in desk.documents(status="current")
        for chunk in desk.document(document.doc_id).chunks
    }


# ---------------------------------------------------------------- BR-83: a write that stops half way


def write_versions(folder: Path, *, newer: bool) -> None:
    write_source(folder, "shop.md", "Bikes are red.\n\n## More\n\nBells are loud.", doc_id="shop-v1")
    write_source(folder, "care.md", "Oil the chain." if not newer else "Grease the chain.", doc_id="care-v1")
    if newer:
        write_source(folder, "shop2.md", "Bikes are blue.", doc_id="shop-v2")


def state_of(desk: Desk) -> tuple[object, ...]:
    return desk.documents(), in_force(desk), [(hit.chunk.id, hit.score) for hit in desk.search("bikes chain", k=20)]


def test_an_ingest_that_stops_after_any_statement_left_whole_documents_and_is_completed_by_the_next(
    tmp_path: Path,
) -> None:
    """BR-83: a correction and a new version, stopped at every statement; each document is the old one or the new one."""
    write_versions(tmp_path / "old", newer=False)
    write_versions(tmp_path / "new", newer=True)
    with open_desk(tmp_path / "base.db", embedder="toy") as desk:
        desk.ingest(tmp_path / "old", root="texts")
    shutil.copy(tmp_path / "base.db", tmp_path / "whole.db")
    with open_desk(tmp_path / "whole.db", embedder="toy") as desk, after_writing_statement(0, unplug) as statements:
        desk.ingest(tmp_path / "new", root="texts")
        wanted = state_of(desk)
    assert len(statements) > 20
    for number in range(1, len(statements) + 1):
        stopped = tmp_path / f"{number}.db"
        shutil.copy(tmp_path / "base.db", stopped)
        with open_desk(stopped, embedder="toy") as desk:
            with after_writing_statement(number, unplug), pytest.raises(Unplugged):
                desk.ingest(tmp_path / "new", root="texts")
            assert desk.check().ok
            (care,) = [chunk.text for chunk in desk.document("care-v1").chunks]
            assert care in ("Oil the chain.", "Grease the chain.")
            (bikes,) = found(desk, "bikes", mode="keyword")
            assert bikes in ("shop-v1:c0", "shop-v2:c0")
            desk.ingest(tmp_path / "new", root="texts")
            assert state_of(desk) == wanted, f"after statement {number}: {statements[number - 1]}"
        stopped.unlink()


# ---------------------------------------------------------------- BR-86: any order

VERSIONS = ["1", "1.9", "1.10", "2", "v3", "2023-12", "2024-01", "10"]
DAYS = [None, "2025-01-01", "2025-06-01", "2026-01-01", "2027-01-01"]
lines = st.lists(
    st.tuples(st.sampled_from(VERSIONS), st.sampled_from(DAYS), st.sampled_from([None, "2026-03-01", "2028-01-01"])),
    min_size=2, max_size=5, unique_by=lambda drawn: drawn[0],
).filter(lambda drawn: all(start is None or end is None or start < end for _, start, end in drawn))  # fmt: skip


@settings(max_examples=8)
@given(lines, st.randoms(use_true_random=False))
def test_whatever_versions_and_dates_their_order_of_arrival_decides_nothing(
    drawn: list[tuple[str, str | None, str | None]], rng: object
) -> None:
    """BR-86: 1.9 and 1.10, months, lower after higher, dated and not; today, in a year, and as of days before."""
    orders = [drawn, drawn[::-1], sorted(drawn, key=lambda _: rng.random())]  # type: ignore[attr-defined]
    states = []
    for order in orders:
        clock = Clock()
        sources = [
            make_source(
                f"Bikes of version {version}.", doc_id="shop", version=version, effective_from=start, effective_to=end
            )
            for version, start, end in order
        ]
        with open_desk(sources=sources, clock=clock) as desk:
            assert len(desk.documents(status="current")) <= 1
            state = [desk.documents(), *(found(desk, "bikes", as_of=day) for day in DAYS)]
            clock.advance(days=400)
            desk.promote()
            assert len(desk.documents(status="current")) <= 1
            states.append([*state, desk.documents(), found(desk, "bikes")])
            assert desk.check().ok
    assert states[0] == states[1] == states[2]


def test_the_database_itself_refuses_a_second_current_version() -> None:
    """BR-86: whoever writes past the product."""
    with open_desk(sources=[make_source(), make_source("Bikes are blue.", doc_id="shop-v2")]) as desk:
        with desk.engine.connect() as sql, pytest.raises(Exception, match="UNIQUE constraint failed: documents.family"):
            sql.exec_driver_sql("UPDATE documents SET status = 'current'")


# ---------------------------------------------------------------- BR-88: alike, and all there


@pytest.mark.parametrize("embedder", ["toy", "none"])
def test_texts_and_names_that_are_alike_are_all_stored_and_each_found_at_its_place(
    tmp_path: Path, embedder: str
) -> None:
    """BR-88: names that differ in case, a slash or a dot at the end; one paragraph five times in each of them."""
    names = ["rules", "Rules", "rules/", "rules.", "RULES"]
    for number, name in enumerate(names):
        (tmp_path / f"{number}.md").write_text(
            markdown("## Part\n\nBikes are red.\n\n" * 5, heading=None, doc_id=f'"{name}"')
        )
    with open_desk(embedder=embedder) as desk:
        report = desk.ingest(tmp_path)
        assert set(report.added) == {f"{name}-v1" for name in names}
        assert report.embedded == (1 if embedder == "toy" else 0)
        hits = desk.search("bikes", k=100)
        assert {hit.chunk.id for hit in hits} == {f"{name}-v1:c{n}" for name in names for n in range(5)}
        assert len({(hit.chunk.location.path, hit.chunk.location.line_start) for hit in hits}) == 25
        for name in names:
            assert desk.document(f"{name}-v1").doc_id == f"{name}-v1"
