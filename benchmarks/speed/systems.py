"""The systems that are compared, each set up as its own documentation would have a user do, for one thread.

All of them get the same chunks (text, vector, document, whether it is in force, language) in the same order and are
asked for the ten best in force. A question is matched by any of its words. Whoever keeps texts gives them back with
the hits. An update is a new version of a document of ten chunks: the former ten stay, and are no longer found.

Libraries are imported where they are used, numpy too: what a cold process loads is part of what is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from benchmarks.speed.data import Batch, Change, Data
    from evidencedesk import Desk

Mode = Literal["keyword", "vector", "hybrid"]
KEYWORD, VECTOR, ALL = frozenset({"keyword"}), frozenset({"vector"}), frozenset({"keyword", "vector", "hybrid"})
K = 10
LEG_DEPTH = 100
"""Candidates of each leg of a hybrid search where the user has to say: as many as evidencedesk takes."""
RRF_CONSTANT = 60
DIMENSION = 384


class Asked(Protocol):
    """A question; its vector is a numpy row, or an array.array in a process that should not need numpy."""

    @property
    def text(self) -> str: ...
    @property
    def vector(self) -> Any: ...


class System:
    """One system in a folder of its own: built once, then opened and asked."""

    name: ClassVar[str]
    distributions: ClassVar[tuple[str, ...]]
    """What is to be installed, and whose versions are reported."""
    modules: ClassVar[tuple[str, ...]]
    """What is imported before an ingest is timed."""
    modes: ClassVar[frozenset[Mode]] = ALL
    filters: ClassVar[bool] = True
    """Whether it can be asked for one language only."""
    updates: ClassVar[bool] = True
    """Whether it can take an update that is on disk without writing everything anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def build(self, data: Data, threads: int) -> None:
        """Write everything, so that a process that opens the folder finds it. The folder is there and empty."""
        raise NotImplementedError

    def open(self) -> None:
        raise NotImplementedError

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        """The ten best in force, best first, in `lang` unless that is empty; with their texts where it keeps them."""
        raise NotImplementedError

    def rows(self, found: Any) -> list[int]:
        """The chunk numbers of what a search gave, in order; not timed."""
        raise NotImplementedError

    def update(self, change: Change) -> None:
        """Bring in a new version, durably and visible to the next search."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing to do where the end of the process is enough."""


def status(is_current: bool) -> str:
    return "current" if is_current else "superseded"


def reciprocal_rank_fusion(*legs: Sequence[int]) -> list[int]:
    score: dict[int, float] = {}
    for leg in legs:
        for rank, row in enumerate(leg, 1):
            score[row] = score.get(row, 0.0) + 1 / (RRF_CONSTANT + rank)
    return sorted(score, key=lambda row: -score[row])[:K]


# ---------------------------------------------------------------- this product


class QuestionVectors:
    """The embedder of a desk that is only asked: it hands over the vector that came with the question."""

    name = "given"
    dimension = DIMENSION
    fingerprint = ""
    languages = None

    def __init__(self) -> None:
        self.vector_of: dict[str, Any] = {}

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return [self.vector_of[text] for text in texts]

    embed_queries = embed_documents


