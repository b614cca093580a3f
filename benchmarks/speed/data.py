"""What every system is given: seeded texts, vectors, documents, questions, and what the right answers to them are.

A folder holds one size of it: `texts.txt` (a chunk a line), `vectors.npy` (float32, unit rows), `documents.npy`,
`questions.json` and `.npy`, `truth.json`. It is written and read in batches, so memory does not grow with it.

Texts have 40 to 80 words (60 on average) that follow Zipf's law (exponent 1, 500,000 words). Vectors lie in 2,000
clusters around a large common mean, as those of a real model do. Ten chunks are a document; about 5 % of the documents
are superseded by a second version. The language of 1 % of the families is `de`, of 0.01 % (at least one) `fr`, of all
others `en`; it is a label to filter by. Questions are of three kinds: `rare` (3 words of ranks 20,000 to 200,000),
`mixed` (2 rare words, one of ranks 200 to 5,000, one of ranks 10 to 100) and `frequent` (4 words of ranks 5 to 200).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import weakref
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

DIMENSION = 384
CHUNKS_IN_DOCUMENT = 10
SUPERSEDED_SHARE = 0.05
BATCH = 10_000
"""Chunks that are in memory at once."""
K = 10
KINDS = ("rare", "mixed", "frequent")
SHARES = {"de": 0.01, "fr": 0.0001}
"""Languages to filter by, with the share of the families that are in them."""
LANGUAGES = ("en", *SHARES)
K1, B = 1.2, 0.75
DATA_VERSION = 1
"""Changes whenever the same seed would give other data."""

LETTERS = "bcdfghjklmnpqrtvwxz"
VOCABULARY = 500_000


def word(rank: int) -> str:
    """A word that every analyser leaves as it is: four or five consonants, no s at the end."""
    found = ""
    rank += len(LETTERS) ** 3
    while rank:
        rank, place = divmod(rank, len(LETTERS))
        found = LETTERS[place] + found
    return found


@lru_cache(maxsize=1)
def words() -> list[str]:
    """The vocabulary, most frequent first."""
    return [word(rank) for rank in range(VOCABULARY)]


@lru_cache(maxsize=1)
def _edges() -> NDArray[np.float64]:
    weights = 1.0 / np.arange(1, VOCABULARY + 1)
    return np.cumsum(weights / weights.sum())


def chunk_texts(rng: np.random.Generator, count: int) -> list[str]:
    """Texts of 40 to 80 words of Zipf's law."""
    lengths = rng.integers(40, 81, count)
    ranks = np.minimum(np.searchsorted(_edges(), rng.random(int(lengths.sum()))), VOCABULARY - 1)
    known = words()
    flat = iter([known[rank] for rank in ranks.tolist()])
    return [" ".join(islice(flat, length)) for length in lengths.tolist()]


@lru_cache(maxsize=1)
def _clusters(clusters: int) -> tuple[Vectors, Vectors, Vectors]:
    """Centres, the scale of each direction, and the common mean."""
    scale = (1 + np.arange(DIMENSION, dtype=np.float32) / 16) ** np.float32(-0.7)
    centres = np.random.default_rng(1).standard_normal((clusters, DIMENSION), dtype=np.float32)
    mean = np.random.default_rng(2).standard_normal(DIMENSION, dtype=np.float32) * np.float32(0.7)
    return centres, scale, mean


def clustered(count: int, seed: int, clusters: int = 2000) -> Vectors:
    """Unit vectors around cluster centres, with a large common mean and most of the variance in few directions.

    Cosines lie about 0.6 to 0.95, as those of a real model do.
    """
    centres, scale, mean = _clusters(clusters)
    generator = np.random.default_rng(seed)
    noise = np.float32(0.7) * generator.standard_normal((count, DIMENSION), dtype=np.float32)
    made = (centres[generator.integers(0, clusters, count)] + noise) * scale + mean
    return unit(made)


def unit(rows: Vectors) -> Vectors:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def beginning(version: int) -> datetime:
    """When versions of that number take effect: all of them before anything of this was written."""
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=version)


