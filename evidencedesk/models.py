"""The tables. Truth (documents, chunks, vectors) can be read by any SQLite; the lexical tables are derived from it.

People who read the file with plain SQL should start with the views (migrations/views): they are stable, these
tables may change with a migration.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import (
    JSON,
    CheckConstraint,
    DateTime,
    Dialect,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC instant; in SQLite the text `YYYY-MM-DD HH:MM:SS.ffffff`, which sorts as time does."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError(f"an instant needs a time zone: {value!r}")
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class Base(DeclarativeBase):
    """Every table, with constraint names that are the same in every database."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {str: Text, datetime: UtcDateTime, dict[str, Any]: JSON, list[str]: JSON, bytes: LargeBinary}  # noqa: RUF012 - SQLAlchemy reads it


class EmbedderRow(Base):
    """An embedder whose vectors this file holds or held."""

    __tablename__ = "embedders"
    __table_args__ = (
        UniqueConstraint("name", "dimension", "fingerprint"),
        CheckConstraint("dimension > 0", name="dimension"),
    )

    embedder_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the embedder in this file.")
    name: Mapped[str] = mapped_column(doc="Its own name, such as `e5` or `toy`.")
    dimension: Mapped[int] = mapped_column(doc="Floats in each vector.")
    fingerprint: Mapped[str] = mapped_column(doc="Hash of its weights and settings.")


class DeskRow(Base):
    """One row: what the whole file agrees on."""

    __tablename__ = "desk"
    __table_args__ = (CheckConstraint("desk_key = 1", name="one_row"),)

    desk_key: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, doc="Always 1.")
    created_at: Mapped[datetime] = mapped_column(doc="When the file was made.")
    text_version: Mapped[str] = mapped_column(
        doc="Version of tokenizer and stemmer that the lexical tables were made with."
    )
    chunker_version: Mapped[str] = mapped_column(doc="Version of the chunker that cut the chunks.")
    max_chunk_chars: Mapped[int] = mapped_column(doc="Limit of a chunk's text, in characters.")
    embedder_key: Mapped[int | None] = mapped_column(
        ForeignKey("embedders.embedder_key"), doc="The embedder whose vectors answer; NULL: keyword search only."
    )
    next_change_at: Mapped[datetime | None] = mapped_column(
        doc="The next instant at which time alone changes what is in force; NULL: none is known."
    )


class DocumentRow(Base):
    """One version of one text in one language."""

    __tablename__ = "documents"
    __table_args__ = (
        UniqueConstraint("family", "lang", "version_sort"),
        # The promise that a line of versions has at most one current document is the database's own.
        Index(
            "ux_documents_one_current",
            "family",
            "lang",
            unique=True,
            sqlite_where=text("status = 'current'"),
        ),
        Index("ix_documents_valid_from", "valid_from"),
        Index("ix_documents_valid_to", "valid_to"),
        Index("ix_documents_root_path", "root", "path"),
        Index("ix_documents_change_number", "change_number"),
        CheckConstraint("status IN ('current', 'superseded', 'scheduled', 'expired', 'withdrawn')", name="status"),
        CheckConstraint("valid_to IS NULL OR valid_to >= valid_from", name="validity"),
        CheckConstraint("(status = 'withdrawn') = (withdrawn_at IS NOT NULL)", name="withdrawn"),
        {"sqlite_autoincrement": True},
    )

    doc_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the document, never used again.")
    doc_id: Mapped[str] = mapped_column(unique=True, doc="Its name, version mark included.")
    family: Mapped[str] = mapped_column(
        doc="The name without its marks: shared by all versions and languages of a text."
    )
    version: Mapped[str] = mapped_column(doc="Version as the author wrote it.")
    version_sort: Mapped[str] = mapped_column(doc="The version's numbers padded with zeros: sorts as versions do.")
    lang: Mapped[str] = mapped_column(doc="BCP 47 tag; `und` when it was not said.")
    title: Mapped[str] = mapped_column(doc="Title of the document.")
    status: Mapped[str] = mapped_column(doc="current, superseded, scheduled, expired or withdrawn.")
    valid_from: Mapped[datetime] = mapped_column(doc="First instant (UTC) of its validity.")
    valid_to: Mapped[datetime | None] = mapped_column(doc="First instant (UTC) after its validity; NULL: open.")
    effective_from: Mapped[datetime | None] = mapped_column(doc="The author's effective_from, if given.")
    effective_to: Mapped[datetime | None] = mapped_column(doc="The author's effective_to, if given.")
    came_in_at: Mapped[datetime] = mapped_column(doc="When this doc_id was first stored.")
    changed_at: Mapped[datetime] = mapped_column(doc="When its text was last stored or corrected.")
    withdrawn_at: Mapped[datetime | None] = mapped_column(doc="When it was withdrawn, if it was.")
    withdrawn_reason: Mapped[str | None] = mapped_column(doc="Why it was withdrawn.")
    root: Mapped[str] = mapped_column(doc="Name of the source folder it came from; empty when it came alone.")
    path: Mapped[str] = mapped_column(doc="Path of its file inside the root.")
    content_hash: Mapped[str] = mapped_column(doc="SHA-256 of the source text.")
    # `metadata` is taken by SQLAlchemy on a mapped class.
    author_metadata: Mapped[dict[str, Any]] = mapped_column(doc="Other front matter keys, as JSON.")
    source: Mapped[str] = mapped_column(doc="The whole source text; chunk lines count in it.")
    pruned: Mapped[bool] = mapped_column(
        server_default=false(), doc="Withdrawn because its file vanished: reinstated when that returns."
    )
    change_number: Mapped[int] = mapped_column(
        server_default="0", doc="Number of the last change to its row or chunks; see state."
    )