class EvidenceDesk(System):
    """evidencedesk through its Desk: ranked by its own weighted fusion; filters are its own `lang`.

    Documents are handed over parsed, one section a chunk without title or heading, so that the text that is indexed is
    the one that the others get; cutting, analysing and hashing it is part of the ingest.
    """

    name = "evidencedesk"
    as_of: str | None = None
    """An ISO date to search as of; None: now."""
    distributions = ("sqlalchemy", "numpy", "sqlite-vec")
    modules = ("evidencedesk.desk",)

    def build(self, data: Data, threads: int) -> None:
        from benchmarks.speed.data import VectorsOfTexts
        from evidencedesk import Desk

        with Desk.open(self.folder / "desk.db", embedder=VectorsOfTexts(data)) as desk:
            write_documents(desk, data.batches())

    def open(self) -> None:
        from evidencedesk import Desk

        self.embedder = QuestionVectors()
        self.desk = Desk.open(self.folder / "desk.db", embedder=self.embedder)

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        self.embedder.vector_of = {question.text: question.vector}
        return self.desk.search(question.text, k=K, mode=mode, lang=lang or None, as_of=self.as_of)

    def rows(self, found: Any) -> list[int]:
        # A chunk knows its first row by the path of its document, and its place by the line it stands in.
        return [int(hit.chunk.location.path.rpartition("/")[0]) + hit.chunk.location.line_start - 1 for hit in found]

    def update(self, change: Change) -> None:
        self.embedder.vector_of = dict(zip(change.texts, change.vectors, strict=True))
        self.desk.update_document(source_document(change.document, change.texts))

    def close(self) -> None:
        self.desk.close()


def write_documents(desk: Desk, batches: Iterator[Batch]) -> None:
    """Bring every document into an empty desk, by the fastest public way there is for documents that are parsed."""
    for batch in batches:
        for document in batch.documents:
            texts = [batch.texts[row - batch.documents[0].first_row] for row in document.rows]
            desk.update_document(source_document(document, texts))


def source_document(document: Any, texts: Sequence[str]) -> Any:
    """A parsed document whose line n is chunk n; its path begins with its first row."""
    from benchmarks.speed.data import beginning
    from evidencedesk import SourceDocument
    from evidencedesk.records import Block, Section

    return SourceDocument(
        path=f"{document.first_row}/{document.family}.md",
        doc_id=document.doc_id,
        family=document.family,
        version=f"v{document.version}",
        lang=document.lang,
        title="",
        source="\n".join(texts),
        sections=tuple(Section((), (Block("text", line, line),)) for line in range(1, len(texts) + 1)),
        effective_from=beginning(document.version),
    )


# ---------------------------------------------------------------- keyword and vector


