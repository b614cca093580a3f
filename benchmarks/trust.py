"""How far can a calibrated guard be trusted? Real questions, each judged by a model that has not seen it.

`python -m benchmarks.trust`. Every case is asked as `Desk.evaluate` asks it, and the guard is fitted by the product's
own `calibrate`; `../docs/decisions/calibration.md` says what was found.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import NormalDist, fmean

from benchmarks.common import (
    Case,
    QuestionSet,
    add_question_sets,
    aligned,
    chosen_sets,
    circumstances,
    command,
    desks_in,
    opened,
    read_cases,
)
from evidencedesk import EvidenceDeskError, RagCase, RecordedReplies
from evidencedesk.embeddings import E5Embedder, ToyEmbedder
from evidencedesk.evaluation.calibration import calibrate, filled, fitted, unseen_probabilities
from evidencedesk.evaluation.logistic import fit_logistic, folds_of, threshold_for
from evidencedesk.evaluation.metrics import Rate, aurc, auroc, risk_coverage
from evidencedesk.evaluation.report import CaseResult, EvaluationReport
from evidencedesk.guard import KEYWORD_THRESHOLDS, assess
from evidencedesk.guard.calibrated import SIGNALS, probability, signals_of
from evidencedesk.guard.thresholds import measure_of
from evidencedesk.records import GuardMeasure, GuardSignal, Thresholds

SETS = ("ver_policies", "en_squad2", "bn_tydi", "en_covidqa")
TOGETHER = "all together"
MAX_WRONG = 0.05
BUILT_IN: Mapping[str, Thresholds | None] = {
    "e5": E5Embedder.guard_thresholds, "toy": ToyEmbedder.guard_thresholds, "none": KEYWORD_THRESHOLDS
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """What an evaluation of one set found, the adversarial questions apart from it."""

    report: EvaluationReport
    adversarial: tuple[CaseResult, ...]

    @property
    def measure(self) -> GuardMeasure:
        return "idf_share" if self.report.embedder is None else "cosine"

    @property
    def judged(self) -> list[CaseResult]:
        """The cases that `calibrate` fits: those with candidates in the desk's own measure."""
        return [r for r in self.report.cases if r.candidates and measure_of(r.candidates) == self.measure]


def should_pass(result: CaseResult) -> bool:
    return result.answerable and result.top_is_right


def answerable(result: CaseResult) -> bool:
    return result.answerable


def labels(asked: Asked) -> list[bool]:
    return [should_pass(result) for result in asked.judged]


def read(asked: Asked) -> list[dict[GuardSignal, float | None]]:
    return [signals_of(result.candidates or ()) for result in asked.judged]


# ---------------------------------------------------------------- asking


def rag_case(case: Case) -> RagCase:
    """A case as the product reads cases. At one instant one version is in force, so a family says which."""
    return RagCase(
        id=case.id,
        question=case.question,
        answerable=case.answerable,
        expected_doc_ids=tuple(dict.fromkeys((*case.expected, *case.also_acceptable))) if case.answerable else (),
        as_of=case.as_of,
    )


def ask_set(source: QuestionSet, embedder: str, cache: Path, limit: int | None) -> Asked:
    """Every case asked once. No model answers: what the guard says is decided before one would be called."""
    cases = read_cases(source.cases)[:limit]
    with opened(source, embedder, cache) as desk:
        report = desk.evaluate(map(rag_case, cases), llm=RecordedReplies({}), store=False)
    if failed := [result for result in report.cases if result.outcome == "error"]:
        raise ValueError(f"{len(failed)} cases failed, such as {failed[0].case_id}: {failed[0].error}")
    adversarial = {case.id for case in cases if case.kind == "adversarial"}
    apart = tuple(result for result in report.cases if result.case_id in adversarial)
    return Asked(replace(report, cases=tuple(result for result in report.cases if result not in apart)), apart)


def together(sets: Mapping[str, Asked]) -> Asked:
    """All sets as one: one guard for questions and documents of every kind."""
    first = next(iter(sets.values()))
    return Asked(
        replace(first.report, cases=tuple(result for asked in sets.values() for result in asked.report.cases)),
        tuple(result for asked in sets.values() for result in asked.adversarial),
    )


# ---------------------------------------------------------------- figures


def auroc_interval(area: float, positives: int, negatives: int, confidence: float = 0.95) -> tuple[float, float]:
    """Newcombe's interval of an AUROC, which does not shrink to a point at 1 as a bootstrap does.

    R. G. Newcombe, Confidence intervals for an effect size measure based on the Mann-Whitney statistic, part 2,
    Statistics in Medicine 25 (2006), method 5: the areas whose standard error reaches as far as the observed one lies
    away, as Wilson's interval is found for a share.
    """
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    equal = (positives + negatives) / 2 - 1

    def reached(true: float) -> bool:
        variance = true * (1 - true) / (positives * negatives)
        variance *= 1 + equal * ((1 - true) / (2 - true) + true / (1 + true))
        return abs(true - area) <= z * sqrt(variance)

    def last_reached(beyond: float) -> float:
        inside, outside = area, beyond
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if reached(middle) else (inside, middle)
        return inside

    return last_reached(0.0), last_reached(1.0)


