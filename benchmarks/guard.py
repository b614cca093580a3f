"""When does the guard let a question pass? Real questions with and without an answer, each score apart, n of N.

`python -m benchmarks.guard`. Values are chosen on one half of the questions, the cheapest by `Counts.cost`, and printed
for both halves; `../docs/decisions/guard.md` says what was chosen and why.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, nan
from pathlib import Path

import numpy as np

from benchmarks.common import (
    CHECKOUT,
    Case,
    QuestionSet,
    add_question_sets,
    aligned,
    chosen_sets,
    circumstances,
    command,
    desks_in,
    is_chosen_on,
    is_right_document,
    opened,
    question_set,
    rate,
    read_cases,
)
from evidencedesk import Desk, EvidenceDeskError, load_rag_cases
from evidencedesk.embeddings import E5Embedder, ToyEmbedder
from evidencedesk.evaluation.metrics import auroc
from evidencedesk.guard import CANDIDATES, KEYWORD_THRESHOLDS, assess
from evidencedesk.records import Assessment, Hit, Mode, Thresholds

SETS = ("ver_policies", "en_squad2", "bn_tydi", "en_covidqa")
UNANSWERABLE_SHARE = 0.25
"""Of the questions that a desk is asked, in the cost."""
WRONG_WEIGHT = 3
"""Refusals that one wrong answer costs."""
DEMO = CHECKOUT / "data" / "rag_cases.jsonl"


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to measure candidates, the grid that its values are chosen from, and the built-in ones."""

    name: str
    embedder: str
    mode: Mode
    built_in: Thresholds
    min_scores: tuple[float, ...]
    min_margins: tuple[float, ...]
    missing_weights: tuple[float, ...] = (0.0,)

    def grid(self) -> Iterator[Thresholds]:
        for weight, score, margin in product(self.missing_weights, self.min_scores, self.min_margins):
            yield replace(self.built_in, min_score=score, min_margin=margin, missing_weight=weight)


def steps(low: float, high: float, step: float) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in np.arange(low, high + step / 2, step))


