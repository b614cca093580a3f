"""Packed postings: fast, and to the last digit what a plain count over all chunks gives, whatever has happened to the file."""

from __future__ import annotations

import functools
import math
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from builders import Clock, make_source, open_desk
from hypothesis import given, settings
from hypothesis import strategies as st

from evidencedesk import BM25, Desk, bm25
from evidencedesk.bm25 import lists, memory, packing, ranking, segments, state, writing
from evidencedesk.bm25.packing import DamagedPostings, PostingArrays
from evidencedesk.store import Scope, Snapshot
from evidencedesk.text import tokens

WORDS = ["red", "blue", "bike", "bell", "helmet", "RD2-24", "বাইক", "৩০", "spoke", "chain", "saddle", "tyre"]
QUERIES = [
    "red",
    "bike bell",
    "red blue bike bell helmet",
    "RD2-24 spoke",
    "বাইক ৩০ red",
    "chain nowhere",
    "nowhere",
    "saddle tyre chain spoke",
]


@pytest.fixture(autouse=True)
def small_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folding, merging and reclaiming happen with a handful of chunks."""
    monkeypatch.setattr(segments, "DELTA_CHUNKS", 6)
    monkeypatch.setattr(segments, "FOLD_CHUNKS", 16)
    for module in (segments, writing):
        monkeypatch.setattr(module, "SEGMENT_CHUNKS", 40)
    monkeypatch.setattr(writing, "_REBUILD_BATCH", 8)
    monkeypatch.setattr(ranking, "_SAMPLE", 4)


@functools.cache
def terms_of(text: str) -> tuple[str, ...]:
    return tuple(tokens(text))


# ---------------------------------------------------------------- the reference: every chunk, read from its text


def reference(snapshot: Snapshot, terms: Sequence[str], scope: Scope) -> dict[int, tuple[str, float]]:
    """(chunk id, score) of every chunk in scope that scores above 0, by key: one loop over the texts, one formula."""
    query = (
        "SELECT c.chunk_key, d.doc_id || ':c' || c.ordinal, c.preamble, c.text, d.lang, d.family, d.status, d.valid_from, "
        "d.valid_to FROM chunks c JOIN documents d USING (doc_key)"
    )
    at = (
        None if scope.as_of is None else scope.as_of.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    )
    counted: dict[int, tuple[str, tuple[str, ...], bool]] = {}
    for key, name, preamble, text, lang, family, status, valid_from, valid_to in snapshot.connection.exec_driver_sql(
        query
    ):
        in_force = status == "current" if at is None else valid_from <= at and (valid_to is None or valid_to > at)
        if in_force:
            passes = scope.family in (None, family) and (scope.lang is None or lang.split("-")[0] == scope.lang)
            counted[key] = (name, terms_of(f"{preamble}\n{text}" if preamble else text), passes)
    if not counted:
        return {}
    average = sum(len(found) for _, found, _ in counted.values()) / len(counted)
    scores = {key: 0.0 for key, (_, _, passes) in counted.items() if passes}
    for term in sorted(set(terms)):
        n = sum(term in found for _, found, _ in counted.values())
        idf = math.log(1 + (len(counted) - n + 0.5) / (n + 0.5))
        for key in scores:
            _, found, _ = counted[key]
            if tf := found.count(term):
                norm = bm25.K1 * (1 - bm25.B + bm25.B * np.int64(len(found)) / average)
                scores[key] += float(idf * np.int64(tf) / (np.int64(tf) + norm))
    return {key: (counted[key][0], score) for key, score in scores.items() if score > 0}


def assert_exact(snapshot: Snapshot, terms: Sequence[str], scope: Scope) -> None:
    expected = reference(snapshot, terms, scope)
    ranked = sorted(
        ((key, score) for key, (_, score) in expected.items()), key=lambda pair: (-pair[1], expected[pair[0]][0])
    )
    for depth in (1, 3, 10, 10**9):
        assert bm25.best(snapshot, terms, scope, depth) == ranked[:depth]
    every = [row[0] for row in snapshot.connection.exec_driver_sql("SELECT chunk_key FROM chunks")]
    scores = bm25.scores_of(snapshot, terms, scope, [*every, 10**9])
    assert scores.total() == dict(ranked)
    some = set(sorted(set(terms))[::2])
    assert scores.total(some).keys() <= scores.total().keys()
    assert scores.idf_shares().keys() == dict(ranked).keys()


def scopes(today: Scope) -> Iterator[Scope]:
    for as_of in (
        today.as_of,
        datetime(2024, 6, 1, tzinfo=UTC),
        datetime(2025, 6, 1, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
    ):
        yield Scope(as_of)
        yield Scope(as_of, lang="bn")
        yield Scope(as_of, family="text-1")
        yield Scope(as_of, lang="en", family="text-2")


def assert_sound(desk: Desk, queries: Sequence[str] = QUERIES) -> None:
    with desk.store.read() as snapshot:
        for query in queries:
            for scope in scopes(snapshot.scope()):
                assert_exact(snapshot, tokens(query), scope)
        kept = bm25.kept_statistics(snapshot.connection)
        assert kept == bm25.rebuilt_statistics(snapshot.connection)
    assert desk.check().problems == ()


def random_source(rng: random.Random) -> object:
    parts = [
        f"## Part {n}\n\n" + " ".join(rng.choices(WORDS, weights=range(12, 0, -1), k=rng.randint(1, 30)))
        for n in range(rng.randint(1, 4))
    ]
    number, version = rng.randint(1, 6), rng.randint(1, 4)
    lang = rng.choice(["en", "en-GB", "bn"])
    start = f"{2022 + version}-01-01" if rng.random() < 0.7 else None
    return make_source(
        "\n\n".join(parts), heading=None, doc_id=f"text-{number}", version=version, lang=lang, effective_from=start
    )


@pytest.mark.parametrize("seed", range(4))
def test_every_search_equals_a_count_over_all_texts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """BR-35: updates, corrections, supersessions, withdrawals, time, folds and a compaction; as of days; filters; ties."""
    rng, clock = random.Random(seed), Clock(datetime(2026, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(state, "_FEW_DOCUMENTS", seed % 2 * 3)
    with open_desk(clock=clock) as desk:
        for step in range(50):
            desk.update_document(random_source(rng))
            clock.advance(days=rng.randint(0, 3))
            if step % 9 == 8:
                found = rng.choice(desk.documents())
                desk.withdraw(found.doc_id, reason="by the regulator")
            if step == 40:
                desk.compact()
            if step % 8 == 7:
                assert_sound(desk, rng.sample(QUERIES, 3))
        with desk.store.read() as snapshot:
            several = segments.segments(snapshot.connection)
            assert len(several) > 1
            assert all(segment.chunk_count <= 40 for segment in several)
        assert_sound(desk)
        desk.compact()
        assert_sound(desk)


def test_what_is_not_written_yet_is_found_inside_its_own_transaction_only(tmp_path: Path) -> None:
    """A transaction is a snapshot of its own changes; nothing of it is kept when it fails."""
    rng = random.Random(3)
    with open_desk(tmp_path / "desk.db", [random_source(rng) for _ in range(12)]) as desk:
        with desk.store.read() as snapshot:
            before = bm25.best(snapshot, ["red"], Scope(), 100)
        with pytest.raises(RuntimeError, match="stop"), desk.store.write("testing") as transaction:  # noqa: PT012
            for name in [d.doc_id for d in desk.documents(status="current")]:
                found = transaction.stored(name)
                bm25.leave_force(transaction.connection, found.doc_key)
                transaction.withdraw(found.doc_key, "testing", pruned=False)
                for query in QUERIES:
                    assert_exact(transaction, tokens(query), Scope())
                with desk.store.read() as snapshot:
                    assert bm25.best(snapshot, ["red"], Scope(), 100) == before
            assert bm25.best(transaction, ["red"], Scope(), 100) == []
            raise RuntimeError("stop")
        with desk.store.read() as snapshot:
            assert bm25.best(snapshot, ["red"], Scope(), 100) == before
        assert_sound(desk)


def test_a_search_sees_its_own_snapshot_while_threads_write(tmp_path: Path) -> None:
    """BR-20 and BR-23: eight readers, one writer; every search is exact for the state that it reads."""
    rng = random.Random(5)
    problems: list[BaseException] = []
    done = threading.Event()
    with open_desk(tmp_path / "desk.db", [random_source(rng) for _ in range(10)]) as desk:

        def read(seed: int) -> None:
            own = random.Random(seed)
            try:
                while not done.is_set():
                    with desk.store.read() as snapshot:
                        for _ in range(2):
                            assert_exact(snapshot, tokens(own.choice(QUERIES)), own.choice(list(scopes(Scope()))))
            except BaseException as error:  # noqa: BLE001 - the test's own thread reports it
                problems.append(error)

        readers = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
        for reader in readers:
            reader.start()
        for _ in range(25):
            desk.update_document(random_source(rng))
        done.set()
        for reader in readers:
            reader.join()
        assert problems == []
        assert_sound(desk)


WRITER = """
import random, sys
sys.path.insert(0, sys.argv[2])
from builders import *
from evidencedesk.bm25 import segments, writing
from test_bm25_packed import random_source
segments.DELTA_CHUNKS, segments.FOLD_CHUNKS, segments.SEGMENT_CHUNKS = 6, 16, 40
writing.SEGMENT_CHUNKS, writing._REBUILD_BATCH = 40, 8
rng = random.Random(int(sys.argv[3]))
with open_desk(sys.argv[1]) as desk:
    for n in range(15):
        desk.update_document(random_source(rng))
        if n % 7 == 6:
            desk.compact()
