"""The frozen records that cross boundaries between modules, and to the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Integral, Real
from typing import Any, Literal, overload

Status = Literal["current", "superseded", "scheduled", "expired", "withdrawn"]
STATUSES: tuple[Status, ...] = ("current", "superseded", "scheduled", "expired", "withdrawn")
Mode = Literal["hybrid", "keyword", "vector"]
Fusion = Literal["weighted", "rrf"]
EmptyReason = Literal["no_terms", "nothing_in_force", "nothing_matches"]
BlockKind = Literal["text", "table", "fence"]
SupportVerdict = Literal["supported", "contradicted", "unsupported", "unchecked"]
CitationVerdict = Literal["retrieved", "outside", "superseded", "invented", "malformed"]
GuardState = Literal["ok", "no_result", "weak", "ambiguous", "uncalibrated"]
GuardMeasure = Literal["cosine", "idf_share"]
AnswerReason = Literal[
    "ok", "no_result", "weak", "ambiguous", "uncalibrated", "model_failed", "bad_output", "model_abstained",
    "unknown_citation", "unsupported_claim",
]  # fmt: skip
SignalEffect = Literal["supports", "lacks", "contradicts", "unchecked"]


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
    family: str = ""
    """The text that its document is a version of."""


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
    idf_share: float = 0.0
    """Share of the question's idf weight that the chunk's terms hold, in 0..1; what the guard reads without vectors."""
    rerank: float | None = None
    """What a reranker gave it, in the reranker's own scale; None without one. Then hits are ordered by it."""
    foreign: bool = False
    """Whether the chunk is in another script than the question's, so that their words cannot be compared."""


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


# ---------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Below which a question is not answered, in the scale of one embedder's cosines (or idf shares)."""

    min_score: float
    """Candidates below it are weak."""
    min_margin: float
    """Two families that are closer than this are a doubt."""
    source: str
    """Where they come from, such as the data they were chosen on."""
    measure: GuardMeasure = "cosine"
    """What they may be compared with."""
    missing_weight: float = 0.0
    """How much a cosine is lowered for question words that the chunk lacks: times their share of the idf weight."""

    def __post_init__(self) -> None:
        for name in ("min_score", "min_margin", "missing_weight"):
            require_number(name, getattr(self, name))  # nothing is below NaN, so everything would pass


GuardSignal = Literal["top", "margin", "idf_share", "idf_margin", "sole"]


