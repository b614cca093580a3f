"""How fast keyword search is, how large its index, and what an update costs; over seeded text whose words are Zipf's.

    python -m benchmarks.speed_keyword build desk.db --chunks 100000
    python -m benchmarks.speed_keyword measure desk.db [--rounds 5]

Chunks of 40 to 80 words (60 on average), documents of ten chunks, 5 % of the documents superseded. The words follow
Zipf's law (exponent 1, 500,000 words). Queries of three kinds: `rare` (3 words of ranks 20,000 to 200,000), `mixed`
(2 rare words, one of ranks 200 to 5,000, one of ranks 10 to 100) and `frequent` (4 words of ranks 5 to 200).
Two levels are timed: `index` is a read transaction, its scope and the ten best chunks with their scores; `search` is
Desk.search with everything that a hit carries. Every query is new to the process when it is first timed (`first`),
and is asked again in each further round (`again`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk import Desk, bm25, parse_document
from evidencedesk.records import SourceDocument
from evidencedesk.store import Store, content_hash, open_store
from evidencedesk.versions import version_sort_key

LETTERS = "bcdfghjklmnpqrtvwxz"
VOCABULARY = 500_000
CHUNKS_IN_DOCUMENT = 10
SUPERSEDED_SHARE = 0.05
ROWS_AT_ONCE = 2000
K = 10


def word(rank: int) -> str:
    """A word that the analyser leaves as it is: consonants only, four at least."""
    found = ""
    rank += len(LETTERS) ** 3
    while rank:
        rank, place = divmod(rank, len(LETTERS))
        found = LETTERS[place] + found
    return found


WORDS = [word(rank) for rank in range(VOCABULARY)]


WEIGHTS = 1.0 / np.arange(1, VOCABULARY + 1)
EDGES = np.cumsum(WEIGHTS / WEIGHTS.sum())


def zipf(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Ranks from 0, with probability in inverse proportion to rank + 1."""
    return np.minimum(np.searchsorted(EDGES, rng.random(count)), VOCABULARY - 1)


def documents(chunk_count: int) -> Iterator[tuple[SourceDocument, list[list[str]]]]:
    """Documents with the words of each of their chunks; a superseded one comes before its successor."""
    rng = np.random.default_rng(20)
    count = chunk_count // CHUNKS_IN_DOCUMENT
    versions_of: list[tuple[int, int]] = []
    for family in range(count):
        if len(versions_of) >= count:
            break
        if rng.random() < SUPERSEDED_SHARE / (1 - SUPERSEDED_SHARE):
            versions_of.append((family, 1))
        versions_of.append((family, 2))
    for family, version in versions_of[:count]:
        lengths = rng.integers(40, 81, CHUNKS_IN_DOCUMENT)
        ranks = zipf(rng, int(lengths.sum()))
        parts = np.split(ranks, np.cumsum(lengths)[:-1])
        words = [[WORDS[rank] for rank in part.tolist()] for part in parts]
        name = f"text{family:07d}"
        text = "\n".join(" ".join(part) for part in words)
        lang, start = "bn" if family % 10 == 0 else "en", datetime(2020 + version, 1, 1, tzinfo=UTC)
        doc_id = f"{name}-v{version}"
        source = SourceDocument(
            f"{name}.md", doc_id, name, f"v{version}", lang, "", text, (), effective_from=start
        )  # fmt: skip
        yield source, words


def build(path: Path, chunk_count: int) -> float:
    """Write documents and chunks as rows, then make the index with the product's own `rebuild`; gives seconds."""
    started = time.perf_counter()
    with Desk.open(path, embedder="none"):
        pass
    with closing(open_store(path).database) as database:
        store = Store(database, lambda: datetime.now(UTC))
        with store.write("building") as transaction:
            transaction.connection.exec_driver_sql("PRAGMA cache_size = -400000")
            write_rows(transaction.connection, chunk_count)
            print(f"rows after {time.perf_counter() - started:.0f} s", flush=True)
            pairs = ((key, words) for key, words in enumerate(every_chunk(chunk_count), 1))
            bm25.rebuild(transaction, pairs)
    return time.perf_counter() - started


def every_chunk(chunk_count: int) -> Iterator[list[str]]:
    for _, words in documents(chunk_count):
        yield from words


