"""The read way of an answer: retrieve, assess, build the request, call the model, parse, check, remember.

The snapshot is closed before the model is called, which may take a minute; what it cites is looked up anew
afterwards, so a text that left force meanwhile is no evidence any more. Whatever a model does ends in an Answer, and an
abstention says at which stage it was decided, and why; a store, an embedder or a checker that fails raises.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from evidencedesk import citations, guard, retrieval
from evidencedesk.citations import Found, RuleChecker, SupportChecker
from evidencedesk.context import DEFAULT_BUDGET_TOKENS, build_request
from evidencedesk.embeddings import Embedder
from evidencedesk.errors import BadOutput, ModelError, StoreError
from evidencedesk.llm import LLMClient, QuotingAnswerer
from evidencedesk.records import (
    Answer,
    Assessment,
    Citation,
    Claim,
    EmbedderIdentity,
    Guard,
    Hit,
    Hits,
    Mode,
    ModelAnswer,
    ModelRequest,
    Verification,
)
from evidencedesk.release import VERSION
from evidencedesk.results import parse, reply_schema
from evidencedesk.retrieval import Question
from evidencedesk.store import Scope, Snapshot, Store, put_answer, stored_guard
from evidencedesk.text import script_of_language


class Reads(Protocol):
    """What is read from: a store, each time its newest state, or one open transaction."""

    def read(self, stage: str = ...) -> AbstractContextManager[Snapshot]:
        """One snapshot until the block ends."""


@dataclass(frozen=True, slots=True)
class Answerer:
    """What answers a question, and what judges the answer."""

    llm: LLMClient
    checker: SupportChecker
    embedder: Embedder | None
    """The file's, whose built-in thresholds judge where nothing was calibrated."""
    budget_tokens: int = DEFAULT_BUDGET_TOKENS

    @classmethod
    def of(
        cls, llm: LLMClient | None, checker: SupportChecker | None, embedder: Embedder | None,
        budget_tokens: int | None,
    ) -> Answerer:  # fmt: skip
        """What was chosen, and else what quotes, the rules, and the usual budget. TypeError for what has no name."""
        for chosen, parameter in ((llm, "llm"), (checker, "checker")):
            if chosen is not None and not isinstance(getattr(chosen, "name", None), str):
                raise TypeError(f"{parameter} must have a name, a text, which is kept with recorded answers")
        if budget_tokens is None:
            # Quoting costs nothing, so a long question is no reason to refuse it.
            budget_tokens = sys.maxsize if llm is None else DEFAULT_BUDGET_TOKENS
        return cls(
            QuotingAnswerer() if llm is None else llm, RuleChecker(embedder) if checker is None else checker, embedder,
            budget_tokens,
        )  # fmt: skip


def guard_of(snapshot: Snapshot, asked_by: EmbedderIdentity | None, embedder: Embedder | None) -> Guard | None:
    """What judges questions whose vectors `asked_by` made (None: without vectors): what was calibrated, else built in.

    None: that embedder has no thresholds, and nothing is answered. CalibrationOutdated as `stored_guard`.
    """
    built_in = guard.KEYWORD_THRESHOLDS if asked_by is None else getattr(embedder, "guard_thresholds", None)
    return stored_guard(snapshot, asked_by) or built_in


def assess(store: Store, question: Question, embedder: Embedder | None, as_of: datetime | None) -> Assessment:
    """What the guard says of a question's candidates. Reads only."""
    with store.read("assessing") as snapshot:
        hits = candidates(snapshot, question, snapshot.scope(as_of))
        return guard.assess(hits, guard_of(snapshot, question.embedder, embedder))