class SqliteFtsVec(System):
    """SQLite with FTS5 and sqlite-vec in one file, as the documentation of sqlite-vec does hybrid search.

    FTS5 over an external content table, its default tokenizer, bm25(); vec0 with float32 and cosine, brute force, with
    the status and the language as metadata columns; reciprocal rank fusion of the hundred best of each. WAL, commits
    of 10,000 chunks.
    """

    name = "fts5+sqlite-vec"
    distributions = ("sqlite-vec",)
    modules = ("sqlite_vec",)

    def _connect(self) -> Any:
        import sqlite_vec

        try:
            from pysqlite3 import dbapi2 as sqlite3
        except ImportError:
            import sqlite3  # where no wheel of the other one exists, the interpreter's own may load extensions

        connection = sqlite3.connect(str(self.folder / "chunks.db"), isolation_level=None)
        connection.enable_load_extension(True)
        sqlite_vec.load(connection)
        connection.enable_load_extension(False)
        connection.execute("PRAGMA journal_mode = WAL")
        return connection

    def build(self, data: Data, threads: int) -> None:
        self.open()
        self.connection.executescript(
            f"""
            CREATE TABLE chunks (id INTEGER PRIMARY KEY, doc_id TEXT, lang TEXT, status TEXT, text TEXT);
            CREATE INDEX chunks_by_doc_id ON chunks (doc_id);
            CREATE VIRTUAL TABLE texts USING fts5 (text, content='chunks', content_rowid='id');
            CREATE VIRTUAL TABLE vectors USING vec0 (
                id INTEGER PRIMARY KEY, embedding float[{DIMENSION}] distance_metric=cosine, status TEXT, lang TEXT
            );
            """
        )
        for batch in data.batches():
            self._add(batch.with_chunks())
        self.connection.close()

    def _add(self, chunks: Iterator[Any]) -> None:
        rows, vectors = [], []
        for document, row, text, vector in chunks:
            state = status(document.is_current)
            rows.append((row, document.doc_id, document.lang, state, text))
            vectors.append((row, vector.tobytes(), state, document.lang))
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", rows)
        self.connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", [(r[0], r[4]) for r in rows])
        self.connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", vectors)
        self.connection.execute("COMMIT")

    def open(self) -> None:
        self.connection = self._connect()

    def _best(self, question: Asked, lang: str, limit: int) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in question.text.split())
        query = "SELECT id FROM texts JOIN chunks ON id = texts.rowid WHERE texts MATCH ? AND status = 'current'"
        bound: list[Any] = [match]
        if lang:
            query += " AND lang = ?"
            bound.append(lang)
        return [row[0] for row in self.connection.execute(f"{query} ORDER BY rank LIMIT {limit}", bound)]

    def _nearest(self, question: Asked, lang: str, limit: int) -> list[int]:
        query = "SELECT id FROM vectors WHERE embedding MATCH ? AND k = ? AND status = 'current'"
        bound = [question.vector.tobytes(), limit]
        if lang:
            query += " AND lang = ?"
            bound.append(lang)
        return [row[0] for row in self.connection.execute(query, bound)]

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        if mode == "keyword":
            ids = self._best(question, lang, K)
        elif mode == "vector":
            ids = self._nearest(question, lang, K)
        else:
            ids = reciprocal_rank_fusion(
                self._best(question, lang, LEG_DEPTH), self._nearest(question, lang, LEG_DEPTH)
            )
        marks = ", ".join("?" * len(ids))
        query = f"SELECT id, doc_id, lang, status, text FROM chunks WHERE id IN ({marks})"
        row_of = {row[0]: row for row in self.connection.execute(query, ids)}
        return [row_of[number] for number in ids]

    def rows(self, found: Any) -> list[int]:
        return [row[0] for row in found]

    def update(self, change: Change) -> None:
        former = [(row,) for row in change.former.rows]
        new = zip([change.document] * len(former), change.document.rows, change.texts, change.vectors, strict=True)
        rows = [(row, document.doc_id, document.lang, "current", text) for document, row, text, _ in new]
        vectors = [
            (row[0], vector.tobytes(), "current", row[2]) for row, vector in zip(rows, change.vectors, strict=True)
        ]
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE chunks SET status = 'superseded' WHERE doc_id = ?", (change.former.doc_id,))
        connection.executemany("UPDATE vectors SET status = 'superseded' WHERE id = ?", former)
        connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", rows)
        connection.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", [(r[0], r[4]) for r in rows])
        connection.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?)", vectors)
        connection.execute("COMMIT")


