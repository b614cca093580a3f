"""The shipped corpus holds the fixed points that the lesson, the docs and the evaluation lean on.

Read from the files alone (standard library and PyYAML), so that a fault of the product's own
reader, chunker or tokenizer cannot hide a fault of the corpus.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
STOP_WORDS = frozenset(["you", "can", "a", "an", "the", "of", "be", "for", "to", "it", "is"])


@dataclass(frozen=True)
class Section:
    """One heading with the text under it; lines count from 1 in the whole file."""

    title: str
    heading: str
    line_start: int
    line_end: int
    text: str


@dataclass(frozen=True)
class Policy:
    """One file of the corpus: its front matter and its sections, in order."""

    front_matter: dict[str, Any]
    sections: tuple[Section, ...]


def read_policy(path: Path) -> Policy:
    """Enough Markdown for this corpus: ATX headings, nothing fenced."""
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines[0] == "---", path
    fence = lines.index("---", 1)
    front_matter = yaml.safe_load("\n".join(lines[1:fence]))
    sections = []
    headings = [number for number in range(fence + 1, len(lines)) if lines[number].startswith("#")]
    title = lines[headings[0]].removeprefix("# ")
    for number, following in zip(headings, [*headings[1:], len(lines)], strict=True):
        filled = [n for n in range(number + 1, following) if lines[n].strip()]
        if filled:
            text = "\n".join(lines[filled[0] : filled[-1] + 1])
            sections.append(Section(title, lines[number].lstrip("# "), filled[0] + 1, filled[-1] + 1, text))
    return Policy(front_matter, tuple(sections))


POLICIES = {path.stem: read_policy(path) for path in sorted(CORPUS.glob("*.md"))}
SECTIONS = {
    f"{doc_id}:c{n}": section for doc_id, policy in POLICIES.items() for n, section in enumerate(policy.sections)
}


@pytest.mark.parametrize("doc_id", POLICIES)
def test_front_matter_names_the_file_its_version_and_its_language(doc_id: str) -> None:
    """A file is named after its doc_id, whose marks are its version and, unless English, its language."""
    front_matter = POLICIES[doc_id].front_matter
    assert front_matter["doc_id"] == doc_id
    mark = "" if front_matter["lang"] == "en" else f"-{front_matter['lang']}"
    assert doc_id.endswith(f"-{front_matter['version']}{mark}")
    assert front_matter["title"] == POLICIES[doc_id].sections[0].title
    assert type(front_matter["effective_from"]) is datetime.date
    assert front_matter["effective_from"] < datetime.date(2026, 6, 1)


def test_only_the_second_returns_policy_is_superseded_on_the_day_its_successor_starts() -> None:
    """One document has left force, and no day falls between it and the version that replaced it."""
    end_marks = {"status", "effective_to"}
    ended = [doc_id for doc_id, policy in POLICIES.items() if policy.front_matter.keys() & end_marks]
    assert ended == ["kc-returns-v2"]
    old, new = (POLICIES[doc_id].front_matter for doc_id in ("kc-returns-v2", "kc-returns-v3"))
    assert old["status"] == "superseded"
    assert old["effective_from"] < old["effective_to"] == new["effective_from"]
    assert POLICIES["kc-returns-v3-bn"].front_matter["effective_from"] == new["effective_from"]


def test_there_are_36_sections_whose_indexed_texts_all_differ() -> None:
    """The first ingest embeds 36 texts: no two sections share title, heading and text."""
    assert len(SECTIONS) == 36
    assert len({(section.title, section.heading, section.text) for section in SECTIONS.values()}) == 36
    assert len({section.text for section in SECTIONS.values()}) == 36


def test_the_title_has_no_text_of_its_own_and_sections_are_short() -> None:
    """The level-1 heading gives no chunk, and no section needs to be split."""
    for section in SECTIONS.values():
        assert section.heading != section.title
        assert len(section.text) < 1000


def test_there_are_76_sentences_and_each_line_ends_with_one() -> None:
    """A sentence ends at . ! ? or the danda; the corpus has no other use of these marks."""
    ends = [re.findall(r"[.!?।]", section.text) for section in SECTIONS.values()]
    assert sum(map(len, ends)) == 76
    for section in SECTIONS.values():
        assert re.findall(r"[.!?।](?! |\n|$)", section.text) == []
        assert all(line.endswith((".", "।")) for line in section.text.split("\n"))


@pytest.mark.parametrize(
    ("chunk_id", "title", "heading", "line_start", "line_end"),
    [
        ("kc-returns-v3:c0", "Returns policy", "Returning a bike", 11, 12),
        ("kc-returns-v3:c2", "Returns policy", "How refunds are paid", 18, 18),
        ("kc-returns-v3-bn:c0", "রিটার্ন নীতি", "বাইক ফেরত", 11, 12),
    ],
)
def test_the_labels_of_the_lesson_point_at_these_lines(
    chunk_id: str, title: str, heading: str, line_start: int, line_end: int
) -> None:
    """Titles, headings and lines that the lesson's recorded answers print in their citations."""
    section = SECTIONS[chunk_id]
    assert (section.title, section.heading) == (title, heading)
    assert (section.line_start, section.line_end) == (line_start, line_end)