READINGS = {
    "e5": Reading(
        "e5", "e5", "hybrid", E5Embedder.guard_thresholds, steps(0.74, 0.9, 0.005), (-inf, *steps(0, 0.02, 0.002)),
        (0.0, 0.05, 0.1, 0.15, 0.2),
    ),
    "toy": Reading(
        "toy", "toy", "hybrid", ToyEmbedder.guard_thresholds, steps(0.2, 0.5, 0.02), (-inf, 0.0, 0.02, 0.05)
    ),
    "keyword": Reading(
        "keyword", "toy", "keyword", KEYWORD_THRESHOLDS, steps(0.3, 0.7, 0.02), (-inf, *steps(0, 0.1, 0.02))
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its candidates."""

    case: Case
    hits: tuple[Hit, ...]
    right: tuple[bool, ...]
    """For each hit, whether its document is a right one."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What one pair of thresholds does to one set."""

    unanswerable: int = 0
    unanswerable_answered: int = 0
    adversarial: int = 0
    adversarial_answered: int = 0
    answerable: int = 0
    turned_away: int = 0
    wrong_top: int = 0
    """Answered, though the first candidate's document is a wrong one."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in Counts.__slots__))

    def cost(self) -> float:
        """Refusals' worth a question, were UNANSWERABLE_SHARE of the questions unanswerable."""
        share, answerable = UNANSWERABLE_SHARE, max(1, self.answerable)
        wrong = share * self.unanswerable_answered / max(1, self.unanswerable)
        wrong += (1 - share) * self.wrong_top / answerable
        return WRONG_WEIGHT * wrong + (1 - share) * self.turned_away / answerable


# ---------------------------------------------------------------- figures


def count(questions: Iterable[Asked], values: Thresholds) -> Counts:
    """Every question counts: one without candidates, or with an error, is turned away."""
    total = dict.fromkeys(Counts.__slots__, 0)
    for asked in questions:
        answered = assess(asked.hits, values).state == "ok"
        total[asked.case.kind] += 1
        if asked.case.kind != "answerable":
            total[f"{asked.case.kind}_answered"] += answered
        else:
            total["turned_away"] += not answered
            total["wrong_top"] += answered and not asked.right[0]
    return Counts(**total)


def mean_cost(sets: Mapping[str, Sequence[Asked]], values: Thresholds) -> float:
    """Mean over the sets, so that a large set does not decide alone."""
    return float(np.mean([count(questions, values).cost() for questions in sets.values()]))


def area_under_curve(higher: Sequence[float], lower: Sequence[float]) -> float:
    """AUROC: the share of pairs in which the first is above, a tie counting half; NaN when there is no pair."""
    area = auroc([*higher, *lower], [True] * len(higher) + [False] * len(lower))
    return nan if area is None else area


def half(sets: Mapping[str, Sequence[Asked]], *, chosen_on: bool) -> dict[str, list[Asked]]:
    return {
        name: [asked for asked in every if is_chosen_on(asked.case.id) == chosen_on] for name, every in sets.items()
    }


# ---------------------------------------------------------------- asking


def ask_all(desk: Desk, cases: Iterable[Case], mode: Mode) -> list[Asked]:
    """Search once a case. An error is an outcome, so that no question can leave the denominator."""
    documents = {document.doc_id: document for document in desk.documents()}
    every = []
    for case in cases:
        hits: tuple[Hit, ...] = ()
        problem = None
        try:
            hits = desk.search(case.question, k=CANDIDATES, mode=mode, as_of=case.as_of, lang=case.lang).hits
        except Exception as error:  # noqa: BLE001
            problem = f"{type(error).__name__}: {error}"
        right = tuple(is_right_document(case, documents[hit.chunk.doc_id]) for hit in hits)
        every.append(Asked(case, hits, right, problem))
    return every


def ask_set(source: QuestionSet, reading: Reading, cache: Path, limit: int | None) -> list[Asked]:
    with opened(source, reading.embedder, cache) as desk:
        return ask_all(desk, read_cases(source.cases)[:limit], reading.mode)


def best_first(asked: Asked, values: Thresholds) -> Asked:
    """The same candidates in the order of the guard's own score instead of the search's."""
    order = sorted(range(len(asked.hits)), key=lambda rank: -assess(asked.hits[rank : rank + 1], values).top)
    return replace(
        asked, hits=tuple(asked.hits[rank] for rank in order), right=tuple(asked.right[rank] for rank in order)
    )


def raised(asked: Asked, gap: float, *, missed: bool) -> Asked:
    """As if hits in another script had a cosine higher by `gap`; with `missed`, as if their words could be compared."""
    hits = tuple(
        replace(hit, cosine=hit.cosine + gap, foreign=not missed) if hit.foreign and hit.cosine is not None else hit
        for hit in asked.hits
    )
    return replace(asked, hits=hits)


def ask_across(reading: Reading, data: Path, cache: Path, limit: int | None) -> dict[str, list[Asked]]:
    """Questions whose answer stands in the other language, and questions to documents in it that answer nothing."""
    across: dict[str, list[Asked]] = {"unanswerable": []}
    for name, foreign in (("en_squad2", "bn_tydi"), ("bn_tydi", "en_squad2")):
        cases = read_cases(question_set(foreign, data).cases)[: min(60, limit or 60)]
        unanswerable = [replace(case, answerable=False, tags=()) for case in cases]
        with opened(question_set(name, data), reading.embedder, cache) as desk:
            across["unanswerable"] += ask_all(desk, unanswerable, reading.mode)
    # The demo corpus without its English twins, as the quality benchmark keeps it.
    source = question_set("cross_language_alone", data)
    with Desk.open(":memory:", embedder=reading.embedder) as desk:
        for path in sorted(source.corpus.glob("*.md")):
            if path.name not in source.leave_out:
                desk.update_document(path)
        cases = [replace(case, lang=None) for case in read_cases(source.cases)[:limit]]
        across["answerable"] = ask_all(desk, cases, reading.mode)
    return across


# ---------------------------------------------------------------- printing


def group(asked: Asked) -> str:
    """Answerable questions by whether the first candidate's document is right; the others by kind."""
    if asked.case.kind != "answerable":
        return asked.case.kind
    return "right first" if asked.right[:1] == (True,) else "wrong first"


def distribution(sets: Mapping[str, Sequence[Asked]], values: Thresholds) -> str:
    """Top and margin of every group: the 5th, 25th, 50th, 75th and 95th percentile."""
    rows = [["set", "questions", "n", "top: 5 %, 25 %, 50 %, 75 %, 95 %", "margin: 5 %, 25 %, 50 %, 75 %, 95 %"]]
    for name, every in sets.items():
        for kind in ("right first", "wrong first", "unanswerable", "adversarial"):
            found = [assess(asked.hits, values) for asked in every if group(asked) == kind]
            if found:
                quantiles = [
                    " ".join(f"{value:.3f}" for value in np.quantile(numbers, (0.05, 0.25, 0.5, 0.75, 0.95)))
                    for numbers in ([one.top for one in found], [one.margin for one in found])
                ]
                rows.append([name, kind, str(len(found)), *quantiles])
    return aligned(rows)


def missing_scores(weight: float) -> Callable[[Asked, Thresholds], float]:
    return lambda asked, values: assess(asked.hits, replace(values, missing_weight=weight)).top


SCORES: Mapping[str, Callable[[Asked, Thresholds], float]] = {
    "top": lambda asked, values: assess(asked.hits, values).top,
    "cosine of the first": lambda asked, values: max((hit.cosine or 0.0 for hit in asked.hits[:1]), default=-1.0),
    "best cosine of the three": lambda asked, values: max((hit.cosine or 0.0 for hit in asked.hits), default=-1.0),
    "idf share of the first": lambda asked, values: max((hit.idf_share for hit in asked.hits[:1]), default=0.0),
    "margin": lambda asked, values: assess(asked.hits, values).margin,
    **{f"cosine less {weight:g} x the missing share": missing_scores(weight) for weight in (0.05, 0.1, 0.15, 0.2)},
}


def separation(sets: Mapping[str, Sequence[Asked]], values: Thresholds) -> str:
    """AUROC of each score: does it put what can be answered above what cannot?"""
    rows = [["AUROC of", *sets, "every set against every set", "adversarial", "right against wrong first"]]
    vectors = any(hit.cosine is not None for every in sets.values() for asked in every for hit in asked.hits)
    for name, score in SCORES.items():
        if "cosine" in name and not vectors:
            continue

        def scores(wanted: tuple[str, ...], every: Iterable[Asked], score: Callable[..., float] = score) -> list[float]:
            return [score(asked, values) for asked in every if group(asked) in wanted]

        answerable = {key: scores(("right first", "wrong first"), every) for key, every in sets.items()}
        unanswerable = {key: scores(("unanswerable",), every) for key, every in sets.items()}
        pairs = [area_under_curve(a, b) for a in answerable.values() for b in unanswerable.values() if a and b]
        together = [asked for every in sets.values() for asked in every]
        with_adversarial = [every for every in sets.values() if scores(("adversarial",), every)]
        own = [asked for every in with_adversarial for asked in every]
        adversarial = area_under_curve(scores(("right first", "wrong first"), own), scores(("adversarial",), own))
        first = area_under_curve(scores(("right first",), together), scores(("wrong first",), together))
        each = [f"{area_under_curve(answerable[key], unanswerable[key]):.3f}" for key in sets]
        across = float(np.mean(pairs)) if pairs else float("nan")
        rows.append([name, *each, f"{across:.3f}", f"{adversarial:.3f}", f"{first:.3f}"])
    return aligned(rows)


def described(values: Thresholds) -> str:
    margin = "none" if values.min_margin == -inf else f"{values.min_margin:g}"
    lowered = f", missing weight {values.missing_weight:g}" if values.missing_weight else ""
    return f"min_score {values.min_score:g}, min_margin {margin}{lowered}"


def figures(counts: Counts) -> list[str]:
    return [
        f"{counts.unanswerable_answered} of {counts.unanswerable}",
        f"{counts.adversarial_answered} of {counts.adversarial}",
        f"{counts.turned_away} of {counts.answerable}",
        f"{counts.wrong_top} of {counts.answerable}",
    ]


COLUMNS = ["unanswerable answered", "adversarial answered", "answerable turned away", "wrong top document"]


def summed(sets: Mapping[str, Sequence[Asked]], values: Thresholds) -> list[str]:
    total = sum((count(every, values) for every in sets.values()), Counts())
    return [*figures(total), f"{mean_cost(sets, values):.4f}"]


def sweep(sets: Mapping[str, Sequence[Asked]], reading: Reading) -> str:
    """The cheapest values on the choosing half, for each missing weight with and without a margin, on both halves.

    Last the built-in values with the candidate of the highest score in the place of the search's first.
    """
    first, other = half(sets, chosen_on=True), half(sets, chosen_on=False)
    cost_of = {values: mean_cost(first, values) for values in reading.grid()}
    candidates: list[Thresholds] = []
    for weight in reading.missing_weights:
        every = [values for values in cost_of if values.missing_weight == weight]
        without_margin = [values for values in every if values.min_margin == -inf]
        candidates += [min(some, key=cost_of.__getitem__) for some in (without_margin, every)]
    rows = [["values", "half", *COLUMNS, "cost"]]
    for values in dict.fromkeys([*candidates, reading.built_in]):
        title = described(values) + (" (built in)" if values == reading.built_in else "")
        for label, questions in (("chosen on", first), ("other", other)):
            rows.append([title, label, *summed(questions, values)])
    for label, questions in (("chosen on", first), ("other", other)):
        ordered = {name: [best_first(asked, reading.built_in) for asked in every] for name, every in questions.items()}
        rows.append(["built in, the best of the three first", label, *summed(ordered, reading.built_in)])
    return aligned(rows)


def by_set(sets: Mapping[str, Sequence[Asked]], values: Thresholds) -> str:
    rows = [["set", "half", *COLUMNS]]
    first, other = half(sets, chosen_on=True), half(sets, chosen_on=False)
    for name in sets:
        for label, questions in (("chosen on", first[name]), ("other", other[name])):
            rows.append([name, label, *figures(count(questions, values))])
    return aligned(rows)


def across_languages(across: Mapping[str, Sequence[Asked]], built_in: Thresholds) -> str:
    """What passes where question and documents are of two languages, with and without the words and a language gap."""
    cosine = replace(built_in, min_score=0.84, min_margin=-inf, missing_weight=0.0)
    heavier = replace(built_in, min_score=0.77, missing_weight=0.15)
    variants = [(cosine, 0.0, False), (cosine, 0.02, False), (cosine, 0.05, False), (built_in, 0.0, True)]
    variants += [(built_in, 0.0, False), (built_in, 0.02, False), (heavier, 0.0, False)]
    rows = [["values", "right document, passed", "wrong one, passed", "weak, ambiguous", "answered nothing, passed"]]
    for values, gap, missed in variants:
        asked = [raised(one, gap, missed=missed) for one in across["answerable"]]
        states = [assess(one.hits, values).state for one in asked]
        passed = [one for one, state in zip(asked, states, strict=True) if state == "ok"]
        right = sum(any(one.right) for one in passed)
        others = [assess(raised(one, gap, missed=missed).hits, values).state for one in across["unanswerable"]]
        title = described(values) + (f", raised by {gap:g}" if gap else "")
        title += ", foreign words counted as missing" if missed else ""
        away = f"{states.count('weak')}, {states.count('ambiguous')}"
        found = [rate(right, len(asked)), str(len(passed) - right), away]
        rows.append([title, *found, rate(others.count("ok"), len(others))])
    return aligned(rows)


def demo(reading: Reading, data: Path, cache: Path) -> str:
    """The state of each question of the demo corpus, which nothing was chosen on."""
    rows = [["question", "first", "cosine", "top", "margin", "state"]]
    with opened(question_set("cross_language", data), reading.embedder, cache) as desk:  # documents: the demo corpus
        for case in load_rag_cases(DEMO):
            hits = desk.search(case.question, k=CANDIDATES, mode=reading.mode).hits
            found: Assessment = assess(hits, reading.built_in)
            name = f"{case.question} ({'' if case.answerable else 'un'}answerable)"
            first = hits[0].chunk.id if hits else "-"
            cosine = f"{hits[0].cosine:.3f}" if hits and hits[0].cosine is not None else "-"
            rows.append([name, first, cosine, f"{found.top:.3f}", f"{found.margin:.3f}", found.state])
    return aligned(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0; 1 when a question or a set went wrong; 2 when the data is not there or an option is wrong."""
    parser = command("guard", __doc__)
    add_question_sets(parser, SETS)
    parser.add_argument("--readings", nargs="+", default=tuple(READINGS), choices=tuple(READINGS))
    options = parser.parse_args(arguments)
    chosen = chosen_sets(parser, options)
    print(circumstances())
    wrong = 0
    with desks_in(options.cache) as cache:
        for reading in map(READINGS.__getitem__, options.readings):
            sets: dict[str, list[Asked]] = {}
            for source in chosen:
                try:
                    sets[source.name] = ask_set(source, reading, cache, options.limit)
                except (EvidenceDeskError, ValueError) as error:
                    print(f"{source.name}: ERROR, not measured: {error}\n", file=sys.stderr)
                    wrong += 1
            print(f"\n{reading.name}: {described(reading.built_in)}\n")
            parts = [distribution(sets, reading.built_in), separation(sets, reading.built_in)]
            parts += [sweep(sets, reading), by_set(sets, reading.built_in)]
            if reading.name == "e5" and {"en_squad2", "bn_tydi"} <= set(options.sets):
                parts.append(
                    across_languages(ask_across(reading, options.data, cache, options.limit), reading.built_in)
                )
            print("\n\n".join([*parts, demo(reading, options.data, cache)]), flush=True)
            for name, every in sets.items():
                for asked in every:
                    if asked.error:
                        print(f"ERROR {name}, {asked.case.id}: {asked.error}")
                        wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
