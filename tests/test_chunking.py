"""Passages: where a document is cut, that their lines hold their text, and the plain windows of the study."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evidencedesk.chunking import (
    DEFAULT_CHUNK_CHARS,
    OverlapRow,
    chunk_corpus,
    chunk_document,
    chunk_fixed,
    chunk_sentences,
    holds,
    overlap_study,
)
from evidencedesk.documents import load_documents, parse_document
from evidencedesk.errors import SourceError
from evidencedesk.records import Chunk, Location, Passage, SourceDocument
from evidencedesk.text import Span, line_spans, sentences

CORPUS = Path(__file__).resolve().parent.parent / "corpus"


def make_document(body: str, *, title: str = "T", path: str = "policy.md", **front: str) -> SourceDocument:
    fields = "".join(f"{key}: {value}\n" for key, value in {"title": title, "lang": "en", **front}.items())
    return parse_document(f"---\n{fields}---\n{body}", path)


def texts(body: str, max_chars: int = DEFAULT_CHUNK_CHARS) -> list[str]:
    return [passage.text for passage in chunk_document(make_document(body), max_chars)]


def assert_proved(document: SourceDocument, passages: tuple[Passage, ...]) -> None:
    """Lines first..last, counted as any other program counts them, hold the text and are not too many."""
    lines = document.source.split("\n")
    for passage in passages:
        assert passage.text in "\n".join(lines[passage.line_start - 1 : passage.line_end])
        assert passage.text.count("\n") == passage.line_end - passage.line_start
        assert holds(document.source, passage.line_start, passage.line_end, passage.text)


# ---------------------------------------------------------------- sections


def test_a_section_is_a_passage_with_its_title_and_heading_path_in_front() -> None:
    """What is indexed is title, heading path and text; what is quoted is the text."""
    body = "# T\n\nLead.\n\n## Part\n\n### Small\nOne.\n\n  Two.\n\n***\n"
    assert chunk_document(make_document(body)) == (
        Passage(0, "", 7, 7, "T", "Lead."),
        Passage(1, "Part > Small", 12, 14, "T\nPart > Small", "One.\n\n  Two."),
    )


def test_the_corpus_gives_36_chunks_with_36_indexed_texts() -> None:
    """The shipped corpus is one chunk a section, and the lesson's citations point where they did."""
    documents = load_documents(CORPUS)
    chunks = {chunk.id: chunk for chunk in chunk_corpus(documents)}
    assert len(chunks) == len({chunk.indexed_text for chunk in chunks.values()}) == 36
    assert chunks["kc-returns-v3:c0"] == Chunk(
        id="kc-returns-v3:c0",
        doc_id="kc-returns-v3",
        version="v3",
        lang="en",
        status="current",
        text="You can return a new, unridden bike within 30 days of delivery.\n"
        "Bring it to our Agrabad store with the invoice; a full refund follows after a short check.",
        indexed_text="Returns policy\nReturning a bike\n"
        "You can return a new, unridden bike within 30 days of delivery.\n"
        "Bring it to our Agrabad store with the invoice; a full refund follows after a short check.",
        location=Location("kc-returns-v3.md", "Returning a bike", 11, 12),
        family="kc-returns",
    )
    assert chunks["kc-returns-v3:c2"].location == Location("kc-returns-v3.md", "How refunds are paid", 18, 18)
    assert chunks["kc-returns-v3-bn:c0"].location == Location("kc-returns-v3-bn.md", "বাইক ফেরত", 11, 12)
    assert chunks["kc-returns-v2:c0"].status == "superseded"


def test_repeated_text_gives_a_chunk_for_each_place() -> None:
    """BR-88: the same paragraph five times, and documents whose ids differ only in case or a slash, all stay."""
    repeated = make_document("## Part\n\nSame text.\n\n" * 5, doc_id="a-v1")
    assert [(p.ordinal, p.text, p.line_start) for p in chunk_document(repeated)] == [
        (n, "Same text.", 8 + 4 * n) for n in range(5)
    ]
    alike = [make_document("Same text.", doc_id=doc_id) for doc_id in ("a", "A", "a/")]
    ids = [chunk.id for chunk in chunk_corpus([repeated, *alike])]
    assert ids == [*(f"a-v1:c{n}" for n in range(5)), "a-v1:c0", "A-v1:c0", "a/-v1:c0"]


