"""Cases: questions with what would be right, and every way in which their file can be wrong."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import MOMENT, make_source, open_desk
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evidencedesk.cases import RagCase, known_names, load_rag_cases
from evidencedesk.chunking import chunk_corpus
from evidencedesk.documents import load_documents
from evidencedesk.errors import CaseError
from evidencedesk.llm.replies import RecordedReplies

ROOT = Path(__file__).resolve().parent.parent
CASES, REPLIES = ROOT / "data" / "rag_cases.jsonl", ROOT / "data" / "rag_replies.jsonl"
CORPUS = load_documents(ROOT / "corpus")
WITHOUT_ANSWER = {"answerable": False, "expected_doc_ids": []}


def make_case(**fields: object) -> dict[str, object]:
    """The fields of an answerable case, as a file holds them."""
    return {
        "id": "c1", "question": "How long?", "expected_doc_ids": ["shop"], "answerable": True, "must_cite": True,
        "tags": ["direct"], **fields,
    }  # fmt: skip


def line(**fields: object) -> str:
    return json.dumps(make_case(**fields), ensure_ascii=False)


def write(folder: Path, *lines: str, name: str = "cases.jsonl") -> Path:
    path = folder / name
    path.write_bytes("\n".join(lines).encode())
    return path


def refused(path: Path, known: object = None, **options: object) -> CaseError:
    """The error that reading the file raises, which always names the file and the first line that is wrong."""
    with pytest.raises(CaseError) as caught:
        load_rag_cases(path, known, **options)
    assert str(caught.value).startswith(f"{path}: line {caught.value.line}: ")
    assert caught.value.line == caught.value.faults[0][0]
    return caught.value


# ---------------------------------------------------------------- the shipped files


def test_there_are_sixteen_cases_thirteen_with_an_answer() -> None:
    """The counts that the lesson and every table of the evaluation state as their denominators."""
    cases = load_rag_cases(CASES)
    assert [case.id for case in cases] == [f"rc{n:02}" for n in range(1, 17)]
    assert Counter(tag for case in cases for tag in case.tags) == {
        "exact_term": 3, "paraphrase": 5, "bangla": 2, "direct": 2, "stale": 1, "unanswerable": 3,
    }  # fmt: skip
    assert [len(case.tags) for case in cases] == [1] * 16
    assert [case.id for case in cases if not case.answerable] == ["rc14", "rc15", "rc16"]
    assert [case.id for case in cases if not case.must_cite] == ["rc14", "rc15", "rc16"]
    assert {case.tags for case in cases if not case.answerable} == {("unanswerable",)}


def test_every_expected_document_is_in_force_in_the_corpus() -> None:
    assert len(load_rag_cases(CASES, known_names(CORPUS), in_force=known_names(CORPUS, at=MOMENT))) == 16


def test_a_desk_that_holds_the_corpus_knows_the_same_names() -> None:
    with open_desk(sources=CORPUS) as desk:
        documents = desk.documents()
    assert known_names(documents) == known_names(CORPUS)
    for at in (MOMENT, datetime(2024, 6, 1, tzinfo=UTC)):
        assert known_names(documents, at=at) == known_names(CORPUS, at=at)


def test_the_questions_of_the_lesson_are_among_them() -> None:
    questions = {case.id: case.question for case in load_rag_cases(CASES)}
    assert {name: questions[name] for name in ("rc01", "rc03", "rc08", "rc12", "rc15")} == {
        "rc01": "How long do I have to return a bike?",
        "rc03": "RD2-24",
        "rc08": "How long are my support chats stored?",
        "rc12": "When do gift cards expire?",
        "rc15": "Do you sell electric scooters?",
    }
    assert {case.id for case in load_rag_cases(CASES) if any("\u0980" <= c <= "\u09ff" for c in case.question)} == {
        "rc10",
        "rc11",
    }


def test_each_case_has_a_reply_that_cites_what_is_expected_and_in_force() -> None:
    """A reply to an answerable question cites chunks of an expected document; to another it abstains."""
    cases = load_rag_cases(CASES)
    lines = [json.loads(row) for row in REPLIES.read_text(encoding="utf-8").splitlines()]
    assert [row["question"] for row in lines] == [case.question for case in cases]
    RecordedReplies.from_jsonl(REPLIES)
    names = {document.doc_id: {document.doc_id, document.family} for document in CORPUS}
    in_force = known_names(CORPUS, at=MOMENT)
    chunk_ids = {chunk.id for chunk in chunk_corpus(CORPUS)}
    for case, row in zip(cases, lines, strict=True):
        reply = json.loads(row["reply"])
        assert reply.keys() == {"abstained", "claims"}
        assert reply["abstained"] is not case.answerable
        assert bool(reply["claims"]) is case.answerable
        for claim in reply["claims"]:
            assert claim.keys() == {"text", "sources"}
            assert claim["sources"]
            for source in claim["sources"]:
                assert source in chunk_ids
                doc_id = source.rpartition(":")[0]
                assert names[doc_id] & set(case.expected_doc_ids)
                assert doc_id in in_force


@pytest.mark.parametrize(
    ("case_id", "cited"),
    [("rc01", "kc-returns-v3:c0"), ("rc09", "kc-returns-v3:c2"), ("rc10", "kc-returns-v3-bn:c0")],
)
def test_the_replies_of_the_lesson_cite_these_chunks(case_id: str, cited: str) -> None:
    questions = {case.id: case.question for case in load_rag_cases(CASES)}
    replies = {
        row["question"]: json.loads(row["reply"])
        for row in map(json.loads, REPLIES.read_text(encoding="utf-8").splitlines())
    }
    assert {source for claim in replies[questions[case_id]]["claims"] for source in claim["sources"]} == {cited}


# ---------------------------------------------------------------- one case


def test_a_case_is_frozen_and_its_lists_become_tuples() -> None:
    case = RagCase(**make_case())
    assert (case.expected_doc_ids, case.tags, case.as_of) == (("shop",), ("direct",), None)
    assert len({case, RagCase(**make_case())}) == 1
    with pytest.raises(ValidationError, match="frozen"):
        case.id = "c2"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"expected_doc_ids": []}, "Value error, answerable needs expected_doc_ids, and only then"),
        ({"answerable": False}, "Value error, answerable needs expected_doc_ids, and only then"),
        (WITHOUT_ANSWER, "Value error, an unanswerable question cannot require a citation"),
        ({"qestion": "How long?"}, "qestion: Extra inputs are not permitted"),
        ({"answerable": "yes"}, "answerable: Input should be a valid boolean"),
        ({"answerable": 1}, "answerable: Input should be a valid boolean"),
        ({"id": 7}, "id: Input should be a valid string"),
        ({"id": " "}, "id: Value error, must not be blank"),
        ({"question": "\n"}, "question: Value error, must not be blank"),
        ({"expected_doc_ids": "shop"}, "expected_doc_ids: Input should be a valid array"),
        ({"expected_doc_ids": ["shop", 3]}, "expected_doc_ids.1: Input should be a valid string"),
        ({"expected_doc_ids": ["shop", "shop"]}, "expected_doc_ids: Value error, names something twice"),
        ({"tags": ["direct", "direct"]}, "tags: Value error, names something twice"),
        ({"tags": ["simple"]}, "tags.0: Input should be 'direct', 'exact_term'"),
        ({"as_of": "2024-02-30"}, "as_of: Value error, not a date that exists: '2024-02-30'"),
        ({"as_of": "last May"}, "as_of: Value error, not an ISO date such as 2024-01-15: 'last May'"),
        ({"as_of": 20240115}, "as_of: Input should be a valid string"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, fields: dict[str, object], problem: str) -> None:
    path = write(tmp_path, line(**fields))
    assert f"line 1: {problem}" in str(refused(path))


@pytest.mark.parametrize("missing", ["id", "question", "answerable"])
def test_a_missing_field_is_named_with_its_line(tmp_path: Path, missing: str) -> None:
    fields = make_case()
    del fields[missing]
    assert f"line 1: {missing}: Field required" in str(refused(write(tmp_path, json.dumps(fields))))


@pytest.mark.parametrize("as_of", ["2024-06-01", "2024-06-01T12:00:00Z", "২০২৪-০৬-০১", None])
def test_a_case_may_ask_about_another_day(tmp_path: Path, as_of: str | None) -> None:
    assert load_rag_cases(write(tmp_path, line(as_of=as_of)))[0].as_of == as_of


# ---------------------------------------------------------------- a file of cases


def test_a_misspelt_key_is_both_unknown_and_missed(tmp_path: Path) -> None:
    """BR-111: a misnamed column is a message with its line, not an empty mean later."""
    fields = make_case()
    fields["awnserable"] = fields.pop("answerable")
    path = write(tmp_path, line(), json.dumps(fields))
    expected = "line 2: answerable: Field required; awnserable: Extra inputs are not permitted"
    assert refused(path).faults == ((2, expected.removeprefix("line 2: ")),)
    assert expected in str(refused(path))


def test_bad_json_in_line_7_is_named(tmp_path: Path) -> None:
    """BR-111: the line is counted as an editor counts it, blank lines too."""
    path = write(tmp_path, *(line(id=f"c{n}") for n in range(5)), "", '{"id": "c7",', line(id="c8"))
    error = refused(path)
    assert (error.path, error.line, len(error.faults)) == (str(path), 7, 1)
    assert "line 7: not JSON: " in str(error)


def test_blank_lines_are_passed_over_but_counted(tmp_path: Path) -> None:
    """BR-111: the last line may end with a newline or not."""
    good = write(tmp_path, "", line(id="a"), "  \t", line(id="b"), "", "")
    assert [case.id for case in load_rag_cases(good)] == ["a", "b"]
    assert refused(write(tmp_path, "", "", "x")).line == 3


def test_a_byte_order_mark_and_crlf_change_nothing(tmp_path: Path) -> None:
    """BR-111: a file that an editor on Windows saved is read as the same cases, with the same lines."""
    path = tmp_path / "windows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + f"{line(id='a')}\r\n\r\n{line(id='b')}\r\n".encode())
    assert load_rag_cases(path) == load_rag_cases(write(tmp_path, line(id="a"), line(id="b")))
    path.write_bytes(b"\xef\xbb\xbf" + f"{line(id='a')}\r\n\r\nx\r\n".encode())
    assert refused(path).line == 3


def test_a_line_separator_inside_a_question_ends_no_line(tmp_path: Path) -> None:
    """JSON text may hold U+2028 and U+0085 as they are."""
    path = write(tmp_path, line(question="a\u2028b\x85c"), "x")
    assert refused(path).line == 2
    assert load_rag_cases(write(tmp_path, line(question="a\u2028b\x85c")))[0].question == "a\u2028b\x85c"


def test_bangla_is_read_and_named_as_it_stands(tmp_path: Path) -> None:
    """BR-111"""
    question = "বাইক ফেরত দিতে কত দিন সময় পাব?"
    assert load_rag_cases(write(tmp_path, line(question=question)))[0].question == question
    assert load_rag_cases(write(tmp_path, json.dumps(make_case(question=question))))[0].question == question
    path = write(tmp_path, line(expected_doc_ids=["নীতি"]), name="প্রশ্ন.jsonl")
    assert "প্রশ্ন.jsonl: line 1: unknown document in expected_doc_ids: 'নীতি'" in str(refused(path, ["shop"]))


def test_a_case_id_that_comes_twice_names_both_lines(tmp_path: Path) -> None:
    """BR-111"""
    path = write(tmp_path, line(id="a"), "", line(id="b"), line(id="a"))
    assert refused(path).faults == ((4, "id 'a' stands on line 1 too"),)


def test_an_unknown_document_is_named_with_its_line(tmp_path: Path) -> None:
    """BR-111: a chunk id is no document, and near misses are not guessed at."""
    names = ["shop", "shop-v1"]
    path = write(
        tmp_path, *(line(id=name, expected_doc_ids=[name]) for name in ("shop", "shop-v1", "shop-v1:c0", "Shop"))
    )
    assert load_rag_cases(path)
    assert refused(path, names).faults == (
        (3, "unknown document in expected_doc_ids: 'shop-v1:c0'"),
        (4, "unknown document in expected_doc_ids: 'Shop'"),
    )


def test_a_superseded_version_can_be_expected_only_of_a_question_about_its_day(tmp_path: Path) -> None:
    """BR-111: today's search never finds it, so the case would be lost however good the answer is."""
    documents = [
        make_source(doc_id="shop-v1", effective_from="2024-01-01"),
        make_source(doc_id="shop-v2", effective_from="2025-01-01"),
        make_source(doc_id="shop-v3", effective_from="2027-01-01"),
    ]
    options = {"known": known_names(documents), "in_force": known_names(documents, at=MOMENT)}
    good = write(
        tmp_path,
        line(id="a", expected_doc_ids=["shop-v1"], as_of="2024-06-01"),
        line(id="b", expected_doc_ids=["shop-v2"]),
        line(id="c", expected_doc_ids=["shop"]),
    )
    assert len(load_rag_cases(good, **options)) == 3
    bad = write(
        tmp_path, line(id="a"), line(id="b", expected_doc_ids=["shop-v1"]), line(id="c", expected_doc_ids=["shop-v3"])
    )
    fault = "document not in force in expected_doc_ids: {!r}; name its family or the version in force, or give as_of"
    assert refused(bad, **options).faults == ((2, fault.format("shop-v1")), (3, fault.format("shop-v3")))