def write_rows(connection: sa.Connection, chunk_count: int) -> None:
    names = [
        "doc_key", "doc_id", "family", "version", "version_sort", "lang", "title", "status", "valid_from", "valid_to",
        "effective_from", "came_in_at", "changed_at", "root", "path", "content_hash", "author_metadata", "source",
    ]  # fmt: skip
    insert_document = f"INSERT INTO documents ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    insert_chunk = (
        "INSERT INTO chunks (doc_key, ordinal, heading, line_start, line_end, preamble, text, text_hash, term_count) "
        "VALUES (?, ?, '', ?, ?, '', ?, ?, ?)"
    )
    rows, chunk_rows = [], []
    pairs = pairwise([*documents(chunk_count), None])
    for key, ((source, words), following) in enumerate(pairs, 1):
        is_last = following is None or following[0].family != source.family
        begin = f"{source.effective_from:%Y-%m-%d} 00:00:00.000000"
        rows.append((
            key, source.doc_id, source.family, source.version, version_sort_key(source.version), source.lang, "",
            "current" if is_last else "superseded", begin,
            None if is_last else f"{following[0].effective_from:%Y-%m-%d} 00:00:00.000000", begin, begin, begin, "",
            source.path, content_hash(source), "{}", source.source,
        ))  # fmt: skip
        for ordinal, (text, terms) in enumerate(zip(source.source.split("\n"), words, strict=True)):
            name = f"{source.doc_id}:{ordinal}"
            chunk_rows.append((key, ordinal, ordinal + 1, ordinal + 1, text, name, len(terms)))
        if len(rows) == ROWS_AT_ONCE or following is None:
            connection.exec_driver_sql(insert_document, rows)
            connection.exec_driver_sql(insert_chunk, chunk_rows)
            rows, chunk_rows = [], []


def queries(seed: int, count: int) -> dict[str, list[str]]:
    rng = np.random.default_rng(seed)

    def pick(low: int, high: int, many: int) -> list[str]:
        return [WORDS[rank] for rank in rng.integers(low, high, many).tolist()]

    return {
        "rare": [" ".join(pick(20_000, 200_000, 3)) for _ in range(count)],
        "mixed": [" ".join(pick(20_000, 200_000, 2) + pick(200, 5_000, 1) + pick(10, 100, 1)) for _ in range(count)],
        "frequent": [" ".join(pick(5, 200, 4)) for _ in range(count)],
    }


def best(store: Store, query: str) -> list[tuple[int, float]]:
    with store.read() as snapshot:
        terms = query.split()
        if hasattr(bm25, "best"):
            return bm25.best(snapshot, terms, snapshot.scope(), K)
        # The relational postings that came before the packed ones.
        from evidencedesk.retrieval import _best

        found = bm25.match(snapshot.connection, terms, snapshot.scope())
        score_of = dict(zip(found.chunk_keys.tolist(), found.scores.tolist(), strict=True))
        return [(key, score_of[key]) for key in _best(snapshot, score_of, K)]


def spread(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    return f"{1e3 * statistics.median(ordered):8.2f} / {1e3 * ordered[int(0.95 * (len(ordered) - 1))]:8.2f}"


def timed(act: object, *arguments: object) -> float:
    started = time.perf_counter()
    act(*arguments)  # type: ignore[operator]
    return time.perf_counter() - started


def measure(path: Path, rounds: int, count: int, updates: int, out: Path | None) -> None:
    results: dict[str, list[list[tuple[int, float]]]] = {}
    with Desk.open(path, embedder="none") as desk:
        started = time.perf_counter()
        best(desk.store, WORDS[300])
        print(f"{path.name}: {path.stat().st_size / 1e6:.0f} MB; first search after opening "
              f"{1e3 * (time.perf_counter() - started):.1f} ms")  # fmt: skip
        asked = queries(7, count)
        print("p50 / p95 in ms     index, first           index, again           search, again")
        for kind, several in asked.items():
            first, again, whole = [], [], []
            for query in several:
                first.append(timed(best, desk.store, query))
                results.setdefault(kind, []).append(best(desk.store, query))
            for _ in range(rounds):
                for query in several:
                    again.append(timed(best, desk.store, query))
                    whole.append(timed(lambda q: desk.search(q, k=K, mode="keyword"), query))
            print(f"{kind:10} {spread(first):>24} {spread(again):>22} {spread(whole):>22}")
        if out is not None:
            out.write_text(json.dumps(results))
        if updates:
            print(f"updates of ten chunks: {spread(list(update_times(desk, updates)))}")


def update_times(desk: Desk, count: int) -> Iterator[float]:
    """Seconds of each update that supersedes a document of ten chunks, without reading and cutting its text."""
    rng = np.random.default_rng(os.getpid())
    version = int(time.time())
    for n in range(count):
        family = 2 * n + 1
        sections = (
            f"## Part {number}\n\n{' '.join(WORDS[rank] for rank in zipf(rng, 60).tolist())}"
            for number in range(CHUNKS_IN_DOCUMENT)
        )
        front = f"doc_id: text{family:07d}\nversion: v{version}\nlang: {'bn' if family % 10 == 0 else 'en'}\ntitle: T"
        source = parse_document(f"---\n{front}\n---\n" + "\n\n".join(sections), f"text{family:07d}.md")
        yield timed(desk.update_document, source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["build", "measure"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--updates", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write what was found, for comparing two builds")
    given = parser.parse_args()
    if given.command == "build":
        print(f"{given.chunks} chunks in {build(given.path, given.chunks):.0f} s")
    else:
        measure(given.path, given.rounds, given.queries, given.updates, given.out)


if __name__ == "__main__":
    main()
