"""The commands that say how far answers can be trusted: what they print, and their exit codes."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from test_cli import CORPUS, ROOT, error_line, run, run_json

from evidencedesk import Desk

CASES = ROOT / "data" / "rag_cases.jsonl"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with Desk.open(tmp_path / "shop.db", embedder="toy") as desk:
        desk.ingest(CORPUS)
    return tmp_path / "shop.db"


def test_new_cases_can_be_checked_and_never_replace_a_file(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    assert "holds two examples" in run("cases", "new", file).stdout
    assert run("cases", "check", file, db=shop).stdout == "cases 2, to answer 1, not to 1; no fault\n"
    assert run_json("cases", "check", CASES, db=shop) == {"cases": 16, "answerable": 13}
    assert "is there already" in run("cases", "new", file, code=2).stderr


def test_a_fault_in_the_cases_is_named_with_its_line(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text(
        '{"id": "a", "question": "x", "expected_doc_ids": ["nothing"], "answerable": true}\n', encoding="utf-8"
    )
    for words in (["cases", "check", file], ["eval", file], ["calibrate", file]):
        assert "line 1: unknown document in expected_doc_ids" in error_line(*words, db=shop)


def test_eval_prints_every_rate_with_its_counts_and_keeps_the_run(shop: Path) -> None:
    result = run("eval", CASES, db=shop)
    for part in (
        "all           hybrid",
        "of 13",
        "min_score",
        "unanswerable answered",
        "reasons",
        "quotings, no model",
    ):
        assert part in result.stdout
    assert result.stderr == "note: kept as run 1\n"
    assert "every case came out as in run 1" in run("eval", CASES, "--compare", "1", db=shop).stdout


def test_floors_and_ceilings_make_the_exit_code(shop: Path) -> None:
    run("eval", CASES, "--fail-under", "recall@3=0.9", "--fail-over", "wrong=0", db=shop)
    failed = run("eval", CASES, "--fail-under", "answered=0.99", db=shop, code=3)
    assert "failed: answered is " in failed.stdout
    assert run_json("eval", CASES, "--fail-under", "answered=0.99", db=shop, code=3)["objections"] != []


def test_json_of_an_evaluation_holds_its_tables(shop: Path) -> None:
    shown = run_json("eval", CASES, "--no-store", db=shop)
    report = shown["report"]
    assert (report["run_id"], len(report["cases"]), shown["flips"], shown["objections"]) == (None, 16, None, [])
    assert report["guarded"]["answered"]["of"] == 16
    assert report["retrieval"][0]["recall_at_1"]["of"] == 13


def test_no_store_only_reads(shop: Path) -> None:
    before = shop.read_bytes()
    run("eval", CASES, "--no-store", db=shop)
    assert shop.read_bytes() == before


def test_calibrate_says_what_the_cases_promise_and_judges_afterwards(shop: Path) -> None:
    shown = run("calibrate", CASES, db=shop).stdout
    assert "No threshold can promise at most 5 % wrong" in shown
    assert "answered from a probability of" in shown
    explained = run("ask", "When do gift cards expire?", "--explain", db=shop).stdout
    assert "is right with a probability of" in explained
    assert run("calibrate", "--reset", db=shop).stdout == "calibrations forgotten: 1; the built-in thresholds judge\n"
    assert "(thresholds: built in for toy" in run("ask", "When do gift cards expire?", "--explain", db=shop).stdout


def test_the_report_is_written_as_one_html_file(shop: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for words in (
        ["eval", CASES, "--html", tmp_path / "eval.html"],
        ["calibrate", CASES, "--html", tmp_path / "fit.html"],
    ):
        run(*words, db=shop)
    for name, part in (("eval.html", "rc01"), ("fit.html", "isk")):
        page = (tmp_path / name).read_text(encoding="utf-8")
        assert page.lower().startswith("<!doctype html>")
        assert part in page
        assert "<script" not in page


@pytest.mark.parametrize("command", [["eval", "--no-store"], ["calibrate"]])
def test_a_report_replaces_no_other_file(shop: Path, tmp_path: Path, command: list[str]) -> None:
    pytest.importorskip("matplotlib")
    cases = tmp_path / "cases.jsonl"
    cases.write_bytes(CASES.read_bytes())
    before = {path: path.read_bytes() for path in (shop, cases)}
    for path in before:
        line = error_line(command[0], cases, *command[1:], "--html", path, db=shop)
        assert "is there already and is no report" in line
    assert "there is no folder" in error_line(
        command[0], cases, *command[1:], "--html", tmp_path / "no" / "x.html", db=shop
    )
    assert {path: path.read_bytes() for path in before} == before


def test_attack_says_what_share_of_each_kind_is_blocked(shop: Path) -> None:
    shown = run("attack", "--per-kind", "20", db=shop).stdout
    assert "number           blocked 100 % (20 of 20" in shown
    assert "verbatim         blocked 0 % (0 of 20" in shown
    assert "off the corpus   refused 100 %" in shown
    report = run_json("attack", "--per-kind", "5", db=shop)
    assert report["claims"]["blocked"]["negation"] == {"count": 5, "of": 5}


def test_a_gated_ingest_refuses_and_says_why(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    shutil.copytree(CORPUS, folder)
    (folder / "kc-giftcards-v1.md").write_text(
        "---\ndoc_id: kc-giftcards-v1\ntitle: Gift cards\nversion: v1\nlang: en\n---\n## Cards\n\nWe sell them in red.\n",
        encoding="utf-8",
    )
    refused = run("ingest", folder, "--gate", CASES, db=shop, code=3).stdout
    assert refused.startswith("refused by the gate: nothing was written; the change would have given\n")
    assert "gate: refused (no case may come out worse than before); nothing of it was written" in refused
    assert "- Gift cards expire three years after they are bought." in refused
    assert "right -> turned_away" in refused
    assert run_json("ingest", folder, "--gate", CASES, "--dry-run", db=shop, code=3)["gate"]["accepted"] is False
    accepted = run("ingest", folder, "--gate", CASES, "--fail-over", "wrong=0", db=shop).stdout
    assert "gate: accepted" in accepted


@pytest.mark.parametrize("command", [["ingest", CORPUS], ["update", CORPUS / "kc-returns-v3.md"]])
def test_a_gate_writes_its_report_too(shop: Path, tmp_path: Path, command: list[object]) -> None:
    pytest.importorskip("matplotlib")
    run(*command, "--gate", CASES, "--html", tmp_path / "gate.html", db=shop)
    assert "The change holds." in (tmp_path / "gate.html").read_text(encoding="utf-8")
    assert "is no report" in error_line(*command, "--gate", CASES, "--html", CASES, db=shop)


def test_without_matplotlib_a_report_is_refused_in_one_line_before_anything_is_done(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for words in (["eval", CASES], ["calibrate", CASES], ["ingest", CORPUS, "--gate", CASES]):
        line = error_line(*words, "--html", tmp_path / "x.html", db=shop)
        assert 'pip install "evidencedesk[report]"' in line
    assert list(tmp_path.glob("*.html")) == []


def test_a_gated_update_refuses_and_says_why(shop: Path, tmp_path: Path) -> None:
    text = (CORPUS / "kc-returns-v3.md").read_text(encoding="utf-8")
    file = tmp_path / "returns.md"
    file.write_text(
        text.replace("v3", "v4").replace("2025-03-01", "2026-01-01").partition("## Returning")[0] + "## Red\n\nRed.\n",
        encoding="utf-8",
    )
    refused = run("update", file, "--gate", CASES, db=shop, code=3).stdout
    assert "gate: refused (no case may come out worse than before); nothing of it was written" in refused
    assert run_json("documents", "--status", "current", db=shop)[5]["doc_id"] != "kc-returns-v4"


@pytest.mark.parametrize(
    "words",
    [
        ["eval"],
        ["eval", CASES, "--fail-under", "recal=1"],
        ["eval", CASES, "--fail-under", "wrong"],
        ["eval", CASES, "--fail-under", "recall@3=nan"],
        ["eval", CASES, "--fail-over", "wrong=inf"],
        ["eval", CASES, "-k", "0"],
        ["eval", CASES, "--llm", "gpt"],
        ["calibrate"],
        ["calibrate", CASES, "--reset"],
        ["calibrate", CASES, "--max-wrong", "0"],
        ["attack", "--per-kind", "0"],
        ["ingest", CORPUS, "--fail-over", "wrong=0"],
        ["ingest", CORPUS, "--html", "gate.html"],
        ["cases", "new"],
    ],
)
def test_wrong_usage_exits_with_2(words: list[object], shop: Path) -> None:
    run(*words, db=None if words[0] == "cases" else shop, code=2)


def test_a_missing_desk_and_a_missing_run_are_errors(shop: Path, tmp_path: Path) -> None:
    for words in (["eval", CASES], ["calibrate", CASES], ["attack"], ["cases", "check", CASES]):
        assert "none.db" in error_line(*words, db=tmp_path / "none.db")
    assert "no run '9'" in error_line("eval", CASES, "--compare", "9", db=shop)


def test_errors_in_cases_exit_with_4(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from evidencedesk import retrieval

    real = retrieval.with_vector

    def fail(question, embedder, *, required):
        if "scooters" in question.text:
            raise RuntimeError("the embedder broke")
        return real(question, embedder, required=required)

    monkeypatch.setattr(retrieval, "with_vector", fail)
    shown = run("eval", CASES, db=shop, code=4).stdout
    assert "error: rc15 Do you sell electric scooters?" in shown
    assert "RuntimeError: the embedder broke" in shown
    assert json.loads(json.dumps("of 16")) in shown
