"""What an evaluation found: each case, and the tables over all of them. Pure; the denominator never shrinks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from evidencedesk import guard
from evidencedesk.evaluation.metrics import (
    Rate,
    auroc,
    average,
    ndcg_at_k,
    recall_at_k,
    reciprocal_rank,
)
from evidencedesk.records import AnswerReason, Chunk, EmbedderIdentity, Flip, Guard, Hits, Mode, Outcome, Thresholds

GOOD: frozenset[Outcome] = frozenset({"right", "refused"})
EVERY_TAG = "all"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: where each leg ranks what is right, what the guard says, what came of asking."""

    case_id: str
    question: str
    tags: tuple[str, ...]
    answerable: bool
    as_of: str | None
    expected: tuple[str, ...]
    """doc_ids or families; none for an unanswerable question."""
    ranked: Mapping[Mode, tuple[str, ...]]
    """By mode the documents found, best first; one that is expected under the name by which it is expected."""
    candidates: Hits | None
    """What the guard looked at; None: the case failed before."""
    reason: AnswerReason | None
    """Of the answer; None when the case failed."""
    detail: str
    cited: tuple[str, ...]
    """Chunk ids."""
    outcome: Outcome
    """right, wrong (a wrong document cited, or an unanswerable question answered), refused (an unanswerable question
    not answered), turned_away (an answerable one not answered), error."""
    model_called: bool
    error: str = ""

    @property
    def ok(self) -> bool:
        """True when it came out well: right, or rightly refused."""
        return self.outcome in GOOD

    @property
    def top_is_right(self) -> bool:
        """Whether the first candidate is of an expected document."""
        return bool(self.candidates and self.expects(self.candidates[0].chunk))

    def expects(self, chunk: Chunk) -> bool:
        """Whether the chunk is of an expected document."""
        return chunk.doc_id in self.expected or chunk.family in self.expected

    def rank(self, mode: Mode) -> int | None:
        """Where that mode ranks the first expected document, from 1; None where it does not."""
        ranked = self.ranked.get(mode, ())
        return next((rank for rank, name in enumerate(ranked, 1) if name in self.expected), None)

    @property
    def why(self) -> str:
        """Why it came out so, in one sentence."""
        if self.outcome != "wrong":
            return self.error or self.detail
        return f"The answer cites {', '.join(self.cited)}; expected was {', '.join(self.expected) or 'no answer'}."


@dataclass(frozen=True, slots=True)
class RetrievalRow:
    """How well one mode finds what is right, for one tag."""

    tag: str
    mode: Mode
    recall_at_1: Rate
    recall_at_3: Rate
    recall_at_k: Rate
    mrr: Rate
    ndcg_at_k: Rate


@dataclass(frozen=True, slots=True)
class SweepRow:
    """What the guard would let pass with other thresholds."""

    min_score: float
    min_margin: float
    unanswerable_answered: Rate
    answerable_turned_away: Rate
    wrong_top: Rate
    """Of the answerable questions: those that pass although the first candidate is of another document."""


@dataclass(frozen=True, slots=True)
class GuardedRun:
    """What came of asking every question."""

    answered: Rate
    wrong: Rate
    """Of all cases: answered from a wrong document, or answered though unanswerable."""
    unanswerable_answered: Rate
    answerable_turned_away: Rate
    errors: Rate
    reasons: Mapping[str, int]
    """How many cases ended with each reason, `error` for those that failed."""
    model_calls: int


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """All cases, asked once of one state of a file."""

    run_id: int | None
    """Its number in the file; None: not stored."""
    started_at: datetime
    cases_hash: str
    k: int
    embedder: EmbedderIdentity | None
    values: Guard | None
    generation: str
    """Which state of the file was asked."""
    documents_in_force: int
    code_version: str
    model: str
    checker: str
    retrieval: tuple[RetrievalRow, ...]
    sweep: tuple[SweepRow, ...]
    guarded: GuardedRun
    separation: str
    """Whether a threshold of the guard's score separates what to answer from what not, in one sentence."""
    cases: tuple[CaseResult, ...]

    @property
    def ok(self) -> bool:
        """True when no case failed."""
        return self.guarded.errors.count == 0

    def metrics(self) -> dict[str, float | None]:
        """The figures that floors and ceilings may name; None where one does not apply."""
        best: Mode = "hybrid" if any(row.mode == "hybrid" for row in self.retrieval) else "keyword"
        row = next(row for row in self.retrieval if row.tag == EVERY_TAG and row.mode == best)
        return {
            "recall@1": row.recall_at_1.value, "recall@3": row.recall_at_3.value, "recall@k": row.recall_at_k.value,
            "mrr": row.mrr.value, "ndcg@k": row.ndcg_at_k.value, "answered": self.guarded.answered.value,
            "wrong": self.guarded.wrong.count, "errors": self.guarded.errors.count,
            "unanswerable_answered": self.guarded.unanswerable_answered.count,
            "turned_away": self.guarded.answerable_turned_away.count,
        }  # fmt: skip