def area(scores: Sequence[float], labels: Sequence[bool]) -> str:
    """The AUROC with its interval."""
    found = auroc(scores, labels)
    if found is None:
        return "-"
    low, high = auroc_interval(found, sum(labels), len(labels) - sum(labels))
    return f"{found:.3f} [{low:.3f}, {high:.3f}]"


def signal_values(asked: Asked, name: GuardSignal) -> list[float]:
    return [value for (value,) in filled(read(asked), [name])]


def built_in_scores(asked: Asked, values: Thresholds) -> list[float]:
    return [assess(result.candidates or (), values).top for result in asked.judged]


def calibrated_scores(asked: Asked, names: Sequence[GuardSignal] = SIGNALS) -> list[float]:
    """The probabilities of `calibrate`, each by a guard fitted without the case's fold."""
    ids = [result.case_id for result in asked.judged]
    return unseen_probabilities(read(asked), labels(asked), ids, names)


def ablated(asked: Asked, names: Sequence[GuardSignal]) -> str:
    """The AUROC of a guard of those signals, the mean over ten ways of dealing the folds."""
    ids = [result.case_id for result in asked.judged]
    right, signals = labels(asked), read(asked)
    deals = [[f"{name} {deal}" for name in ids] for deal in range(10)]
    return f"{fmean(auroc(unseen_probabilities(signals, right, deal, names), right) or 0.0 for deal in deals):.3f}"


def covered(scores: Sequence[float], right: Sequence[bool], of: int) -> Rate:
    """How many of `of` cases are answered by the threshold that answers most with at most MAX_WRONG of them wrong."""
    points = risk_coverage(scores, [not each for each in right])
    return Rate(max((p.coverage.count for p in points if p.risk.count <= MAX_WRONG * p.risk.of), default=0), of)


def promised(scores: Sequence[float], right: Sequence[bool], of: int) -> Rate:
    """The same with a threshold that proves it: the upper bound of Clopper and Pearson at 95 % is at most MAX_WRONG."""
    return Rate(threshold_for(scores, [not each for each in right], MAX_WRONG).coverage.count, of)


def kept_promise(asked: Asked) -> tuple[Rate, Rate, int, int]:
    """Calibrates five times, each time without a fifth, and lets the stored kind of guard judge that fifth.

    Gives answered of all, wrong of answered, how many of the calibrations promised, and how many there were.
    """
    cases = asked.judged
    folds = folds_of([case.case_id for case in cases], labels(asked))
    answered, wrong, promises = Rate(0, 0), Rate(0, 0), 0
    for left_out in sorted(set(folds)):
        seen = tuple(case for case, fold in zip(cases, folds, strict=True) if fold != left_out)
        fitted = calibrate(replace(asked.report, cases=seen), max_wrong=MAX_WRONG)
        promises += fitted.promised
        rest = [case for case, fold in zip(cases, folds, strict=True) if fold == left_out]
        passed = [case for case in rest if assess(case.candidates or (), fitted.guard).state == "ok"]
        answered += Rate(len(passed), len(rest))
        wrong += Rate(sum(not should_pass(case) for case in passed), len(passed))
    return answered, wrong, promises, len(set(folds))


# ---------------------------------------------------------------- printing


def counts(sets: Mapping[str, Asked]) -> str:
    rows = [
        ["set", "cases", "to answer", "answerable, wrong first", "unanswerable", "no candidate", "adversarial apart"]
    ]
    for name, asked in sets.items():
        cases = asked.report.cases
        right, answerable = sum(map(should_pass, cases)), sum(result.answerable for result in cases)
        figures = [len(cases), right, answerable - right, len(cases) - answerable, len(cases) - len(asked.judged)]
        rows.append([name, *map(str, figures), str(len(asked.adversarial))])
    return aligned(rows)


def areas(sets: Mapping[str, Asked], built_in: Thresholds | None) -> str:
    """AUROC of each signal alone, of the built-in score, and of the calibrated guard with and without each signal."""
    rows = [["AUROC", *sets]]
    for title, label in (("right first, all else", should_pass), ("answerable, not", answerable)):
        right = {name: [label(result) for result in asked.judged] for name, asked in sets.items()}
        scores = {signal: {n: signal_values(a, signal) for n, a in sets.items()} for signal in SIGNALS}
        named: dict[str, dict[str, list[float]]] = {str(signal): found for signal, found in scores.items()}
        if built_in is not None:
            named["built-in score"] = {name: built_in_scores(asked, built_in) for name, asked in sets.items()}
        named["calibrated"] = {name: calibrated_scores(asked) for name, asked in sets.items()}
        for score, found in named.items():
            rows.append([f"{title}: {score}", *(area(found[name], right[name]) for name in sets)])
    rows.append(["right first, all else: calibrated, ten deals", *(ablated(asked, SIGNALS) for asked in sets.values())])
    for left_out in SIGNALS:
        names = [name for name in SIGNALS if name != left_out]
        rows.append([f"    without {left_out}", *(ablated(asked, names) for asked in sets.values())])
    return aligned(rows)