@dataclass(frozen=True, slots=True)
class CalibratedGuard:
    """A guard that was fitted on cases: the probability that the first candidate is right, and what is enough.

    log-odds = intercept + sum over the signals of weight * (signal - mean) / deviation; a signal that does not apply to
    a question counts as its mean.
    """

    signals: tuple[GuardSignal, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    weights: tuple[float, ...]
    """What one standard deviation adds; never negative."""
    intercept: float
    threshold: float
    """The probability from which a question is answered."""
    measure: GuardMeasure
    source: str
    """The cases that it was fitted on, and what they can promise."""


Guard = Thresholds | CalibratedGuard
"""What judges candidates."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """Whether retrieval is good enough to answer from. An abstention is a value, not an error."""

    state: GuardState
    top: float
    """The first candidate's score, by `measure` (lowered as `missing_weight` says); 0.0 without any."""
    margin: float
    """How far the second lies behind, negative when it scores higher; `top` when there is one candidate."""
    measure: GuardMeasure = "cosine"
    values: Guard | None = None
    """What it was compared with; None: this embedder has no thresholds, and the state is `uncalibrated`."""
    probability: float | None = None
    """That the first candidate is right, by a calibrated guard; None without one."""


@dataclass(frozen=True, slots=True)
class NumberedPassage:
    """A chunk as the model is shown it."""

    number: int
    """From 1: what the model cites it by."""
    label: str
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a language model is asked: one system text, one user text, and the JSON schema of its reply."""

    question: str
    passages: tuple[NumberedPassage, ...]
    system: str
    prompt: str
    schema: Mapping[str, Any]
    """JSON schema that the reply must fulfil."""


@dataclass(frozen=True, slots=True)
class ModelClaim:
    """A stretch of a model's answer and what it cites for it, as the model wrote it."""

    text: str
    cited: tuple[str, ...]
    """Numbers of passages or chunk ids, unresolved."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's reply, parsed."""

    abstained: bool
    claims: tuple[ModelClaim, ...]


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that speaks for or against a claim, and the stretches it rests on."""

    name: str
    """Such as `number`, `key_words`, `negation`, `antonym`, `qualifier`, `similarity`."""
    effect: SignalEffect
    detail: str
    """One sentence."""
    claim_span: tuple[int, int] | None = None
    """Characters [start, end) of the claim."""
    evidence_span: tuple[int, int] | None = None
    """Characters [start, end) of the evidence."""


@dataclass(frozen=True, slots=True)
class Support:
    """Whether one text supports one claim."""

    numbers_missing: tuple[str, ...]
    """Numbers of the claim, as it writes them, that the evidence does not hold."""
    share: float
    """Distinct key words of the claim that the evidence holds, as a share, three digits; 1.0 when there are none."""
    words_ok: bool
    """No number missing and a share of at least 0.6."""
    verdict: SupportVerdict
    reason: str
    """Why, in one sentence."""
    signals: tuple[Signal, ...] = ()
    evidence_span: tuple[int, int] | None = None
    """The sentence of the evidence that the verdict rests on, as characters [start, end); None: no sentence."""

    @property
    def ok(self) -> bool:
        """True when the verdict is `supported`."""
        return self.verdict == "supported"


@dataclass(frozen=True, slots=True)
class Citation:
    """A claim tied to a chunk."""

    cited: str
    """As it was written."""
    verdict: CitationVerdict
    chunk: Chunk | None = None
    """None when it resolves to none."""
    label: str = ""
    support: Support | None = None
    """How the chunk's text bears the claim; None when it was not looked at, because the citation is not `retrieved`."""
    quote: str = ""
    """The sentence of the chunk that the verdict rests on, verbatim."""


@dataclass(frozen=True, slots=True)
class CitationReport:
    """What became of one claim's citations."""

    outside: tuple[str, ...]
    superseded: tuple[str, ...]
    invented: tuple[str, ...]
    malformed: tuple[str, ...]
    support: Support | None
    """The verdict over the chunks that were retrieved, each alone; None when no citation was."""
    citations: tuple[Citation, ...] = ()

    @property
    def ok(self) -> bool:
        """True when every citation resolves and the claim is supported."""
        unresolved = self.outside or self.superseded or self.invented or self.malformed
        return not unresolved and self.support is not None and self.support.ok


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of an answer, with what it cites and what came of the check."""

    text: str
    citations: tuple[Citation, ...]
    verdict: SupportVerdict
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was checked, or a reasoned no."""

    text: str
    """The claims, each with the ids it cites in brackets; empty when abstained."""
    citations: tuple[Citation, ...]
    """Those of the claims, each chunk once, in order."""
    abstained: bool
    reason: AnswerReason
    hits: Hits
    """All candidates, cited or not."""
    claims: tuple[Claim, ...]
    """Also those of an answer that was turned away."""
    question: str = ""
    detail: str = ""
    """The reason, in one sentence."""
    assessment: Assessment | None = None
    model: str = ""
    """Name of the model that was called; empty when none was."""
    asked_at: datetime | None = None
    as_of: datetime | None = None
    """The instant that was asked about; None: when it was asked."""
    embedder: EmbedderIdentity | None = None
    answer_id: int | None = None
    """Its number in the file; None: not recorded."""


@dataclass(frozen=True, slots=True)
class RecordedCitation:
    """What a recorded answer cited, as it stood then."""

    cited: str
    verdict: CitationVerdict
    chunk_id: str | None
    label: str
    quote: str
    text: str | None
    """The whole cited text, as it stood; None when the citation resolved to none."""


@dataclass(frozen=True, slots=True)
class StaleCitation:
    """A citation of a recorded answer whose text is no longer in force, beside what is in force instead."""

    old_chunk_id: str
    old_doc_id: str
    new_doc_id: str | None
    """None: nothing of that line is in force."""
    why: str
    """`superseded`, `corrected`, `expired`, `removed`, `not in force then`, or `withdrawn: ` and the reason."""
    cited_sentence: str
    sentence_changed: bool | None
    """Whether the new document no longer holds that sentence; None without a new document."""

    def __str__(self) -> str:
        instead = "nothing is in force instead" if self.new_doc_id is None else f"now {self.new_doc_id}"
        sentence = {True: "; the cited sentence changed", False: "; the cited sentence still stands there", None: ""}
        return f"{self.old_chunk_id} {self.why}; {instead}{sentence[self.sentence_changed]}"


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer that the file remembers."""

    answer_id: int
    asked_at: datetime
    as_of: datetime | None
    question: str
    text: str
    abstained: bool
    reason: AnswerReason
    detail: str
    model: str
    citations: tuple[RecordedCitation, ...]
    stale: tuple[StaleCitation, ...]
    """Those of its citations that went stale; empty while the answer still stands."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of an answer that was checked against the file."""

    ok: bool
    reason: AnswerReason
    """`ok`, `unknown_citation` or `unsupported_claim`."""
    detail: str
    claims: tuple[Claim, ...]


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


Outcome = Literal["right", "wrong", "refused", "turned_away", "error"]


@dataclass(frozen=True, slots=True)
class Flip:
    """A case whose outcome changed between two runs."""

    case_id: str
    question: str
    before: Outcome | None
    """None: the run before did not hold the case."""
    after: Outcome
    detail: str
    """Why it came out so, in one sentence."""


@dataclass(frozen=True, slots=True)
class SentenceChange:
    """What a document says no more, and says newly, sentence by sentence."""

    old_doc_id: str
    new_doc_id: str
    """The same for a correction in place."""
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateReport:
    """What a gate found: the cases, asked of what a change would make true."""

    accepted: bool
    """Whether the change was committed, or, in a dry run, would have been."""
    run_id: int | None
    """The run in the file; None in a dry run."""
    objections: tuple[str, ...]
    """Why it was refused; empty when it was accepted."""
    flips: tuple[Flip, ...]
    changes: tuple[SentenceChange, ...]
    rule: str = ""
    """What it judged by."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What one `update_document` did; or, where `gate` refused it, what it would have done."""

    doc_id: str
    action: Literal["added", "updated", "unchanged"]
    status: Status
    superseded: tuple[str, ...]
    """doc_ids that this update made superseded."""
    embedded: int
    """Texts that had to be embedded."""
    notes: tuple[str, ...] = ()
    stale_answers: int = 0
    """Recorded answers whose cited text this update took out of force."""
    gate: GateReport | None = None
    """None: no gate was asked for. When it refused, the report says what would have been; nothing was written."""


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What one `ingest` did; every field but the counts names documents or files."""

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
    stale_answers: int = 0
    """Recorded answers whose cited text this run took out of force."""
    gate: GateReport | None = None
    """None: no gate was asked for. When it refused, the report says what would have been; nothing was written."""


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


Progress = Callable[[IngestProgress], None]
PRUNE_LIMIT = 0.2
"""Share of a root's documents that a prune may withdraw unless told otherwise."""


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


def require_number(name: str, value: object) -> float:
    """`value` as a finite number; ValueError naming the parameter otherwise."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return float(value)