class ChunkRow(Base):
    """A quotable stretch of a document, proved by its lines."""

    __tablename__ = "chunks"
    __table_args__ = (
        UniqueConstraint("doc_key", "ordinal"),
        Index("ix_chunks_text_hash", "text_hash"),
        CheckConstraint("ordinal >= 0 AND line_start >= 1 AND line_end >= line_start", name="place"),
        {"sqlite_autoincrement": True},
    )

    chunk_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the chunk, never used again.")
    doc_key: Mapped[int] = mapped_column(ForeignKey("documents.doc_key", ondelete="CASCADE"), doc="Its document.")
    ordinal: Mapped[int] = mapped_column(doc="Place in the document, from 0; the chunk's id is `<doc_id>:c<ordinal>`.")
    heading: Mapped[str] = mapped_column(doc="Heading path, joined with ` > `.")
    line_start: Mapped[int] = mapped_column(doc="First line in the source file, from 1.")
    line_end: Mapped[int] = mapped_column(doc="Last line in the source file, included.")
    preamble: Mapped[str] = mapped_column(
        doc="Title, heading path and repeated table header: indexed in front of the text."
    )
    text: Mapped[str] = mapped_column(doc="The text, exactly as those lines hold it.")
    text_hash: Mapped[str] = mapped_column(
        doc="SHA-256 of the indexed text (preamble, newline, text): names its vectors."
    )
    term_count: Mapped[int] = mapped_column(doc="Length for BM25: search terms in the indexed text.")


class VectorRow(Base):
    """The unit vector of an indexed text by an embedder; kept for any chunk, now or later, that has that text."""

    __tablename__ = "vectors"
    __table_args__ = (UniqueConstraint("embedder_key", "text_hash"), {"sqlite_autoincrement": True})

    vector_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the vector, never used again.")
    embedder_key: Mapped[int] = mapped_column(ForeignKey("embedders.embedder_key"), doc="Who made it.")
    text_hash: Mapped[str] = mapped_column(doc="SHA-256 of the indexed text it was made from.")
    embedding: Mapped[bytes] = mapped_column(doc="float32, little endian, `dimension` of them, of length 1.")