def test_equal_documents_have_equal_texts_under_their_own_ids() -> None:
    """BR-80: nothing of a chunk but its place depends on which of two equal files it came from."""
    x, y = chunk_corpus([make_document("Same.", path="x.md"), make_document("Same.", path="y.md")])
    assert (x.id, y.id) == ("x-v1:c0", "y-v1:c0")
    assert (x.indexed_text, x.location.line_start) == (y.indexed_text, y.location.line_start)


def test_cutting_is_a_function_of_the_document_and_the_limit() -> None:
    """The same document gives the same passages again."""
    document = make_document("One two three. " * 300)
    assert chunk_document(document, 90) == chunk_document(document, 90)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "9", True, None])
def test_the_limit_is_a_whole_number_of_at_least_one(limit: object) -> None:
    """A limit that no text could meet is refused before any work."""
    with pytest.raises(ValueError, match="max_chars"):
        chunk_document(make_document("x"), limit)  # type: ignore[arg-type]


# ---------------------------------------------------------------- where a long section is cut


def test_a_long_section_is_cut_between_blocks_first() -> None:
    """Paragraphs and list entries stay whole as long as each of them fits."""
    assert texts("aaaa. bbbb.\n\ncccc. dddd.\n\n- eeee\n- ffff\n- gggg\n", 26) == [
        "aaaa. bbbb.\n\ncccc. dddd.",
        "- eeee\n- ffff\n- gggg",
    ]


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    """The danda ends a sentence as the full stop does, and a decimal point ends none."""
    assert texts("One costs 5.20 taka. Two is free. Three is not.", 34) == [
        "One costs 5.20 taka. Two is free.",
        "Three is not.",
    ]
    assert texts("প্রথম বাক্য। দ্বিতীয় বাক্য। তৃতীয় বাক্য।", 28) == ["প্রথম বাক্য। দ্বিতীয় বাক্য।", "তৃতীয় বাক্য।"]


def test_a_long_sentence_is_cut_at_line_ends_then_at_white_space() -> None:
    """A space that holds a number together is not a place to cut."""
    assert texts("one two three four\nfive six seven eight", 22) == ["one two three four", "five six seven eight"]
    assert texts("one two three four five six seven eight", 15) == ["one two three", "four five six", "seven eight"]
    assert texts("about 12\u00a0000 taka each year", 10) == ["about", "12\u00a0000", "taka each", "year"]


def test_a_word_that_is_too_long_is_not_cut_inside_a_number() -> None:
    """BR-70, BR-68: half a number would be another number."""
    assert texts('{"a":1,"price":5120,"b":2,"price":7345,"c":3}', 18) == [
        '{"a":1,"price":',
        '5120,"b":2,"price"',
        ':7345,"c":3}',
    ]


def test_no_small_rest_is_left_alone() -> None:
    """Where the last piece would hold next to nothing, the border before it moves back."""
    words = "a word here. " * 24
    pieces = texts(words, 100)
    assert min(map(len, pieces)) >= 15
    assert [len(piece) for piece in texts("x" * 1005, 1000)] == [503, 502]
    assert [len(piece) for piece in texts("x" * 1000, 1000)] == [1000]


def test_a_fence_is_cut_only_when_it_alone_is_too_long() -> None:
    """BR-56: a fence that fits stays whole, one that does not is cut at its line ends, indents kept."""
    fence = "```sh\n# remark\n    ls -l\n```"
    assert texts(f"A sentence before it.\n\n{fence}\n\nAnd one after it.", 40) == [
        "A sentence before it.",
        fence,
        "And one after it.",
    ]
    assert texts(fence, 20) == ["```sh\n# remark", "    ls -l\n```"]
    assert texts(f"- one\n- two\n\n  {fence[:5]}\n  # a. b. c.\n  ```\n- three", 28) == [
        "- one\n- two",
        "  ```sh\n  # a. b. c.\n  ```",
        "- three",
    ]


# ---------------------------------------------------------------- tables


def table(rows: int, *, wide: int | None = None) -> str:
    lines = ["| Model | Price |", "|---|--:|"]
    lines += [f"| Rider {n} | {n},120 |" + (" long cell" * 20 + " |" if n == wide else "") for n in range(rows)]
    return "\n".join(lines)