def candidates(snapshot: Snapshot, question: Question, scope: Scope, mode: Mode = "hybrid") -> Hits:
    """The best three chunks in scope, no threshold.

    Where the best one is in another script than the question and its text is in force in the question's language
    too, the best chunk of that one follows them, so that the answer can be given in the question's language.
    """
    hits = retrieval.search(snapshot, question, scope, k=guard.CANDIDATES, mode=mode)
    if not hits or not question.scripts:
        return hits
    best, found = hits[0].chunk, {hit.chunk.id for hit in hits}
    if script_of_language(best.lang) in {None, *question.scripts}:
        return hits
    for lang in snapshot.languages_of(best.family, scope):
        if script_of_language(lang) in question.scripts:
            same_text = replace(scope, lang=lang, family=best.family)
            translated = retrieval.search(snapshot, question, same_text, k=1, mode=mode)
            hits = replace(hits, hits=(*hits, *(hit for hit in translated if hit.chunk.id not in found)))
    return hits


def ask(
    store: Store, question: Question, answerer: Answerer, *,
    as_of: datetime | None = None, record: Callable[[Answer], int] | None = None,
) -> Answer:  # fmt: skip
    """Answer from what is in force (or was, at `as_of`), or abstain with a reason. Writes only what `record` writes."""
    with store.read("asking") as snapshot:
        hits = candidates(snapshot, question, snapshot.scope(as_of))
        asked_at, judge = snapshot.now, guard_of(snapshot, question.embedder, answerer.embedder)
    answer = answer_from(store, question, hits, answerer, judge, asked_at=asked_at, as_of=as_of)
    if record is None:
        return answer
    try:
        return replace(answer, answer_id=record(answer))
    except StoreError as error:
        error.answer = answer  # it was paid for
        raise


def answer_from(
    reads: Reads, question: Question, hits: Hits, answerer: Answerer, judge: Guard | None,
    *, asked_at: datetime, as_of: datetime | None,
) -> Answer:  # fmt: skip
    """Answer from the candidates that were found, or abstain with a reason. Reads only."""
    assessment = guard.assess(hits, judge)
    answer = Answer(
        text="", citations=(), abstained=True, reason="no_result", hits=hits, claims=(), question=question.text,
        assessment=assessment, asked_at=asked_at, as_of=as_of, embedder=question.embedder,
    )  # fmt: skip
    if assessment.state != "ok":
        return replace(answer, reason=assessment.state, detail=guard.explain(assessment, hits.reason))
    kept = guard.kept(hits, judge)
    return _asked_of_the_model(reads, replace(answer, model=answerer.llm.name), kept, answerer)


def _asked_of_the_model(reads: Reads, answer: Answer, kept: Sequence[Hit], answerer: Answerer) -> Answer:
    """Call the model and check what it says; the guard has let the question pass."""
    request = build_request(
        answer.question, kept, schema=reply_schema(), budget_tokens=answerer.budget_tokens, as_of=answer.as_of
    )
    shown = [passage.chunk for passage in request.passages]
    try:
        reply = parse(_complete(answerer.llm, request), model=answerer.llm.name)
    except BadOutput as error:
        return replace(answer, reason="bad_output", detail=str(error))
    except ModelError as error:
        return replace(answer, reason="model_failed", detail=str(error))
    if reply.abstained:
        detail = f"{answerer.llm.name} found no answer in the evidence."
        if isinstance(answerer.llm, QuotingAnswerer):
            detail = "No sentence of the evidence fits the question well enough to be quoted as its answer."
        return replace(answer, reason="model_abstained", detail=detail)
    claims = citations.check_claims(reply, shown, _lookup(reads, answer.as_of), checker=answerer.checker)
    return _judged(answer, claims)


def _complete(llm: LLMClient, request: ModelRequest) -> str:
    try:
        raw: object = llm.complete(request)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(model=llm.name, problem=f"{type(error).__name__}: {error}"[:500]) from error
    if not isinstance(raw, str):
        raise ModelError(model=llm.name, problem=f"it gave {type(raw).__name__}, not text")
    return raw