class VectorCodingRow(Base):
    """How an embedder's vectors are coded for fast search, and what the self-check measured (derived)."""

    __tablename__ = "vector_codings"

    embedder_key: Mapped[int] = mapped_column(
        ForeignKey("embedders.embedder_key", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        doc="Whose vectors.",
    )
    coding_id: Mapped[str] = mapped_column(doc="Random; another one after every fit of the centre.")
    centre: Mapped[bytes] = mapped_column(doc="float32, little endian: subtracted from a vector before coding.")
    slack: Mapped[float] = mapped_column(doc="Allowance for the error of an estimated cosine, in its own unit.")
    kept_share: Mapped[float] = mapped_column(doc="Share of the codes that passes the look at the signs alone.")
    recall: Mapped[float] = mapped_column(doc="Lower of recall@10 and @100 in the self-check; under 0.99: unused.")
    fitted_on: Mapped[int] = mapped_column(doc="Vectors in the file when the centre was fitted.")
    tuned_on: Mapped[int] = mapped_column(doc="Vectors in the file when slack, kept_share and recall were.")
    coded_through: Mapped[int] = mapped_column(doc="Vectors numbered up to this one have codes in vector_codes.")


class VectorCodesRow(Base):
    """Codes of a block of vectors: a bit a dimension, and two floats for each vector (derived)."""

    __tablename__ = "vector_codes"

    embedder_key: Mapped[int] = mapped_column(
        ForeignKey("vector_codings.embedder_key", ondelete="CASCADE"), primary_key=True, doc="Whose vectors."
    )
    first_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the block's first vector.")
    vector_count: Mapped[int] = mapped_column(doc="Vectors in the block.")
    vector_keys: Mapped[bytes] = mapped_column(
        doc="Their numbers less first_key, uint32, little endian; empty when they follow one another."
    )
    codes: Mapped[bytes] = mapped_column(
        doc="All signs word by word (uint64), then all offsets, then all scales (float32), little endian."
    )


class VectorRosterRow(Base):
    """Which documents have which vectors, as of one state of the file: newer changes are read beside it (derived)."""

    __tablename__ = "vector_rosters"

    embedder_key: Mapped[int] = mapped_column(
        ForeignKey("vector_codings.embedder_key", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        doc="Whose vectors.",
    )
    change_number: Mapped[int] = mapped_column(doc="Number of the state that it shows.")
    through_key: Mapped[int] = mapped_column(doc="Number of the newest vector then.")
    languages: Mapped[list[str]] = mapped_column(doc="Language tags, in lower case, that documents refer to by place.")
    documents: Mapped[bytes] = mapped_column(
        doc="A record a document: doc_key, valid_from, valid_to (int64, microseconds), language (int32), current (u1)."
    )
    chunks: Mapped[bytes] = mapped_column(
        doc="A record a chunk: place of its document (int32), number of its vector (int64)."
    )


class TermRow(Base):
    """A search term (derived). One that no chunk holds any more stays until `compact`."""

    __tablename__ = "lexical_terms"
    # A number that is never used again: what packed postings still hold of a former term is not another's.
    __table_args__ = ({"sqlite_autoincrement": True},)

    term_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the term, never used again.")
    term: Mapped[str] = mapped_column(unique=True, doc="The term, normalised and stemmed.")
    chunks_in_force: Mapped[int] = mapped_column(
        doc="In how many chunks in force it stands, less what lexical_changes adds; the view bm25_terms has the sum."
    )


class TermChangeRow(Base):
    """What writes have changed of lexical_terms.chunks_in_force since it was last brought up to date (derived).

    Kept apart because a document's terms lie all over that table: a write would touch hundreds of its pages.
    """

    __tablename__ = "lexical_changes"
    __table_args__ = ({"sqlite_with_rowid": False},)

    term_key: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, doc="The term.")
    change: Mapped[int] = mapped_column(doc="To be added to its chunks_in_force.")


class UnpackedRow(Base):
    """The postings of a chunk that is not packed yet (derived)."""

    __tablename__ = "lexical_unpacked"

    chunk_key: Mapped[int] = mapped_column(
        ForeignKey("chunks.chunk_key", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        doc="The chunk, in force or not.",
    )
    term_keys: Mapped[bytes] = mapped_column(doc="Numbers of its terms; u4, little endian.")
    frequencies: Mapped[bytes] = mapped_column(doc="BM25's tf of each; u4, little endian.")


class SegmentRow(Base):
    """Up to 65,536 chunks whose postings are packed, numbered from 0 by chunk key; never changed (derived)."""

    __tablename__ = "lexical_segments"
    __table_args__ = ({"sqlite_autoincrement": True},)

    segment_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the segment, never used again.")
    name: Mapped[str] = mapped_column(unique=True, doc="Random: what a process remembers of it is known by this.")
    first_key: Mapped[int] = mapped_column(doc="Key of its first chunk.")
    last_key: Mapped[int] = mapped_column(doc="Key of its last chunk; every chunk up to it is packed.")
    chunk_count: Mapped[int] = mapped_column(doc="Chunks in it, removed ones included.")
    chunk_keys: Mapped[bytes] = mapped_column(doc="Their keys less first_key, ascending; u4, little endian.")
    document_keys: Mapped[bytes] = mapped_column(doc="Keys of their documents; u4, little endian.")
    lengths: Mapped[bytes] = mapped_column(doc="Their term counts; u4, little endian.")


class SegmentMarksRow(Base):
    """What changes about the chunks of a segment: a bit each, number 0 the lowest of the first byte (derived)."""

    __tablename__ = "lexical_marks"

    segment_key: Mapped[int] = mapped_column(
        ForeignKey("lexical_segments.segment_key", ondelete="CASCADE"), primary_key=True, autoincrement=False,
        doc="The segment.",
    )  # fmt: skip
    in_force: Mapped[bytes] = mapped_column(doc="Set where the chunk's document is current.")
    removed: Mapped[bytes] = mapped_column(doc="Set where the chunk is gone.")


class PackedPostingsRow(Base):
    """Where a term stands in a segment, and how often (derived)."""

    __tablename__ = "lexical_packed"
    __table_args__ = ({"sqlite_with_rowid": False},)

    segment_key: Mapped[int] = mapped_column(
        ForeignKey("lexical_segments.segment_key", ondelete="CASCADE"), primary_key=True, doc="The segment."
    )
    term_key: Mapped[int] = mapped_column(
        primary_key=True, doc="The term. No foreign key: a term that no chunk holds any more may linger here."
    )
    best_frequency: Mapped[int] = mapped_column(doc="Its highest tf in the segment.")
    shortest_length: Mapped[int] = mapped_column(doc="Term count of the shortest chunk that holds it.")
    numbers: Mapped[bytes | None] = mapped_column(
        doc="Numbers of the chunks that hold it, ascending; u2, little endian. NULL: every chunk has a tf, 0 included."
    )
    frequencies: Mapped[bytes] = mapped_column(
        doc="BM25's tf of each, u1; 255 stands for one of the u4, little endian, that follow in order."
    )


class LexicalTotalsRow(Base):
    """One row: BM25's totals over the chunks in force (derived)."""

    __tablename__ = "lexical_totals"
    __table_args__ = (CheckConstraint("totals_key = 1", name="one_row"),)

    totals_key: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, doc="Always 1.")
    chunks_in_force: Mapped[int] = mapped_column(doc="BM25's N.")
    terms_in_force: Mapped[int] = mapped_column(doc="Sum of their lengths; divided by N: the average length.")


class StateRow(Base):
    """One row: which state of the file this is. Whatever is kept in a process's memory is kept for one state."""

    __tablename__ = "state"
    __table_args__ = (CheckConstraint("state_key = 1", name="one_row"),)

    state_key: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, doc="Always 1.")
    generation: Mapped[str] = mapped_column(doc="Random; another one after every transaction that changed something.")
    change_number: Mapped[int] = mapped_column(
        server_default="0", doc="Counts those transactions; two copies of a file may give one number to two states."
    )