def test_a_table_is_cut_between_rows_and_its_header_is_repeated_in_the_preamble() -> None:
    """BR-70: each piece is read with the header, while text and lines stay those of the file."""
    document = make_document(f"## Prices\nAll in taka.\n{table(60)}\n")
    passages = chunk_document(document, 300)
    assert_proved(document, passages)
    header = "| Model | Price |\n|---|--:|"
    assert passages[0].preamble == "T\nPrices"
    assert passages[0].text.startswith(f"All in taka.\n{header}\n| Rider 0 | 0,120 |\n")
    assert {passage.preamble for passage in passages[1:]} == {f"T\nPrices\n{header}"}
    assert all(len(passage.text) <= 300 for passage in passages)
    rows = [line for passage in passages for line in passage.text.split("\n")]
    assert rows == f"All in taka.\n{table(60)}".split("\n")


def test_a_row_beyond_the_limit_stays_whole() -> None:
    """BR-70: a wide row is a passage of its own, numbers and all."""
    pieces = texts(table(5, wide=3), 60)
    assert [piece for piece in pieces if len(piece) > 60] == [table(5, wide=3).split("\n")[5]]
    first = texts(table(2, wide=0), 60)
    assert first == ["\n".join(table(2, wide=0).split("\n")[:3]), "| Rider 1 | 1,120 |"]


def test_a_table_that_fits_is_not_cut_and_a_second_header_row_is_a_row() -> None:
    """BR-70: only what is too long is cut; GFM knows one header row."""
    small = "| a | b |\n|---|---|\n| x | y |\n| 1 | 2 |"
    assert texts(f"A sentence in front of it.\n\n{small}", 45) == ["A sentence in front of it.", small]


def test_a_header_that_is_itself_too_long_is_not_repeated() -> None:
    """A huge header in front of each piece would make a small file a huge index."""
    wide = "| " + "x" * 500 + " |\n|---|\n" + "| 1 |\n" * 30
    document = make_document(wide)
    passages = chunk_document(document, 100)
    assert passages[0].text == "\n".join(wide.split("\n")[:3])
    assert {passage.preamble for passage in passages} == {"T"}


def test_a_table_in_a_list_repeats_its_own_header() -> None:
    """BR-70: the header is found however deep the table stands."""
    indented = "\n".join(f"  {line}" for line in table(12).split("\n"))
    passages = chunk_document(make_document(f"- Prices:\n\n{indented}\n- more\n"), 100)
    assert passages[1].preamble == "T\n  | Model | Price |\n  |---|--:|"


# ---------------------------------------------------------------- lines


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "front", ["", "---\n---\n", "---\ntitle: x\nlang: en\n---\n\n\n", "---\n" + "# r\n" * 9 + "---\n"]
)
def test_lines_are_those_of_the_file(front: str, line_end: str) -> None:
    """BR-63: with metadata of 0, 2 and 9 lines, LF or CRLF, every passage stands in the lines it names."""
    body = "# T\n\nOne. Two.\nThree.\n\n## Part\n\n- a\n- b\n\n```\ncode\n```\nlast line without an end"
    document = parse_document((front + body).replace("\n", line_end), "policy.md")
    for limit in (5, 12, 1000):
        assert_proved(document, chunk_document(document, limit))
    last = chunk_document(document)[-1]
    assert last.line_end == len((front + body).split("\n"))
    assert last.text.endswith("```" + line_end + "last line without an end")