def _judged(answer: Answer, claims: tuple[Claim, ...]) -> Answer:
    objection = citations.worst(claims)
    if objection is not None:
        return replace(answer, claims=claims, reason=objection.reason, detail=objection.detail)
    cited: dict[str, Citation] = {}
    for claim in claims:
        for citation in _bearing(claim):
            if citation.chunk is not None:
                cited.setdefault(citation.chunk.id, citation)
    return replace(
        answer, text=written_out(claims), claims=claims, citations=tuple(cited.values()), abstained=False,
        reason="ok", detail=_all_hold(claims),
    )  # fmt: skip


def written_out(claims: Sequence[Claim]) -> str:
    """The claims as one text, each followed by the ids of what bears it, in brackets: it can be verified by itself."""
    written = [
        " ".join([claim.text, *(f"[{citation.chunk.id}]" for citation in _bearing(claim) if citation.chunk)])
        for claim in claims
    ]
    # A row of a table is a sentence only on a line of its own.
    return ("\n" if any(claim.text.startswith("|") for claim in claims) else " ").join(written)


def _bearing(claim: Claim) -> list[Citation]:
    """The citations whose text supports the claim. Others that were cited beside them are no source of it."""
    return [citation for citation in claim.citations if citation.support is not None and citation.support.ok]


def _lookup(reads: Reads, as_of: datetime | None) -> citations.Lookup:
    """What finds a cited chunk in the file as it is now."""

    def look_up(chunk_id: str) -> Found | None:
        with reads.read("checking a citation") as snapshot:
            found = snapshot.find_chunk(chunk_id, snapshot.scope(as_of))
        if found is None:
            return None
        stored, in_force = found
        return Found(stored.chunk, retrieval.label(stored.chunk, stored.title), in_force)

    return look_up


def recorder(store: Store, checker: SupportChecker) -> Callable[[Answer], int]:
    """What stores an answer and gives its number. ReadOnlyDesk at once when the file cannot be written."""
    store.database.require_writable()

    def record(answer: Answer) -> int:
        with store.write("recording an answer") as transaction:
            return put_answer(transaction, answer, checker=checker.name, code_version=VERSION)

    return record


# ---------------------------------------------------------------- answers of others


def verify(
    store: Store, answer: Answer | str | Mapping[str, Any], checker: SupportChecker | None, embedder: Embedder | None,
    *, as_of: datetime | None = None,
) -> Verification:  # fmt: skip
    """Check any answer with citations against what is in force (or was, at `as_of`). Reads only.

    Every chunk in force that is cited counts as retrieved, unless the answer says what its sources were. An answer that
    says which day it is about is checked as of that day, unless another is given.
    """
    store.database.require_open()
    if as_of is None:
        asked = (
            answer.as_of if isinstance(answer, Answer) else answer.get("as_of") if isinstance(answer, Mapping) else None
        )
        as_of = retrieval.instant(asked)
    given, look_up = citations.read_answer(answer), _lookup(store, as_of)
    if given.abstained:
        return Verification(False, "model_abstained", "It is an abstention: it claims nothing to verify.", ())
    named = given.cited if given.sources is None else given.sources
    found = [each for each in map(look_up, dict.fromkeys(named)) if each is not None and each.in_force]
    kept = [each.chunk for each in found]
    labels = {each.label: each.chunk.id for each in found}
    read = citations.claims_of_text(given, labels, [chunk.text for chunk in kept])
    claims = citations.check_claims(
        ModelAnswer(False, read), kept, look_up, checker=checker or RuleChecker(embedder), numbered=False
    )
    objection = citations.worst(claims)
    if objection is None:
        return Verification(True, "ok", _all_hold(claims), claims)
    return Verification(False, objection.reason, objection.detail, claims)


def _all_hold(claims: Sequence[Claim]) -> str:
    if len(claims) == 1:
        return "The claim is supported by what it cites."
    return f"All {len(claims)} claims are supported by what they cite."
