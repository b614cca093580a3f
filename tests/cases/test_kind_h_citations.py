"""Kind H: citations. What no other test proves whole."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterator

import pytest
from builders import make_source, open_desk

from evidencedesk import Desk, RecordedReplies
from evidencedesk.citations.markers import split_claims

# ---------------------------------------------------------------- BR-90 and BR-92: brackets, digits, separators

ZEROS = [
    chr(code)
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) == "Nd" and unicodedata.decimal(chr(code)) == 0
]
BRACKETS = [
    "[{}]", "［{}］", "【{}】", "〔{}〕", "({})", "（{}）", "[[{}]]", "[^{}]", "[ {} ]", r"\[{}\]", "[ID:{}]", "[source: {}]",
    "<sup>[{}]</sup>", "**[{}]**",
]  # fmt: skip
SEPARATORS = [", ", ",", "; ", ";", " and ", " & ", "، ", "、", " ও ", " "]


def in_digits(number: int, zero: str) -> str:
    return "".join(chr(ord(zero) + int(digit)) for digit in str(number))


def cited(answer: str) -> list[int | None]:
    return [reference.number for claim in split_claims(answer) for reference in claim.references]


@pytest.mark.parametrize("bracket", BRACKETS)
def test_every_bracket_is_read_in_the_digits_of_every_script(bracket: str) -> None:
    """BR-90, BR-92: some sixty systems of decimal digits; one mark is enough, whether it stands alone or not."""
    assert len(ZEROS) > 50
    for zero in ZEROS:
        for number in (1, 12):
            mark = bracket.format(in_digits(number, zero))
            assert cited(f"Bikes are red {mark}.") == [number], unicodedata.name(zero)
            assert cited(f"বাইক লাল {mark}। Helmets are blue [2].") == [number, 2], unicodedata.name(zero)


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("bracket", ["[{}]", "【{}】", "({})", "[source: {}]"])
def test_every_separator_parts_the_same_numbers(bracket: str, separator: str) -> None:
    """BR-90: in ASCII and in Bangla digits."""
    for zero in "0০":
        written = bracket.format(separator.join(in_digits(number, zero) for number in (1, 3, 12)))
        assert cited(f"Bikes are red {written}.") == [1, 3, 12]


@pytest.mark.parametrize(
    "mark", ["[1/3]", "[1 to 3]", "[1..3]", "[1+3]", "[1…3]", "[3-1]", "[1a]", "[^note]", "[?]", "[1, x]", "[a.md#2]"]
)
def test_what_is_no_readable_mark_is_malformed_though_it_is_the_only_one(mark: str) -> None:
    """BR-90, BR-92: no other mark has to be good for a bad one to be seen."""
    (claim,) = split_claims(f"Bikes are red {mark}.")
    assert claim.text == "Bikes are red."
    assert any((reference.number, reference.chunk_id) == (None, None) for reference in claim.references)


OPENING = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Ps", "Pi")]


def test_a_number_in_any_bracket_of_unicode_is_a_reference_or_stays_in_the_text_to_be_checked() -> None:
    """BR-90: never neither, whatever a model takes for a bracket."""
    for opening in [*OPENING, "<", "|", "*"]:
        closing = next(
            (chr(ord(opening) + step) for step in (1, 2) if unicodedata.category(chr(ord(opening) + step)) in ("Pe", "Pf")),
            opening,
        )  # fmt: skip
        (claim,) = split_claims(f"Bikes are red {opening}7{closing}.")
        assert ([r.number for r in claim.references] == [7]) != ("7" in claim.text), opening


# ---------------------------------------------------------------- BR-89, 95, 96: whole answers

QUESTION = "Can a bike be returned?"
CLAIM = "A bike can be returned within 30 days."


@pytest.fixture(scope="module")
def shop() -> Iterator[Desk]:
    """The claim is true of shop-v2 alone; the former version says 14, another text is about bikes too."""
    sources = [
        make_source("A bike can be returned within 14 days.", doc_id="shop-v1", title="Returns"),
        make_source("A bike can be returned within 30 days.", doc_id="shop-v2", title="Returns"),
        make_source("A rented bike is returned to the rental desk.", doc_id="rent-v1", title="Renting"),
        *[make_source(f"Helmet number {n} is blue.", doc_id=f"far{n}-v1", title="Helmets") for n in range(5)],
    ]
    with open_desk(sources=sources) as desk:
        yield desk


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        (["shop-v2:c0"], "ok"),
        (["rent-v1:c0"], "unsupported_claim"),
        (["far3-v1:c0"], "unknown_citation"),
        (["shop-v1:c0"], "unknown_citation"),
        (["shop-v9:c0"], "unknown_citation"),
        (["doc-x#3"], "unknown_citation"),
        (["99"], "unknown_citation"),
        (["shop-v2:c0", "shop-v9:c0"], "unknown_citation"),
        (["shop-v2:c0", "rent-v1:c0"], "ok"),
        ([], "unsupported_claim"),
    ],
)
def test_an_answer_stands_only_on_what_it_was_given_and_what_bears_it(
    shop: Desk, sources: list[str], reason: str
) -> None:
    """BR-89, BR-95, BR-96: right, wrong passage, not given, superseded, invented, malformed, none; hits stay apart."""
    reply = json.dumps({"abstained": False, "claims": [{"text": CLAIM, "sources": sources}]})
    answer = shop.ask(QUESTION, llm=RecordedReplies({QUESTION: reply}))
    assert answer.reason == reason, answer.detail
    assert answer.abstained == (reason != "ok")
    assert {"shop-v2:c0", "rent-v1:c0"} <= {hit.chunk.id for hit in answer.hits}
    assert [citation.chunk.id for citation in answer.citations] == (["shop-v2:c0"] if reason == "ok" else [])
    if reason == "unknown_citation":
        assert "cites" in answer.detail
