"""Coded vector search: the estimate's mathematics, recall, and that no search is served from another state than its own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import make_source, open_desk
from hypothesis import given, settings
from hypothesis import strategies as st

from evidencedesk import Desk, vectors
from evidencedesk.embeddings import CallableEmbedder
from evidencedesk.store import Scope, open_store
from evidencedesk.vectors import memory, scan, upkeep
from evidencedesk.vectors.blocks import read_coding, write_coding
from evidencedesk.vectors.codes import Codes, encode, encode_question
from evidencedesk.vectors.fitting import new_coding, tuned
from evidencedesk.vectors.rotation import code_width, rotation
from evidencedesk.vectors.truth import exact_nearest

DIMENSION = 64


def clustered(count: int, seed: int = 0, dimension: int = DIMENSION) -> np.ndarray:
    """Unit vectors with a large common mean, as embeddings have it."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((30, dimension))
    made = centres[generator.integers(0, 30, count)] + 0.8 * generator.standard_normal((count, dimension)) + 0.7
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def grouped(count: int, each: int, seed: int = 0) -> np.ndarray:
    """Unit vectors in groups of `each`, all of them near nothing else: beyond its own group a neighbour is any vector."""
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((8000 // each, DIMENSION))
    made = centres[generator.integers(0, len(centres), count)] + 0.8 * generator.standard_normal((count, DIMENSION))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def embedder(dimension: int = DIMENSION) -> CallableEmbedder:
    """Gives `vector 17` the seventeenth of a fixed list of vectors."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.concatenate([clustered(1, int(text.split("vector ")[1].split()[0]), dimension) for text in texts])

    return CallableEmbedder(embed, name="numbered", dimension=dimension, fingerprint="1")


def sections(numbers: Sequence[int]) -> str:
    return "\n\n".join(f"## Part {n}\n\nText of vector {n} here." for n in numbers)


def coded_from(patch: pytest.MonkeyPatch, fewest: int) -> None:
    """Codes from so many vectors on, so that the tests stay small."""
    patch.setattr(upkeep, "FEWEST", fewest)
    patch.setattr(upkeep, "BLOCK", 64)
    patch.setattr(memory, "NARROW", 20)


@pytest.fixture(autouse=True)
def coded_from_few(monkeypatch: pytest.MonkeyPatch) -> None:
    coded_from(monkeypatch, 300)


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """600 chunks in force in 6 documents, of which one is in Bangla, and 100 superseded ones; codes of 640 of them."""
    path = tmp_path_factory.mktemp("made") / "desk.db"
    with pytest.MonkeyPatch.context() as patch:
        coded_from(patch, 300)
        with open_desk(path, embedder=embedder()) as desk:
            desk.update_document(make_source(sections(range(1000, 1100)), doc_id="d0-v1", heading=None))
            for number in range(6):
                lang = "bn" if number == 5 else "en"
                doc_id = f"d{number}-v2" + ("-bn" if lang == "bn" else "")
                text = sections(range(100 * number, 100 * number + 100))
                desk.update_document(make_source(text, doc_id=doc_id, heading=None, lang=lang))
    return path


@pytest.fixture
def desk(made_once: Path, tmp_path: Path) -> Iterator[Desk]:
    """A copy of that file, open."""
    shutil.copy(made_once, tmp_path / "desk.db")
    with open_desk(tmp_path / "desk.db", embedder=embedder()) as desk:
        yield desk


def both(desk: Desk, scope: Scope, question: np.ndarray, k: int) -> tuple[list[tuple[int, float]], ...]:
    """What the search and the exact scan find."""
    with desk.store.read() as snapshot:
        key = snapshot.settings.embedder_key
        assert memory.picture_of(snapshot, key) is not None
        return vectors.nearest(snapshot, key, scope, question, k), exact_nearest(
            snapshot.connection, key, scope, question, k
        )


# ---------------------------------------------------------------- the code


@pytest.mark.parametrize("dimension", [3, 64, 100, 256, 384, 1024])
def test_the_rotation_keeps_lengths_and_angles(dimension: int) -> None:
    matrix = rotation(dimension).astype(np.float64)
    assert matrix.shape == (code_width(dimension), dimension)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(dimension), atol=1e-6)


def test_the_rotation_is_the_same_in_every_version() -> None:
    """Codes in files were made with it; at this width every entry is an exact binary fraction."""
    assert hashlib.sha256(rotation(384).astype("<f4").tobytes()).hexdigest()[:16] == "5084af644233d21e"


def test_the_estimate_is_unbiased_and_its_error_is_in_the_promised_unit() -> None:
    """RaBitQ's theorem, measured: the error in units of scale * |q - c| has mean 0 and hardly depends on the data."""
    data = clustered(3000, dimension=384)
    coding = new_coding(data, len(data))
    codes = encode(coding, data)
    deviations = []
    for vector in clustered(20, 5, 384):
        question = encode_question(coding, vector)
        distances = np.stack([scan.hamming(codes.words, plane) for plane in question.planes]).astype(float)
        products = question.step * (7.5 * coding.width - (distances * [[1], [2], [4], [8]]).sum(axis=0))
        estimates = question.constant + codes.offsets + codes.scales * products
        errors = (data.astype(float) @ vector - estimates) / (codes.scales * question.distance)
        assert abs(errors.mean()) < 0.1
        deviations.append(errors.std())
    assert 0.3 < min(deviations) <= max(deviations) < 1.0


@given(st.integers(1, 12), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_hamming_distances_are_those_of_the_bits(words: int, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    matrix = generator.integers(0, 2**64, (words, count), dtype=np.uint64)
    plane = generator.integers(0, 2**64, words, dtype=np.uint64)
    expected = [sum(bin(int(a) ^ int(b)).count("1") for a, b in zip(column, plane, strict=True)) for column in matrix.T]
    assert scan.hamming(matrix, plane).tolist() == expected


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 400), st.integers(1, 50), st.integers(0, 1000), st.booleans())
def test_a_scan_with_every_allowance_is_brute_force(count: int, k: int, seed: int, masked: bool) -> None:
    """With all codes kept and a slack that covers everything, what is found is exact, ties with the k-th included."""
    data = clustered(count, seed)
    coding = new_coding(data, count)
    coding = replace(coding, slack=1e6, kept_share=1.0)
    question = clustered(1, seed + 1)[0]
    exact = data.astype(float) @ question
    outside = np.where(np.arange(count) % 3 == 0, 0xFFFF, 0).astype(np.uint16) if masked else None
    places, cosines = scan.nearest_places(
        encode(coding, data), coding, encode_question(coding, question), k, lambda some: exact[some], outside
    )
    eligible = np.flatnonzero(outside == 0) if outside is not None else np.arange(count)
    expected = sorted(eligible.tolist(), key=lambda place: -exact[place])[:k]
    assert places.tolist() == expected
    assert cosines.tolist() == exact[expected].tolist()


def test_codes_survive_being_stored() -> None:
    codes = encode(new_coding(clustered(10), 10), clustered(10))
    read = Codes.from_bytes(codes.to_bytes(), 256, 10)
    assert (read.words == codes.words).all()
    assert (read.offsets == codes.offsets).all()
    assert (read.scales == codes.scales).all()
    with pytest.raises(ValueError, match="bytes for 11 codes"):
        Codes.from_bytes(codes.to_bytes(), 256, 11)


def test_vectors_that_codes_cannot_tell_apart_are_not_coded() -> None:
    """The self-check decides, not the hope: thousands of all but equal vectors, or too few dimensions."""
    generator = np.random.default_rng(0)
    flat = np.ones((1000, 8)) + 1e-7 * generator.standard_normal((1000, 8))
    data = (flat / np.linalg.norm(flat, axis=1, keepdims=True)).astype(np.float32)
    coding = tuned(new_coding(data, 1000), data, 1000)
    assert coding.recall < 0.99
    few = tuned(new_coding(clustered(50), 50), clustered(50), 50)
    assert few.recall < 0.99
    good = tuned(new_coding(clustered(1000), 1000), clustered(1000), 1000)
    assert good.recall >= 0.99


@pytest.mark.parametrize("in_force", ["all", "half", "a tenth"])
@pytest.mark.parametrize("each", [1, 25])
def test_the_promised_recall_holds_at_every_k(each: int, in_force: str) -> None:
    """A coding fitted by its own self-check finds 99 of a hundred true neighbours, however many are wanted."""
    data = grouped(8000, each)
    coding = tuned(new_coding(data, len(data)), data, len(data))
    codes = encode(coding, data)
    eligible = np.arange(0, len(data), {"all": 1, "half": 2, "a tenth": 10}[in_force])
    outside = np.full(len(data), 0xFFFF, np.uint16)
    outside[eligible] = 0
    found = dict.fromkeys((1, 10, 20, 50, 100, 200), 0.0)
    for question in grouped(60, each, seed=5):
        exact = data.astype(float) @ question.astype(float)
        best = np.sort(exact[eligible])[::-1]
        for k in found:
            coded = encode_question(coding, question)
            _, cosines = scan.nearest_places(codes, coding, coded, k, lambda some, exact=exact: exact[some], outside)
            found[k] += min(k, int((cosines >= best[k - 1]).sum())) / k / 60
    assert min(found.values()) >= 0.99, found


# ---------------------------------------------------------------- the search


def test_coded_search_finds_what_the_exact_scan_finds(desk: Desk) -> None:
    """Every scope gives min(k, eligible) hits with exact cosines, and recall@10 is at least 0.99."""
    shared = wanted = 0
    for seed in range(5000, 5025):
        question = clustered(1, seed)[0]
        for scope in (Scope(), Scope(lang="en"), Scope(lang="bn"), Scope(family="d3"), Scope(lang="en", family="d5")):
            got, right = both(desk, scope, question, 10)
            assert len(got) == len(right)
            assert got == sorted(got, key=lambda hit: -hit[1])
            exact = dict(right)
            assert all(exact[key] == cosine for key, cosine in got if key in exact)
            shared += len(dict(got).keys() & exact.keys())
            wanted += len(exact)
    assert shared >= 0.99 * wanted


@pytest.mark.parametrize("k", [1, 29, 31, 599, 600, 601, 10_000])
def test_any_k_gives_as_many_as_there_are(desk: Desk, k: int) -> None:
    got, right = both(desk, Scope(), clustered(1, 77)[0], k)
    assert len(got) == min(k, 600)
    if k >= 600:
        assert got == right


def test_another_day_is_searched_with_its_own_documents(desk: Desk) -> None:
    """BR-11 for as-of: before the update the superseded hundred were in force."""
    moment = desk.now()
    past = Scope(as_of=moment)
    got, right = both(desk, past, clustered(1, 1005)[0], 5)
    assert [key for key, _ in got] == [key for key, _ in right]


def test_chunks_that_share_a_text_share_its_vector_and_are_all_found(desk: Desk) -> None:
    """Ties by chunk id, across documents, in the coded path as in the exact one."""
    shared = make_source(sections([7, 8]), doc_id="copy-v1", heading=None)
    desk.update_document(shared)
    desk.update_document(make_source(sections([7]), doc_id="another-v1", heading=None))
    got, right = both(desk, Scope(), clustered(1, 7)[0], 3)
    assert got == right
    with desk.store.read() as snapshot:
        names = [snapshot.chunks([key])[key].chunk.id for key, _ in got]
    assert names == sorted(names)
    assert {name.split(":")[0] for name in names} == {"another-v1", "copy-v1", "d0-v2"}


def test_new_wording_is_found_at_once_and_old_wording_no_more(desk: Desk) -> None:
    """BR-15: the replaced text's vector answers for nothing; before and after the codes are folded in."""
    for number in range(70):
        desk.update_document(make_source(sections([2000 + number]), doc_id="moving-v1", heading=None))
        question = clustered(1, 2000 + number)[0]
        got, _ = both(desk, Scope(), question, 1)
        assert got[0][1] == pytest.approx(1.0, abs=1e-6)
        if number:
            got, _ = both(desk, Scope(), clustered(1, 1999 + number)[0], 1)
            assert got[0][1] < 0.999
    assert desk.check().ok


def test_a_withdrawn_document_is_not_found_by_the_next_search(desk: Desk) -> None:
    assert desk.search("vector 305 ", mode="vector", k=1)[0].chunk.doc_id == "d3-v2"
    desk.withdraw("d3-v2", reason="wrong")
    assert desk.search("vector 305 ", mode="vector", k=1)[0].chunk.doc_id != "d3-v2"
    assert len(desk.search("vector 305 ", mode="vector", k=10_000)) == 500


# ---------------------------------------------------------------- states


def test_vectors_of_no_chunk_change_no_search(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change that was refused or killed leaves them: no hit, no rank and no digit of a score is another for it.

    Neither in the process that searched before, nor in a new one; though they are as many as would fit the codes anew.
    """
    monkeypatch.setattr(scan, "_KEPT_FOR_EACH", 2)
    with desk.store.write("testing") as transaction:
        coding = read_coding(transaction.connection, transaction.settings.embedder_key)
        write_coding(transaction.connection, transaction.settings.embedder_key, replace(coding, kept_share=0.1))
    questions = clustered(12, 5000)
    scopes = (Scope(), Scope(lang="en"), Scope(lang="bn"), Scope(as_of=desk.now()))

    def searched(opened: Desk) -> list[list[tuple[int, float]]]:
        with opened.store.read() as snapshot:
            key = snapshot.settings.embedder_key
            assert memory.picture_of(snapshot, key) is not None
            return [
                vectors.nearest(snapshot, key, scope, question, k)
                for question in questions
                for scope in scopes
                for k in (1, 10, 30)
            ]

    before = searched(desk)
    others = clustered(2500, 6000)
    for start in (0, 1250):
        desk._index().keep({f"{n:064}": others[n] for n in range(start, start + 1250)})
        assert searched(desk) == before
    with open_desk(desk.store.database.path, embedder=embedder()) as again:
        assert searched(again) == before
        assert again.check().ok
        again.update_document(make_source(sections([9300]), doc_id="later-v1", heading=None))
        with again.store.read() as snapshot:
            coding = read_coding(snapshot.connection, snapshot.settings.embedder_key)
        assert coding.fitted_on > 2500, "the next document that is written brings the codes up"
        assert again.check().ok


def test_a_search_in_an_older_snapshot_sees_the_older_state(desk: Desk) -> None:
    """A write and another search in between bring the kept codes up; the older snapshot gets its own all the same."""
    question = clustered(1, 3000)[0]
    with desk.store.read() as older:
        key = older.settings.embedder_key
        desk.update_document(make_source(sections([3000]), doc_id="later-v1", heading=None))
        with desk.store.read() as newer:
            assert vectors.nearest(newer, key, Scope(), question, 1)[0][1] > 0.999
        assert vectors.nearest(older, key, Scope(), question, 1)[0][1] < 0.999
        assert vectors.nearest(older, key, Scope(), question, 1) == exact_nearest(
            older.connection, key, Scope(), question, 1
        )


def test_a_transaction_sees_its_own_changes_and_nobody_else_does(desk: Desk) -> None:
    """And when it is rolled back, nothing of it stays in memory."""
    question = clustered(1, 3000)[0]
    both(desk, Scope(), question, 1)

    class Stop(Exception):
        pass

    prepared = desk._index().prepare(make_source(sections([3000]), doc_id="d1-v2", heading=None), root=None)
    new, _ = desk._index().embed(prepared)
    with pytest.raises(Stop), desk.store.write("testing") as transaction:  # noqa: PT012 - the block is the transaction
        key = transaction.settings.embedder_key
        before = vectors.nearest(transaction, key, Scope(), question, 1)
        desk._index().write(transaction, prepared, new)
        inside = vectors.nearest(transaction, key, Scope(), question, 1)
        assert inside[0][1] > 0.999
        assert len(vectors.nearest(transaction, key, Scope(), question, 10_000)) == 501
        with desk.store.read() as other:
            assert vectors.nearest(other, key, Scope(), question, 1) == before
        raise Stop
    got, right = both(desk, Scope(), question, 1)
    assert got == right == before
    desk.update_document(make_source(sections([3001]), doc_id="d1-v2", heading=None))
    got, right = both(desk, Scope(), clustered(1, 3001)[0], 3)
    assert got == right


def test_a_file_put_in_the_place_of_another_is_read_anew(tmp_path: Path, desk: Desk) -> None:
    """Its states have the numbers of the former's, and other generations: the chain is looked at, not the number."""
    question = clustered(1, 4000)[0]
    desk.backup(tmp_path / "copy.db")
    desk.update_document(make_source(sections([4000]), doc_id="lost-v1", heading=None))
    both(desk, Scope(), question, 1)
    with open_desk(tmp_path / "copy.db", embedder=embedder()) as copy:
        copy.update_document(make_source(sections([4001]), doc_id="kept-v1", heading=None))
    desk.engine.dispose()
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"desk.db{suffix}").unlink(missing_ok=True)
    (tmp_path / "copy.db").replace(tmp_path / "desk.db")
    got, right = both(desk, Scope(), question, 1)
    assert got == right
    assert got[0][1] < 0.999
    assert both(desk, Scope(), clustered(1, 4001)[0], 1)[0][0][1] > 0.999


def test_threads_search_while_one_updates_and_each_sees_one_state(desk: Desk) -> None:
    """BR-23: eight threads and a writer. A document has one chunk, whose vector is that of its last update."""
    errors: list[BaseException] = []
    stop = threading.Event()
    desk.update_document(make_source(sections([6000]), doc_id="turn-v1", heading=None))

    def search(seed: int) -> None:
        try:
            generator = np.random.default_rng(seed)
            while not stop.is_set():
                with desk.store.read() as snapshot:
                    key = snapshot.settings.embedder_key
                    text = snapshot.document("turn-v1").chunks[0].text
                    number = int(text.split("vector ")[1].split()[0])
                    found = vectors.nearest(snapshot, key, Scope(), clustered(1, number)[0], 1)
                    assert found[0][1] > 0.999, (number, found)
                    question = clustered(1, int(generator.integers(0, 600)))[0]
                    got = vectors.nearest(snapshot, key, Scope(), question, 5)
                    assert len(got) == 5
                    former = vectors.nearest(snapshot, key, Scope(), clustered(1, number - 1)[0], 1)
                    assert number == 6000 or former[0][1] < 0.999
        except BaseException as error:  # noqa: BLE001 - reported below
            errors.append(error)

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for number in range(6001, 6041):
        desk.update_document(make_source(sections([number]), doc_id="turn-v1", heading=None))
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert desk.check().ok


def test_processes_see_what_another_wrote(desk: Desk) -> None:
    """Codes that one process keeps are brought up to what another has written."""
    both(desk, Scope(), clustered(1, 1)[0], 1)
    code = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from builders import open_desk, make_source\n"
        "from test_vector_codes import embedder, sections\n"
        "with open_desk(sys.argv[1], embedder=embedder()) as desk:\n"
        "    for n in range(3): desk.update_document(make_source(sections([7000 + n]), doc_id=f'p{n}-v1', heading=None))\n"
        "    desk.withdraw('d2-v2', reason='wrong')\n"
    )
    subprocess.run([sys.executable, "-c", code, desk.store.database.path, str(Path(__file__).parent)], check=True)
    for number in (7000, 7002):
        got, right = both(desk, Scope(), clustered(1, number)[0], 4)
        assert got == right
    assert len(both(desk, Scope(), clustered(1, 1)[0], 10_000)[0]) == 503


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_searches_too(desk: Desk) -> None:
    got = both(desk, Scope(), clustered(1, 1)[0], 5)[0]
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from builders import open_desk\n"
        "from test_vector_codes import embedder\n"
        "with open_desk(sys.argv[1], embedder=embedder()) as desk:\n"
        "    first = [hit.chunk.id for hit in desk.search('vector 1 ', mode='vector', k=5)]\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0 if first == [hit.chunk.id for hit in desk.search('vector 1 ', mode='vector', k=5)] else 1)\n"
        "    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert len(got) == 5
    subprocess.run([sys.executable, "-c", code, desk.store.database.path, str(Path(__file__).parent)], check=True)


# ---------------------------------------------------------------- upkeep


def test_small_files_have_no_codes(tmp_path: Path) -> None:
    with open_desk(tmp_path / "desk.db", embedder=embedder()) as desk:
        desk.update_document(make_source(sections(range(299)), heading=None))
        with desk.store.read() as snapshot:
            assert read_coding(snapshot.connection, snapshot.settings.embedder_key) is None
        desk.update_document(make_source(sections([299]), doc_id="one-v1", heading=None))
        with desk.store.read() as snapshot:
            coding = read_coding(snapshot.connection, snapshot.settings.embedder_key)
        assert coding is not None
        assert coding.recall >= 0.99
        assert coding.fitted_on == 300
        assert desk.check().ok


def test_codes_follow_the_embedder_and_go_with_it(desk: Desk) -> None:
    """Coded while it is stored beside the former one, so that the switch finds codes; those of the former are gone."""
    desk.reembed(embedder(32))
    question = clustered(1, 3, 32)[0]
    got, right = both(desk, Scope(), question, 5)
    assert got == right
    with desk.engine.connect() as sql:
        for table in ("vector_codings", "vector_codes", "vector_rosters"):
            keys = sql.exec_driver_sql(f"SELECT DISTINCT embedder_key FROM {table}").scalars().all()
            assert keys == [desk.settings.embedder_key]
    assert desk.check().ok
    desk.reembed(None)
    with desk.engine.connect() as sql:
        assert sql.exec_driver_sql("SELECT count(*) FROM vector_codes").scalar() == 0
    assert desk.check().ok


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vector_codes SET codes = zeroblob(length(codes)) WHERE first_key = (SELECT min(first_key) FROM vector_codes)",
        "UPDATE vector_codes SET codes = x'00'",
        "UPDATE vector_codes SET vector_keys = x'0000'",
        "DELETE FROM vector_codes WHERE first_key = (SELECT max(first_key) FROM vector_codes)",
        "DELETE FROM vector_codes WHERE first_key = (SELECT min(first_key) FROM vector_codes)",
        "DELETE FROM vectors WHERE vector_key = 5",
        "UPDATE vectors SET embedding = (SELECT embedding FROM vectors WHERE vector_key = 9) WHERE vector_key BETWEEN 10 AND 40",
        "UPDATE vector_rosters SET chunks = zeroblob(length(chunks))",
        "UPDATE vector_rosters SET chunks = x'0000'",
        "UPDATE vector_rosters SET documents = x'0000'",
        "UPDATE vector_codings SET centre = zeroblob(length(centre))",
    ],
)
def test_damaged_codes_are_found_and_compact_mends_them(desk: Desk, damage: str) -> None:
    with desk.engine.connect() as sql:
        sql.connection.driver_connection.execute(damage)
    assert "vector codes differ" in {problem.kind for problem in desk.check().problems}
    desk.compact()
    assert "vector codes differ" not in {problem.kind for problem in desk.check().problems}
    got, right = both(desk, Scope(), clustered(1, 42)[0], 5)
    assert got == right


