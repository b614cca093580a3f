"""The read way up to the hits: keyword, vector and hybrid search over what is in force now or was on a date.

Hybrid is a weighted sum: each leg scaled to 0..1 over the union of both legs' best. BM25 cannot see across
languages, and a Bangla question always shares common words with some Bangla chunk, which would bury the English
chunk that answers it. So where the embedder can (it names a language gap), a chunk in another script than the
question's is judged by its vector in both parts, and its cosine is first raised by that gap; codes and numbers
(RD2-24) count in every language. Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009, constant 60) is there
as an option. Where the same text stands in the question's language too, that one is meant to be found.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evidencedesk import bm25, vectors
from evidencedesk.embeddings import Embedder, embed_in_batches, identity
from evidencedesk.errors import EmbedderMismatch, IndexOutOfStep, NothingToEmbed, RerankerError
from evidencedesk.records import Chunk, EmbedderIdentity, EmptyReason, Fusion, Hit, Hits, Mode
from evidencedesk.store import ChunkHead, Scope, Snapshot, chunk_heads
from evidencedesk.text import Token, analyse, script_of_language, scripts
from evidencedesk.versions import parse_instant

MODES: tuple[Mode, ...] = ("hybrid", "keyword", "vector")
FUSIONS: tuple[Fusion, ...] = ("weighted", "rrf")
LEXICAL_WEIGHT = 0.4
"""Of an embedder that names no `lexical_weight` of its own."""
FOREIGN_SHARE = 0.9
"""Of the vector part where it stands in for the lexical one: of two equals the one in the question's language wins."""
RRF_CONSTANT = 60
LEG_DEPTH = 100
"""Each leg brings its best max(LEG_DEPTH, k) chunks into the union that hybrid ranks.

The keyword leg's are exact; of the vector leg's at least 99 in a hundred are found where a file is coded.
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, read once for both legs."""

    text: str
    tokens: tuple[Token, ...]
    scripts: frozenset[str]
    vector: NDArray[np.float32] | None = None
    """Unit vector of the file's embedder, shape (dimension,); None: no vector leg."""
    embedder: EmbedderIdentity | None = None
    """Whose vector it is."""
    lexical_weight: float = LEXICAL_WEIGHT
    language_gap: float | None = None
    """How much lower the embedder's cosines are between languages; None: it does not bring them together."""
    notes: tuple[str, ...] = ()

    @property
    def terms(self) -> list[str]:
        """Search terms, in order, repeated as they come."""
        return [token.term for token in self.tokens]

    @property
    def is_searchable(self) -> bool:
        """Whether it holds a letter or digit at all; without one nothing may be ranked."""
        return any(character.isalnum() for character in self.text)


def read_question(text: str) -> Question:
    """Analyse a question. Any text is a legal one."""
    return Question(text, tuple(analyse(text)), scripts(text))


def with_vector(question: Question, embedder: Embedder, *, required: bool) -> Question:
    """The question with its unit vector.

    An embedder that does not know the question's script is left out, which a note says; so is one that finds
    nothing to embed in it. With `required` it is asked all the same, and NothingToEmbed when it finds nothing.
    """
    if not required and embedder.languages is not None and question.scripts:
        known = {script_of_language(language) for language in embedder.languages}
        if not question.scripts & known:
            note = f"the embedder {embedder.name} does not know the question's language; searched by keyword"
            return replace(question, notes=(*question.notes, note))
    try:
        vector = embed_in_batches(embedder, [question.text], ["the question"], kind="query")[0]
    except NothingToEmbed:
        if required:
            raise
        note = f"the embedder {embedder.name} found nothing to embed in the question; searched by keyword"
        return replace(question, notes=(*question.notes, note))
    return replace(
        question,
        vector=vector,
        embedder=identity(embedder),
        lexical_weight=getattr(embedder, "lexical_weight", LEXICAL_WEIGHT),
        language_gap=getattr(embedder, "language_gap", None),
    )


def instant(
    value: str | date | datetime | None, *, parameter: str = "as_of", end_of_day: bool = True
) -> datetime | None:
    """An aware UTC instant: a plain date means its last instant (else its first), a date-time without a zone is UTC.

    ValueError, naming the parameter, for anything else.
    """
    if value is None:
        return None
    if isinstance(value, (str, date)):
        try:
            return parse_instant(value if isinstance(value, str) else value.isoformat(), end_of_day=end_of_day)
        except ValueError as error:
            raise ValueError(f"{parameter}: {error}") from error
    raise ValueError(f"{parameter} must be an ISO date, a date or a datetime, not {value!r}")