SHARES = ("recall@1", "recall@3", "recall@k", "mrr", "ndcg@k", "answered")
"""What floors and ceilings may name: shares, 0 to 1, of the cases that they apply to ..."""
COUNTS = ("wrong", "errors", "unanswerable_answered", "turned_away")
"""... and numbers of cases. Rankings are those of hybrid search, or of keyword search where it is alone."""
METRICS = (*SHARES, *COUNTS)


def require_limits(fail_under: Mapping[str, float], fail_over: Mapping[str, float]) -> None:
    """ValueError for a name that is no metric, and for a limit that no figure could break or none could keep."""
    for limits, never_breaks in ((fail_under, 0.0), (fail_over, 1.0)):
        for name, limit in limits.items():
            if name not in METRICS:
                raise ValueError(f"there is no metric {name!r}; there are {', '.join(METRICS)}")
            if not math.isfinite(limit):
                raise ValueError(f"the limit of {name} must be a finite number, or it would never break, not {limit!r}")
            if name in COUNTS and (limit < 0 or limit != int(limit)):
                raise ValueError(f"{name} counts cases: its limit is a whole number from 0, not {limit:g}")
            if name in SHARES and not 0 <= limit <= 1:
                raise ValueError(f"{name} is a share: its limit lies between 0 and 1, not at {limit:g}")
            if limit == never_breaks and (name in SHARES or limits is fail_under):
                raise ValueError(f"a limit of {limit:g} for {name} would never break")


def objections(
    metrics: Mapping[str, float | None], fail_under: Mapping[str, float], fail_over: Mapping[str, float]
) -> tuple[str, ...]:
    """Which floors and ceilings the figures break, a sentence each. ValueError as `require_limits`."""
    require_limits(fail_under, fail_over)
    found = []
    for name, floor in fail_under.items():
        if (value := metrics[name]) is None:
            found.append(f"{name} does not apply to any case, so it is not at least {floor:g}")
        elif value < floor:
            found.append(f"{name} is {value:g}, below {floor:g}")
    for name, ceiling in fail_over.items():
        if (value := metrics[name]) is not None and value > ceiling:
            found.append(f"{name} is {value:g}, above {ceiling:g}")
    return tuple(found)


def flips(results: Iterable[CaseResult], outcome_before: Mapping[str, str]) -> tuple[Flip, ...]:
    """The cases that came out otherwise than in another run, those that it did not hold included."""
    return tuple(
        Flip(
            result.case_id,
            result.question,
            cast("Outcome | None", outcome_before.get(result.case_id)),
            result.outcome,
            result.why,
        )
        for result in results
        if outcome_before.get(result.case_id) != result.outcome
    )


# ---------------------------------------------------------------- tables


def retrieval_rows(results: Sequence[CaseResult], k: int) -> tuple[RetrievalRow, ...]:
    """One row for each tag and mode, all cases first. Unanswerable questions have nothing to find and do not count."""
    modes = list(dict.fromkeys(mode for result in results for mode in result.ranked)) or ["keyword"]
    tags = [EVERY_TAG, *dict.fromkeys(tag for result in results for tag in result.tags)]
    rows = []
    for tag in tags:
        tagged = [result for result in results if tag == EVERY_TAG or tag in result.tags]
        for mode in modes:

            def mean(figure: Callable[[tuple[str, ...], tuple[str, ...]], float | None]) -> Rate:
                # A case that failed ranks nothing, which is 0, not left out.
                return average(figure(r.ranked.get(mode, ()), r.expected) for r in tagged)  # noqa: B023 - used at once

            rows.append(
                RetrievalRow(
                    tag, mode,
                    mean(lambda ranked, right: recall_at_k(ranked, right, 1)),
                    mean(lambda ranked, right: recall_at_k(ranked, right, 3)),
                    mean(lambda ranked, right: recall_at_k(ranked, right, k)),
                    mean(reciprocal_rank),
                    mean(lambda ranked, right: ndcg_at_k(ranked, right, k)),
                )
            )  # fmt: skip
    return tuple(rows)


