"""How fast, how right and how large is vector search?

    python -m benchmarks.speed_vectors --vectors 10000 100000
    python -m benchmarks.speed_vectors --embeddings VECTORS.npy --questions QUESTIONS.npy

builds a desk of synthetic clustered vectors (or of given ones) through the writing functions of the product, asks it
through `vectors.nearest`, the exact scan and the coded search in turn, and prints times, recall@10 against the exact
scan, memory, sizes, and what an update of ten chunks takes. Keyword postings are left out unless `--postings`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evidencedesk import bm25, vectors
from evidencedesk.chunking import CHUNKER_VERSION
from evidencedesk.documents import parse_document
from evidencedesk.index import set_up
from evidencedesk.index.writing import text_hash_of
from evidencedesk.records import EmbedderIdentity, Passage, SourceDocument
from evidencedesk.store import Scope, Store, open_store
from evidencedesk.text import TEXT_VERSION, tokens
from evidencedesk.vectors.memory import memory_of
from evidencedesk.vectors.truth import exact_nearest

DIMENSION = 384
_WORDS = [f"word{n}" for n in range(5000)]


def clustered(count: int, seed: int, dimension: int = DIMENSION, clusters: int = 2000) -> NDArray[np.float32]:
    """Unit vectors around cluster centres, with a large common mean and most of the variance in few directions.

    Cosines lie about 0.6 to 0.95, as those of a real model do.
    """
    scale = (1 + np.arange(dimension, dtype=np.float32) / 16) ** -0.7
    centres = np.random.default_rng(1).standard_normal((clusters, dimension), dtype=np.float32)
    mean = np.random.default_rng(2).standard_normal(dimension, dtype=np.float32) * 0.7
    generator = np.random.default_rng(seed)
    noise = 0.7 * generator.standard_normal((count, dimension), dtype=np.float32)
    made = (centres[generator.integers(0, clusters, count)] + noise) * scale + mean
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def documents(
    chunks_each: int, words: int, postings: bool
) -> Iterator[tuple[SourceDocument, list[tuple[Passage, str, int]], list[list[str]]]]:
    """Documents of some chunks each; every hundredth in Bangla (by its tag)."""
    chance = random.Random(3)
    for number in itertools.count():
        lang = "bn" if number % 100 == 99 else "en"
        doc_id = f"doc{number}-v1-bn" if lang == "bn" else f"doc{number}-v1"
        texts = [
            f"Chunk {n} of {number}: " + " ".join(chance.choices(_WORDS, cum_weights=_ZIPF, k=words))
            for n in range(chunks_each)
        ]
        source = parse_document(
            f"---\ndoc_id: {doc_id}\ntitle: T{number}\nversion: 1\nlang: {lang}\n---\n" + "\n\n".join(texts),
            f"{number}.md",
        )
        passages, terms = [], []
        for ordinal, text in enumerate(texts):
            passage = Passage(ordinal, "", 7 + 2 * ordinal, 7 + 2 * ordinal, f"T{number}", text)
            found = tokens(passage.indexed_text) if postings else ["?"] * words
            terms.append(found)
            passages.append((passage, text_hash_of(passage.indexed_text), len(found)))
        yield source, passages, terms


_ZIPF = np.cumsum(1 / np.arange(1, len(_WORDS) + 1)).tolist()


def build(path: Path, given: Iterable[NDArray[np.float32]], chunks_each: int, words: int, postings: bool) -> int:
    """A desk at path with the vectors of the batches; gives how many. Several documents share a transaction."""
    store = open_store(path)
    identity = EmbedderIdentity("bench", DIMENSION, "1")
    set_up(store, text_version=TEXT_VERSION, chunker_version=CHUNKER_VERSION, max_chunk_chars=1200, embedder=identity)
    total = 0
    made = documents(chunks_each, words, postings)
    for batch in given:
        with store.write("building") as transaction:
            key = transaction.embedder_key(identity)
            for start in range(0, len(batch) - chunks_each + 1, chunks_each):
                source, passages, terms = next(made)
                rows = batch[start : start + chunks_each]
                vectors.put(transaction.connection, key, {p[1]: row for p, row in zip(passages, rows, strict=True)})
                keys = transaction.put_document(source, passages, root="")
                if postings:
                    bm25.add_chunks(transaction.connection, dict(zip(keys, terms, strict=True)))
                bm25.settle_line(transaction, source.family, source.lang)
                total += chunks_each
    store.database.close()
    return total


def timed(action: Callable[[], object], times: list[float]) -> object:
    start = time.perf_counter()
    result = action()
    times.append((time.perf_counter() - start) * 1000)
    return result


def figures(times: list[float]) -> str:
    return f"{statistics.median(times):8.2f} / {np.quantile(times, 0.95):8.2f} ms"


def measure(path: Path, questions: NDArray[np.float32], chunks_each: int, exact_questions: int) -> None:
    """Print what there is to know of one desk."""
    store = open_store(path)
    print(f"file {path.stat().st_size / 1e6:.1f} MB")
    with store.read() as snapshot:
        for table in ("vectors", "vector_codes", "vector_rosters"):
            try:
                size = snapshot.connection.exec_driver_sql(
                    "SELECT sum(pgsize) FROM dbstat WHERE name = ?", (table,)
                ).scalar()
            except Exception:  # noqa: BLE001 - dbstat is not in every build
                break
            print(f"  {table} {(size or 0) / 1e6:.1f} MB")
        row = snapshot.connection.exec_driver_sql(
            "SELECT slack, kept_share, recall, fitted_on, tuned_on, coded_through FROM vector_codings"
        ).one_or_none()
        print("  coding", None if row is None else tuple(row))
    first: list[float] = []
    with store.read() as snapshot:
        key = snapshot.settings.embedder_key
        timed(lambda: vectors.nearest(snapshot, key, Scope(), questions[0], 10), first)
    print(f"first search {first[0]:.0f} ms, memory {memory_of(store.database.engine, key).size_bytes / 1e6:.1f} MB")
    scopes = {"all": Scope(), "lang bn (1 %)": Scope(lang="bn"), f"family ({chunks_each} chunks)": Scope(family="doc7")}
    for name, scope in scopes.items():
        for k in (10, 100):
            coded: list[float] = []
            exact: list[float] = []
            recall = []
            for number, question in enumerate(questions):
                with store.read() as snapshot:
                    snapshot.settings  # noqa: B018 - read by every search before its legs
                    got = timed(partial(vectors.nearest, snapshot, key, scope, question, k), coded)
                if number < exact_questions:
                    with store.read() as snapshot:
                        right = timed(partial(exact_nearest, snapshot.connection, key, scope, question, k), exact)
                    recall.append(len(dict(got).keys() & dict(right).keys()) / max(1, len(right)))
            print(
                f"  {name:22} k={k:3}  search {figures(coded)}   exact scan {figures(exact)}   "
                f"recall {np.mean(recall):.4f} of {len(recall)} questions"
            )
    update(store, key, questions, chunks_each)
    store.database.close()


def update(store: Store, key: int, questions: NDArray[np.float32], chunks_each: int) -> None:
    """Replace a document of ten chunks, with new texts, and search: what the write and the next search take."""
    writes: list[float] = []
    searches: list[float] = []
    for number in range(40):
        batch = clustered(10, 1000 + number, questions.shape[1])
        source, passages, _ = next(documents(10, 5, False))
        passages = [(p, f"{h[:40]}{number:024}", n) for p, h, n in passages]

        def write(source: SourceDocument = source, passages: Sequence = passages, batch: NDArray = batch) -> None:
            with store.write("updating") as transaction:
                vectors.put(transaction.connection, key, {p[1]: row for p, row in zip(passages, batch, strict=True)})
                former = transaction.stored(source.doc_id)
                if former is not None:
                    bm25.leave_force(transaction.connection, former.doc_key)
                transaction.put_document(source, passages, root="")
                bm25.settle_line(transaction, source.family, source.lang)

        timed(write, writes)
        with store.read() as snapshot:
            timed(partial(vectors.nearest, snapshot, key, Scope(), batch[0], 10), searches)
            assert vectors.nearest(snapshot, key, Scope(), batch[0], 10)[0][1] > 0.999
    print(f"  update of 10 chunks   {figures(writes)}   the search after it {figures(searches)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--embeddings", type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--asked", type=int, default=200, help="questions")
    parser.add_argument("--exact", type=int, default=50, help="questions that are also scanned exactly")
    parser.add_argument("--words", type=int, default=60, help="words in a chunk")
    parser.add_argument("--postings", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder that keeps the desks for the next run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        runs: list[tuple[str, Callable[[], Iterable[NDArray[np.float32]]], NDArray[np.float32], int]] = []
        if options.embeddings is not None:
            given = np.load(options.embeddings)
            runs.append((options.embeddings.stem, lambda: [given], np.load(options.questions), 10))
        else:
            for count in options.vectors:
                batches = lambda count=count: (clustered(10_000, 100 + n) for n in range(count // 10_000))  # noqa: E731
                runs.append((f"synthetic-{count}", batches, clustered(options.asked, 7), max(10, count // 10_000)))
        for name, batches, questions, chunks_each in runs:
            path = folder / f"{name}.db"
            if not path.exists():
                start = time.perf_counter()
                built = build(path, batches(), chunks_each, options.words, options.postings)
                print(json.dumps({"desk": name, "vectors": built, "built_s": round(time.perf_counter() - start, 1)}))
            print(name)
            measure(path, questions[: options.asked], chunks_each, options.exact)


if __name__ == "__main__":
    main()