class RecentStateRow(Base):
    """The last states of the file: what was kept of one of them in memory can be brought up to this one."""

    __tablename__ = "recent_states"

    change_number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, doc="Its number.")
    generation: Mapped[str] = mapped_column(doc="Its generation.")


class GuardFitRow(Base):
    """A guard that was calibrated on cases; the newest of an embedder judges. Weights count standard deviations."""

    __tablename__ = "guard_fits"
    __table_args__ = (
        Index("ix_guard_fits_embedder_key", "embedder_key"),
        CheckConstraint("threshold >= 0 AND threshold <= 1", name="threshold"),
        {"sqlite_autoincrement": True},
    )

    fit_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the fit, never used again.")
    embedder_key: Mapped[int | None] = mapped_column(
        ForeignKey("embedders.embedder_key", ondelete="CASCADE"),
        doc="The embedder whose cosines it reads; NULL: keyword search.",
    )
    fitted_at: Mapped[datetime] = mapped_column(doc="When it was fitted (UTC).")
    intercept: Mapped[float] = mapped_column(doc="Log-odds of an average case.")
    threshold: Mapped[float] = mapped_column(doc="Probability of being right from which a question is answered.")
    promise: Mapped[str] = mapped_column(doc="What the cases can promise of it, in one sentence.")
    max_wrong: Mapped[float] = mapped_column(doc="The share of wrong answers that was asked for.")
    confidence: Mapped[float] = mapped_column(doc="The confidence of the promise.")
    cases_hash: Mapped[str] = mapped_column(doc="SHA-256 of the cases it was fitted on.")
    case_count: Mapped[int] = mapped_column(doc="How many cases these were.")
    answered: Mapped[int] = mapped_column(doc="Cases that it lets pass, each judged by a model that had not seen it.")
    wrong: Mapped[int] = mapped_column(doc="Those of them that should not pass.")
    auroc: Mapped[float | None] = mapped_column(doc="Of its score, cross-validated; NULL: cases of one kind only.")
    aurc: Mapped[float | None] = mapped_column(doc="Area under its risk-coverage curve, cross-validated.")
    code_version: Mapped[str] = mapped_column(doc="Version of evidencedesk that fitted it.")