def test_lines_are_right_deep_in_a_long_document() -> None:
    """BR-65: 5,000 lines with every character that only looks like a line end; no anchor drifts."""
    odd = [
        "plain line {}.",
        "form\ffeed {}.",
        "u2028 \u2028 {}.",
        "nel \x85 {}.",
        "vt \v {}.",
        "cr \r {}.",
        "long {} " + "x " * 500,
    ]
    source = "".join(odd[n % 7].format(n) + ("\n\n" if n % 5 == 0 else "\r\n" if n % 3 else "\n") for n in range(5000))
    document = parse_document(source, "long.txt")
    passages = chunk_document(document)
    assert len(passages) > 500
    assert_proved(document, passages)
    line_of = {
        re.search(r"\d+(?=[. ]|$)", line.replace("u2028", ""))[0]: n
        for n, line in enumerate(source.split("\n"), 1)
        if line.strip()
    }
    for passage in passages[:: len(passages) // 50]:
        for number in re.findall(r"(?:line|feed|\u2028|\x85|\v|\r|long) (\d+)", passage.text):
            assert passage.line_start <= line_of[number] <= passage.line_end


@pytest.mark.parametrize(
    ("line_start", "line_end", "text", "proved"),
    [
        (1, 1, "one", True),
        (2, 3, "two\r\nthree", True),
        (2, 3, "wo\r\nth", True),
        (1, 2, "two", False),
        (2, 3, "two", False),
        (2, 3, "two\nthree", False),
        (3, 3, "three", True),
        (3, 4, "three\n", False),
        (0, 1, "one", False),
        (4, 4, "one", False),
        (2, 1, "one", False),
        (1, 1, "", False),
    ],
)
def test_lines_hold_a_text_that_begins_in_the_first_and_ends_in_the_last(
    line_start: int, line_end: int, text: str, proved: bool
) -> None:
    """Neither too few lines nor too many prove a text, and lines that are not there prove nothing."""
    assert holds("one\ntwo\r\nthree", line_start, line_end, text) is proved


# ---------------------------------------------------------------- texts that hang other chunkers


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("x" * 200_000, id="no space"),
        pytest.param(" " + "x" * 200_000, id="a leading space"),
        pytest.param("ক্ষমতাবান" * 20_000, id="Bangla without spaces"),
        pytest.param('{"key":"value",' * 140_000, id="a single line of 2 MB"),
        pytest.param("1" * 200_000, id="one number"),
        pytest.param("x" + " " * 200_000 + "y", id="spaces"),
        pytest.param("<!--" * 50_000, id="unclosed comments"),
        pytest.param("[" * 200_000, id="brackets"),
        pytest.param("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 5000, id="rows"),
    ],
)
def test_one_very_long_token_or_line_ends_within_the_limit(body: str) -> None:
    """BR-68: every passage is within the limit, none cuts a letter, and its lines are that line."""
    document = make_document(body)
    passages = chunk_document(document)
    assert_proved(document, passages)
    assert all(len(passage.text) <= DEFAULT_CHUNK_CHARS for passage in passages)
    assert "".join("".join(passage.text.split()) for passage in passages) == "".join(body.split())
    assert not any(unicodedata.category(passage.text[0]).startswith("M") for passage in passages)


@pytest.mark.parametrize(
    "letter", ["ক্ষ্ম", "র\u200d্যা", "e\u0301\u0323", "👨\u200d👩\u200d👧", "👍🏽", "नि", "กำ", "🇧🇩", "\u1112\u1161\u11ab"]
)
def test_a_letter_stays_with_its_marks(letter: str) -> None:
    """BR-68: conjuncts, joiners, vowel signs and signs of several characters are cut as one or not at all."""
    for limit in range(1, 12):
        whole = [
            piece
            for piece in texts(letter + "." + letter, limit)
            if piece not in (".", letter, f"{letter}.", f".{letter}")
        ]
        assert whole in ([], [f"{letter}.{letter}"])


# ---------------------------------------------------------------- laws

SNIPPETS = [
    "Fact one is 5,120. Fact two!", "ক্ষমতা। দ্বিতীয় বাক্য", "word " * 12, "x" * 40, "# Head", "## Part", "---", "***",
    "```", "~~~", "    code", "- entry", "  - deeper entry", "> quoted. And more.", "| a | b |", "|---|---|", "| 1,234 | cell text |",
    "<!-- comment -->", "a\fb\u2028c\x85d\ve\rf", "e\u0301" * 9, "ক্ক" * 9, "👨\u200d👩\u200d👧" * 3, "\u0301\u0301", "12 000", "\u00a0",
]  # fmt: skip
DOCUMENTS = st.lists(
    st.tuples(st.sampled_from(SNIPPETS), st.sampled_from(["\n", "\r\n", "\n\n", "\r\n\r\n"])).map("".join),
    min_size=1,
    max_size=25,
).map("".join)
LIMITS = st.one_of(st.integers(1, 30), st.integers(31, 400))


def parsed(source: str) -> SourceDocument | None:
    try:
        return parse_document(source, "policy.md")
    except SourceError:
        return None