class LanceDb(System):
    """LanceDB, embedded: its own full-text index with its defaults, bitmap indexes on status and language.

    Vectors are scanned, exactly, which is what it does until a user makes an index. Hybrid is its own (reciprocal
    rank fusion of the ten best of each).
    """

    name = "lancedb"
    distributions = ("lancedb", "pyarrow")
    modules = ("lancedb", "pyarrow")
    index: ClassVar[str | None] = None

    def build(self, data: Data, threads: int) -> None:
        import lancedb
        import pyarrow as pa

        schema = pa.schema([
            ("id", pa.int64()), ("doc_id", pa.string()), ("lang", pa.string()), ("status", pa.string()),
            ("text", pa.string()), ("vector", pa.list_(pa.float32(), DIMENSION)),
        ])  # fmt: skip

        def record_batches() -> Iterator[Any]:
            for batch in data.batches():
                known = [(document, row) for document, row, _, _ in batch.with_chunks()]
                columns = [
                    pa.array([row for _, row in known], pa.int64()),
                    pa.array([document.doc_id for document, _ in known]),
                    pa.array([document.lang for document, _ in known]),
                    pa.array([status(document.is_current) for document, _ in known]),
                    pa.array(batch.texts),
                    pa.FixedSizeListArray.from_arrays(pa.array(batch.vectors.ravel()), DIMENSION),
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        table = lancedb.connect(self.folder).create_table("chunks", data=record_batches(), schema=schema)
        table.create_fts_index("text")
        for column in ("status", "lang"):
            table.create_scalar_index(column, index_type="BITMAP")
        if self.index is not None:
            table.create_index(metric="cosine", vector_column_name="vector", index_type=self.index)

    def open(self) -> None:
        import lancedb

        self.table = lancedb.connect(self.folder).open_table("chunks")

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        import numpy as np

        vector = np.asarray(question.vector, dtype=np.float32)
        if mode == "keyword":
            query = self.table.search(question.text, query_type="fts")
        elif mode == "vector":
            query = self.table.search(vector, query_type="vector").distance_type("cosine")
        else:
            query = self.table.search(query_type="hybrid").vector(vector).text(question.text)
            query = query.distance_type("cosine")
        where = "status = 'current'" + (f" AND lang = '{lang}'" if lang else "")
        return query.where(where).select(["id", "doc_id", "lang", "text"]).limit(K).to_list()

    def rows(self, found: Any) -> list[int]:
        return [row["id"] for row in found]

    def update(self, change: Change) -> None:
        document = change.document
        self.table.update(where=f"doc_id = '{change.former.doc_id}'", values={"status": "superseded"})
        self.table.add([
            {"id": row, "doc_id": document.doc_id, "lang": document.lang, "status": "current", "text": text,
             "vector": vector}
            for row, text, vector in zip(document.rows, change.texts, change.vectors, strict=True)
        ])  # fmt: skip


class LanceDbIndexed(LanceDb):
    """The same with its default vector index (IVF_PQ), as its documentation advises for large tables."""

    name = "lancedb-ivf"
    index = "IVF_PQ"


class Txtai(System):
    """txtai with content and hybrid search: Faiss (its default components, IVF from 5,000 on), its own BM25, SQLite.

    Filters are conditions of its SQL, which it applies to the candidates it has (ten times the hits). One leg alone is
    asked by hiding the other. An update ends with `save`, which is what puts it on disk.
    """

    name = "txtai"
    distributions = ("txtai", "faiss-cpu")
    modules = ("txtai", "faiss")

    def _embeddings(self) -> Any:
        from txtai import Embeddings

        return Embeddings({"method": "external", "content": True, "hybrid": True, "transform": self._transform()})

    def _transform(self) -> Any:
        self.vector_of: dict[str, Any] = {}

        # It takes functions, not methods.
        def vectors_of(texts: Sequence[str]) -> Any:
            import numpy as np

            return np.stack([np.asarray(self.vector_of[text], dtype=np.float32) for text in texts])

        return vectors_of

    def build(self, data: Data, threads: int) -> None:
        embeddings = self._embeddings()

        def rows() -> Iterator[Any]:
            # It reads ahead, by less than a batch of ours.
            former: dict[str, Any] = {}
            for batch in data.batches():
                now = dict(zip(batch.texts, batch.vectors, strict=True))
                self.vector_of, former = former | now, now
                for document, row, text, _ in batch.with_chunks():
                    yield self._row(document, row, text)

        embeddings.index(rows())
        embeddings.save(str(self.folder / "index"))
        embeddings.close()

    def _row(self, document: Any, row: int, text: str) -> tuple[str, dict[str, str], None]:
        values = {"doc_id": document.doc_id, "lang": document.lang, "status": status(document.is_current)}
        return str(row), {"text": text, **values}, None

    def open(self) -> None:
        self.embeddings = self._embeddings()
        self.embeddings.load(str(self.folder / "index"), config={"transform": self._transform()})

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        embeddings, self.vector_of = self.embeddings, {question.text: question.vector}
        query = "SELECT id, text, doc_id, score FROM txtai WHERE similar(:asked) AND status = 'current'"
        hidden = {"keyword": "ann", "vector": "scoring", "hybrid": None}[mode]
        kept = hidden and getattr(embeddings, hidden)
        if hidden:
            setattr(embeddings, hidden, None)
        try:
            bound = {"asked": question.text} | ({"lang": lang} if lang else {})
            return embeddings.search(f"{query} AND lang = :lang" if lang else query, K, parameters=bound)
        finally:
            if hidden:
                setattr(embeddings, hidden, kept)

    def rows(self, found: Any) -> list[int]:
        return [int(row["id"]) for row in found]

    def update(self, change: Change) -> None:
        # It has no way to change a field alone: the former chunks are written again, with their vectors.
        numbers = ", ".join(f"'{row}'" for row in change.former.rows)
        texts = {
            int(row["id"]): row["text"]
            for row in self.embeddings.search(f"SELECT id, text FROM txtai WHERE id IN ({numbers})", len(change.texts))
        }
        former_vectors = dict(zip(change.former.rows, change.former_vectors, strict=True))
        self.vector_of = {text: former_vectors[row] for row, text in texts.items()} | dict(
            zip(change.texts, change.vectors, strict=True)
        )
        former = change.former._replace(is_current=False)
        rows = [self._row(former, row, text) for row, text in texts.items()]
        rows += [
            self._row(change.document, row, text) for row, text in zip(change.document.rows, change.texts, strict=True)
        ]
        self.embeddings.upsert(rows)
        self.embeddings.save(str(self.folder / "index"))


class ChromaDb(System):
    """Chroma, embedded: its default HNSW with cosine. It ranks no keywords, so there is its vector search only.

    Filters are conditions on metadata. Written in the largest batches it takes.
    """

    name = "chromadb"
    distributions = ("chromadb",)
    modules = ("chromadb",)
    modes = VECTOR

    def _client(self) -> Any:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        return chromadb.PersistentClient(str(self.folder), settings=settings)

    def build(self, data: Data, threads: int) -> None:
        client = self._client()
        hnsw = {"space": "cosine", "num_threads": threads}
        collection = client.create_collection("chunks", configuration={"hnsw": hnsw}, embedding_function=None)
        for batch in data.batches(client.get_max_batch_size()):
            known = [(document, row) for document, row, _, _ in batch.with_chunks()]
            collection.add(
                ids=[str(row) for _, row in known],
                embeddings=batch.vectors,
                documents=batch.texts,
                metadatas=[self._metadata(document) for document, _ in known],
            )

    def _metadata(self, document: Any) -> dict[str, str]:
        return {"doc_id": document.doc_id, "lang": document.lang, "status": status(document.is_current)}

    def open(self) -> None:
        self.collection = self._client().get_collection("chunks", embedding_function=None)

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        where: dict[str, Any] = {"status": "current"}
        if lang:
            where = {"$and": [where, {"lang": lang}]}
        return self.collection.query(
            query_embeddings=[question.vector], n_results=K, where=where, include=["documents", "metadatas"]
        )

    def rows(self, found: Any) -> list[int]:
        return [int(name) for name in found["ids"][0]]

    def update(self, change: Change) -> None:
        superseded = self._metadata(change.former._replace(is_current=False))
        former = [str(row) for row in change.former.rows]
        self.collection.update(ids=former, metadatas=[superseded] * len(former))
        self.collection.add(
            ids=[str(row) for row in change.document.rows],
            embeddings=change.vectors,
            documents=change.texts,
            metadatas=[self._metadata(change.document)] * len(change.texts),
        )


class QdrantEdge(System):
    """Qdrant Edge: HNSW with the defaults of Qdrant (m 16, ef_construct 100), its own BM25 as a sparse vector with IDF.

    The average length that its BM25 has to be told is the true one; status, language and doc_id are keyword indexes of
    the payload; optimised after the ingest, one search thread. Hybrid is its own reciprocal rank fusion of a hundred
    candidates of each. An update is flushed.
    """

    name = "qdrant-edge"
    distributions = ("qdrant-edge-py",)
    modules = ("qdrant_edge",)
    has_graph: ClassVar[bool] = True

    def _config(self, threads: int) -> Any:
        import qdrant_edge as q

        graph = q.HnswIndexConfig(
            m=16 if self.has_graph else 0, ef_construct=100, full_scan_threshold=10_000, max_indexing_threads=threads
        )
        return q.EdgeConfig(
            vectors={"dense": q.EdgeVectorParams(DIMENSION, q.Distance.Cosine)},
            sparse_vectors={"bm25": q.EdgeSparseVectorParams(modifier=q.Modifier.Idf)},
            hnsw_config=graph,
            max_search_threads=1,
        )

    def _bm25(self) -> Any:
        import qdrant_edge as q

        return q.Bm25(q.Bm25Config(avg_len=60.0))

    def build(self, data: Data, threads: int) -> None:
        import qdrant_edge as q

        self.folder.joinpath("shard").mkdir()
        self.shard = q.EdgeShard.create(str(self.folder / "shard"), self._config(threads))
        self.bm25 = self._bm25()
        for column in ("status", "lang", "doc_id"):
            self.shard.update(q.UpdateOperation.create_field_index(column, q.PayloadSchemaType.Keyword))
        for batch in data.batches(1000):
            self._add(batch.with_chunks())
        self.shard.optimize()
        self.shard.flush()
        self.shard.close()

    def _add(self, chunks: Iterator[Any]) -> None:
        import qdrant_edge as q

        points = [
            q.Point(
                row,
                {"dense": vector.tolist(), "bm25": self.bm25.embed_document(text)},
                {"text": text, "doc_id": document.doc_id, "lang": document.lang,
                 "status": status(document.is_current)},
            )
            for document, row, text, vector in chunks
        ]  # fmt: skip
        self.shard.update(q.UpdateOperation.upsert_points(points))

    def open(self) -> None:
        import qdrant_edge as q

        self.shard = q.EdgeShard.load(str(self.folder / "shard"), self._config(1))
        self.bm25 = self._bm25()

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        import qdrant_edge as q

        conditions = [q.FieldCondition("status", match=q.MatchValue("current"))]
        if lang:
            conditions.append(q.FieldCondition("lang", match=q.MatchValue(lang)))
        scope = q.Filter(must=conditions)
        dense = q.Query.Nearest(question.vector.tolist(), "dense") if mode != "keyword" else None
        sparse = q.Query.Nearest(self.bm25.embed_query(question.text), "bm25") if mode != "vector" else None
        if dense is None or sparse is None:
            request = q.QueryRequest(limit=K, query=dense or sparse, filter=scope, with_payload=True)
        else:
            legs = [q.Prefetch(limit=LEG_DEPTH, query=leg, filter=scope) for leg in (dense, sparse)]
            request = q.QueryRequest(
                limit=K, prefetches=legs, query=q.Fusion.Rrf(RRF_CONSTANT), filter=scope, with_payload=True
            )
        return self.shard.query(request)

    def rows(self, found: Any) -> list[int]:
        return [point.id for point in found]

    def update(self, change: Change) -> None:
        import qdrant_edge as q

        self.shard.update(q.UpdateOperation.set_payload(list(change.former.rows), {"status": "superseded"}))
        documents = [change.document] * len(change.texts)
        self._add(zip(documents, change.document.rows, change.texts, change.vectors, strict=True))
        self.shard.flush()

    def close(self) -> None:
        self.shard.close()


# ---------------------------------------------------------------- keyword alone


class Tantivy(System):
    """tantivy: its default tokenizer with positions, BM25; status and language as raw fields that do not score.

    One writer thread with 128 MB. Matches are not counted, so that it may skip. It cannot change a field: the former
    chunks of an update are read, deleted and written again. An update is committed and the reader reloaded.
    """

    name = "tantivy"
    distributions = ("tantivy",)
    modules = ("tantivy",)
    modes = KEYWORD

    def _schema(self) -> Any:
        import tantivy

        builder = tantivy.SchemaBuilder()
        builder.add_unsigned_field("row", stored=True, indexed=True)
        builder.add_text_field("text", stored=True)
        for name in ("doc_id", "lang", "status"):
            builder.add_text_field(name, stored=True, tokenizer_name="raw", index_option="basic")
        return builder.build()

    def _writer(self) -> Any:
        return self.index.writer(heap_size=128_000_000, num_threads=1)

    def build(self, data: Data, threads: int) -> None:
        import tantivy

        self.schema = self._schema()
        self.index = tantivy.Index(self.schema, path=str(self.folder))
        writer = self._writer()
        for batch in data.batches():
            for document, row, text, _ in batch.with_chunks():
                writer.add_document(self._document(document, row, text))
        writer.commit()
        writer.wait_merging_threads()

    def _document(self, document: Any, row: int, text: str) -> Any:
        import tantivy

        values = {"doc_id": document.doc_id, "lang": document.lang, "status": status(document.is_current)}
        return tantivy.Document.from_dict({"row": row, "text": text, **values}, self.schema)

    def open(self) -> None:
        import tantivy

        self.schema = self._schema()
        self.index = tantivy.Index(self.schema, path=str(self.folder))
        self.writer: Any = None

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        from tantivy import Occur, Query

        wanted = {"status": "current"} | ({"lang": lang} if lang else {})
        conditions = [Query.term_query(self.schema, name, value, "basic") for name, value in wanted.items()]
        query = Query.boolean_query([
            (Occur.Must, self.index.parse_query(question.text, ["text"])),
            *((Occur.Must, Query.const_score_query(condition, 0.0)) for condition in conditions),
        ])  # fmt: skip
        searcher = self.index.searcher()
        return [searcher.doc(address) for _, address in searcher.search(query, K, count=False).hits]

    def rows(self, found: Any) -> list[int]:
        return [document.get_first("row") for document in found]

    def update(self, change: Change) -> None:
        from tantivy import Query

        self.writer = self.writer or self._writer()
        searcher = self.index.searcher()
        query = Query.term_query(self.schema, "doc_id", change.former.doc_id, "basic")
        stored = [searcher.doc(address) for _, address in searcher.search(query, len(change.texts)).hits]
        self.writer.delete_documents_by_term("doc_id", change.former.doc_id)
        former = change.former._replace(is_current=False)
        for document in stored:
            self.writer.add_document(self._document(former, document.get_first("row"), document.get_first("text")))
        for row, text in zip(change.document.rows, change.texts, strict=True):
            self.writer.add_document(self._document(change.document, row, text))
        self.writer.commit()
        self.index.reload()


class Bm25s(System):
    """bm25s: scores computed when it is built (Lucene's variant), in memory, without stop words or stemming.

    Status and language are its `weight_mask`. It keeps no texts and gives numbers; it takes no updates.
    """

    name = "bm25s"
    distributions = ("bm25s",)
    modules = ("bm25s",)
    modes = KEYWORD
    updates = False

    def build(self, data: Data, threads: int) -> None:
        import bm25s

        texts = (text for batch in data.batches() for text in batch.texts)
        tokenized = bm25s.tokenize(list(texts), stopwords=None, show_progress=False)
        retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        retriever.index(tokenized, show_progress=False)
        retriever.save(str(self.folder / "index"))
        save_masks(self.folder, data)

    def open(self) -> None:
        import bm25s
        import numpy as np

        self.retriever = bm25s.BM25.load(str(self.folder / "index"))
        with np.load(self.folder / "masks.npz") as masks:
            self.mask_of = {name: masks[name].astype(np.float32) for name in masks.files}

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        import bm25s

        tokenized = bm25s.tokenize([question.text], stopwords=None, show_progress=False, return_ids=False)
        mask = self.mask_of[lang or "all"]
        return self.retriever.retrieve(tokenized, k=K, show_progress=False, weight_mask=mask)

    def rows(self, found: Any) -> list[int]:
        return [int(row) for row, score in zip(found.documents[0], found.scores[0], strict=True) if score > 0]


def save_masks(folder: Path, data: Data) -> None:
    """Which chunks are in force, in all and by language, for libraries that keep nothing but an index."""
    import numpy as np

    from benchmarks.speed.data import scopes

    np.savez(folder / "masks.npz", **{lang or "all": mask for lang, mask in scopes(data).items()})


# ---------------------------------------------------------------- vectors alone


class FaissFlat(System):
    """Faiss, IndexFlatIP: an exact scan in memory. Status and language are a bitmap of ids.

    It keeps no texts and gives numbers; to keep a change it writes the whole file, so no update is measured.
    """

    name = "faiss-flat"
    distributions = ("faiss-cpu",)
    modules = ("faiss",)
    modes = VECTOR
    updates = False

    def build(self, data: Data, threads: int) -> None:
        import faiss

        index = faiss.IndexFlatIP(DIMENSION)
        for batch in data.batches():
            index.add(batch.vectors)
        faiss.write_index(index, str(self.folder / "index.faiss"))
        save_masks(self.folder, data)

    def open(self) -> None:
        import faiss
        import numpy as np

        self.index = faiss.read_index(str(self.folder / "index.faiss"))
        with np.load(self.folder / "masks.npz") as masks:
            bits = {name: np.packbits(masks[name], bitorder="little") for name in masks.files}
        self.selector_of = {name: faiss.IDSelectorBitmap(found) for name, found in bits.items()}

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        import faiss
        import numpy as np

        asked = np.asarray(question.vector, dtype=np.float32)[None]
        chosen = faiss.SearchParameters(sel=self.selector_of[lang or "all"])
        return self.index.search(asked, K, params=chosen)

    def rows(self, found: Any) -> list[int]:
        return [int(row) for row in found[1][0] if row >= 0]


class USearch(System):
    """usearch: HNSW with its defaults (connectivity 16, expansion 128 and 64, the number type it picks), cosine.

    Its Python search takes no condition, so it holds what is in force alone and cannot be asked for a language. It
    keeps no texts and gives numbers; to keep a change it writes the whole file, so no update is measured.
    """

    name = "usearch"
    distributions = ("usearch",)
    modules = ("usearch.index",)
    modes = VECTOR
    filters = False
    updates = False

    def build(self, data: Data, threads: int) -> None:
        import numpy as np
        from usearch.index import Index

        index = Index(ndim=DIMENSION, metric="cos")
        for batch in data.batches():
            kept = [(row, vector) for document, row, _, vector in batch.with_chunks() if document.is_current]
            index.add(np.array([row for row, _ in kept]), np.stack([vector for _, vector in kept]), threads=threads)
        index.save(str(self.folder / "index.usearch"))

    def open(self) -> None:
        from usearch.index import Index

        self.index = Index.restore(str(self.folder / "index.usearch"))

    def search(self, mode: Mode, question: Asked, lang: str) -> Any:
        import numpy as np

        return self.index.search(np.asarray(question.vector, dtype=np.float32), K, threads=1)

    def rows(self, found: Any) -> list[int]:
        return [int(row) for row in found.keys]


SYSTEMS: dict[str, type[System]] = {
    system.name: system
    for system in (
        EvidenceDesk, SqliteFtsVec, LanceDb, LanceDbIndexed, ChromaDb, Txtai, QdrantEdge, Tantivy, Bm25s, FaissFlat,
        USearch,
    )
}  # fmt: skip
"""By name; this product first."""