def search(
    snapshot: Snapshot, question: Question, scope: Scope, *, k: int, mode: Mode, fusion: Fusion = "weighted"
) -> Hits:
    """The best k chunks in scope; all reads come from the one snapshot.

    IndexOutOfStep where an index finds a chunk that is gone or not in force: rows were changed by hand.
    """
    connection = snapshot.connection
    run_mode: Mode = "keyword" if mode == "hybrid" and question.vector is None else mode
    depth = max(LEG_DEPTH, k) if run_mode == "hybrid" else k
    nearest = dict(_nearest(snapshot, question, scope, depth)) if run_mode != "keyword" else {}
    best = dict(bm25.best(snapshot, question.terms, scope, depth)) if run_mode != "vector" else {}
    keyword = list(best)
    union = list(dict.fromkeys([*keyword, *nearest]))
    if not union:
        return Hits((), _why_nothing(snapshot, question, scope, run_mode), run_mode, question.notes)
    lexical = bm25.scores_of(snapshot, question.terms, scope, union)
    bm25_of = lexical.total()
    cosine_of = {**nearest, **_cosines(snapshot, question, [key for key in union if key not in nearest])}
    # By keyword the order is there already; only fusion asks for more than scores.
    heads = chunk_heads(connection, union) if run_mode != "keyword" else {}
    _require_stored(union if heads else [], heads)
    keyword_rank = {key: rank for rank, key in enumerate(keyword, 1)}
    vector_rank = {key: rank for rank, key in enumerate(nearest, 1)}
    score_of: Mapping[int, float]
    if run_mode == "keyword":
        score_of = bm25_of
    elif run_mode == "vector":
        score_of = cosine_of
    elif fusion == "rrf":
        score_of = reciprocal_rank_fusion(union, [keyword_rank, vector_rank])
    else:
        foreign = _foreign(question, heads)
        lexical_of = _in_language(question, lexical, bm25_of, foreign)
        weight, gap = question.lexical_weight, question.language_gap
        score_of = weighted_sum(union, lexical_of, cosine_of, _untranslated(foreign, heads), weight, gap)
    ranked = keyword[:k]
    if run_mode != "keyword":
        ranked = sorted(union, key=lambda key: (-score_of[key], heads[key].id))[:k]
    found = snapshot.chunks(ranked)
    _require_stored(ranked, found)
    outdated = (found[key].chunk for key in ranked if scope.as_of is None and found[key].chunk.status != "current")
    if (chunk := next(outdated, None)) is not None:
        raise IndexOutOfStep(chunk=chunk.id, problem=f"is {chunk.status}")
    idf_share_of = lexical.idf_shares()
    hits = tuple(
        Hit(
            chunk=found[key].chunk,
            label=label(found[key].chunk, found[key].title),
            score=score_of[key],
            bm25=bm25_of.get(key, 0.0),
            cosine=cosine_of.get(key),
            keyword_rank=keyword_rank.get(key),
            vector_rank=vector_rank.get(key),
            idf_share=idf_share_of.get(key, 0.0),
            foreign=_is_foreign(question, found[key].chunk.lang),
        )
        for key in ranked
    )
    return Hits(hits, None, run_mode, question.notes)


class Reranker(Protocol):
    """A host's model that judges question and text together, such as a cross-encoder."""

    def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """One finite score a text, in order; higher is better. May raise anything: RerankerError chains it."""


def rerank(hits: Hits, question: str, reranker: Reranker, k: int) -> Hits:
    """The best k of the hits by the reranker's score of question and indexed text; ties keep their order.

    RerankerError when it fails, or gives another count or a value that is not finite.
    """
    if not hits:
        return hits
    try:
        scores = [float(score) for score in reranker.rerank(question, [hit.chunk.indexed_text for hit in hits])]
    except Exception as error:
        raise RerankerError(problem=f"{type(error).__name__}: {error}") from error
    if len(scores) != len(hits) or not all(math.isfinite(score) for score in scores):
        raise RerankerError(problem=f"{len(scores)} scores for {len(hits)} texts, or one that is not a finite number")
    judged = [replace(hit, rerank=score) for hit, score in zip(hits, scores, strict=True)]
    return replace(hits, hits=tuple(sorted(judged, key=lambda hit: -(hit.rerank or 0.0))[:k]))


def _require_stored(keys: Sequence[int], stored: Collection[int]) -> None:
    for key in keys:
        if key not in stored:
            raise IndexOutOfStep(chunk=f"chunk {key}", problem="is gone")


def _why_nothing(snapshot: Snapshot, question: Question, scope: Scope, mode: Mode) -> EmptyReason:
    if not question.tokens and (mode == "keyword" or not question.is_searchable):
        return "no_terms"
    return "nothing_matches" if snapshot.holds_chunks(replace(scope, lang=None, family=None)) else "nothing_in_force"