"""


def test_a_search_sees_its_own_snapshot_while_processes_write(tmp_path: Path) -> None:
    """BR-19 and BR-20: two other processes write, fold and compact."""
    path, tests = tmp_path / "desk.db", str(Path(__file__).parent)
    with open_desk(path, [random_source(random.Random(n)) for n in range(6)]) as desk:
        writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), tests, str(n)]) for n in (1, 2)]
        own = random.Random(9)
        while any(writer.poll() is None for writer in writers):
            with desk.store.read() as snapshot:
                for _ in range(2):
                    assert_exact(snapshot, tokens(own.choice(QUERIES)), own.choice(list(scopes(Scope()))))
        assert [writer.wait() for writer in writers] == [0, 0]
        assert_sound(desk)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_searches_with_a_memory_of_its_own(tmp_path: Path) -> None:
    """Also when another thread of the parent holds a lock in that moment."""
    with open_desk(tmp_path / "desk.db", [random_source(random.Random(n)) for n in range(8)]) as desk:
        assert_sound(desk, ["red"])
        with memory._lock:
            child = os.fork()
            if child == 0:
                try:
                    assert_sound(desk, ["red bike"])
                finally:
                    os._exit(0 if sys.exc_info()[0] is None else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_restored_file_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    """A rolled-back or restored state has a name of its own, so nothing that is kept answers for it."""
    with open_desk(tmp_path / "desk.db", [make_source("red bike", doc_id="a-v1")]) as desk:
        desk.backup(tmp_path / "copy.db")
        desk.update_document(make_source("blue bike", doc_id="a-v2"))
        assert BM25(desk).search("red") == []
    (tmp_path / "copy.db").replace(tmp_path / "desk.db")
    with open_desk(tmp_path / "desk.db") as desk:
        assert [name for name, _ in BM25(desk).search("red")] == ["a-v1:c0"]


def test_explain_score_and_search_agree_to_the_last_digit() -> None:
    rng = random.Random(11)
    with open_desk(sources=[random_source(rng) for _ in range(20)]) as desk:
        ranking_of = BM25(desk)
        for query in QUERIES:
            for name, score in ranking_of.search(query, k=1000):
                assert ranking_of.score(query, name) == score == sum(ranking_of.explain(query, name).values())
            everything = [name for name, _ in ranking_of.search(query, k=1000)]
            assert (
                ranking_of.search(query, k=3, allowed=everything[::2])
                == [pair for pair in ranking_of.search(query, k=1000) if pair[0] in everything[::2]][:3]
            )


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists that were used longest ago go first; answers stay right."""
    monkeypatch.setattr(lists, "DECODED_BYTES", 2000)
    monkeypatch.setattr(state, "MASKS", 1)
    monkeypatch.setattr(state, "_TERMS_KEPT", 2)
    monkeypatch.setattr(state, "_LONGEST_TABLED", 10)
    with open_desk(sources=[random_source(random.Random(n)) for n in range(20)]) as desk:
        assert_sound(desk)
        with desk.store.read() as snapshot:
            kept = memory.state_of(snapshot)
            assert 0 < kept.packed._bytes <= 2000
            assert len(kept._masks) == 1


