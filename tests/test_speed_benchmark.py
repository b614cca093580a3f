"""The speed benchmark: data that is the same each time, answers that are known, and tables of what was measured."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import growth
from benchmarks.speed import report
from benchmarks.speed.data import CHUNKS_IN_DOCUMENT, Data, VectorsOfTexts, acceptable, prepare, scopes, word
from benchmarks.speed.measure import Figures, NotInstalled, Sample, SystemFailed, SystemProcess, measure, noting
from benchmarks.speed.systems import SYSTEMS, reciprocal_rank_fusion

COUNT = 300


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return prepare(tmp_path_factory.mktemp("speed") / "data", COUNT, 2)


def make_figures(name: str = "evidencedesk", ms: float = 2.0, **given: object) -> Figures:
    samples = [Sample("keyword", kind, "", ms, ms, 10, 10) for kind in ("rare", "mixed", "frequent")]
    return Figures(name, **{"samples": samples, **given})


# ---------------------------------------------------------------- data


def test_the_data_is_the_same_each_time_and_other_data_is_never_taken_for_it(data: Data, tmp_path: Path) -> None:
    again = prepare(tmp_path / "data", COUNT, 2)
    for name in ("texts.txt", "vectors.npy", "documents.npy", "questions.json", "questions.npy", "truth.json"):
        assert (again.folder / name).read_bytes() == (data.folder / name).read_bytes(), name
    with pytest.raises(ValueError, match="give another folder"):
        prepare(tmp_path / "data", COUNT, 3)
    with pytest.raises(ValueError, match="at least 20 chunks"):
        prepare(tmp_path / "small", 19, 2)


def test_texts_vectors_and_documents_belong_together(data: Data) -> None:
    known = [chunk for batch in data.batches(size=70) for chunk in batch.with_chunks()]
    assert [row for _, row, _, _ in known] == list(range(COUNT))
    assert all(40 <= len(text.split()) <= 80 for _, _, text, _ in known)
    assert np.allclose([np.linalg.norm(vector) for _, _, _, vector in known], 1, atol=1e-5)
    embedder = VectorsOfTexts(data)
    backwards = known[::-1]
    made = embedder.embed_documents([text for _, _, text, _ in backwards])
    assert (made == np.stack([vector for _, _, _, vector in backwards])).all()
    with pytest.raises(KeyError, match="no vector was made"):
        embedder.embed_documents(["another text"])


def test_each_family_has_one_version_in_force_and_a_filter_keeps_some_of_them(data: Data) -> None:
    documents = [document for batch in data.batches() for document in batch.documents]
    current = [document.family for document in documents if document.is_current]
    assert sorted(current) == sorted({document.family for document in documents})
    kept = {lang: int(mask.sum()) for lang, mask in scopes(data).items()}
    assert kept == {"": CHUNKS_IN_DOCUMENT * len(current), "de": 10, "fr": 10}


def test_with_versions_each_family_has_as_many_and_the_last_is_in_force(tmp_path: Path) -> None:
    data = prepare(tmp_path, 100, 1, versions=5)
    documents = [document for batch in data.batches() for document in batch.documents]
    assert [(d.doc_id, d.is_current) for d in documents[:5]] == [
        ("text0000000-v1", False), ("text0000000-v2", False), ("text0000000-v3", False), ("text0000000-v4", False),
        ("text0000000-v5", True),
    ]  # fmt: skip
    assert data.past == "2020-01-03"


def test_an_update_supersedes_what_is_in_force_by_then(data: Data) -> None:
    first = data.change(0)
    turn = sum(d.is_current and d.lang == "en" for batch in data.batches() for d in batch.documents)
    second = data.change(turn)
    assert (second.former, second.document.family) == (first.document, first.document.family)
    assert (second.former_vectors == first.vectors).all()
    assert (first.former.version, first.document.version, second.document.version) == (2, 3, 4)
    assert first.document.first_row == COUNT
    assert (first.former_vectors == data.vectors.rows(first.former.first_row, CHUNKS_IN_DOCUMENT)).all()


def test_words_are_told_apart_and_have_no_ending() -> None:
    some = [word(rank) for rank in range(0, 500_000, 997)]
    assert len(set(some)) == len(some)
    assert {len(found) for found in some} == {4, 5}
    assert not set("aeious").intersection("".join(some))


def test_what_ties_with_the_tenth_is_right_too() -> None:
    best = [(2.0, row) for row in range(9)] + [(1.0, row) for row in range(9, 12)] + [(0.5, 12)]
    assert acceptable(best, available=40) == (list(range(12)), 10)
    assert acceptable([(2.0, 4)], available=1) == ([4], 1)
    assert acceptable([], available=0) == ([], 0)


# ---------------------------------------------------------------- measuring


def test_a_small_run_finds_everything_and_gives_each_table(data: Data, tmp_path: Path) -> None:
    """The keyword truth is a second, plain implementation of BM25, the vector truth a matrix product."""
    (figures,) = measure(data, ["evidencedesk"], tmp_path, build_threads=1, updates=2, cold_starts=1)
    assert figures.problem == ""
    for mode in ("keyword", "vector"):
        for lang in ("", "de", "fr"):
            found = [s for s in figures.samples if (s.mode, s.lang) == (mode, lang)]
            assert len(found) == (2 if lang else 6)
            assert [s.right for s in found] == [s.wanted for s in found]
    assert {s.wanted for s in figures.samples if s.mode == "vector"} == {10}
    assert [update["is_visible"] for update in figures.updates] == [True, True]
    assert len(figures.cold) == 1
    printed = "\n".join(report.show(data, [figures]))
    rows = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith("| evidencedesk")]
    assert [len(row) - 1 for row in rows] == [6, 6, 4, 7, 7, 6]
    assert [line.removeprefix("### ") for line in printed.splitlines() if line.startswith("### ")] == [
        "Keyword, ms", "Vector, ms", "Hybrid, ms", "Processor time of all threads, ms", "Ingest, size, memory",
        "Update of ten chunks, ms; cold process to first hybrid hit, s",
    ]  # fmt: skip
    assert json.loads(json.dumps(report.as_json(data.count, [figures])))["systems"][0]["name"] == "evidencedesk"


def test_a_system_that_is_not_installed_is_reported_and_stops_nothing(data: Data, tmp_path: Path) -> None:
    absent = [
        name for name, system in SYSTEMS.items()
        if any(importlib.util.find_spec(module.partition(".")[0]) is None for module in system.modules)
    ]  # fmt: skip
    if not absent:
        pytest.skip("every peer is installed")
    figures = Figures(absent[0])
    with noting(figures):
        SystemProcess("serve", absent[0], data, tmp_path)
    assert figures.is_missing
    printed = "\n".join(report.show(data, [make_figures(build={}), figures]))
    assert f"{absent[0]}: not measured, " in printed
    assert "is not installed" in printed


def test_a_system_that_fails_is_reported_with_its_last_words(data: Data, tmp_path: Path) -> None:
    figures = Figures("evidencedesk")
    with noting(figures):
        process = SystemProcess("serve", "evidencedesk", data, tmp_path)
        process.ask(do="dance")
    assert (figures.is_missing, "unknown request" in figures.problem) == (False, True)
    assert "evidencedesk: FAILED, " in "\n".join(report.show(data, [figures]))


def test_an_error_of_the_benchmark_itself_is_not_noted_away() -> None:
    with pytest.raises(ZeroDivisionError), noting(Figures("evidencedesk")):
        raise ZeroDivisionError
    for error in (NotInstalled("x"), SystemFailed("x")):
        figures = Figures("evidencedesk")
        with noting(figures):
            raise error
        assert figures.problem == "x"


# ---------------------------------------------------------------- figures


def test_a_peer_is_shown_beside_the_multiple_of_this_products_median() -> None:
    ours, other = make_figures(ms=2.0), make_figures("tantivy", ms=5.0)
    assert report.keyword_cells(ours, [ours, other]) == ["2.00 / 2.00"] * 3 + ["1.000", "-", "-"]
    assert report.keyword_cells(other, [ours, other]) == ["5.00 / 5.00 (2.5x)"] * 3 + ["1.000", "-", "-"]


def test_recall_is_over_questions_that_have_something_to_find() -> None:
    samples = [Sample("vector", "rare", "", 1, 1, right, wanted) for right, wanted in [(10, 10), (5, 10), (0, 0)]]
    assert report.recall(samples) == "0.750"
    assert report.recall([Sample("hybrid", "rare", "", 1, 1, None, 0)]) == "-"


def test_fusion_by_ranks_prefers_what_both_legs_found() -> None:
    assert reciprocal_rank_fusion([1, 2, 3], [3, 4]) == [3, 1, 2, 4]


def test_the_exponent_is_the_slope_between_logarithms() -> None:
    """By hand: 2 to 20 to 200 ms for ten times as many chunks each is in proportion, 3 to 3 to 3 no growth."""
    counts = [1_000, 10_000, 100_000]
    assert growth.exponent(counts, [2, 20, 200]) == pytest.approx(1)
    assert growth.exponent(counts, [3, 3, 3]) == pytest.approx(0)
    assert growth.exponent(counts, [1, 10**0.5, 10]) == pytest.approx(0.5)


def test_growth_shows_each_size_and_its_exponent(data: Data, tmp_path: Path) -> None:
    smaller = prepare(tmp_path, 30, 1)
    sizes = [
        growth.Growth(
            d, {"size_mb": d.count / 100, "chunks_a_second": 50.0}, resident_mb=70.0, updates=[(3.0, 1.0)] * 4
        )
        for d in (smaller, data)
    ]
    for size in sizes:
        size.size_after_mb = size.build["size_mb"]
        for spent in (size.before, size.after):
            spent.update({name: [(2.0, 1.0), (4.0, 3.0)] for name in growth.SEARCHES})
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in growth.show(sizes).splitlines()[2:]]
    assert rows[0] == ["p50 / p95 [processor]", "30 chunks", "300 chunks", "exponent"]
    assert ["hybrid, ms", "3.00 / 3.90 [2.00]", "3.00 / 3.90 [2.00]", "0.00"] in rows
    assert ["last 1 of 4 updates, ms", "3.00 / 3.00 [1.00]", "3.00 / 3.00 [1.00]", "0.00"] in rows
    assert ["file, MB", "0.3", "3.0", "1.00"] in rows
