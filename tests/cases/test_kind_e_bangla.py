"""Kind E: Bangla and Unicode, in a whole desk: stored terms, search, citations. What no other test proves whole."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import found, make_source, open_desk, write_source

from evidencedesk import Desk, check_support
from evidencedesk.citations.markers import split_claims
from evidencedesk.text import tokens

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
WORD = re.compile("[\u0980-\u09e5\u09f0-\u09ff\u200c\u200d]+")

# ---------------------------------------------------------------- BR-47: whole words in the index


@pytest.fixture(scope="module")
def bangla() -> Iterator[Desk]:
    """The Bangla documents of the shipped corpus."""
    with open_desk() as desk:
        for file in sorted(CORPUS.glob("*-bn.md")):
            desk.update_document(file)
        yield desk


def test_every_bangla_word_of_the_corpus_is_stored_whole_and_finds_its_chunk(bangla: Desk) -> None:
    """BR-47: read from the view that an analyst would read; no term is a piece of a letter, none a bare sign."""
    with bangla.engine.connect() as sql:
        terms = {term for (term,) in sql.exec_driver_sql("SELECT term FROM bm25_terms")}
    assert not {term for term in terms if unicodedata.category(term[0]).startswith("M")}
    chunks = [chunk for document in bangla.documents() for chunk in bangla.document(document.doc_id).chunks]
    searched = 0
    for word in sorted({word for chunk in chunks for word in WORD.findall(chunk.text)}):
        if searchable := tokens(word):
            searched += 1
            (whole,) = searchable
            assert whole in terms
            holders = {chunk.id for chunk in chunks if whole in tokens(chunk.indexed_text)}
            assert set(found(bangla, word, k=100)) == holders
    assert searched > 80


# ---------------------------------------------------------------- BR-48: claims with whole words

MONTHS = ["জানুয়ারি", "ফেব্রুয়ারি", "মার্চ", "এপ্রিল", "মে", "জুন", "জুলাই", "আগস্ট", "সেপ্টেম্বর", "অক্টোবর", "নভেম্বর", "ডিসেম্বর"]  # fmt: skip
NAMES = ["রবীন্দ্রনাথ", "কৃষ্ণচন্দ্র", "বিষ্ণুপ্রিয়া", "জ্যোতির্ময়ী", "লক্ষ্মী", "সঞ্জীব", "শ্রেষ্ঠা", "তৃপ্তি"]


@pytest.mark.parametrize(
    ("sentence", "words"),
    [("মেলার ছাড় {}ে শেষ হয়।", MONTHS), ("দোকানের ম্যানেজারের নাম {}।", NAMES), ("নতুন শাখা খোলা হবে {} মাসে।", MONTHS)],
)
def test_a_bangla_claim_with_the_word_of_the_evidence_is_supported_and_with_another_it_is_not(
    sentence: str, words: list[str]
) -> None:
    """BR-48: every month and names with conjuncts, each against each."""
    for said in words:
        for stands in words:
            support = check_support(sentence.format(said), sentence.format(stands))
            assert support.ok == (said == stands), (said, stands, support.reason)


# ---------------------------------------------------------------- BR-49 and BR-50: one word, several spellings

ZWJ, ZWNJ = "\u200d", "\u200c"
SPELLINGS = {
    "ya with nukta": ["নি\u09dfম", "নি\u09af\u09bcম"],
    "rra": ["পা\u09dcা", "পা\u09a1\u09bcা"],
    "rha": ["আষা\u09dd", "আষা\u09a2\u09bc"],
    "the vowel o": ["দ\u09cbকান", "দ\u09c7\u09beকান"],
    "the vowel au": ["ম\u09ccচাক", "ম\u09c7\u09d7চাক"],
    "khanda ta": ["উ\u09ceসব", f"উত\u09cd{ZWJ}সব"],
    "RAB with ZWJ, ZWNJ and neither": [f"র{ZWJ}\u09cdযাব", f"র\u09cd{ZWNJ}যাব", "র\u09cdযাব", f"র\u09cd{ZWJ}যাব"],
    "a Latin accent": ["caf\u00e9", "cafe\u0301"],
}


@pytest.mark.parametrize("spellings", SPELLINGS.values(), ids=SPELLINGS)
def test_each_spelling_of_a_word_finds_and_proves_each_other_and_the_text_stays_as_written(
    spellings: list[str],
) -> None:
    """BR-49, BR-50: search, family, citation; what is shown is the source's own spelling, on the source's own line."""
    for written in spellings:
        body = f"প্রথম লাইন।\n\nএখানে {written} লেখা আছে।"
        with open_desk(sources=[make_source(body, doc_id=f"{written}-v1", lang="bn", heading=None)]) as desk:
            for asked in spellings:
                (hit,) = desk.search(asked)
                assert f"এখানে {written} লেখা আছে।" in hit.chunk.text
                lines = make_source(body, doc_id="x", lang="bn", heading=None).source.split("\n")
                place = hit.chunk.location
                assert "\n".join(lines[place.line_start - 1 : place.line_end]) == hit.chunk.text
                assert check_support(f"এখানে {asked} লেখা আছে।", hit.chunk.text).ok
                if unicodedata.normalize("NFC", asked) == unicodedata.normalize("NFC", written):
                    assert found(desk, asked, family=asked) == [hit.chunk.id]
                    assert desk.history(asked)[0].doc_id == hit.chunk.doc_id


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_file_name_in_either_form_is_one_document(tmp_path: Path, form: str) -> None:
    """BR-49: a file system that hands names out decomposed neither adds a document nor loses one."""
    name = "নি\u09dfম café"
    write_source(tmp_path / "one", f"{unicodedata.normalize(form, name)}.md", "বাইক লাল।", doc_id=None, lang="bn")
    write_source(tmp_path / "two", f"{unicodedata.normalize('NFD', name)}.md", "বাইক লাল।", doc_id=None, lang="bn")
    with open_desk() as desk:
        assert len(desk.ingest(tmp_path / "one", root="texts").added) == 1
        report = desk.ingest(tmp_path / "two", root="texts")
        assert (report.added, len(report.unchanged), report.missing) == ((), 1, ())


# ---------------------------------------------------------------- BR-52: the danda


@pytest.mark.parametrize("end", ["।", "। ", "।\n", "।।", "।। ", "॥ ", "| "])
def test_two_sentences_parted_by_a_danda_are_found_by_their_last_words_and_checked_apart(end: str) -> None:
    """BR-52: with and without a space, doubled, or a bar typed for it."""
    body = f"হেলমেট ফেরত নেওয়া হয়{end}বাইক মেরামত করা হয়{end}"
    with open_desk(sources=[make_source(body, lang="bn")]) as desk:
        for last in ("হয়", "মেরামত", "ফেরত"):
            assert found(desk, last) == (["shop-v1:c0"] if tokens(last) else [])
        answer = f"হেলমেট ফেরত নেওয়া হয়{end}বাইক বিক্রি করা হয়{end}"
        assert len([claim for claim in split_claims(answer) if claim.text]) == 2
        sign = end.strip()
        marked = [f"হেলমেট ফেরত নেওয়া হয়{sign} [1] বাইক বিক্রি করা হয়{sign} [1]"]
        if sign != "|":  # behind a mark a bar is one of a table: both sentences are then one claim, and fail together
            marked.append(f"হেলমেট ফেরত নেওয়া হয় [1]{end}বাইক বিক্রি করা হয় [1]{end}")
        for text in marked:
            claims = desk.verify({"text": text, "sources": ["shop-v1:c0"]}).claims
            assert [claim.verdict == "supported" for claim in claims] == [True, False]


# ---------------------------------------------------------------- BR-54: numbers with endings

ENDINGS = ["{}", "{}-এর", "{}এর", "{}-এ", "{} সালের", "{}-র"]
BANGLA_DIGITS = str.maketrans("0123456789", "০১২৩৪৫৬৭৮৯")


def written(number: str) -> list[str]:
    return [form.format(digits) for digits in (number, number.translate(BANGLA_DIGITS)) for form in ENDINGS]


@pytest.mark.parametrize("number", ["2024", "7", "1990"])
def test_a_number_is_the_same_number_with_any_ending_in_either_digits(number: str) -> None:
    """BR-54: claim and evidence, each way of writing against each; and another number never passes."""
    for stands in written(number):
        evidence = f"মেলার ছাড় {stands} মধ্যে শেষ হয়।"
        assert evidence.count(stands) == 1
        for said in written(number):
            support = check_support(f"মেলার ছাড় {said} মধ্যে শেষ হয়।", evidence)
            assert support.numbers_missing == (), (said, stands)
            assert support.ok, (said, stands, support.reason)
        for said in written(str(int(number) + 1)):
            support = check_support(f"মেলার ছাড় {said} মধ্যে শেষ হয়।", evidence)
            assert not support.ok
            assert support.numbers_missing, (said, stands)


@pytest.mark.parametrize("form", ["{}%-এর", "{}%", "{} শতাংশের", "{} শতাংশ", "{} ভাগ"])
def test_a_percentage_is_found_by_its_number_and_shown_with_its_ending(form: str) -> None:
    """BR-54: in search the ending does not count; in what is shown it stays."""
    text = f"ছাড় {form.format('১০')} বেশি নয়।"
    with open_desk(sources=[make_source(text, lang="bn")]) as desk:
        for asked in ("10", "১০", form.format("10"), form.format("১০")):
            (hit,) = desk.search(asked)
            assert form.format("১০") in hit.chunk.text