# ---------------------------------------------------------------- what a write costs


def test_an_update_never_writes_a_long_blob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that is packed is superseded by rows, counts and two short rows of marks; segments stay as they are."""
    rng = random.Random(1)
    with open_desk(tmp_path / "desk.db", [random_source(rng) for _ in range(20)]) as desk:
        desk.compact()
        with desk.engine.connect() as sql:
            before = (
                sql.exec_driver_sql("SELECT * FROM lexical_segments").all(),
                sql.exec_driver_sql("SELECT * FROM lexical_packed").all(),
            )
        name = desk.documents(status="current")[0]
        desk.update_document(make_source("red bike", doc_id=name.family, version=99, lang=name.lang))
        with desk.engine.connect() as sql:
            after = (
                sql.exec_driver_sql("SELECT * FROM lexical_segments").all(),
                sql.exec_driver_sql("SELECT * FROM lexical_packed").all(),
            )
        assert after == before
        assert_sound(desk)


def test_what_an_upgraded_file_has_in_rows_is_packed_by_bounded_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of before has every posting in rows: it answers, and each write packs the oldest of them."""
    rng = random.Random(2)
    monkeypatch.setattr(segments, "DELTA_CHUNKS", 10**9)
    body = "\n\n".join(f"## Part {n}\n\n{' '.join(rng.choices(WORDS, k=9))}" for n in range(60))
    with open_desk(sources=[make_source(body, heading=None, doc_id="long-v1")]) as desk:
        assert_sound(desk, ["red bike"])
        monkeypatch.setattr(segments, "DELTA_CHUNKS", 6)
        packed = []
        for number in range(6):
            desk.update_document(make_source("red bike", doc_id=f"text-{number}-v1"))
            assert_sound(desk, ["red bike"])
            with desk.store.read() as snapshot:
                packed.append(segments.packed_through(snapshot.connection))
        assert packed == [16, 32, 48, 63, 63, 63]


