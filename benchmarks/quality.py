"""Does search find what answers the question? Real documents, real questions, every mode, rates as n of N.

`python -m benchmarks.quality`; README.md beside this file says what counts as right and what each column means.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, time
from math import log2
from pathlib import Path
from statistics import median
from time import perf_counter

import bm25s

from benchmarks.common import (
    Case,
    QuestionSet,
    add_question_sets,
    aligned,
    chosen_sets,
    circumstances,
    command,
    desk_path,
    desks_in,
    is_right_document,
    is_right_passage,
    rate,
    read_cases,
)
from evidencedesk import Desk, DocumentSummary, EvidenceDeskError
from evidencedesk.records import Chunk, Mode
from evidencedesk.retrieval import Fusion
from evidencedesk.versions import version_sort_key

DEPTH = 10
"""Hits asked of each search; a right one below them counts as not found."""
SETS = ("ver_policies", "en_squad2", "bn_tydi", "en_covidqa", "cross_language", "cross_language_alone")
MODES: Mapping[str, tuple[Mode, Fusion]] = {
    "keyword": ("keyword", "weighted"),
    "vector": ("vector", "weighted"),
    "hybrid weighted": ("hybrid", "weighted"),
    "hybrid rrf": ("hybrid", "rrf"),
}
BASELINE = "bm25s lucene"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one search gave: chunk ids, and the ranks from 1 of the first right ones; None is a miss."""

    case_id: str
    document_rank: int | None = None
    passage_rank: int | None = None
    hits: tuple[str, ...] = ()
    not_in_force: tuple[str, ...] = ()
    milliseconds: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One mode over all cases, in their order."""

    mode: str
    embedder: str
    outcomes: list[Outcome]


@dataclass(slots=True)
class Measured:
    """Everything that was seen of one set."""

    name: str
    cases: list[Case]
    documents: int = 0
    chunks: int = 0
    ingest_seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


# ---------------------------------------------------------------- figures


def first_rank(right: Iterable[bool]) -> int | None:
    return next((rank for rank, is_right in enumerate(right, 1) if is_right), None)


def found_within(ranks: Sequence[int | None], k: int) -> int:
    return sum(rank is not None and rank <= k for rank in ranks)


def mean_reciprocal_rank(ranks: Sequence[int | None]) -> float:
    """Mean of 1 / rank over all questions, a miss adding 0 (Voorhees 1999)."""
    return sum(1 / rank for rank in ranks if rank is not None) / len(ranks)


def mean_discounted_gain(ranks: Sequence[int | None]) -> float:
    """Mean nDCG (Jarvelin and Kekalainen 2002) when one right hit is all that is asked for: 1 / log2(1 + rank)."""
    return sum(1 / log2(1 + rank) for rank in ranks if rank is not None) / len(ranks)


# ---------------------------------------------------------------- running


def in_force(documents: Iterable[DocumentSummary], at: datetime) -> set[str]:
    """The doc_ids of the highest version of each line whose validity holds the instant; found without search."""
    valid = [d for d in documents if d.valid_from <= at and (d.valid_to is None or at < d.valid_to)]
    valid.sort(key=lambda d: version_sort_key(d.version))
    return set({(d.family, d.lang): d.doc_id for d in valid}.values())


Finder = Callable[[Case, set[str]], list[Chunk]]
"""From a case, and the doc_ids that are in force at its instant, to the best DEPTH chunks, best first."""


def searching(desk: Desk, mode: str) -> Finder:
    leg, fusion = MODES[mode]

    def find(case: Case, valid: set[str]) -> list[Chunk]:
        hits = desk.search(case.question, k=DEPTH, mode=leg, fusion=fusion, as_of=case.as_of, lang=case.lang)
        return [hit.chunk for hit in hits]

    return find


def words(text: str) -> list[str]:
    """As bm25s reads English (its own tokenizer and stop words); text with Bangla letters at white space."""
    if any("\u0980" <= character <= "\u09ff" for character in text):
        return text.casefold().split()
    (found,) = bm25s.tokenize([text], stopwords="en", return_ids=False, show_progress=False)
    return found


def baseline(desk: Desk, documents: Iterable[str]) -> Finder:
    """BM25 of another library over the same indexed texts; whoever asks has found out what is in force."""
    chunks = [chunk for doc_id in documents for chunk in desk.document(doc_id).chunks]
    words_of = {chunk.id: words(chunk.indexed_text) for chunk in chunks}
    indexes: dict[tuple[str, ...], bm25s.BM25] = {}

    def find(case: Case, valid: set[str]) -> list[Chunk]:
        eligible = [c for c in chunks if c.doc_id in valid and case.lang in (None, c.lang)]
        key, asked = tuple(chunk.id for chunk in eligible), words(case.question)
        if not key or not asked:
            return []
        if key not in indexes:
            indexes[key] = bm25s.BM25(method="lucene")
            indexes[key].index([words_of[name] for name in key], show_progress=False)
        scores = indexes[key].get_scores(asked)
        ranked = sorted(zip(scores.tolist(), key, eligible, strict=True), key=lambda row: (-row[0], row[1]))
        return [chunk for score, _, chunk in ranked[:DEPTH] if score > 0]

    return find


def ask(desk: Desk, documents: Mapping[str, DocumentSummary], case: Case, find: Finder) -> Outcome:
    """Search once. Whatever goes wrong is an outcome, so that no case can leave the denominator."""
    try:
        names = {*documents, *(document.family for document in documents.values())}
        if unknown := sorted({*case.expected, *case.also_acceptable} - names):
            raise ValueError(f"no document of the set is named {', '.join(unknown)}")
        # A plain date means its last instant.
        at = datetime.combine(date.fromisoformat(case.as_of), time.max, UTC) if case.as_of else desk.now()
        valid = in_force(documents.values(), at)
        started = perf_counter()
        chunks = find(case, valid)
        milliseconds = (perf_counter() - started) * 1000
        found = [(documents[chunk.doc_id], chunk) for chunk in chunks]
        return Outcome(
            case.id,
            first_rank(d.doc_id in valid and is_right_document(case, d) for d, _ in found),
            first_rank(d.doc_id in valid and is_right_passage(case, d, chunk.text) for d, chunk in found),
            tuple(chunk.id for _, chunk in found),
            tuple(chunk.id for d, chunk in found if d.doc_id not in valid),
            milliseconds,
        )
    except Exception as error:  # noqa: BLE001
        return Outcome(case.id, error=f"{type(error).__name__}: {error}")


def measure(source: QuestionSet, embedders: Sequence[str], cache: Path, limit: int | None = None) -> Measured:
    """Ask the cases of one set in every mode of every embedder; the legs without one only once."""
    cases = read_cases(source.cases)
    measured = Measured(source.name, [case for case in cases if case.answerable][:limit])
    if any(case.as_of for case in cases):
        # Nothing answers the others, but what they find must be in force all the same.
        measured.cases += [case for case in cases if not case.answerable][:limit]
    with tempfile.TemporaryDirectory() as temporary:
        corpus = source.corpus
        if source.leave_out:
            corpus = Path(temporary) / "corpus"
            shutil.copytree(source.corpus, corpus, ignore=shutil.ignore_patterns(*source.leave_out))
            measured.cases = [replace(case, lang=None) for case in measured.cases]
        for embedder in embedders:
            _measure_embedder(measured, corpus, embedder, cache, with_keyword=embedder == embedders[0])
    return measured


def _measure_embedder(measured: Measured, corpus: Path, embedder: str, cache: Path, *, with_keyword: bool) -> None:
    with Desk.open(desk_path(cache, measured.name, embedder, corpus), embedder=embedder) as desk:
        started = perf_counter()
        report = desk.ingest(corpus, root=measured.name)
        if report.added:
            measured.ingest_seconds[embedder] = perf_counter() - started
        measured.failed += [f"{embedder}, {failure.path}: {failure.error}" for failure in report.failed]
        documents = {document.doc_id: document for document in desk.documents()}
        measured.documents, measured.chunks = len(documents), sum(d.chunk_count for d in documents.values())
        runs = {(mode, embedder): searching(desk, mode) for mode in MODES if mode != "keyword"}
        if with_keyword:
            alone = {(BASELINE, "-"): baseline(desk, documents), ("keyword", "-"): searching(desk, "keyword")}
            runs = alone | runs
        for (mode, name), find in runs.items():
            measured.runs.append(Run(mode, name, [ask(desk, documents, case, find) for case in measured.cases]))


# ---------------------------------------------------------------- printing


def table(title: str, ranks_of: Mapping[tuple[str, str], Sequence[int | None]]) -> str:
    rows = [[title, "embedder", "recall@1", "recall@3", f"found in {DEPTH}, MRR, nDCG"]]
    for names, ranks in ranks_of.items():
        n = len(ranks)
        recalls = [rate(found_within(ranks, k), n) if n else "not applicable" for k in (1, 3)]
        means = "not applicable"
        if n:
            means = f"{mean_reciprocal_rank(ranks):.3f}  {mean_discounted_gain(ranks):.3f}"
            means = f"{found_within(ranks, DEPTH)} of {n}  {means}"
        rows.append([*names, *recalls, means])
    return aligned(rows)


def describe(measured: Measured) -> tuple[str, int]:
    """The report of one set, and how many things in it are wrong: errors, failed files, hits not in force."""
    answerable = {case.id for case in measured.cases if case.answerable}
    cited = {case.id for case in measured.cases if case.answerable and case.phrases}
    counts = f"{measured.documents} documents, {measured.chunks} chunks, {len(answerable)} answerable cases"
    lines = [f"{measured.name}: {counts}"]
    documents: dict[tuple[str, str], list[int | None]] = {}
    passages: dict[tuple[str, str], list[int | None]] = {}
    for run in measured.runs:
        row = (run.mode, run.embedder)
        documents[row] = [outcome.document_rank for outcome in run.outcomes if outcome.case_id in answerable]
        passages[row] = [outcome.passage_rank for outcome in run.outcomes if outcome.case_id in cited]
        if run.mode == "hybrid weighted":
            seconds = measured.ingest_seconds.get(run.embedder)
            times = [outcome.milliseconds for outcome in run.outcomes if outcome.error is None]
            took = "ingested before" if seconds is None else f"ingest {seconds:.1f} s"
            lines.append(f"  {run.embedder}: {took}" + (f", median {median(times):.1f} ms a question" if times else ""))
    lines += ["", table("right document", documents), "", table("right passage", passages), ""]
    searches = [(f"{run.mode} {run.embedder}, {o.case_id}", o) for run in measured.runs for o in run.outcomes]
    wrong = [f"ERROR {failure}" for failure in measured.failed]
    wrong += [f"ERROR {where}: {outcome.error}" for where, outcome in searches if outcome.error]
    searches = [(where, outcome) for where, outcome in searches if not where.startswith(BASELINE)]
    stray = [f"NOT IN FORCE {where}: {chunk}" for where, outcome in searches for chunk in outcome.not_in_force]
    if any(case.as_of for case in measured.cases):
        hits = sum(len(outcome.hits) for _, outcome in searches)
        check = f"{len(stray)} of {hits}, in {len(searches)} searches for {len(measured.cases)} cases"
        lines += [f"  hits that were not in force at the asked instant: {check}", ""]
    return "\n".join(lines + [f"  {line}" for line in wrong + stray]), len(wrong) + len(stray)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0; 1 when a case, a file or a hit went wrong; 2 when the data is not there or an option is wrong."""
    parser = command("quality", __doc__)
    add_question_sets(parser, SETS)
    parser.add_argument("--embedders", nargs="+", default=("toy", "e5"), choices=("toy", "e5"))
    parser.add_argument("--json", type=Path, help="write each search, its hits and its ranks to this file")
    options = parser.parse_args(arguments)
    sets = chosen_sets(parser, options)
    facts = circumstances()
    print(facts, end="\n\n")
    results, wrong = [], 0
    with desks_in(options.cache) as cache:
        for source in sets:
            try:
                measured = measure(source, options.embedders, cache, options.limit)
            except (EvidenceDeskError, ValueError) as error:
                print(f"{source.name}: ERROR, not measured: {error}\n", file=sys.stderr)
                wrong += 1
                continue
            text, problems = describe(measured)
            print(text, flush=True)
            results.append(asdict(measured))
            wrong += problems
    if options.json:
        options.json.write_text(json.dumps({"run": facts, "sets": results}, ensure_ascii=False, indent=1), "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
