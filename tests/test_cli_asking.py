"""The commands that answer: what they print, and their exit codes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from test_cli import BIKE_QUESTION, CORPUS, error_line, run, run_json

from evidencedesk import Desk

SENTENCE = "You can return a new, unridden bike within 30 days of delivery."
BANGLA = "বাইক ফেরত দিতে কত দিন সময় পাব?"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    with Desk.open(tmp_path / "shop.db", embedder="toy") as desk:
        desk.ingest(CORPUS)
    return tmp_path / "shop.db"


def test_ask_prints_the_answer_and_where_it_stands(shop: Path) -> None:
    shown = run("ask", BIKE_QUESTION, db=shop).stdout
    assert shown == (
        f"{SENTENCE} [kc-returns-v3:c0]\n\nReturns policy (Returning a bike, lines 11-12) [kc-returns-v3:c0]\n"
    )


def test_a_bangla_question_is_answered_in_bangla(shop: Path) -> None:
    assert "রিটার্ন নীতি (বাইক ফেরত, lines 11-12) [kc-returns-v3-bn:c0]" in run("ask", BANGLA, db=shop).stdout


def test_an_abstention_says_why_and_exits_with_3(shop: Path) -> None:
    shown = run("ask", "Do you sell electric scooters?", db=shop, code=3).stdout
    assert shown.startswith("no answer (weak): ")
    assert run_json("ask", "Do you sell electric scooters?", db=shop, code=3)["reason"] == "weak"


def test_explain_names_the_stage_the_scores_and_where_the_thresholds_come_from(shop: Path) -> None:
    shown = run("ask", BIKE_QUESTION, "--explain", db=shop).stdout
    for part in ("decided by     the citation check", "needed are 0.3, and a lead of 0.05", "model          quoting"):
        assert part in shown
    assert "candidate 3" in shown
    refused = run("ask", "Do you sell electric scooters?", "--explain", db=shop, code=3).stdout
    assert "decided by     the guard, before a model was called" in refused
    assert "model          not called" in refused


def test_json_holds_the_record(shop: Path) -> None:
    answer = run_json("ask", BIKE_QUESTION, db=shop)
    assert answer["text"] == f"{SENTENCE} [kc-returns-v3:c0]"
    assert answer["citations"][0]["label"] == "Returns policy (Returning a bike, lines 11-12) [kc-returns-v3:c0]"
    assert answer["claims"][0]["verdict"] == "supported"
    assert answer["hits"]["hits"][0]["chunk"]["id"] == "kc-returns-v3:c0"
    assert answer["assessment"]["state"] == "ok"


def test_what_ask_prints_as_json_can_be_verified(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    file.write_text(run("ask", BIKE_QUESTION, "--json", db=shop).stdout, encoding="utf-8")
    shown = run("verify", file, db=shop).stdout
    assert shown.splitlines()[-1] == "verified: The claim is supported by what it cites."
    assert run_json("verify", file, db=shop)["ok"] is True


def test_a_false_answer_is_not_verified_and_exits_with_3(shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.txt"
    file.write_text(f"{SENTENCE.replace('30', '60')} [kc-returns-v3:c0]", encoding="utf-8")
    shown = run("verify", file, db=shop, code=3).stdout
    assert "60" in shown.splitlines()[-1]
    file.write_text("You can return a bike within 14 days of delivery. [kc-returns-v2:c0]", encoding="utf-8")
    assert run_json("verify", file, db=shop, code=3)["reason"] == "unknown_citation"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b'{"text": "x"', "it begins like JSON, but is none"),
        (b'{"question": "x"}', "an answer needs text"),
    ],
)
def test_what_cannot_be_verified_is_named(shop: Path, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "answer").write_bytes(content)
    assert message in error_line("verify", tmp_path / "answer", db=shop)
    assert "No such file" in error_line("verify", tmp_path / "none", db=shop)


def test_a_recorded_answer_is_listed_goes_stale_and_is_forgotten(shop: Path, tmp_path: Path) -> None:
    assert run("answers", db=shop).stdout == "no answer is recorded; `ask --record` records one\n"
    asked = run("ask", BIKE_QUESTION, "--record", db=shop)
    assert asked.stderr == "note: recorded as answer 1\n"
    assert run("answers", "--stale", db=shop).stdout == "no recorded answer is stale\n"
    text = (CORPUS / "kc-returns-v3.md").read_text(encoding="utf-8")
    newer = tmp_path / "returns.md"
    newer.write_text(
        text.replace("v3", "v4").replace("2025-03-01", "2026-01-01").replace("30 days", "45 days"), encoding="utf-8"
    )
    shown = run("update", newer, db=shop).stdout
    assert "recorded answers gone stale: 1 (evidencedesk answers --stale)" in shown
    listed = run("answers", "--stale", db=shop).stdout
    assert BIKE_QUESTION in listed
    assert "stale: kc-returns-v3:c0 superseded; now kc-returns-v4; the cited sentence changed" in listed
    (answer,) = run_json("answers", "--stale", db=shop)
    assert answer["stale"][0]["new_doc_id"] == "kc-returns-v4"
    assert run("forget", "1", db=shop).stdout == "answers forgotten: 1\n"
    assert run_json("answers", db=shop) == []
    assert run_json("forget", "--before", "2030-01-01", db=shop) == {"forgotten": 0}


def test_a_model_that_is_not_there_is_an_abstention_with_its_reason(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    answer = run_json("ask", BIKE_QUESTION, "--llm", "openai:any", db=shop, code=3)
    assert (answer["reason"], answer["model"]) == ("model_failed", "any")
    assert "127.0.0.1:9" in answer["detail"]
    assert "secret-key" not in json.dumps(answer)


@pytest.mark.parametrize(
    "words",
    [
        ["ask"],
        ["ask", BIKE_QUESTION, "--llm", "gpt"],
        ["ask", BIKE_QUESTION, "--llm", "openai:"],
        ["ask", BIKE_QUESTION, "--as-of", "yesterday"],
        ["answers", "-n", "0"],
        ["forget"],
        ["forget", "x"],
        ["forget", "--before", "soon"],
    ],
)
def test_wrong_usage_exits_with_2(words: list[str], shop: Path) -> None:
    run(*words, db=shop, code=2)


def test_a_blank_question_and_a_missing_desk_are_errors(shop: Path, tmp_path: Path) -> None:
    assert error_line("ask", " ", db=shop) == "error: empty question"
    (tmp_path / "answer").write_text(f"{SENTENCE} [kc-returns-v3:c0]", encoding="utf-8")
    for words in (["ask", "x"], ["verify", tmp_path / "answer"], ["answers"], ["forget", "1"]):
        assert "none.db" in error_line(*words, db=tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_the_examples_of_the_help_are_understood(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of ask; a model that is not there is an abstention."""
    monkeypatch.setenv("EVIDENCEDESK_DB", str(shop))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    shown = run("ask", "--help").stdout
    examples = [line.strip() for line in shown.partition("Examples:\n")[2].splitlines() if line.strip()]
    assert len(examples) == 4
    for example in examples:
        program, *words = shlex.split(example)
        asks_a_model = "--llm" in words
        words = [word if not word.startswith("http://localhost") else "http://127.0.0.1:9/v1" for word in words]
        assert (program, run(*words, code=3 if asks_a_model else 0).exit_code) == (
            "evidencedesk",
            3 if asks_a_model else 0,
        )


def test_wrong_numbers_to_forget_are_refused(shop: Path) -> None:
    assert "whole number of at least 1" in error_line("forget", "0", db=shop)