@pytest.mark.parametrize("text", ["", "\n", " \r\n\t\n", "\ufeff"])
def test_a_file_without_a_case_is_an_error(tmp_path: Path, text: str) -> None:
    """BR-111: an evaluation over nothing would be a success."""
    assert "line 1: the file holds no case" in str(refused(write(tmp_path, text)))


def test_a_top_level_array_is_an_error_that_says_what_to_write(tmp_path: Path) -> None:
    """BR-111: on one line and spread over many."""
    told = "line 1: not a JSON object; write one object a line, without brackets around them all"
    assert told in str(refused(write(tmp_path, f"[{line()}]")))
    spread = refused(write(tmp_path, "[", f"{line(id='a')},", line(id="b"), "]"))
    assert [number for number, _ in spread.faults] == [1, 2, 4]
    assert "line 1: not JSON" in str(spread)


@pytest.mark.parametrize("value", ["3", '"text"', "null", "true", '"c1"'])
def test_a_line_must_be_an_object(tmp_path: Path, value: str) -> None:
    assert "line 1: not a JSON object" in str(refused(write(tmp_path, value)))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e999"])
@pytest.mark.parametrize("key", ["id", "score"])
def test_a_number_that_json_cannot_hold_is_an_error(tmp_path: Path, number: str, key: str) -> None:
    """BR-111: NaN and 1e400 pass Python's own reader."""
    text = line(**{key: "HERE"}).replace('"HERE"', number)
    assert f"line 1: {number} is no number that JSON can hold" in str(refused(write(tmp_path, text)))


