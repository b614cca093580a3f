"""Kind K: evaluation and its files of cases. What no other test proves whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from builders import make_source, open_desk
from typer.testing import CliRunner

from evidencedesk import RagCase, ToyEmbedder, load_rag_cases
from evidencedesk.cli import app
from evidencedesk.errors import CaseError

# ---------------------------------------------------------------- BR-109 and BR-110: denominators

ANSWERABLE = ["Which bikes are red?", "Are bikes red?", "What colour are the red bikes?"]
UNANSWERABLE = ["Who sells boats?", "When does the moon rise?"]


def make_case(question: str, *, answerable: bool) -> RagCase:
    return RagCase(
        id=question, question=question, expected_doc_ids=["shop"] if answerable else [], answerable=answerable,
        must_cite=answerable, tags=["direct" if answerable else "unanswerable"],
    )  # fmt: skip


CASES = [make_case(q, answerable=True) for q in ANSWERABLE] + [make_case(q, answerable=False) for q in UNANSWERABLE]


class FailsOn(ToyEmbedder):
    """Fails for some questions, as a server does that is away now and then."""

    def __init__(self, failing: Sequence[str]) -> None:
        super().__init__()
        self.failing = failing

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        if set(texts) & set(self.failing):
            raise RuntimeError("the server is away")
        return super().embed_queries(texts)


@pytest.mark.parametrize(
    "failing",
    [[], ANSWERABLE[:1], UNANSWERABLE[:1], [ANSWERABLE[0], UNANSWERABLE[0]], ANSWERABLE, UNANSWERABLE,
     [*ANSWERABLE, *UNANSWERABLE]],
    ids=lambda failing: f"{len(failing)} fail",
)  # fmt: skip
def test_however_many_cases_fail_every_rate_is_of_all_of_them(failing: list[str]) -> None:
    """BR-109, BR-110: none, one of a kind, all of a kind, all; errors are counted, and a miss is never left out."""
    with open_desk(sources=[make_source()], embedder=FailsOn(failing)) as desk:
        report = desk.evaluate(CASES)
    run, metrics = report.guarded, report.metrics()
    assert (report.ok, run.errors.of, metrics["errors"]) == (not failing, 5, len(failing))
    assert (run.answered.of, run.wrong.of, run.unanswerable_answered.of, run.answerable_turned_away.of) == (5, 5, 2, 3)
    assert sum(run.reasons.values()) == 5
    found = len(set(ANSWERABLE) - set(failing))
    for row in report.retrieval:
        if row.tag == "all":
            assert (row.recall_at_3.of, row.mrr.of) == (3, 3), row.mode
            assert row.recall_at_3.count == found, row.mode
    assert metrics["recall@3"] == pytest.approx(found / 3)
    assert not any(isinstance(value, float) and np.isnan(value) for value in metrics.values())


@pytest.mark.parametrize("answerable", [True, False])
def test_with_cases_of_one_kind_alone_the_other_kinds_figures_do_not_apply(answerable: bool) -> None:
    """BR-110: not applicable is neither 0 nor NaN, and no mean of the others."""
    with open_desk(sources=[make_source()], embedder="toy") as desk:
        report = desk.evaluate([case for case in CASES if case.answerable == answerable])
    metrics = report.metrics()
    assert (metrics["recall@1"] is None) == (metrics["mrr"] is None) == (not answerable)
    assert (report.guarded.answerable_turned_away.value is None) == (not answerable)
    assert (report.guarded.unanswerable_answered.value is None) == answerable
    assert "NaN" not in json.dumps(metrics)


# ---------------------------------------------------------------- BR-111: a fault in any line


def line(number: int, **changes: object) -> str:
    fields = {"id": f"c{number}", "question": f"Which bikes are red, {number}?", "expected_doc_ids": ["shop"], "answerable": True, "must_cite": True, "tags": ["direct"]}  # fmt: skip
    return json.dumps({**fields, **changes}, ensure_ascii=False)


def without(number: int, key: str) -> str:
    return json.dumps({name: value for name, value in json.loads(line(number)).items() if name != key})


FAULTS: dict[str, Callable[[int], str]] = {
    "cut": lambda n: line(n)[:-3],
    "no JSON": lambda _: "id,question,answerable",
    "a list": lambda n: f"[{line(n)}]",
    "a text": lambda _: '"c"',
    "a key too many": lambda n: line(n, note="x"),
    "a key misspelt": lambda n: line(n).replace('"answerable"', '"anwserable"'),
    "a key twice": lambda n: line(n).replace("{", '{"id": "x", ', 1),
    "a key missing": lambda n: without(n, "question"),
    "a blank question": lambda n: line(n, question=" "),
    "a wrong type": lambda n: line(n, answerable="yes"),
    "an unknown tag": lambda n: line(n, tags=["easy"]),
    "an unknown document": lambda n: line(n, expected_doc_ids=["nowhere"]),
    "a chunk": lambda n: line(n, expected_doc_ids=["shop-v1:c0"]),
    "nothing expected": lambda n: line(n, expected_doc_ids=[]),
    "NaN": lambda n: line(n).replace("true", "NaN", 1),
    "1e400": lambda n: line(n, as_of=0).replace('"as_of": 0', '"as_of": 1e400'),
    "no date": lambda n: line(n, as_of="yesterday"),
    "a case that was there": lambda n: line(1 if n > 1 else 3),
}


@pytest.mark.parametrize("save", ["plain", "Windows", "with blank lines", "Bangla"])
@pytest.mark.parametrize("number", [1, 2, 4])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_any_line_is_named_by_that_line_and_nothing_is_passed_over(
    tmp_path: Path, fault: str, number: int, save: str
) -> None:
    """BR-111: first, middle and last line; with a mark and CRLF, with blank lines, behind Bangla ones."""
    lines = [line(n) if save != "Bangla" else line(n, question=f"কোন বাইক লাল, {n}?") for n in range(1, 5)]
    lines[number - 1] = FAULTS[fault](number)
    at = {number}
    if save == "with blank lines":
        lines = [part for text in lines for part in ("", text)]
        at = {2 * number}
    if fault == "a case that was there" and number == 1:
        at = {6 if save == "with blank lines" else 3}  # the later of two is the one that repeats
    path = tmp_path / "cases.jsonl"
    ends = "\r\n" if save == "Windows" else "\n"
    path.write_bytes((b"\xef\xbb\xbf" if save == "Windows" else b"") + ends.join(lines).encode())
    with pytest.raises(CaseError) as caught:
        load_rag_cases(path, ["shop", "shop-v1"])
    assert {where for where, _ in caught.value.faults} == at


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "desk.db"
    with open_desk(path, [make_source()]):
        pass
    return path


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "a case that was there"])
def test_the_command_names_the_line_too_and_does_not_succeed(tmp_path: Path, shop: Path, fault: str) -> None:
    """BR-111: a file with a fault is not evaluated at all."""
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join([line(1), FAULTS[fault](2), line(3)]))
    result = CliRunner().invoke(app, ["eval", str(path), "--db", str(shop)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "line 2: " in result.stderr


@pytest.mark.parametrize("save", ["\n", "\r\n"])
def test_every_line_of_a_good_file_is_a_case_or_blank(tmp_path: Path, save: str) -> None:
    """BR-111: the count of the cases is that of the lines that hold anything."""
    lines = [line(1), "", line(2, question="কোন বাইক লাল?"), "   ", line(3)]
    path = tmp_path / "cases.jsonl"
    path.write_bytes(save.join(lines).encode())
    assert [case.id for case in load_rag_cases(path, ["shop"])] == ["c1", "c2", "c3"]