def _nearest(snapshot: Snapshot, question: Question, scope: Scope, depth: int) -> list[tuple[int, float]]:
    if question.vector is None:
        return []
    settings = snapshot.settings
    if settings is None or settings.embedder_key is None or settings.embedder != question.embedder:
        # Another process has given the file another embedder since it was opened.
        stored = str(settings.embedder if settings else None)
        raise EmbedderMismatch(embedder=str(question.embedder), stored=stored, given=str(question.embedder))
    return vectors.nearest(snapshot, settings.embedder_key, scope, question.vector, depth)


def _cosines(snapshot: Snapshot, question: Question, keys: Sequence[int]) -> dict[int, float]:
    settings = snapshot.settings
    if question.vector is None or not keys or settings is None or settings.embedder_key is None:
        return {}
    return vectors.cosines(snapshot.connection, settings.embedder_key, keys, question.vector)


def _is_foreign(question: Question, lang: str) -> bool:
    """Whether a language has another script than the question. One that is not known is not foreign."""
    script = script_of_language(lang)
    return bool(script and question.scripts and script not in question.scripts)


def _foreign(question: Question, heads: Mapping[int, ChunkHead]) -> set[int]:
    """The keys of chunks in another script than the question's."""
    return {key for key, head in heads.items() if _is_foreign(question, head.lang)}


def _untranslated(foreign: Collection[int], heads: Mapping[int, ChunkHead]) -> set[int]:
    """The foreign keys whose family is not among the keys in the question's language."""
    translated = {head.family for key, head in heads.items() if key not in foreign}
    return {key for key in foreign if heads[key].family not in translated}


def _in_language(
    question: Question, lexical: bm25.Scores, bm25_of: Mapping[int, float], foreign: Collection[int]
) -> dict[int, float]:
    """BM25 by chunk key: of all terms, and for foreign chunks of codes and numbers only. A key without one has 0."""
    everywhere = lexical.total({token.term for token in question.tokens if token.kind != "word"})
    own = {key: score for key, score in bm25_of.items() if key not in foreign}
    return own | {key: score for key, score in everywhere.items() if key in foreign}


def weighted_sum(
    keys: Sequence[int],
    lexical_of: Mapping[int, float],
    cosine_of: Mapping[int, float],
    foreign: Collection[int] = (),
    lexical_weight: float = LEXICAL_WEIGHT,
    language_gap: float | None = None,
) -> dict[int, float]:
    """Each part scaled to 0..1 over the keys, then weighted; in 0..1. A key has 0 of a part that it is missing from.

    With a `language_gap` the cosines of the foreign keys are raised by it before scaling, and the vector part stands
    in for their lexical part where that is lower.
    """
    gap_of = dict.fromkeys(foreign, language_gap or 0.0)
    lexical = scaled({key: lexical_of.get(key, 0.0) for key in keys})
    cosine = scaled({key: cosine_of[key] + gap_of.get(key, 0.0) for key in keys if key in cosine_of})
    if language_gap is not None:
        lexical |= {key: max(lexical[key], FOREIGN_SHARE * cosine.get(key, 0.0)) for key in keys if key in gap_of}
    return {key: lexical_weight * lexical[key] + (1 - lexical_weight) * cosine.get(key, 0.0) for key in keys}


def scaled(values: Mapping[int, float]) -> dict[int, float]:
    """Minimum to 0, maximum to 1; where all are equal, 1 for values above 0 and else 0."""
    if not values:
        return {}
    low, high = min(values.values()), max(values.values())
    if high == low:
        return dict.fromkeys(values, 1.0 if high > 0 else 0.0)
    return {key: (value - low) / (high - low) for key, value in values.items()}


def reciprocal_rank_fusion(
    keys: Sequence[int], ranks: Sequence[Mapping[int, int]], constant: int = RRF_CONSTANT
) -> dict[int, float]:
    """Sum over the legs of 1 / (constant + rank), rank from 1; a leg that did not find a key adds nothing."""
    return {key: sum(1 / (constant + rank[key]) for rank in ranks if key in rank) for key in keys}


def label(chunk: Chunk, title: str) -> str:
    """`Title (Heading, lines 11-12) [kc-returns-v3:c0]`; `line 18` when it is one line. The words stay English."""
    place = chunk.location
    lines = (
        f"line {place.line_start}"
        if place.line_start == place.line_end
        else f"lines {place.line_start}-{place.line_end}"
    )
    inside = f"{place.heading}, {lines}" if place.heading else lines
    return f"{title} ({inside}) [{chunk.id}]"