@settings(max_examples=300, deadline=None)
@given(st.one_of(DOCUMENTS, st.text()), LIMITS)
def test_lines_always_hold_the_text(source: str, limit: int) -> None:
    """Whatever a file holds and whatever the limit, a passage stands in the lines that it names, in order."""
    if document := parsed(source):
        passages = chunk_document(document, limit)
        assert_proved(document, passages)
        assert [passage.ordinal for passage in passages] == list(range(len(passages)))
        for before, after in pairwise(passages):
            assert before.line_end <= after.line_start


@settings(max_examples=300, deadline=None)
@given(st.one_of(DOCUMENTS, st.text()), LIMITS)
@example("a " * 20 + "\u0301b", 7)
def test_every_character_of_a_block_stands_in_one_passage(source: str, limit: int) -> None:
    """Cutting loses nothing but white space and repeats nothing."""
    if document := parsed(source):
        source, lines, end = document.source, line_spans(document.source), 0
        taken: set[int] = set()
        for passage in chunk_document(document, limit):
            start = source.index(passage.text, max(end, lines[passage.line_start - 1][0]))
            end = start + len(passage.text)
            assert lines[passage.line_start - 1][0] <= start < end <= lines[passage.line_end - 1][1]
            assert passage.text.strip()
            taken.update(range(start, end))
        for section in document.sections:
            for block in section.blocks:
                span = range(lines[block.line_start - 1][0], lines[block.line_end - 1][1])
                assert [source[n] for n in span if n not in taken and not source[n].isspace()] == []


def is_one_letter(text: str) -> bool:
    """No place between two of its characters is a place to cut: marks, joiners, and what a hasanta binds."""
    return all(
        unicodedata.category(after)[0] == "M" or "\u200d" in (before, after) or before == "\u09cd"
        for before, after in pairwise(text)
    )


@settings(max_examples=300, deadline=None)
@given(DOCUMENTS, LIMITS)
def test_only_a_table_row_or_a_letter_exceeds_the_limit(source: str, limit: int) -> None:
    """The limit holds for every text but a single row (the first with its header) and a single letter."""
    if document := parsed(source):
        tables = [block for section in document.sections for block in section.blocks if block.kind == "table"]
        for passage in chunk_document(document, limit):
            if len(passage.text) > limit and not is_one_letter(passage.text):
                block = next(b for b in tables if b.line_start <= passage.line_start <= b.line_end)
                first_row = block.line_start + block.header_lines
                assert passage.line_start == passage.line_end or (
                    passage.line_start == block.line_start and passage.line_end <= first_row
                )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["ক", "ক্ষ", "কি", "র\u200d্যা", "e\u0301", "a", "1", " ", "। "]), max_size=60), LIMITS)
def test_letters_are_never_parted_from_their_marks(letters: list[str], limit: int) -> None:
    """A passage neither begins with a mark or joiner nor ends with a hasanta that binds the next letter."""
    if document := parsed("".join(letters).replace("্ ", "্")):
        for passage in chunk_document(document, limit):
            assert unicodedata.category(passage.text[0])[0] != "M"
            assert passage.text[0] != "\u200d"
            assert passage.text[-1] not in "\u200d\u09cd"


# ---------------------------------------------------------------- windows


def test_windows_repeat_the_end_of_the_one_before() -> None:
    """The last one ends with the text, and none lies wholly inside the one before."""
    assert chunk_fixed("abcdefghij", 4, 0) == [Span(0, 4), Span(4, 8), Span(8, 10)]
    assert chunk_fixed("abcdefghij", 4, 2) == [Span(0, 4), Span(2, 6), Span(4, 8), Span(6, 10)]
    assert chunk_fixed("abc", 4, 3) == [Span(0, 3)]
    assert chunk_fixed("", 4, 3) == []


@given(st.integers(0, 60), st.integers(1, 20), st.integers(0, 19))
def test_windows_cover_the_text(length: int, size: int, overlap: int) -> None:
    """Each begins size - overlap after the one before and reaches further; together they are the text."""
    if overlap >= size:
        return
    windows = chunk_fixed("x" * length, size, overlap)
    assert (windows[0].start, windows[-1].end) == (0, length) if length else windows == []
    for before, after in pairwise(windows):
        assert after.start - before.start == size - overlap
        assert before.end - before.start == size
        assert before.end < after.end