def test_a_key_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    """BR-111: Python's own reader would keep the last value in silence."""
    text = line().replace('"answerable": true', '"answerable": false, "answerable": true')
    assert "line 1: the key 'answerable' stands twice in one object" in str(refused(write(tmp_path, text)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 200_000, "it is nested too deeply"),
        (line(id="HERE").replace('"HERE"', "9" * 5000), "Exceeds the limit"),
        (line(question="HERE").replace("HERE", "\\ud800"), "Invalid JSON"),
        (line() + " " + line(), "not JSON: Extra data"),
        ("# a comment", "not JSON: "),
        ("\\N", "not JSON: "),
    ],
)
def test_hostile_lines_are_faults_like_any_other(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in str(refused(write(tmp_path, text)))


def test_bytes_that_are_no_text_are_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes(f"{line()}\n".encode() + '{"id": "Zoë"}'.encode("latin-1"))
    assert "line 2: byte 0xeb is not UTF-8 here; save the file as UTF-8" in str(refused(path))
    path.write_bytes(line().encode("utf-16"))
    assert "line 1: the file looks like UTF-16 or UTF-32; save the file as UTF-8" in str(refused(path))


def test_a_file_that_cannot_be_read_is_the_same_kind_of_error(tmp_path: Path) -> None:
    assert "line 1: the file cannot be read: No such file" in str(refused(tmp_path / "nowhere.jsonl"))
    assert "line 1: the file cannot be read: " in str(refused(tmp_path))


def test_all_faults_are_told_at_once_the_first_line_first(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "x",
        line(id="a"),
        line(id="b", expected_doc_ids=["nowhere"]),
        line(id="a", answerable=False),
        line(id="a"),
    )
    assert refused(path, ["shop"]).faults == (
        (1, "not JSON: Expecting value (column 1); write one JSON object a line"),
        (3, "unknown document in expected_doc_ids: 'nowhere'"),
        (4, "Value error, answerable needs expected_doc_ids, and only then"),
        (5, "id 'a' stands on line 2 too"),
    )


def test_a_sentence_about_a_file_of_another_kind_stays_short(tmp_path: Path) -> None:
    error = refused(write(tmp_path, *["a,b,c"] * 500))
    assert len(error.faults) == 500
    assert "line 20: " in str(error)
    assert "line 21: " not in str(error)
    assert "; and 480 faults more." in str(error)


@given(
    st.lists(
        st.builds(make_case, question=st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)), min_size=1
    )
)
def test_what_was_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, cases: list[dict[str, object]]
) -> None:
    rows = [{**case, "id": f"c{n}"} for n, case in enumerate(cases)]
    path = write(tmp_path_factory.mktemp("cases"), *(json.dumps(row, ensure_ascii=False) for row in rows))
    read = load_rag_cases(path)
    assert read == [RagCase(**row) for row in rows]
    again = write(path.parent, *(case.model_dump_json(exclude_none=True) for case in read))
    assert load_rag_cases(again) == read