class Document(NamedTuple):
    """One version of a text: ten chunks, rows first_row to first_row + 9."""

    family: str
    version: int
    lang: str
    is_current: bool
    first_row: int

    @property
    def doc_id(self) -> str:
        return f"{self.family}-v{self.version}"

    @property
    def rows(self) -> range:
        return range(self.first_row, self.first_row + CHUNKS_IN_DOCUMENT)


class Batch(NamedTuple):
    """Consecutive documents with their chunks: text and vector n are those of row documents[0].first_row + n."""

    documents: list[Document]
    texts: list[str]
    vectors: Vectors

    def with_chunks(self) -> Iterator[tuple[Document, int, str, Vectors]]:
        """Document, row, text and vector of each chunk."""
        for document in self.documents:
            for row in document.rows:
                place = row - self.documents[0].first_row
                yield document, row, self.texts[place], self.vectors[place]


class Question(NamedTuple):
    kind: str
    text: str
    vector: Vectors


class Change(NamedTuple):
    """A new version of a document: `former` is superseded by `document`, whose texts and vectors are given."""

    former: Document
    former_vectors: Vectors
    document: Document
    texts: list[str]
    vectors: Vectors


@dataclass(frozen=True)
class Data:
    """The data of one folder, read as it is asked for."""

    folder: Path
    count: int
    """Chunks, superseded ones included."""

    @cached_property
    def _documents(self) -> NDArray[np.void]:
        return np.load(self.folder / "documents.npy")

    def document(self, number: int) -> Document:
        family, version, lang, is_current = self._documents[number].item()
        return Document(f"text{family:07d}", version, LANGUAGES[lang], bool(is_current), number * CHUNKS_IN_DOCUMENT)

    def batches(self, size: int = BATCH) -> Iterator[Batch]:
        """All documents in the order in which they come in, at most `size` chunks at a time."""
        step = max(1, size // CHUNKS_IN_DOCUMENT)
        numbers = range(len(self._documents))
        with (self.folder / "texts.txt").open(encoding="ascii") as lines:
            for start in numbers[::step]:
                documents = [self.document(number) for number in numbers[start : start + step]]
                texts = [line.rstrip("\n") for line in islice(lines, len(documents) * CHUNKS_IN_DOCUMENT)]
                yield Batch(documents, texts, self.vectors.rows(documents[0].first_row, len(texts)))

    @cached_property
    def vectors(self) -> VectorFile:
        return VectorFile(self.folder / "vectors.npy")

    @cached_property
    def questions(self) -> list[Question]:
        """Those that are timed."""
        return _questions(self.folder, "questions")

    @cached_property
    def warm_up(self) -> list[Question]:
        """Other questions, asked before."""
        return _questions(self.folder, "warm_up")

    @cached_property
    def truth(self) -> dict[str, dict[str, list[tuple[list[int], int]]]]:
        """By mode ("keyword", "vector") and language ("": all), for each question: the rows that may be among the
        best ten (ties included), and how many there are to find."""
        return json.loads((self.folder / "truth.json").read_text())

    @property
    def past(self) -> str:
        """The date of a day on which each family had a document in force; of many versions, the middle one's."""
        newest = int(self._documents["version"].max())
        return beginning(newest if newest <= 2 else newest // 2).date().isoformat()

    def change(self, number: int) -> Change:
        """Update 0, 1, ...: the next version of a document in English, in a seeded order; then a further round."""
        order = self._update_order
        turn, place = divmod(number, len(order))
        first = self.document(order[place])
        document = first._replace(version=first.version + turn + 1, first_row=self._new_row(number))
        if turn == 0:
            former, former_vectors = first, self.vectors.rows(first.first_row, CHUNKS_IN_DOCUMENT)
        else:
            before = number - len(order)
            former = first._replace(version=first.version + turn, first_row=self._new_row(before))
            former_vectors = _new_vectors(before)
        texts = chunk_texts(np.random.default_rng([3, number]), CHUNKS_IN_DOCUMENT)
        return Change(former, former_vectors, document, texts, _new_vectors(number))

    def _new_row(self, change_number: int) -> int:
        return self.count + change_number * CHUNKS_IN_DOCUMENT

    @cached_property
    def _update_order(self) -> list[int]:
        known = self._documents
        current = np.flatnonzero(known["is_current"] & (known["lang"] == LANGUAGES.index("en")))
        return np.random.default_rng(4).permutation(current).tolist()


def _new_vectors(change_number: int) -> Vectors:
    return clustered(CHUNKS_IN_DOCUMENT, 1_000_000 + change_number)


class VectorFile:
    """Rows of an .npy file, read when they are asked for, so that they do not stay in memory as mapped pages do."""

    def __init__(self, path: Path) -> None:
        mapped = np.load(path, mmap_mode="r")
        self._shape, self._offset = mapped.shape, mapped.offset
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return self._shape[0]

    def rows(self, first: int, count: int = 1) -> Vectors:
        width = 4 * self._shape[1]
        found = os.pread(self._file, count * width, self._offset + first * width)
        return np.frombuffer(found, dtype="<f4").reshape(count, self._shape[1])


class VectorsOfTexts:
    """An embedder that hands over what was made before: the vector of a chunk's or a question's text.

    It finds a text by a hash of eight bytes, sixteen bytes a chunk in all, in whatever order the texts come.
    """

    name = "given"
    dimension = DIMENSION
    fingerprint = ""
    languages = None
    batch_size = 1024

    def __init__(self, data: Data) -> None:
        self._vectors = data.vectors
        made = np.load(data.folder / "text_hashes.npy")
        self._hashes, self._rows = made["hash"], made["row"]
        self._others: dict[str, Vectors] = {
            question.text: question.vector for question in [*data.questions, *data.warm_up]
        }

    def add(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Texts that are not of the data, such as those of an update."""
        self._others.update(zip(texts, vectors, strict=True))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._others[text] if text in self._others else self._stored(text) for text in texts])

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._others[text] for text in texts])

    def _stored(self, text: str) -> Vectors:
        wanted = text_hash(text)
        place = int(np.searchsorted(self._hashes, wanted))
        if place == len(self._hashes) or self._hashes[place] != wanted:
            raise KeyError(f"no vector was made for {text!r}")
        return self._vectors.rows(int(self._rows[place]))[0]


def text_hash(text: str) -> np.uint64:
    return np.frombuffer(hashlib.blake2b(text.encode(), digest_size=8).digest(), dtype="<u8")[0]


# ---------------------------------------------------------------- making it


def prepare(
    folder: Path,
    count: int,
    questions_of_a_kind: int,
    *,
    versions: int = 0,
    embeddings: Path | None = None,
    asked: Path | None = None,
) -> Data:
    """The data of `count` chunks in `folder`, made unless it is there. ValueError when other data is there.

    `versions`: how many each text has; 0: one, and of about 5 % two. `embeddings` and `asked`: .npy files of real
    vectors (at least `count` rows of 384; those of questions) to take in place of clustered ones.
    """
    count -= count % CHUNKS_IN_DOCUMENT
    if count < 2 * CHUNKS_IN_DOCUMENT:
        raise ValueError(f"at least {2 * CHUNKS_IN_DOCUMENT} chunks, not {count}")
    recipe = {
        "data": DATA_VERSION, "chunks": count, "questions_of_a_kind": questions_of_a_kind, "versions": versions,
        "embeddings": None if embeddings is None else [str(embeddings.resolve()), str(asked)],
    }  # fmt: skip
    finished = folder / "recipe.json"
    if finished.exists():
        if (there := json.loads(finished.read_text())) != recipe:
            raise ValueError(f"{folder} holds the data of {there}, not of {recipe}; give another folder")
        return Data(folder, count)
    folder.mkdir(parents=True, exist_ok=True)
    write_documents(folder, count, versions)
    write_texts(folder, count)
    write_vectors(folder, count, embeddings)
    write_questions(folder, questions_of_a_kind, asked)
    data = Data(folder, count)
    (folder / "truth.json").write_text(json.dumps({"keyword": keyword_truth(data), "vector": vector_truth(data)}))
    finished.write_text(json.dumps(recipe))
    return data


def write_documents(folder: Path, count: int, versions_each: int) -> None:
    rng = np.random.default_rng(20)
    wanted = count // CHUNKS_IN_DOCUMENT
    # The share is of documents, and a superseded one brings its successor along.
    has_two = rng.random(wanted) < SUPERSEDED_SHARE / (1 - SUPERSEDED_SHARE)
    several = [range(1, versions_each + 1)] * wanted if versions_each else [(1, 2) if two else (2,) for two in has_two]
    versions = [(family, version) for family in range(wanted) for version in several[family]]
    versions = versions[:wanted]
    families = rng.permutation(versions[-1][0] + 1)
    made = np.zeros(wanted, dtype=[("family", "<u4"), ("version", "u1"), ("lang", "u1"), ("is_current", "?")])
    made["family"], made["version"] = np.transpose(versions)
    # Where the last one is a first version its successor was cut off.
    made["is_current"] = np.append(made["family"][1:] != made["family"][:-1], True)
    start = 0
    for lang, share in enumerate(SHARES.values(), 1):
        stop = start + max(1, round(share * len(families)))
        made["lang"][np.isin(made["family"], families[start:stop])] = lang
        start = stop
    np.save(folder / "documents.npy", made)


def write_texts(folder: Path, count: int) -> None:
    rng = np.random.default_rng(21)
    hashes = np.empty(count, dtype=[("hash", "<u8"), ("row", "<u4")])
    with (folder / "texts.txt").open("w", encoding="ascii", newline="\n") as file:
        for start in range(0, count, BATCH):
            texts = chunk_texts(rng, min(BATCH, count - start))
            file.writelines(f"{text}\n" for text in texts)
            hashes["hash"][start : start + len(texts)] = [text_hash(text) for text in texts]
    hashes["row"] = np.arange(count)
    hashes.sort(order="hash")
    if (hashes["hash"][1:] == hashes["hash"][:-1]).any():
        raise RuntimeError("two texts have one hash")
    np.save(folder / "text_hashes.npy", hashes)


def write_vectors(folder: Path, count: int, embeddings: Path | None) -> None:
    given = None if embeddings is None else np.load(embeddings, mmap_mode="r")
    if given is not None and (len(given) < count or given.shape[1] != DIMENSION):
        raise ValueError(f"{embeddings} has shape {given.shape}; {count} rows of {DIMENSION} are needed")
    with (folder / "vectors.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (count, DIMENSION)}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, count, BATCH):
            stop = min(start + BATCH, count)
            made = clustered(stop - start, 100 + start // BATCH) if given is None else unit(given[start:stop])
            file.write(np.ascontiguousarray(made, dtype="<f4").tobytes())


def write_questions(folder: Path, of_a_kind: int, asked: Path | None) -> None:
    given = None if asked is None else unit(np.load(asked).astype(np.float32))
    for name, seed, count in (("questions", 7, of_a_kind), ("warm_up", 8, 4)):
        texts = [(kind, text) for kind in KINDS for text in question_texts(kind, seed, count)]
        made = clustered(len(texts), seed)
        if given is not None:
            made = given[np.resize(np.arange(len(given)), len(texts))]
        np.save(folder / f"{name}.npy", made)
        (folder / f"{name}.json").write_text(json.dumps(texts))


def question_texts(kind: str, seed: int, count: int) -> list[str]:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    ranges = {
        "rare": [(20_000, 200_000)] * 3,
        "mixed": [(20_000, 200_000)] * 2 + [(200, 5_000), (10, 100)],
        "frequent": [(5, 200)] * 4,
    }[kind]
    return [" ".join(word(int(rng.integers(low, high))) for low, high in ranges) for _ in range(count)]


def _questions(folder: Path, name: str) -> list[Question]:
    texts = json.loads((folder / f"{name}.json").read_text())
    return [Question(kind, text, row) for (kind, text), row in zip(texts, np.load(folder / f"{name}.npy"), strict=True)]


# ---------------------------------------------------------------- what is right


def scopes(data: Data) -> dict[str, NDArray[np.bool_]]:
    """Which chunks a search may find: of all in force (""), and of those in a language."""
    known = data._documents
    found = {"": known["is_current"]}
    found |= {lang: known["is_current"] & (known["lang"] == LANGUAGES.index(lang)) for lang in SHARES}
    return {lang: np.repeat(mask, CHUNKS_IN_DOCUMENT) for lang, mask in found.items()}


def vector_truth(data: Data) -> dict[str, list[tuple[list[int], int]]]:
    """The nearest chunks of each question by an exact scan."""
    asked = np.stack([question.vector for question in data.questions])
    kept: dict[str, list[list[tuple[float, int]]]] = {}
    masks = scopes(data)
    for first in range(0, data.count, BATCH):
        cosines = data.vectors.rows(first, min(BATCH, data.count - first)) @ asked.T
        for lang, mask in masks.items():
            inside = np.flatnonzero(mask[first : first + BATCH])
            best = kept.setdefault(lang, [[] for _ in asked])
            for number in range(len(asked) if len(inside) else 0):
                values = cosines[inside, number]
                # Twice as many as are needed: those that tie with the tenth are wanted too.
                top = np.argpartition(-values, 2 * K)[: 2 * K] if len(values) > 2 * K else np.arange(len(values))
                found = zip(values[top].tolist(), (inside[top] + first).tolist(), strict=True)
                best[number] = sorted([*best[number], *found], reverse=True)[: 2 * K]
    return {lang: [acceptable(best, int(masks[lang].sum())) for best in several] for lang, several in kept.items()}


def keyword_truth(data: Data) -> dict[str, list[tuple[list[int], int]]]:
    """The best chunks of each question by BM25 over the chunks in force (k1 1.2, b 0.75, idf as Lucene has it)."""
    wanted = {term for question in data.questions for term in question.text.split()}
    rows_of = {term: array("I") for term in wanted}
    counts_of = {term: array("H") for term in wanted}
    lengths = array("H")
    row = 0
    for batch in data.batches():
        for text in batch.texts:
            terms = text.split(" ")
            lengths.append(len(terms))
            if found := wanted.intersection(terms):
                counted = Counter(terms)
                for term in found:
                    rows_of[term].append(row)
                    counts_of[term].append(counted[term])
            row += 1
    masks = scopes(data)
    in_force, length = masks[""], np.frombuffer(lengths, dtype=np.uint16).astype(np.float64)
    total = int(in_force.sum())
    norm = K1 * (1 - B + B * length / length[in_force].mean())
    result: dict[str, list[tuple[list[int], int]]] = {lang: [] for lang in masks}
    for question in data.questions:
        scores = np.zeros(data.count)
        for term in sorted(set(question.text.split())):
            rows = np.frombuffer(rows_of[term], dtype=np.uint32)
            tf = np.frombuffer(counts_of[term], dtype=np.uint16).astype(np.float64)
            n = int(in_force[rows].sum())
            scores[rows] += math.log(1 + (total - n + 0.5) / (n + 0.5)) * tf / (tf + norm[rows])
        for lang, mask in masks.items():
            matching = np.flatnonzero(mask & (scores > 0))
            order = matching[np.argsort(-scores[matching], kind="stable")][: 10 * K]
            best = [(float(scores[place]), int(place)) for place in order]
            result[lang].append(acceptable(best, len(matching)))
    return result


def acceptable(best: Sequence[tuple[float, int]], available: int) -> tuple[list[int], int]:
    """The rows that no one could call wrong among the best ten, since they are them or tie with the tenth; and how
    many there are to find. `best`: (score, row), best first."""
    if not best:
        return [], 0
    floor = best[min(K, len(best)) - 1][0]
    floor -= 1e-6 * abs(floor)
    return [row for score, row in best if score >= floor], min(K, available)