class GuardWeightRow(Base):
    """How much one signal counts in a calibrated guard."""

    __tablename__ = "guard_weights"

    fit_key: Mapped[int] = mapped_column(
        ForeignKey("guard_fits.fit_key", ondelete="CASCADE"), primary_key=True, doc="The fit."
    )
    signal: Mapped[str] = mapped_column(primary_key=True, doc="top, margin, idf_share, idf_margin or sole.")
    mean: Mapped[float] = mapped_column(doc="Of the signal, over the cases.")
    deviation: Mapped[float] = mapped_column(doc="Its standard deviation; 1 where it never varied.")
    weight: Mapped[float] = mapped_column(doc="What one deviation adds to the log-odds; never negative.")


class RunRow(Base):
    """An evaluation: all cases, asked once of one state of the file."""

    __tablename__ = "runs"
    __table_args__ = (CheckConstraint("kind IN ('evaluation', 'gate')", name="kind"), {"sqlite_autoincrement": True})

    run_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the run, never used again.")
    kind: Mapped[str] = mapped_column(
        doc="evaluation; gate: of what a change would make true, before it was committed."
    )
    accepted: Mapped[bool | None] = mapped_column(doc="Of a gate: whether the change was committed; NULL otherwise.")
    started_at: Mapped[datetime] = mapped_column(doc="When it was asked (UTC).")
    cases_hash: Mapped[str] = mapped_column(doc="SHA-256 of the cases.")
    case_count: Mapped[int] = mapped_column(doc="How many cases there are; none ever leaves the denominator.")
    generation: Mapped[str] = mapped_column(doc="Which state of the file was asked.")
    documents_in_force: Mapped[int] = mapped_column(doc="How many documents were in force.")
    embedder: Mapped[str | None] = mapped_column(doc="Name, dimension and fingerprint of the embedder; NULL: none.")
    thresholds: Mapped[str] = mapped_column(doc="The guard's thresholds and where they came from.")
    model: Mapped[str] = mapped_column(doc="What answered.")
    checker: Mapped[str] = mapped_column(doc="What judged whether citations support the claims.")
    code_version: Mapped[str] = mapped_column(doc="Version of evidencedesk that ran it.")
    report: Mapped[dict[str, Any]] = mapped_column(doc="The tables of the run, as JSON.")


