"""The quality benchmark: figures that can be checked by hand, and a denominator that no error can shrink."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import write_source
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import quality
from benchmarks.common import (
    CHECKOUT,
    CROSS_LANGUAGE,
    Case,
    is_chosen_on,
    is_right_document,
    is_right_passage,
    question_set,
    rate,
    read_cases,
    squashed,
)
from benchmarks.quality import first_rank, found_within, in_force
from evidencedesk import Desk, DocumentSummary

EVALDATA = Path(os.environ.get("EVIDENCEDESK_EVALDATA") or CHECKOUT.parent / "shared" / "evaldata")


def make_case(**given: object) -> Case:
    return Case(**{"id": "q", "question": "How long?", "expected": ("privacy",), **given})


def make_summary(doc_id: str = "privacy-v2", **given: object) -> DocumentSummary:
    family, _, version = doc_id.rpartition("-")
    fields = {"family": family, "version": version, "lang": "en", "title": "Privacy", "status": "current"}
    dates = {"valid_from": datetime(2020, 1, 1, tzinfo=UTC), "valid_to": None}
    return DocumentSummary(doc_id=doc_id, path=f"{doc_id}.md", chunk_count=1, **{**fields, **dates, **given})


# ---------------------------------------------------------------- figures


def test_the_rank_is_that_of_the_first_right_hit() -> None:
    assert first_rank([False, True, True]) == 2
    assert first_rank([False, False]) is None
    assert first_rank([]) is None


def test_recall_and_mrr_keep_misses_in_the_denominator() -> None:
    ranks = [1, 2, None, 4]
    assert [found_within(ranks, k) for k in (1, 3, 10)] == [1, 2, 3]
    assert quality.mean_reciprocal_rank(ranks) == pytest.approx((1 + 1 / 2 + 0 + 1 / 4) / 4)
    assert quality.mean_reciprocal_rank([None]) == 0.0


def test_ndcg_discounts_the_first_right_rank_by_a_logarithm() -> None:
    """By hand: 1 / log2(2) = 1, 1 / log2(4) = 1 / 2, a miss 0."""
    assert quality.mean_discounted_gain([1, 3, None]) == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert quality.mean_discounted_gain([None]) == 0.0


@given(st.lists(st.none() | st.integers(1, 10), min_size=1))
def test_ndcg_lies_between_mrr_and_what_was_found(ranks: list[int | None]) -> None:
    found = found_within(ranks, 10) / len(ranks)
    assert quality.mean_reciprocal_rank(ranks) <= quality.mean_discounted_gain(ranks) + 1e-12
    assert quality.mean_discounted_gain(ranks) <= found + 1e-12


def test_a_rate_is_written_as_n_of_n_with_its_interval() -> None:
    assert rate(8, 10) == "8 of 10  0.800 [0.490, 0.943]"


def test_a_case_belongs_to_one_half_for_ever() -> None:
    """The SHA-1 of "a" is even, that of "e" odd."""
    assert [is_chosen_on(name) for name in ("a", "e")] == [True, False]
    assert 10 < sum(is_chosen_on(str(number)) for number in range(40)) < 30


def test_no_case_to_measure_is_not_applicable_and_not_zero() -> None:
    """BR-110."""
    assert quality.table("right passage", {("keyword", "-"): []}).splitlines()[1].split("   ")[-1] == "not applicable"


# ---------------------------------------------------------------- what is right


def test_a_case_that_looks_answerable_and_is_not_is_adversarial() -> None:
    tagged = {"tags": ("adversarial",), "answerable": False}
    assert [make_case(**given).kind for given in ({}, {"answerable": False}, tagged)] == [
        "answerable",
        "unanswerable",
        "adversarial",
    ]


def test_an_expected_id_is_a_family_or_a_doc_id() -> None:
    document = make_summary("privacy-v2")
    assert is_right_document(make_case(expected=("privacy",)), document)
    assert is_right_document(make_case(expected=("privacy-v2",)), document)
    assert not is_right_document(make_case(expected=("privacy-v1", "privac", "privacy-v")), document)


def test_the_neighbouring_version_is_wrong_when_a_version_is_expected() -> None:
    case = make_case(versions=("v2",))
    assert is_right_document(case, make_summary("privacy-v2"))
    assert not is_right_document(case, make_summary("privacy-v1"))
    assert not is_right_document(case, make_summary("terms-v2"))


def test_an_also_acceptable_document_needs_no_version_of_the_expected_family() -> None:
    case = make_case(versions=("v19",), also_acceptable=("copyright",))
    assert is_right_document(case, make_summary("copyright-v1"))


def test_a_passage_is_right_with_one_phrase_whatever_its_case_and_white_space() -> None:
    case = make_case(phrases=("Within 60  days", "never"))
    assert is_right_passage(case, make_summary(), "deleted WITHIN\n60 days.")
    assert not is_right_passage(case, make_summary(), "deleted within 6 0 days.")
    assert not is_right_passage(case, make_summary("terms-v2"), "within 60 days")
    assert not is_right_passage(make_case(), make_summary(), "any text")


def test_in_force_is_the_highest_version_of_each_line_that_is_valid_at_the_instant() -> None:
    spring, summer = datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 6, 1, tzinfo=UTC)
    documents = [
        make_summary("privacy-v2", valid_to=summer),
        make_summary("privacy-v10", valid_from=summer),
        make_summary("privacy-v9", valid_from=summer),
        make_summary("privacy-v1", lang="bn"),
        make_summary("terms-v1", valid_from=datetime(2025, 1, 1, tzinfo=UTC)),
    ]
    assert in_force(documents, spring) == {"privacy-v2", "privacy-v1"}
    assert in_force(documents, summer) == {"privacy-v10", "privacy-v1"}


# ---------------------------------------------------------------- a whole run


SHOP_CASES = [
    {"id": "now", "question": "How long do refunds take?", "expected_versions": ["v2"], "must_cite": ["9  DAYS"]},
    {"id": "then", "question": "How long do refunds take?", "expected_versions": ["v1"], "must_cite": ["5 days"]}
    | {"as_of": "2021-05-05"},
    {"id": "miss", "question": "Which bikes have a bell?", "must_cite": ["bell"]},
    {"id": "none", "question": "Do you sell boats?", "expected_doc_ids": [], "answerable": False, "must_cite": []},
]


def make_set(data: Path, cases: list[dict[str, object]] | None = None) -> Path:
    corpus = data / "shop" / "corpus"
    refund = {"doc_id": "refund", "title": "Refunds", "effective_from": "2020-01-01"}
    write_source(corpus, "r1.md", "Refunds take 5 days.", **refund, version="v1", effective_to="2022-01-01")
    write_source(corpus, "r2.md", "Refunds take 9 days.", **{**refund, "effective_from": "2022-01-01"}, version="v2")
    write_source(corpus, "b1.md", "Bikes have a bell.", doc_id="bikes", title="Bikes", version="v1")
    rows = [{"answerable": True, "expected_doc_ids": ["refund"], **case} for case in cases or SHOP_CASES]
    text = "\n".join(json.dumps(row) for row in rows)
    (data / "shop" / "cases.jsonl").write_text(text + "\n\n", encoding="utf-8")
    return data


def run(data: Path, *options: str) -> int:
    return quality.main(["--data", str(data), "--sets", "shop", "--embedders", "toy", *options])


def test_a_run_prints_rates_over_all_answerable_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three answerable cases, of which two can be right: the bell belongs to another document than expected."""
    code = run(make_set(tmp_path), "--json", str(tmp_path / "out.json"))
    printed = capsys.readouterr()
    assert (code, printed.err) == (0, "")
    lines = printed.out.splitlines()
    assert "shop: 3 documents, 3 chunks, 3 answerable cases" in lines
    rows = [re.split(" {3,}", line.strip()) for line in lines if " of 3 " in line and "hits" not in line]
    assert [row[0] for row in rows] == ["bm25s lucene", "keyword", "vector", "hybrid weighted", "hybrid rrf"] * 2
    share = "2 of 3  0.667 [0.208, 0.939]"
    assert rows[0][1:] == rows[1][1:] == ["-", share, share, "2 of 3  0.667  0.667"]
    assert any(line.startswith("  hits that were not in force at the asked instant: 0 of ") for line in lines)
    assert any(line.endswith("in 16 searches for 4 cases") for line in lines)
    (measured,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["sets"]
    outcomes = {outcome["case_id"]: outcome for outcome in measured["runs"][1]["outcomes"]}
    assert outcomes["then"]["hits"][0] == "refund-v1:c0"
    assert outcomes["now"]["hits"][0] == "refund-v2:c0"
    assert (outcomes["then"]["document_rank"], outcomes["now"]["passage_rank"]) == (1, 1)
    assert (outcomes["miss"]["document_rank"], outcomes["miss"]["passage_rank"]) == (None, None)


def test_a_second_run_over_the_cache_ingests_nothing_and_a_changed_file_is_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, cache = make_set(tmp_path / "data"), tmp_path / "cache"
    took = []
    for change in (None, None, "Refunds take 10 days."):
        if change:
            write_source(data / "shop" / "corpus", "r2.md", change, doc_id="refund", title="Refunds", version="v2")
        assert run(data, "--cache", str(cache)) == 0
        took.append("ingested before" in capsys.readouterr().out)
    assert took == [False, True, False]
    assert len(list(cache.glob("shop-toy-*.db"))) == 2


def test_a_case_that_raises_is_a_miss_that_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-109: N stays, the error is printed, the exit code is 1."""
    search = Desk.search

    def failing(desk: Desk, query: str, **options: object) -> object:
        if options["as_of"]:
            raise RuntimeError("the disk is gone")
        return search(desk, query, **options)

    monkeypatch.setattr(Desk, "search", failing)
    assert run(make_set(tmp_path)) == 1
    printed = capsys.readouterr().out
    assert printed.count("ERROR ") == 4  # the baseline does not search the desk
    assert "  ERROR keyword -, then: RuntimeError: the disk is gone" in printed
    assert "1 of 3  0.333" in printed
    assert "of 2  " not in printed


def test_a_hit_that_was_not_in_force_is_never_right_and_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Desk.search
    monkeypatch.setattr(Desk, "search", lambda desk, query, **options: search(desk, query, **options | {"as_of": None}))
    assert run(make_set(tmp_path, [SHOP_CASES[1] | {"expected_versions": []}])) == 1
    printed = capsys.readouterr().out
    assert "  NOT IN FORCE keyword -, then: refund-v2:c0" in printed
    assert "0 of 1  0.000 [0.000, 0.793]" in printed
    assert [line for line in printed.splitlines() if "1 of 1" in line and "bm25s" not in line] == []


def test_an_expected_document_that_the_set_does_not_have_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(make_set(tmp_path, [SHOP_CASES[0] | {"expected_doc_ids": ["refunds"]}])) == 1
    assert "now: ValueError: no document of the set is named refunds" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path)
    (data / "shop" / "corpus" / "broken.md").write_bytes(b"caf\xe9\xff")
    assert run(data) == 1
    assert "  ERROR toy, broken.md: " in capsys.readouterr().out


def test_a_line_that_is_no_case_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = make_set(tmp_path)
    with (data / "shop" / "cases.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "x"}\n')
    assert run(data) == 1
    assert "shop: ERROR, not measured: cases.jsonl, line 6: KeyError('question')" in capsys.readouterr().err


def test_absent_data_is_said_with_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path)
    advice = "has no shop; name the folder that holds the sets with --data or EVIDENCEDESK_EVALDATA"
    assert advice in capsys.readouterr().err


@pytest.mark.evaldata
@pytest.mark.skipif(not (EVALDATA / "bn_tydi" / "cases.jsonl").is_file(), reason="the public data is not there")
def test_real_bangla_questions_are_measured_without_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    code = quality.main(["--data", str(EVALDATA), "--sets", "bn_tydi", "--embedders", "toy", "--limit", "5"])
    printed = capsys.readouterr().out
    assert code == 0
    assert "5 answerable cases" in printed
    rows = [line for line in printed.splitlines() if line.startswith(("  keyword", "  vector", "  hybrid"))]
    assert len(rows) == 8
    assert all(row.count(" of 5 ") == 3 for row in rows)


# ---------------------------------------------------------------- the baseline


def test_the_baseline_sees_only_what_is_in_force_and_in_the_asked_language(tmp_path: Path) -> None:
    with Desk.open(tmp_path / "shop.db", embedder="toy") as desk:
        desk.ingest(make_set(tmp_path / "data") / "shop" / "corpus")
        find = quality.baseline(desk, [document.doc_id for document in desk.documents()])
        case = make_case(question="How long do refunds take?")
        assert [chunk.id for chunk in find(case, {"refund-v1", "bikes-v1"})] == ["refund-v1:c0"]
        assert [chunk.id for chunk in find(case, {"refund-v2", "bikes-v1"})] == ["refund-v2:c0"]
        assert find(make_case(question="refunds", lang="bn"), {"refund-v2"}) == []
        assert find(make_case(question="?"), {"refund-v2"}) == []


def test_the_baseline_reads_bangla_at_white_space_and_english_with_its_own_stop_words() -> None:
    assert quality.words("The refund is PAID") == ["refund", "paid"]
    assert quality.words("টাকা ফেরত পাবেন। E21") == ["টাকা", "ফেরত", "পাবেন।", "e21"]


# ---------------------------------------------------------------- questions across languages


def cross_language() -> list[Case]:
    return read_cases(CROSS_LANGUAGE)


def is_bangla(text: str) -> bool:
    return any("\u0980" <= character <= "\u09ff" for character in text)


def test_twenty_questions_of_each_language_ask_for_text_in_the_other() -> None:
    cases = cross_language()
    assert len({case.id for case in cases}) == len({case.question for case in cases}) == 40
    assert sum(is_bangla(case.question) for case in cases) == 20
    assert all(is_bangla(case.question) != is_bangla(case.phrases[0]) for case in cases)


def test_each_phrase_stands_in_one_passage_of_the_expected_document_alone(tmp_path: Path) -> None:
    """So that the passage figure says what it seems to say, and no document of the question's language answers."""
    with Desk.open(tmp_path / "corpus.db", embedder="toy") as desk:
        desk.ingest(CHECKOUT / "corpus")
        chunks = [chunk for doc in desk.documents(status="current") for chunk in desk.document(doc.doc_id).chunks]
        for case in cross_language():
            (phrase,) = case.phrases
            holding = [chunk for chunk in chunks if squashed(phrase) in squashed(chunk.text)]
            assert [chunk.doc_id for chunk in holding] == list(case.expected), case.id
            assert {chunk.lang for chunk in holding} == ({"en"} if is_bangla(case.question) else {"bn"}), case.id
            assert case.lang == (None if is_bangla(case.question) else "bn"), case.id


def test_the_set_alone_has_no_english_twin_and_no_filter(tmp_path: Path) -> None:
    source = question_set("cross_language_alone", tmp_path)
    measured = quality.measure(source, ["toy"], tmp_path)
    assert (measured.documents, len(measured.cases)) == (11, 40)
    assert {case.lang for case in measured.cases} == {None}
    found = {hit.split(":")[0] for run in measured.runs for outcome in run.outcomes for hit in outcome.hits}
    assert "kc-shipping-v1-bn" in found
    assert found.isdisjoint({"kc-shipping-v1", "kc-returns-v3", "kc-returns-v2"})
    assert [outcome.error for run in measured.runs for outcome in run.outcomes if outcome.error] == []


def test_a_case_with_a_language_finds_documents_in_that_language_only(tmp_path: Path) -> None:
    source = question_set("cross_language", tmp_path)
    measured = quality.measure(source, ["toy"], tmp_path)
    filtered = {case.id for case in measured.cases if case.lang == "bn"}
    hits = [hit for run in measured.runs for o in run.outcomes if o.case_id in filtered for hit in o.hits]
    assert hits
    assert all("-bn:" in hit for hit in hits)