def test_compact_folds_everything_in(desk: Desk) -> None:
    desk.update_document(make_source(sections([9000]), doc_id="d2-v2", heading=None))
    desk.compact()
    with desk.store.read() as snapshot:
        key = snapshot.settings.embedder_key
        coding = read_coding(snapshot.connection, key)
        stored = snapshot.connection.exec_driver_sql("SELECT count(*) FROM vectors").scalar()
        assert coding.fitted_on == stored == 601
    assert desk.check().ok
    got, right = both(desk, Scope(), clustered(1, 9000)[0], 5)
    assert got == right


def test_a_process_that_slept_through_many_states_reads_anew(desk: Desk) -> None:
    both(desk, Scope(), clustered(1, 1)[0], 1)
    desk.update_document(make_source(sections([9100]), doc_id="late-v1", heading=None))
    with desk.engine.connect() as sql:
        sql.connection.driver_connection.execute("DELETE FROM recent_states")
    got, right = both(desk, Scope(), clustered(1, 9100)[0], 3)
    assert got == right


def test_stock_sqlite_reads_renames_and_vacuums_the_file(desk: Desk) -> None:
    """Nothing in the file needs an extension."""
    path = desk.store.database.path
    code = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "names = [r[0] for r in c.execute(\"SELECT name FROM sqlite_master WHERE type IN ('table', 'view')\")]\n"
        "for name in names: c.execute(f'SELECT * FROM \"{name}\" LIMIT 1').fetchall()\n"
        "c.execute('ALTER TABLE answers RENAME COLUMN model TO model2')\n"
        "c.execute('ALTER TABLE answers RENAME COLUMN model2 TO model')\n"
        "c.execute('VACUUM')\n"
    )
    desk.close()
    subprocess.run([sys.executable, "-c", code, path], check=True)
    with open_desk(path, embedder=embedder()) as again:
        got, right = both(again, Scope(), clustered(1, 42)[0], 5)
        assert got == right
        assert again.check().ok


def test_memory_is_bounded_by_the_few_states_that_are_kept(desk: Desk) -> None:
    for number in range(30):
        desk.update_document(make_source(sections([8000 + number]), doc_id="turn-v1", heading=None))
        both(desk, Scope(), clustered(1, 1)[0], 1)
    with desk.store.read() as snapshot:
        kept = memory.memory_of(snapshot.connection.engine, snapshot.settings.embedder_key)
    assert len(kept._pictures) == 3
    assert kept.size_bytes < 3_000_000


def test_the_store_opened_for_reading_searches_codes_too(desk: Desk, tmp_path: Path) -> None:
    desk.backup(tmp_path / "copy.db")
    store = open_store(tmp_path / "copy.db", read_only=True)
    with store.read() as snapshot:
        key = snapshot.settings.embedder_key
        question = clustered(1, 42)[0]
        assert memory.picture_of(snapshot, key) is not None
        assert vectors.nearest(snapshot, key, Scope(), question, 5) == exact_nearest(
            snapshot.connection, key, Scope(), question, 5
        )
    store.database.close()
