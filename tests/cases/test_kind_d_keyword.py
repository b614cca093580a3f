"""Kind D: search by keyword, BM25, fusion and thresholds. What no other test proves whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from builders import Clock, found, make_source, open_desk, write_source
from hypothesis import example, given, settings
from hypothesis import strategies as st

import evidencedesk
from evidencedesk import BM25, Desk, RagCase
from evidencedesk.citations.markers import split_claims
from evidencedesk.errors import NoContentError, NotFound
from evidencedesk.text import tokens

# ---------------------------------------------------------------- BR-33: any text is a question


@pytest.fixture(scope="module")
def small() -> Iterator[Desk]:
    sources = [make_source("Tables drop a foo."), make_source("বাইক লাল।", doc_id="rule-v1-bn", lang="bn")]
    with open_desk(sources=sources, embedder="toy") as desk:
        yield desk


SIGNS = ["AND", "OR", "NOT", "NEAR(a b)", '"', "'", "(", ")", "*", "^", "{title}:", "-foo", ":", "%", "_", "\\", ";", "--",
         "\0", "\ud800", "\u202e", "🚲", "।", "্", "C++", "a:b", "x\ty", "NULL", "?1", "$x", "\N{COMBINING ACUTE ACCENT}"]  # fmt: skip
questions = st.lists(st.sampled_from(SIGNS) | st.text(max_size=8), max_size=8).map(" ".join) | st.text(max_size=60)


@settings(max_examples=80)
@given(questions)
@example("")
@example("'; DROP TABLE documents;--")
@example("a" * 10_000)
def test_no_text_is_syntax_to_any_verb_that_takes_one(small: Desk, text: str) -> None:
    """BR-33: searched, asked, verified, scored or looked up, a text is its words; nothing but those decides the ranks."""
    for mode in ("keyword", "vector", "hybrid"):
        hits = small.search(text, mode=mode, lang=text[:5], family=text)
        assert hits.reason in ("no_terms", "nothing_matches")
    plain = " ".join(tokens(text))
    assert [hit.bm25 for hit in small.search(text, mode="keyword")] == [
        score for _, score in BM25(small).search(plain)
    ], "the signs around the words change no score"
    if text.strip():
        assert small.ask(text).question == text
        assert small.assess(text).state in ("ok", "weak", "ambiguous", "no_result")
        if split_claims(text):
            assert small.verify(text).claims
    for look_up in (small.document, small.history, small.chunk):
        with pytest.raises(NotFound):
            look_up(f"{text}-")


# ---------------------------------------------------------------- BR-34: a code finds its text

part = st.text("abcXYZ0123456789", min_size=1, max_size=4)


def joined(signs: str) -> st.SearchStrategy[str]:
    pieces = st.tuples(st.lists(part, min_size=2, max_size=4), st.sampled_from(signs))
    return pieces.map(lambda drawn: drawn[1].join(drawn[0]))


def texts_with(code: str) -> dict[str, str]:
    """A text that holds the code, two that hold its parts, one that holds nothing of it."""
    parts = re.split("[-/_@:.]", code)
    return {
        "whole": f"The entry is {code} here.",
        "apart": f"The entry is {', or '.join(parts)} here.",
        "turned": f"The entry is {', or '.join(reversed(parts))} here.",
        "none": "Another entry.",
    }


@settings(max_examples=25)
@given(joined("._:@").filter(lambda code: not re.match(r"\d+\.0+(\D|$)", code)))  # 7.0 is the number 7
@example("38.101")
@example("v2.1.3")
@example("1.10")
@example("ISO-9001:2015")
def test_a_code_finds_the_text_that_holds_it_before_those_that_hold_its_parts(code: str) -> None:
    """BR-34: letters and digits joined by a sign that joins no words; its parts apart, or turned round, come later."""
    assert BM25.over(texts_with(code)).search(code)[0][0] == "whole"


@settings(max_examples=25)
@given(joined("-/"))
@example("a/b")
@example("9-5")
def test_what_may_be_words_or_a_range_is_found_by_its_parts(code: str) -> None:
    """BR-34: a hyphen and a slash join words and numbers too (`and/or`, `9-5`): found, if not always as a whole."""
    found_texts = [name for name, _ in BM25.over(texts_with(code)).search(code)]
    assert "none" not in found_texts
    assert ("whole" in found_texts) == bool(tokens(code))


# ---------------------------------------------------------------- BR-36: nothing to search

CASES = [
    RagCase(id="yes", question="Which bikes are red?", expected_doc_ids=["shop"], answerable=True, must_cite=True,
            tags=["direct"]),
    RagCase(id="no", question="Who sells boats?", expected_doc_ids=[], answerable=False, must_cite=False,
            tags=["unanswerable"]),
]  # fmt: skip


def nothing_stored(desk: Desk, clock: Clock) -> None:
    pass


def all_withdrawn(desk: Desk, clock: Clock) -> None:
    desk.update_document(make_source())
    desk.withdraw("shop-v1", reason="the shop is closed")


def all_scheduled(desk: Desk, clock: Clock) -> None:
    desk.update_document(make_source(effective_from="2027-01-01"))


def all_expired(desk: Desk, clock: Clock) -> None:
    desk.update_document(make_source(effective_to="2026-07-01"))
    clock.advance(days=60)


@pytest.mark.parametrize("embedder", ["toy", "none"])
@pytest.mark.parametrize("empty", [nothing_stored, all_withdrawn, all_scheduled, all_expired])
def test_with_nothing_in_force_every_verb_says_so_and_none_divides_by_nothing(
    empty: Callable[[Desk, Clock], None], embedder: str
) -> None:
    """BR-36: new, withdrawn, not yet begun, ended by the clock; the guard abstains, and figures that do not apply say so."""
    clock = Clock()
    with open_desk(embedder=embedder, clock=clock) as desk:
        empty(desk, clock)
        for mode in ("keyword", "hybrid", *(["vector"] if embedder == "toy" else [])):
            for filters in ({}, {"lang": "en"}, {"family": "shop"}, {"as_of": "2020-01-01"}):
                assert (len(hits := desk.search("bikes", mode=mode, **filters)), hits.reason) == (0, "nothing_in_force")
        assert BM25(desk).search("bikes") == []
        assert desk.assess("Which bikes are red?").state == "no_result"
        answer = desk.ask("Which bikes are red?", record=True)
        assert (answer.abstained, answer.reason) == (True, "no_result")
        assert answer.detail == "There is no text in force to answer from."
        assert not desk.verify("Bikes are red. [shop-v1:c0]").ok
        report = desk.evaluate(CASES)
        assert (report.ok, report.guarded.answered.of) == (True, 2)
        assert report.metrics()["turned_away"] == 1
        assert all(rate.value is None for rate in desk.attack().claims.blocked.values())
        assert desk.staleness() == []
        desk.compact()
        assert desk.check().ok


# ---------------------------------------------------------------- BR-37: files without content

EMPTY_FILES = {
    "0 bytes": b"", "a newline": b"\n", "a mark": "\ufeff".encode(), "three dashes": b"---",
    "only metadata": b"---\ndoc_id: shop-v1\nlang: en\n---\n", "a comment": b"<!-- later -->\n", "a heading": b"# Title\n",
    "a rule": b"***\n", "spaces": b" \t\r\n",
}  # fmt: skip


@pytest.mark.parametrize("embedder", ["toy", "none"])
@pytest.mark.parametrize("content", EMPTY_FILES.values(), ids=EMPTY_FILES)
def test_a_file_that_lost_its_content_is_reported_and_its_former_text_stays_in_force(
    tmp_path: Path, content: bytes, embedder: str
) -> None:
    """BR-37: as docs/inputs.md says; alone in its folder it leaves an index that divides by nothing."""
    file = tmp_path / "shop.md"
    file.write_bytes(content)
    with open_desk(embedder=embedder) as desk:
        (failed,) = desk.ingest(tmp_path).failed
        assert (failed.path, "no content" in failed.error) == ("shop.md", True)
        assert (desk.documents(), desk.search("title", mode="keyword").reason) == ([], "nothing_in_force")
        write_source(tmp_path, "shop.md", "Bikes are red.")
        desk.ingest(tmp_path)
        file.write_bytes(content)
        report = desk.ingest(tmp_path, prune=True)
        assert [failed.path for failed in report.failed] == ["shop.md"]
        assert (report.missing, report.withdrawn) == ((), ())
        with pytest.raises(NoContentError):
            desk.update_document(file)
        assert found(desk, "bikes", mode="keyword") == ["shop-v1:c0"]
        assert desk.check().ok


# ---------------------------------------------------------------- BR-38: few texts

few_texts = st.lists(
    st.lists(st.sampled_from(["red", "blue", "bike", "bell", "helmet"]), min_size=1, max_size=4), min_size=1, max_size=4
)


@settings(max_examples=25)
@given(few_texts, st.sampled_from(["red", "blue", "bike", "bell", "helmet"]))
def test_in_any_small_collection_what_holds_the_word_is_a_hit_and_nothing_else_is(
    texts: list[list[str]], word: str
) -> None:
    """BR-38: in one, half or all of one to four texts; a score above 0 for each that holds it, none for the others."""
    ranking = BM25.over({f"d{n}": " ".join(text) for n, text in enumerate(texts)})
    hits = dict(ranking.search(word))
    assert set(hits) == {f"d{n}" for n, text in enumerate(texts) if word in text}
    assert all(score > 0 for score in hits.values())
    assert ranking.idf(word) > 0


@pytest.mark.parametrize("embedder", ["toy", "none"])
def test_a_desk_of_one_document_finds_it_by_its_own_title(embedder: str) -> None:
    """BR-38: each of its words stands in every chunk there is."""
    with open_desk(sources=[make_source(title="Returns of bikes")], embedder=embedder) as desk:
        for mode in ("keyword", "hybrid"):
            (hit,) = desk.search("Returns of bikes", mode=mode)
            assert hit.bm25 > 0
            assert hit.score > 0
        assert desk.assess("Returns of bikes").state == "ok"


# ---------------------------------------------------------------- BR-39: words that the index does not know


@pytest.mark.parametrize(
    ("question", "reason", "detail"),
    [
        ("xyzzy plugh", "nothing_matches", "Nothing in force matches the question."),
        ("অজানা শব্দ", "nothing_matches", "Nothing in force matches the question."),
        ("q", "nothing_matches", "Nothing in force matches the question."),
        ("9", "nothing_matches", "Nothing in force matches the question."),
        ("how do I do that", "no_terms", "The question holds no word that could be searched."),
        ("এই কি হয়", "no_terms", "The question holds no word that could be searched."),
        ("?! … 🚲", "no_terms", "The question holds no word that could be searched."),
    ],
)
def test_a_question_without_a_known_word_gets_no_hit_and_the_guard_says_why(
    question: str, reason: str, detail: str
) -> None:
    """BR-39: unknown words, stop words alone, one letter, one digit, signs; in both languages."""
    sources = [make_source("Bikes are red."), make_source("বাইক লাল।", doc_id="rule-v1-bn", lang="bn")]
    with open_desk(sources=sources) as desk:
        hits = desk.search(question)
        assert (len(hits), hits.reason) == (0, reason)
        answer = desk.ask(question)
        assert (answer.reason, answer.detail, answer.hits.reason) == ("no_result", detail, reason)
    assert evidencedesk.BM25.over({"d": "Bikes are red."}).search(question) == []
