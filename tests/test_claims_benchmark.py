"""The claims benchmark: figures that can be checked by hand, and public data where it is there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks import claims
from benchmarks.claims import LabelledClaim, balanced_accuracy, bootstrap, by_check, by_words, judge, without
from evidencedesk.citations.support import RuleChecker

CHECKOUT = Path(__file__).resolve().parent.parent
EVALDATA = Path(os.environ.get("EVIDENCEDESK_EVALDATA") or CHECKOUT.parent / "shared" / "evaldata")


def make_claim(claim: str = "Bikes are red.", *, supported: bool = True, **given: object) -> LabelledClaim:
    return LabelledClaim(
        **{"id": claim, "claim": claim, "evidence": ("Bikes are red.",), "supported": supported, **given}
    )


def test_balanced_accuracy_weighs_both_kinds_alike() -> None:
    """By hand: 1 of 2 supported accepted, 3 of 4 others refused: (1/2 + 3/4) / 2."""
    pairs = [(True, True), (False, True), (True, False), (False, False), (False, False), (False, False)]
    assert balanced_accuracy(pairs) == pytest.approx(0.625)
    low, high = bootstrap(pairs)
    assert 0 <= low <= 0.625 <= high <= 1
    assert bootstrap(pairs) == (low, high)


def test_one_kind_alone_has_no_balanced_accuracy() -> None:
    """BR-110."""
    with pytest.raises(ValueError, match="needs supported and unsupported claims"):
        balanced_accuracy([(True, True)])
    judged, _ = judge([make_claim()], by_words)
    assert "balanced accuracy not applicable" in claims.described(judged)


def test_a_claim_belongs_to_one_half_for_ever() -> None:
    assert [make_claim(id=name).half for name in ("a", "e")] == list(claims.HALVES)


def test_the_ablation_accepts_what_only_one_signal_turned_away() -> None:
    several = [
        make_claim(),
        make_claim("Bikes are not red.", supported=False),
        make_claim("Cats purr.", supported=False),
    ]
    judged, milliseconds = judge(several, lambda claim: by_check(claim, RuleChecker()))
    assert [one.accepted for one in judged] == [True, False, False]
    assert without(judged, "negation") == pytest.approx(0.75)
    assert milliseconds > 0


def write_set(data: Path, *rows: object) -> Path:
    (data / "claims").mkdir()
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (data / "claims" / "policy.jsonl").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return data


def test_a_run_prints_each_way_for_each_half(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"claim": "Bikes are red.", "evidence": ["Bikes are red."], "supported": True}
    wrong = {**row, "claim": "Bikes are not red.", "supported": False}
    data = write_set(tmp_path, *({**r, "id": f"{n}{r['supported']}"} for n in range(8) for r in (row, wrong)))
    assert claims.main(["--data", str(data), "--sets", "policy", "--no-e5", "--ablation", "--errors", "2"]) == 0
    printed = capsys.readouterr().out
    assert [line.split(":")[0] for line in printed.splitlines() if line.startswith("policy")] == [
        "policy, choosing half",
        "policy, reported half",
    ]
    assert printed.count("check ") >= 2
    assert "without: " in printed


def test_a_line_that_is_no_claim_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        claims.main(["--data", str(write_set(tmp_path, '{"id": "x"}')), "--sets", "policy"])
    assert "policy.jsonl, line 1: KeyError('evidence')" in capsys.readouterr().err


def test_absent_data_is_said_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        claims.main(["--data", str(tmp_path), "--sets", "policy"])
    assert "policy.jsonl is not there; name the folder" in capsys.readouterr().err


@pytest.mark.evaldata
@pytest.mark.skipif(not (EVALDATA / "claims").is_dir(), reason="the public data is not there")
def test_changed_numbers_of_real_policies_and_bangla_passages_are_found() -> None:
    """On the half that nothing was chosen on."""
    for name, least in (("policy", 0.98), ("bangla", 0.95)):
        chosen = [c for c in claims.read_claims(EVALDATA / "claims" / f"{name}.jsonl") if c.half == "reported"]
        judged, _ = judge(chosen, lambda claim: by_check(claim, RuleChecker()))
        assert balanced_accuracy([(one.accepted, one.claim.supported) for one in judged]) >= least