def coverage(sets: Mapping[str, Asked], built_in: Thresholds | None) -> str:
    """What may be answered with at most MAX_WRONG of the answers wrong, and the area under the risk-coverage curve."""
    rows = [
        ["set", "score", f"answered at {MAX_WRONG:.0%} wrong", "answered with that promised at 95 %", "AURC (least)"]
    ]
    for name, asked in sets.items():
        right, of = labels(asked), len(asked.report.cases)
        least = aurc([float(each) for each in right], [not each for each in right])
        scores = {"built in": built_in_scores(asked, built_in)} if built_in is not None else {}
        scores["calibrated"] = calibrated_scores(asked)
        for title, found in scores.items():
            curve = f"{aurc(found, [not each for each in right]):.3f} ({least:.3f})"
            rows.append([name, title, str(covered(found, right, of)), str(promised(found, right, of)), curve])
    return aligned(rows)


def unseen(sets: Mapping[str, Asked]) -> str:
    """What a calibration on four fifths of the cases does to the last fifth."""
    rows = [["set", "answered", "wrong of the answered", "calibrations with a promise", "adversarial passed"]]
    for name, asked in sets.items():
        answered, wrong, promises, of = kept_promise(asked)
        fitted = calibrate(asked.report, max_wrong=MAX_WRONG).guard
        passed = sum(assess(r.candidates or (), fitted).state == "ok" for r in asked.adversarial)
        adversarial = str(Rate(passed, len(asked.adversarial))) if asked.adversarial else "-"
        rows.append([name, str(answered), str(wrong), f"{promises} of {of}", adversarial])
    return aligned(rows)


def across(sets: Mapping[str, Asked]) -> str:
    """A guard that was fitted on one set judges another: AUROC."""
    rows = [["fitted on", *(f"judges {name}" for name in sets)]]
    for name, asked in sets.items():
        guard = fitted(read(asked), labels(asked), measure=asked.measure)
        judged = [[probability(guard, signals) for signals in read(other)] for other in sets.values()]
        figures = [f"{auroc(found, labels(other)):.3f}" for found, other in zip(judged, sets.values(), strict=True)]
        rows.append([name, *figures])
    return aligned(rows)


def weights(sets: Mapping[str, Asked]) -> str:
    """What each guard weighs, and what its cases can promise."""
    rows = []
    for name, asked in sets.items():
        model = fit_logistic(filled(read(asked)), labels(asked), SIGNALS, nonnegative=SIGNALS)
        rows.append(f"  {name}: {model.describe()}\n    {calibrate(asked.report, max_wrong=MAX_WRONG).promise}")
    return "\n".join(rows)


def adversarial(sets: Mapping[str, Asked]) -> str:
    """The adversarial questions among the cases, to fit on and to be judged."""
    rows = [
        [
            "set, adversarial questions included",
            "AUROC, calibrated",
            "of right first against adversarial",
            "AURC",
            "promised",
        ]
    ]
    for name, asked in sets.items():
        if not asked.adversarial:
            continue
        whole = Asked(replace(asked.report, cases=(*asked.report.cases, *asked.adversarial)), ())
        right, scores = labels(whole), calibrated_scores(whole)
        apart = {result.case_id for result in asked.adversarial}
        pairs = [(s, r) for s, r, case in zip(scores, right, whole.judged, strict=True) if r or case.case_id in apart]
        alone = area([score for score, _ in pairs], [is_right for _, is_right in pairs])
        curve = f"{aurc(scores, [not each for each in right]):.3f}"
        rows.append([name, area(scores, right), alone, curve, str(promised(scores, right, len(whole.report.cases)))])
    return aligned(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0; 1 when a set could not be measured; 2 when the data is not there or an option is wrong."""
    parser = command("trust", __doc__)
    add_question_sets(parser, SETS)
    parser.add_argument("--embedder", default="e5", choices=tuple(BUILT_IN))
    options = parser.parse_args(arguments)
    chosen = chosen_sets(parser, options)
    print(f"{circumstances()}; embedder: {options.embedder}\n")
    sets: dict[str, Asked] = {}
    with desks_in(options.cache) as cache:
        for source in chosen:
            try:
                sets[source.name] = ask_set(source, options.embedder, cache, options.limit)
            except (EvidenceDeskError, ValueError) as error:
                print(f"{source.name}: ERROR, not measured: {error}\n", file=sys.stderr)
    if not sets:
        return 1
    every = sets | {TOGETHER: together(sets)} if len(sets) > 1 else sets
    built_in = BUILT_IN[options.embedder]
    try:
        parts = [counts(every), areas(every, built_in), coverage(every, built_in), unseen(every), weights(every)]
        parts += [across(sets), adversarial(every)]
    except ValueError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    print("\n\n".join(parts))
    return 0 if len(sets) == len(options.sets) else 1


if __name__ == "__main__":
    sys.exit(main())