@pytest.mark.parametrize(
    ("size", "overlap"), [(100, 100), (100, 150), (0, 0), (-1, 0), (5, -1), (1.0, 0), (5, "1"), (True, 0), (5, None)]
)
def test_a_window_that_would_not_advance_is_refused(size: int, overlap: int) -> None:
    """BR-67: sizes that cannot end are a ValueError before any work, whatever the text."""
    for text in ("", "x" * 5000):
        with pytest.raises(ValueError, match="whole number|smaller than size"):
            chunk_fixed(text, size, overlap)
    with pytest.raises(ValueError, match="whole number|smaller than size"):
        overlap_study([], size, (overlap,))


def test_a_window_that_advances_by_one_ends() -> None:
    """BR-67: 5 and 4 over 5,000 characters give 4,996 windows; 1 and 0 give 5,000."""
    assert len(chunk_fixed("x" * 5000, 5, 4)) == 4996
    assert len(chunk_fixed("x" * 5000, 1, 0)) == 5000


def test_windows_of_sentences() -> None:
    """From the start of the first sentence to the end of the last; the rest makes a shorter window."""
    text = "One is here. Two is here.\nবাক্য তিন।"
    assert [text[start:end] for start, end in chunk_sentences(text, 2)] == ["One is here. Two is here.", "বাক্য তিন।"]
    assert chunk_sentences(" ", 2) == []
    for n in (0, -1, 1.0, True, None):
        with pytest.raises(ValueError, match="n must be"):
            chunk_sentences(text, n)  # type: ignore[arg-type]


def test_the_overlap_study_counts_windows_repeated_text_and_whole_sentences() -> None:
    """By hand: 30 characters in one section, windows of 12; repeated text over the text's own length."""
    document = make_document("Aaaa bbbb. Cccc dddd. Eee fff.")
    assert len("Aaaa bbbb. Cccc dddd. Eee fff.") == 30
    assert overlap_study([document], 12, (0, 6)) == [
        # [0,12) [12,24) [24,30): only the first sentence, [0,10), is whole
        OverlapRow(overlap=0, chunks=3, repeated_share=0.0, whole_sentences=1, sentences=3),
        # [0,12) [6,18) [12,24) [18,30): and the last one, [22,30); 18 characters stand twice
        OverlapRow(overlap=6, chunks=4, repeated_share=0.6, whole_sentences=2, sentences=3),
    ]
    assert overlap_study([], 12, (0,)) == [OverlapRow(0, 0, 0.0, 0, 0)]


def test_the_overlap_study_of_the_corpus() -> None:
    """Without overlap the sentence about tyres is cut, with 40 characters of it there is a window that holds it."""
    documents = load_documents(CORPUS)
    rows = overlap_study(documents)
    assert [row.overlap for row in rows] == [0, 40, 80]
    assert {row.sentences for row in rows} == {76}
    assert [row.whole_sentences for row in rows] == sorted(row.whole_sentences for row in rows)
    assert rows[0].repeated_share == 0.0 < rows[1].repeated_share < rows[2].repeated_share
    tyres = "Inflate the tyres to the pressure printed on the tyre wall."
    section = next(chunk.text for chunk in chunk_corpus(documents) if tyres in chunk.text)
    for overlap, is_whole in ((0, False), (40, True)):
        windows = [section[start:end] for start, end in chunk_fixed(section, 120, overlap)]
        assert any(tyres in window for window in windows) is is_whole


@given(DOCUMENTS, st.integers(1, 50), st.integers(0, 49))
@settings(max_examples=100, deadline=None)
def test_a_sentence_is_whole_when_some_window_holds_it(source: str, size: int, overlap: int) -> None:
    """The study counts as a search through all windows would."""
    document = parsed(source)
    if document is None or overlap >= size:
        return
    lines = line_spans(document.source)
    found = 0
    for section in document.sections:
        text = document.source[lines[section.blocks[0].line_start - 1][0] : lines[section.blocks[-1].line_end - 1][1]]
        windows = chunk_fixed(text, size, overlap)
        found += sum(any(w.start <= s.start and s.end <= w.end for w in windows) for s in sentences(text))
    assert overlap_study([document], size, (overlap,))[0].whole_sentences == found