# ---------------------------------------------------------------- names that a case may expect


def test_a_document_is_known_by_its_doc_id_and_its_family() -> None:
    assert known_names([make_source(doc_id="privacy", version="v19")]) == {"privacy-v19", "privacy"}
    assert known_names([]) == frozenset()


def test_names_in_force_follow_the_rule_for_each_language() -> None:
    """A Bangla version 1 stays in force beside an English version 2, and an expired text leaves no name behind."""
    documents = [
        make_source(doc_id="shop-v1", effective_from="2024-01-01"),
        make_source(doc_id="shop-v1-bn", lang="bn", effective_from="2024-01-01"),
        make_source(doc_id="shop-v2"),
        make_source(doc_id="sale-v1", effective_from="2024-01-01", effective_to="2024-02-01"),
    ]
    assert known_names(documents, at=MOMENT) == {"shop", "shop-v2", "shop-v1-bn"}
    with open_desk(sources=documents) as desk:
        assert known_names(desk.documents(), at=MOMENT) == {"shop", "shop-v2", "shop-v1-bn"}
        desk.withdraw("shop-v1-bn", reason="mistaken")
        assert known_names(desk.documents(), at=MOMENT) == {"shop", "shop-v2"}


def test_an_instant_needs_a_time_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        known_names([], at=datetime(2026, 6, 1))  # noqa: DTZ001