def test_only_one_sentence_in_force_promises_days_from_delivery() -> None:
    """A second promise in force could only come from a wrong update: 30 days stands in one place."""
    promise = re.compile(r"within \w+ (?:\w+ )?days of delivery", re.IGNORECASE)
    found = {chunk_id: promise.findall(section.text) for chunk_id, section in SECTIONS.items()}
    assert {chunk_id: hits for chunk_id, hits in found.items() if hits} == {
        "kc-returns-v2:c0": ["within 14 days of delivery"],
        "kc-returns-v3:c0": ["within 30 days of delivery"],
    }
    first, second = SECTIONS["kc-returns-v3:c0"].text.split("\n")
    assert first == "You can return a new, unridden bike within 30 days of delivery."
    assert second.endswith(".")


def test_the_recalled_model_and_the_tyre_sentence_stand_in_one_section_each() -> None:
    """What the exact-term case and the overlap study look for is in one place only."""
    tyre_sentence = "Inflate the tyres to the pressure printed on the tyre wall."
    for phrase, chunk_id in (("RD2-24", "kc-recalls-v1:c0"), (tyre_sentence, "kc-care-v1:c0")):
        assert [found for found, section in SECTIONS.items() if phrase in section.text] == [chunk_id]


def test_windows_of_120_cut_the_tyre_sentence_without_overlap_and_keep_it_with_40() -> None:
    """Without overlap a window ends at character 120; with 40 the second one is [80, 200)."""
    text = SECTIONS["kc-care-v1:c0"].text
    start = text.index("Inflate the tyres")
    end = text.index("tyre wall.") + len("tyre wall.")
    assert 80 <= start < 120 < end <= 200


@pytest.mark.parametrize("absent", ["scooter", "student", "discount", "holiday", "opening hours", "electric"])
def test_the_unanswerable_questions_have_no_answer_here(absent: str) -> None:
    """Electric scooters, student discounts and holiday hours are the shop's unwritten policies."""
    everything = " ".join(f"{s.title} {s.heading} {s.text}" for s in SECTIONS.values())
    assert absent not in everything.casefold()


def test_bangla_files_write_bangla_digits_in_normal_form() -> None:
    """Bangla policies use the digits of their language, and all files are in NFC."""
    for doc_id, policy in POLICIES.items():
        whole = " ".join(section.text for section in policy.sections)
        assert unicodedata.is_normalized("NFC", whole)
        if policy.front_matter["lang"] == "bn":
            assert any(unicodedata.name(character, "").startswith("BENGALI DIGIT") for character in whole)
            assert not re.search("[0-9]", whole), doc_id


def first_six_letters(word: str) -> str:
    """The lesson's crude stemmer."""
    return word[:6].removesuffix("s")


def singular(word: str) -> str:
    """A gentler stemmer: plural endings only."""
    return re.sub(r"(?<=[a-z]{2})(?<!s)s$", "", word)


@pytest.mark.parametrize("stem", [first_six_letters, singular])
@pytest.mark.parametrize(
    ("claim", "numbers_missing", "found", "key_words"),
    [
        ("You can return a new, unridden bike within 30 days of delivery.", set(), 7, 7),
        ("You can return a new, unridden bike within 60 days of delivery.", {"60"}, 7, 7),
        ("Orders above 500 ship free.", {"500"}, 0, 4),
        ("A bike can be sent back for a full refund up to a month after it arrives.", set(), 4, 9),
        ("You can return a used bike within 30 days of delivery.", set(), 5, 6),
        ("You cannot return a bike within 30 days of delivery.", set(), 5, 6),
        ("You can return a bike within 60 days of delivery.", {"60"}, 5, 5),
    ],
)
def test_the_word_check_on_the_returns_section(
    stem: Callable[[str], str], claim: str, numbers_missing: set[str], found: int, key_words: int
) -> None:
    """The published shares (1.0, 0.0, 0.444, 0.833) follow from this one section under either stemmer."""

    def stems(text: str) -> set[str]:
        return {stem(word) for word in re.findall(r"[a-z]+", text.casefold()) if word not in STOP_WORDS}

    evidence = SECTIONS["kc-returns-v3:c0"].text
    assert set(re.findall(r"\d+", claim)) - set(re.findall(r"\d+", evidence)) == numbers_missing
    assert len(stems(claim)) == key_words
    assert len(stems(claim) & stems(evidence)) == found