def test_segments_of_which_most_is_gone_are_written_anew() -> None:
    """A file that is corrected for ever does not keep what is gone for ever."""
    body = "\n\n".join(f"## Part {n}\n\nbike number{n}" for n in range(4))
    with open_desk() as desk:
        for version in range(120):
            desk.update_document(make_source(body + f" text{version}", heading=None, doc_id=f"a{version % 3}-v1"))
        with desk.store.read() as snapshot:
            assert sum(segment.chunk_count for segment in segments.segments(snapshot.connection)) <= 80
        assert_sound(desk, ["bike"])


# ---------------------------------------------------------------- packing

postings = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 29), st.one_of(st.integers(1, 4), st.sampled_from([254, 255, 256, 70_000]))),
    max_size=80, unique_by=lambda posting: posting[:2],
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(postings, st.lists(st.integers(1, 100_000), min_size=30, max_size=30))
def test_packing_loses_nothing(given_postings: list[tuple[int, int, int]], lengths: list[int]) -> None:
    """Sparse and dense, tf above 254 included; the bounds are those of the list."""
    table = np.array(given_postings, dtype=np.int64).reshape(-1, 3)
    packed = list(packing.pack(PostingArrays(*table.T), np.array(lengths)))
    found = packing.unpack(packed, 30)
    assert sorted(zip(*(column.tolist() for column in found), strict=True)) == sorted(given_postings)
    for each in packed:
        mine = [posting for posting in given_postings if posting[0] == each.term_key]
        assert each.best_frequency == max(tf for _, _, tf in mine)
        assert each.shortest_length == min(lengths[number] for _, number, _ in mine)
        assert (each.numbers is None) == (3 * len(mine) > 30)


@pytest.mark.parametrize(
    ("numbers", "frequencies"),
    [(b"\1", b"\1"), (b"\1\0", b""), (b"\1\0", b"\1\1"), (b"\1\0", b"\xff"), (b"\1\0", b"\xff\0\0"), (None, b"\1" * 29), (b"\x1e\0", b"\1"), (b"\1\0", b"\0")],
)  # fmt: skip
def test_bytes_that_cannot_be_are_refused(numbers: bytes | None, frequencies: bytes) -> None:
    with pytest.raises(DamagedPostings):
        packing.unpack([packing.PackedList(1, 1, 1, numbers, frequencies)], 30)


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        ("UPDATE lexical_packed SET frequencies = x'00'", "postings damaged"),
        (
            "UPDATE lexical_packed SET numbers = zeroblob(length(numbers)) WHERE length(numbers) > 2",
            "postings differ from the text",
        ),
        ("UPDATE lexical_packed SET numbers = zeroblob(3) WHERE numbers IS NOT NULL", "postings damaged"),
        ("DELETE FROM lexical_packed", "postings differ from the text"),
        (
            "DELETE FROM lexical_segments WHERE segment_key = (SELECT max(segment_key) FROM lexical_segments)",
            "postings differ from the text",
        ),
        ("DELETE FROM lexical_marks", "postings damaged"),
        ("UPDATE lexical_marks SET in_force = zeroblob(length(in_force))", "marks differ"),
        (
            "UPDATE lexical_marks SET removed = CAST(x'01' || substr(removed, 2) AS BLOB)",
            "postings differ from the text",
        ),
        ("UPDATE lexical_segments SET lengths = x'00'", "postings damaged"),
        ("UPDATE lexical_terms SET chunks_in_force = chunks_in_force + 1", "BM25 term differs"),
    ],
)
def test_damage_of_what_is_packed_is_found_and_compact_mends_it(tmp_path: Path, damage: str, kind: str) -> None:
    """BR-35: compared with the text, whatever integrity_check says."""
    with open_desk(tmp_path / "desk.db", [random_source(random.Random(n)) for n in range(14)]) as desk:
        desk.compact()
        with desk.engine.connect() as sql, sql.begin():
            sql.exec_driver_sql(damage)
        if kind == "postings damaged":
            with pytest.raises(DamagedPostings, match="`evidencedesk check` says what to do"):
                desk.search(" ".join(WORDS), mode="keyword")
        found = {problem.kind: problem.next_step for problem in desk.check().problems}
        assert "run `evidencedesk compact`" in found[kind]
        assert set(found.values()) == {found[kind]}
        desk.compact()
        assert_sound(desk, ["red bike"])