def guarded_run(results: Sequence[CaseResult]) -> GuardedRun:
    """Count what came of asking."""
    unanswerable = [result for result in results if not result.answerable]
    answerable = [result for result in results if result.answerable]
    counts = Counter(result.outcome for result in results)
    answered = [result for result in results if result.reason == "ok"]
    return GuardedRun(
        answered=Rate(len(answered), len(results)),
        wrong=Rate(counts["wrong"], len(results)),
        unanswerable_answered=Rate(sum(r.outcome == "wrong" for r in unanswerable), len(unanswerable)),
        answerable_turned_away=Rate(sum(r.outcome == "turned_away" for r in answerable), len(answerable)),
        errors=Rate(counts["error"], len(results)),
        reasons=dict(Counter(result.reason or "error" for result in results).most_common()),
        model_calls=sum(result.model_called for result in results),
    )


def sweep_rows(
    results: Sequence[CaseResult], judge: Guard | None, grid: Iterable[tuple[float, float]] | None = None
) -> tuple[SweepRow, ...]:
    """What would pass with each pair of min_score and min_margin; by default a grid around what was observed.
    Empty where a calibrated guard judges: its risk-coverage curve says it instead.

    A case that failed counts as turned away.
    """
    if not isinstance(judge, Thresholds):
        return ()
    unanswerable = [result for result in results if not result.answerable]
    answerable = [result for result in results if result.answerable]
    rows = []
    for min_score, min_margin in grid if grid is not None else _grid(results, judge):
        trial = Thresholds(min_score, min_margin, "a sweep", judge.measure, judge.missing_weight)

        def passes(result: CaseResult, trial: Thresholds = trial) -> bool:
            return bool(result.candidates) and guard.assess(result.candidates or (), trial).state == "ok"

        rows.append(
            SweepRow(
                min_score, min_margin,
                Rate(sum(map(passes, unanswerable)), len(unanswerable)),
                Rate(sum(not passes(result) for result in answerable), len(answerable)),
                Rate(sum(passes(r) and not r.top_is_right for r in answerable), len(answerable)),
            )
        )  # fmt: skip
    return tuple(rows)


def _grid(results: Sequence[CaseResult], in_force: Thresholds) -> list[tuple[float, float]]:
    tops = sorted(_score(result, in_force)[0] for result in results if result.candidates)
    margins = sorted(_score(result, in_force)[1] for result in results if result.candidates)
    quantiles = {round(tops[int(q * (len(tops) - 1))], 3) for q in (0, 0.1, 0.25, 0.5, 0.75)} if tops else set()
    scores = sorted({*quantiles, in_force.min_score})
    middle = {round(max(0.0, margins[len(margins) // 4]), 3)} if margins else set()
    return [(score, margin) for score in scores for margin in sorted({0.0, in_force.min_margin, *middle})]


def _score(result: CaseResult, judge: Guard) -> tuple[float, float]:
    """What the guard compares with its threshold, and the margin."""
    assessment = guard.assess(result.candidates or (), judge)
    score = assessment.top if assessment.probability is None else assessment.probability
    return score, assessment.margin


def separation(results: Sequence[CaseResult], judge: Guard | None) -> str:
    """Whether some threshold of the guard's score has what should be answered above it and all else below."""
    if judge is None:
        return "This embedder has no thresholds: calibrate."
    judged = [(result, _score(result, judge)[0]) for result in results if result.candidates]
    good = [score for result, score in judged if result.answerable and result.top_is_right]
    bad = [score for result, score in judged if not (result.answerable and result.top_is_right)]
    if not good or not bad:
        return "Nothing to separate: these cases hold only questions to answer, or only questions not to answer."
    if min(good) > max(bad):
        return f"Every threshold between {max(bad):.3f} and {min(good):.3f} separates them."
    area = auroc([*good, *bad], [True] * len(good) + [False] * len(bad))
    above = sum(score <= max(bad) for score in good)
    return (
        f"No threshold separates them: {above} of {len(good)} questions whose first candidate is right score no higher "
        f"than {max(bad):.3f}, the best of the others (AUROC {area:.2f})."
    )
