"""The frozen records that cross boundaries between modules, and to the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Integral
from typing import Any, Literal, overload

Status = Literal["current", "superseded", "scheduled", "expired", "withdrawn"]
STATUSES: tuple[Status, ...] = ("current", "superseded", "scheduled", "expired", "withdrawn")
Mode = Literal["hybrid", "keyword", "vector"]
EmptyReason = Literal["no_terms", "nothing_in_force", "nothing_matches"]
BlockKind = Literal["text", "table", "fence"]


# ---------------------------------------------------------------- what a source file is parsed into


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of whole lines of a section that belongs together: a paragraph or list entry, a table, a fence."""

    kind: BlockKind
    line_start: int
    """First line in the file, counted from 1."""
    line_end: int
    """Last line in the file, included."""
    header_lines: int = 0
    """For a table: how many of its first lines are header and delimiter, repeated when its rows are split."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the blocks under it, up to the next heading."""

    headings: tuple[str, ...]
    """The heading path, outermost first; empty before the first heading."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One source file, parsed and named but not stored."""

    path: str
    """POSIX path relative to the root it was read from, NFC."""
    doc_id: str
    """With its version mark, always."""
    family: str
    version: str
    lang: str
    title: str
    source: str
    """The file's text, without a byte-order mark, otherwise exactly as it stands."""
    sections: tuple[Section, ...]
    declared_status: Status | None = None
    """The front matter's `status`: reported when the rule disagrees, never obeyed."""
    effective_from: datetime | None = None
    effective_to: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Front matter keys of the author's own; scalars are the text as written."""
    named_by_path: bool = False
    """Whether the doc_id comes from the path, because the file does not give one."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk before it is stored."""

    ordinal: int
    heading: str
    """Heading path joined with " > "."""
    line_start: int
    line_end: int
    preamble: str
    """What is indexed in front of the text: title, heading path and, for later pieces of a table, its header."""
    text: str
    """Found as it is in the file's lines line_start..line_end."""

    @property
    def indexed_text(self) -> str:
        """What is embedded and what BM25 indexes."""
        return join_indexed(self.preamble, self.text)


def join_indexed(preamble: str, text: str) -> str:
    """The one place that says how preamble and text make the indexed text."""
    return f"{preamble}\n{text}" if preamble else text


# ---------------------------------------------------------------- what the desk holds


@dataclass(frozen=True, slots=True)
class Location:
    """Where a chunk stands in its source file."""

    path: str
    heading: str
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A quotable stretch of a document."""

    id: str
    """`<doc_id>:c<n>`, n from 0."""
    doc_id: str
    version: str
    lang: str
    status: Status
    text: str
    indexed_text: str
    location: Location


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """One version of one text in one language, without its chunks."""

    doc_id: str
    family: str
    version: str
    lang: str
    title: str
    status: Status
    valid_from: datetime
    """UTC, included."""
    valid_to: datetime | None
    """UTC, excluded; None: open."""
    path: str
    chunk_count: int


@dataclass(frozen=True, slots=True)
class Document:
    """One version of one text in one language, with its chunks in order."""

    doc_id: str
    family: str
    version: str
    lang: str
    title: str
    status: Status
    valid_from: datetime
    valid_to: datetime | None
    chunks: tuple[Chunk, ...]
    path: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked chunk with the parts of its score."""

    chunk: Chunk
    label: str
    score: float
    """What the hits are ordered by: BM25 in keyword mode, the cosine in vector mode, the fused score in hybrid."""
    bm25: float
    """Exact BM25 of the question and this chunk; 0.0 when they share no term."""
    cosine: float | None
    """Exact cosine in [-1, 1]; None when the search had no question vector."""
    keyword_rank: int | None
    """Rank from 1 in the keyword leg; None when that leg did not find it or did not run."""
    vector_rank: int | None
    rerank: float | None = None
    """What a reranker gave it, in the reranker's own scale; None without one. Then hits are ordered by it."""


@dataclass(frozen=True, slots=True)
class Hits(Sequence[Hit]):
    """Ranked hits, best first; when there are none, `reason` says why."""

    hits: tuple[Hit, ...]
    reason: EmptyReason | None
    mode: Mode
    """The mode that ran: "keyword" when hybrid was asked of a desk without an embedder."""
    notes: tuple[str, ...] = ()
    """What a reader should know about this search, such as a leg that was left out and why."""

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)


@dataclass(frozen=True, slots=True)
class EmbedderIdentity:
    """What decides whether two vectors may be compared."""

    name: str
    dimension: int
    fingerprint: str

    def __str__(self) -> str:
        mark = f", fingerprint {self.fingerprint[:8]}" if self.fingerprint else ""
        return f"{self.name} ({self.dimension} dimensions{mark})"


@dataclass(frozen=True, slots=True)
class Stale:
    """A document that is not the newest of its line."""

    doc_id: str
    version: str
    problem: Literal["superseded", "outdated_but_current"]


# ---------------------------------------------------------------- reports


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A document whose status changed, by a write or by time alone."""

    doc_id: str
    before: Status
    after: Status


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was left out on purpose."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A file that could not be brought in; what the desk held of it before is unchanged."""

    path: str
    line: int | None
    error: str


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What one `update_document` did."""

    doc_id: str
    action: Literal["added", "updated", "unchanged"]
    status: Status
    superseded: tuple[str, ...]
    """doc_ids that this update made superseded."""
    embedded: int
    """Texts that had to be embedded."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one `ingest` did; every field but `embedded` names documents or files."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    superseded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """doc_ids of this root whose files are gone."""
    withdrawn: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Failed, ...] = ()
    embedded: int = 0
    notes: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """What one `reembed` did."""

    former: EmbedderIdentity | None
    """None: the desk had no vectors."""
    embedder: EmbedderIdentity | None
    texts: int
    """Different indexed texts in the file."""
    embedded: int
    """How many of them this run had to embed; the others had their vector from a run that was stopped."""


@dataclass(frozen=True, slots=True)
class IngestProgress:
    """Sent to `progress` after each file: counts of this run so far."""

    files_done: int
    files_total: int
    texts_embedded: int
    path: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that `check` found wrong."""

    kind: str
    subject: str
    detail: str
    next_step: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `check` found; `facts` describes the file and the libraries that read it."""

    problems: tuple[Problem, ...]
    facts: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """True when no problem was found."""
        return not self.problems


def require_count(name: str, value: object, *, minimum: int = 1) -> int:
    """`value` as a whole number of at least `minimum`; ValueError naming the parameter otherwise."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}, not {value!r}")
    return int(value)