class RunCaseRow(Base):
    """One case of a run."""

    __tablename__ = "run_cases"
    __table_args__ = (Index("ix_run_cases_case_id", "case_id"),)

    run_key: Mapped[int] = mapped_column(
        ForeignKey("runs.run_key", ondelete="CASCADE"), primary_key=True, doc="The run."
    )
    case_id: Mapped[str] = mapped_column(primary_key=True, doc="The case's id.")
    question: Mapped[str] = mapped_column(doc="The question, as asked.")
    tags: Mapped[str] = mapped_column(doc="Its tags, with commas between.")
    answerable: Mapped[bool] = mapped_column(doc="Whether the documents answer it.")
    as_of: Mapped[str | None] = mapped_column(doc="The day that it asks about; NULL: the present.")
    outcome: Mapped[str] = mapped_column(doc="right, wrong, refused, turned_away or error.")
    reason: Mapped[str | None] = mapped_column(doc="ok, or why the answer abstained; NULL for an error.")
    detail: Mapped[str] = mapped_column(doc="The reason in one sentence, or the error.")
    keyword_rank: Mapped[int | None] = mapped_column(doc="Rank of the first right document; NULL: not found.")
    vector_rank: Mapped[int | None] = mapped_column(doc="The same in the vector leg.")
    hybrid_rank: Mapped[int | None] = mapped_column(doc="The same in hybrid search.")
    top_chunk_id: Mapped[str | None] = mapped_column(doc="The first candidate.")
    top: Mapped[float | None] = mapped_column(doc="Its score, as the guard read it.")
    margin: Mapped[float | None] = mapped_column(doc="How far the second lay behind.")
    cited: Mapped[str] = mapped_column(doc="Chunk ids that the answer cites, with commas between.")


class AnswerRow(Base):
    """A question that was asked, and what came of it. Only those that were asked to be recorded."""

    __tablename__ = "answers"
    __table_args__ = (Index("ix_answers_asked_at", "asked_at"), {"sqlite_autoincrement": True})

    answer_key: Mapped[int] = mapped_column(primary_key=True, doc="Number of the answer, never used again.")
    asked_at: Mapped[datetime] = mapped_column(doc="When it was asked (UTC).")
    as_of: Mapped[datetime | None] = mapped_column(doc="The instant that was asked about; NULL: the present.")
    question: Mapped[str] = mapped_column(doc="The question, as asked.")
    text: Mapped[str] = mapped_column(doc="The answer, with the ids it cites; empty when it abstained.")
    abstained: Mapped[bool] = mapped_column(doc="Whether no answer was given.")
    reason: Mapped[str] = mapped_column(doc="ok, or why it abstained.")
    detail: Mapped[str] = mapped_column(doc="The reason, in one sentence.")
    guard_state: Mapped[str] = mapped_column(doc="ok, no_result, weak, ambiguous or uncalibrated.")
    guard_measure: Mapped[str] = mapped_column(doc="What the guard read: cosine or idf_share.")
    top: Mapped[float] = mapped_column(doc="The first candidate's score by that measure, lowered for missing words.")
    margin: Mapped[float] = mapped_column(doc="How far the second lay behind, negative where it scored higher.")
    min_score: Mapped[float | None] = mapped_column(doc="The threshold for the top score; NULL: there was none.")
    min_margin: Mapped[float | None] = mapped_column(doc="The threshold for the margin; NULL: there was none.")
    missing_weight: Mapped[float | None] = mapped_column(
        doc="By how much the score falls for the share of question words that a text lacks, times that share."
    )
    probability: Mapped[float | None] = mapped_column(
        doc="That the first candidate is right, by a calibrated guard; NULL: thresholds judged."
    )
    threshold: Mapped[float | None] = mapped_column(doc="The probability from which that guard lets pass.")
    values_source: Mapped[str | None] = mapped_column(doc="Where the thresholds came from.")
    embedder: Mapped[str | None] = mapped_column(doc="Name, dimension and fingerprint of the embedder; NULL: none.")
    model: Mapped[str] = mapped_column(doc="Name of the model that answered; empty when none was called.")
    checker: Mapped[str] = mapped_column(doc="Name of what judged whether the citations support the claims.")
    code_version: Mapped[str] = mapped_column(doc="Version of evidencedesk that answered.")


class AnswerHitRow(Base):
    """A candidate of a recorded answer. No foreign key into documents: it outlives them."""

    __tablename__ = "answer_hits"

    answer_key: Mapped[int] = mapped_column(
        ForeignKey("answers.answer_key", ondelete="CASCADE"), primary_key=True, doc="The answer."
    )
    rank: Mapped[int] = mapped_column(primary_key=True, doc="Place among the candidates, from 1.")
    chunk_id: Mapped[str] = mapped_column(doc="The chunk's id then.")
    label: Mapped[str] = mapped_column(doc="Its label then.")
    score: Mapped[float] = mapped_column(doc="What the candidates were ordered by.")
    bm25: Mapped[float] = mapped_column(doc="Exact BM25.")
    cosine: Mapped[float | None] = mapped_column(doc="Exact cosine; NULL: the search had no vector.")
    keyword_rank: Mapped[int | None] = mapped_column(doc="Rank in the keyword leg; NULL: not found by it.")
    vector_rank: Mapped[int | None] = mapped_column(doc="Rank in the vector leg; NULL: not found by it.")
    idf_share: Mapped[float] = mapped_column(doc="Share of the question's idf weight that it held.")
    other_script: Mapped[bool] = mapped_column(doc="Whether it was in another script than the question.")


class AnswerClaimRow(Base):
    """A sentence of a recorded answer and its verdict; also those of an answer that was turned away."""

    __tablename__ = "answer_claims"

    answer_key: Mapped[int] = mapped_column(
        ForeignKey("answers.answer_key", ondelete="CASCADE"), primary_key=True, doc="The answer."
    )
    claim_number: Mapped[int] = mapped_column(primary_key=True, doc="Place in the answer, from 1.")
    text: Mapped[str] = mapped_column(doc="The sentence.")
    verdict: Mapped[str] = mapped_column(doc="supported, contradicted, unsupported or unchecked.")
    reason: Mapped[str] = mapped_column(doc="Why, in one sentence.")


class AnswerCitationRow(Base):
    """What a claim cited, with a copy of the text as it stood. No foreign key into documents: it outlives them."""

    __tablename__ = "answer_citations"
    __table_args__ = (
        ForeignKeyConstraint(
            ["answer_key", "claim_number"],
            ["answer_claims.answer_key", "answer_claims.claim_number"],
            ondelete="CASCADE",
        ),
        Index("ix_answer_citations_family_lang", "family", "lang"),
    )

    answer_key: Mapped[int] = mapped_column(primary_key=True, doc="The answer.")
    claim_number: Mapped[int] = mapped_column(primary_key=True, doc="The claim.")
    citation_number: Mapped[int] = mapped_column(primary_key=True, doc="Place in the claim, from 1.")
    cited: Mapped[str] = mapped_column(doc="As it was written.")
    verdict: Mapped[str] = mapped_column(doc="retrieved, outside, superseded, invented or malformed.")
    support: Mapped[str | None] = mapped_column(doc="Whether that text alone supports the claim; NULL: not looked at.")
    support_reason: Mapped[str | None] = mapped_column(doc="Why, in one sentence.")
    chunk_id: Mapped[str | None] = mapped_column(doc="The chunk that it resolved to; NULL: to none. So below.")
    doc_id: Mapped[str | None] = mapped_column(doc="Its document.")
    family: Mapped[str | None] = mapped_column(doc="Its document's family.")
    lang: Mapped[str | None] = mapped_column(doc="Its language.")
    version: Mapped[str | None] = mapped_column(doc="Its version.")
    label: Mapped[str] = mapped_column(doc="Its label; empty when it resolved to none.")
    path: Mapped[str | None] = mapped_column(doc="Its file.")
    line_start: Mapped[int | None] = mapped_column(doc="First line of the chunk in that file.")
    line_end: Mapped[int | None] = mapped_column(doc="Last line, included.")
    text: Mapped[str | None] = mapped_column(doc="The whole cited text, as it stood.")
    quote: Mapped[str] = mapped_column(doc="The sentence of it that the verdict rests on; empty: none.")


def table_of(row: type[Base]) -> Table:
    """The Core table behind a mapped class."""
    return cast("Table", row.__table__)
