"""Kind F: files, front matter, Markdown, chunks and their lines, through a whole ingest. What no other test proves whole."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from builders import found, open_desk, value_or_error
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evidencedesk import parse_document
from evidencedesk.chunking import chunk_document
from evidencedesk.cli import app
from evidencedesk.documents import decode
from evidencedesk.errors import EncodingError, FrontMatterError
from evidencedesk.text import tokens

# ---------------------------------------------------------------- BR-56, 57, 63, 65, 68, 70: any Markdown

# Each fragment plants the word WORD; `where` says where it has to be found.
FRAGMENTS: dict[str, tuple[str, str]] = {
    "a paragraph": ("A sentence with WORD in it.", "text"),
    "two lines": ("One line and\nanother with WORD.", "text"),
    "a heading": ("## Part WORD\n\nunder it", "heading"),
    "an underlined heading": ("Part WORD\n----\nunder it", "heading"),
    "a number sign underlined": ("#1 Goals WORD\n====\nunder it", "heading"),
    "no heading": ("#WORD is a hashtag.", "text"),
    "a rule": ("before\n\n---\n\nWORD after the rule", "text"),
    "a statement over a rule": ("Refunds take 5 days, says WORD.\n---", "text"),
    "a fence": ("```sh\n# WORD is no heading\nls\n```", "text"),
    "a fence in a fence": ("````\n```\n# WORD\n```\n````", "text"),
    "a tilde fence": ("~~~\n# WORD\n\n---\n~~~", "text"),
    "indented code": ("    # WORD\n\n    ls", "text"),
    "a fence in a list": ("- item\n\n  ```\n  # WORD\n  ```\n- next", "text"),
    "a table": ("| Model | Price |\n|---|--:|\n| WORD | 5,120 |\n| b | 7,345 |", "text"),
    "a long table": ("| M | P |\n|---|--:|\n" + "\n".join(f"| row {n} | {n},120 |" for n in range(40)) + "\n| WORD | 1 |", "text"),
    "a quotation": ("> # WORD\n> quoted", "text"),
    "a comment": ("<!-- WORD\n\n# hidden -->", "nowhere"),
    "a false line end": ("form\ffeed, next\x85line, u\u2028l and WORD.", "text"),
    "a carriage return": ("one\rtwo WORD.", "text"),
    "a long line": ("word " * 300 + "WORD.", "text"),
    "no space": ("x" * 900 + " WORD", "text"),
    "Bangla": ("বাইক ৩০ দিনের মধ্যে ফেরত। WORD", "text"),
}  # fmt: skip
FRONTS = ["", "---\ntitle: T\n---\n", "---\ntitle: T\nlang: en\n---\n\n\n", "---\n" + "# remark\n" * 9 + "---\n"]
documents = st.tuples(
    st.sampled_from(FRONTS), st.lists(st.sampled_from(sorted(FRAGMENTS)), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n"]),
)  # fmt: skip


@settings(max_examples=150)
@given(documents, st.sampled_from([60, 300, 800]))
@example(("", sorted(FRAGMENTS), "\n", ""), 800)
@example((FRONTS[3], sorted(FRAGMENTS, reverse=True), "\r\n", ""), 60)
def test_no_text_of_any_markdown_is_lost_doubled_or_cited_to_other_lines(
    drawn: tuple[str, list[str], str, str], limit: int
) -> None:
    """BR-56, BR-57, BR-63, BR-65, BR-68, BR-70: planted words stand once, where they belong, in the lines of the file."""
    front, names, line_end, last = drawn
    words = [f"plant{chr(ord('a') + n)}{chr(ord('a') + n)}" for n in range(len(names))]
    parts = [FRAGMENTS[name][0].replace("WORD", word) for name, word in zip(names, words, strict=True)]
    source = (front + "# T\n\n" + "\n\n".join(parts) + "\n\nThe last sentence." + last).replace("\n", line_end)
    passages = chunk_document(parse_document(source, "any.md"), limit)
    lines = re.split(r"\r?\n", source)  # what `sed -n` calls a line
    texts = [passage.text for passage in passages]
    headings = {passage.heading for passage in passages}
    for passage in passages:
        cited = "\n".join(lines[passage.line_start - 1 : passage.line_end])
        assert passage.text.replace("\r\n", "\n") in cited
        assert len(passage.text) <= limit or "|" in passage.text or len(passage.text.split()) == 1
    for name, word in zip(names, words, strict=True):
        where = FRAGMENTS[name][1]
        assert sum(text.count(word) for text in texts) == (where == "text"), (name, where)
        assert any(word in heading for heading in headings) == (where == "heading"), (name, where)
        if "table" in name:
            assert sum("5,120" in text for text in texts) >= 1, "a number is never cut"


# ---------------------------------------------------------------- BR-59: how the bytes begin


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "\n", " ", "\n\n", "\u200b", "<!-- made by a tool -->\n"])
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: text.encode(),
        lambda text: codecs.BOM_UTF8 + text.encode(),
        lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le"),
        lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be"),
        lambda text: text.encode("utf-16-le"),
        lambda text: codecs.BOM_UTF32_LE + text.encode("utf-32-le"),
    ],
    ids=["utf-8", "utf-8 with mark", "utf-16-le", "utf-16-be", "utf-16 without mark", "utf-32"],
)
def test_metadata_is_read_or_the_file_is_refused_however_it_was_saved(
    tmp_path: Path, encode: Callable[[str], bytes], before: str, line_end: str
) -> None:
    """BR-59: marks, line ends, blank lines and other encodings; never a document that lost its doc_id in silence."""
    text = f"{before}---\ndoc_id: rule-v2\ntitle: ক\nlang: en\n---\nBikes are red.\n".replace("\n", line_end)
    (tmp_path / "saved.md").write_bytes(encode(text))
    with open_desk() as desk:
        report = desk.ingest(tmp_path)
        if report.added:
            assert report.added == ("rule-v2",)
            assert desk.document("rule-v2").title == "ক"
            assert before == ""
        else:
            (failed,) = report.failed
            assert failed.path == "saved.md"
            assert failed.line is not None


# ---------------------------------------------------------------- BR-60: any title

SIGNS = [
    ":",
    ": ",
    "#",
    " #",
    " # ",
    "'",
    '"',
    "[",
    "]",
    "{",
    "}",
    " - ",
    "|",
    ">",
    "@",
    "!",
    "%",
    "&",
    "*",
    ",",
    "\\",
    "12",
    "ক",
]
titles = (st.lists(st.sampled_from(SIGNS), min_size=1, max_size=6).map("".join) | st.text(max_size=30)).map(
    "Re{}".format
)


@settings(max_examples=200)
@given(titles)
@example("Re: booking")
@example("Refunds, rule #12")
@example("key: value: more")
def test_a_title_is_read_as_it_was_written_or_the_file_and_line_are_named(title: str) -> None:
    """BR-60: whatever sign stands in a value, neither the block nor a part of the value vanishes; `# ` is a comment."""
    source = f"---\ndoc_id: rule-v2\ntitle: {title}\nlang: en\n---\nText.\n"
    document, error = value_or_error(lambda: parse_document(source, "rule.md"), (FrontMatterError, EncodingError))
    if document is None:
        assert str(error).startswith("rule.md, line ")
        return
    assert document.doc_id == "rule-v2"
    assert document.title == " ".join(re.sub(r"\s#(#|\s|\Z).*", "", title).split())


@pytest.mark.parametrize(
    "title",
    [
        "[draft] x",
        "{x} y",
        "#12",
        "@home",
        "`x`",
        "%x",
        "!x y",
        "*x",
        "- x: y",
        "'x",
        '"x',
        "> x",
        "| x",
        "? x",
        ": x",
        "a:",
        "\tx",
    ],
)
def test_a_value_that_begins_with_a_sign_of_yaml_is_an_error_that_says_to_quote_it(title: str) -> None:
    """BR-60: each of the signs that YAML keeps for itself, at the beginning; in quotes each is a title."""
    block = "---\ndoc_id: rule-v2\ntitle: {}\nlang: en\n---\nText.\n"
    with pytest.raises(FrontMatterError, match="^rule.md, line [345]: "):
        parse_document(block.format(title), "rule.md")
    quoted = "'" + title.replace("'", "''") + "'"
    assert parse_document(block.format(quoted), "rule.md").title == title.strip()


@pytest.mark.parametrize("line", ["lang: bn # a remark", "lang: bn  ## remark", "lang: bn #", "# lang: en\nlang: bn"])
def test_a_remark_in_the_metadata_is_no_part_of_a_value(line: str) -> None:
    """BR-60: a comment of YAML's, with white space on both sides of its sign, as docs/inputs.md says."""
    assert parse_document(f"---\ndoc_id: rule-v2\n{line}\n---\nText.\n", "rule.md").lang == "bn"


# ---------------------------------------------------------------- BR-62: dates and look-alikes

VALUES = [
    "2024-01-15", "'2024-01-15'", "2024-01-15T10:00:00Z", "2024-01-15 10:00:00", "2024-13-45", "15/01/2024", "2024",
    "২০২৪-০১-১৫", "yes", "null", "1e3", "0123", ".nan", ".inf", "1_000", "0x1F", "12:30:45", "2024-02-30",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", ["effective_from", "effective_to", "reviewed"])
def test_a_date_or_what_looks_like_one_is_stored_and_printed_as_json_or_named(
    tmp_path: Path, key: str, value: str
) -> None:
    """BR-62: as the product's own date or as the author's own key; then `show --json`, and a search as of a day."""
    folder, db = tmp_path / "texts", tmp_path / "desk.db"
    folder.mkdir()
    (folder / "rule.md").write_text(
        f"---\ndoc_id: rule-v1\nlang: en\n{key}: {value}\n---\nBikes are red.\n", encoding="utf-8"
    )
    with open_desk(db) as desk:
        report = desk.ingest(folder)
    if report.failed:
        (failed,) = report.failed
        assert (failed.path, failed.line, key in failed.error) == ("rule.md", 4, True)
        return
    result = CliRunner().invoke(app, ["show", "rule-v1", "--json", "--db", str(db)])
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    if key == "reviewed":
        assert shown["metadata"].get("reviewed") == {"null": None, "'2024-01-15'": "2024-01-15"}.get(value, value)
    elif value != "null":
        instant = shown["valid_from" if key == "effective_from" else "valid_to"]
        assert instant.startswith("2024-01-15T")


@settings(max_examples=10)
@given(st.lists(st.dates(date(1, 1, 3), date(9998, 12, 30)), min_size=2, max_size=3, unique=True))
@example([date(999, 12, 31), date(1000, 1, 1)])
@example([date(2024, 9, 30), date(2024, 10, 1)])
def test_any_dates_order_versions_as_dates(days: list[date]) -> None:
    """BR-62: from the first year to the last; on each day the version of that day is found, in whatever order they came."""
    versions = [
        parse_document(
            f"---\ndoc_id: rule-v{n}\nlang: en\neffective_from: {day.isoformat()}\n---\nBikes are red.\n", f"{n}.md"
        )
        for n, day in enumerate(sorted(days), 1)
    ]
    for sources in itertools.islice(itertools.permutations(versions), 3):
        with open_desk(sources=sources) as desk:
            for n, day in enumerate(sorted(days), 1):
                assert found(desk, "bikes", as_of=day) == [f"rule-v{n}:c0"]


# ---------------------------------------------------------------- BR-66: any bytes


@settings(max_examples=100)
@given(
    st.binary(max_size=60)
    | st.builds(lambda a, b: b"Bikes are red. " + a + b"\nmore " + b, st.binary(max_size=3), st.binary(max_size=3))
)
@example(b"price \x80 100")
@example("x".encode("utf-16"))
def test_any_bytes_are_read_exactly_or_refused_with_their_place(data: bytes) -> None:
    """BR-66: nothing is guessed or dropped: what is read, written as UTF-8, is what was there."""
    text, error = value_or_error(lambda: decode(data, "any.md"), EncodingError)
    if text is None:
        assert isinstance(error, EncodingError)
        assert 0 <= error.byte_offset < len(data)
        is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        assert is_utf16 or error.line == data[: error.byte_offset].count(b"\n") + 1
        return
    assert text.encode() == data.removeprefix(codecs.BOM_UTF8)
    assert "\0" not in text


# ---------------------------------------------------------------- BR-70: a table, end to end


@pytest.mark.parametrize("rows", [3, 60])
@pytest.mark.parametrize("over", ["", "All prices in taka.\n", "All prices in taka.\n\n"])
def test_every_number_of_a_table_is_found_and_cited_to_its_own_line(tmp_path: Path, rows: int, over: str) -> None:
    """BR-70: two header rows, a caption, a row beyond the limit; glued to a heading; each row can be quoted."""
    table = [f"| Rider {n} | {n + 1},{120 + n} |" for n in range(rows)]
    table[rows // 2] += " wide " * 80 + "|"
    source = f"## Prices\n{over}| Model | Price |\n|---|--:|\n| (all) | (taka) |\n" + "\n".join(table) + "\n"
    (tmp_path / "prices.md").write_text(source, encoding="utf-8")
    lines = source.split("\n")
    with open_desk(chunk_chars=300) as desk:
        assert desk.ingest(tmp_path).added == ("prices-v1",)
        for n in range(rows):
            hit = desk.search(f"{n + 1},{120 + n}")[0]
            place = hit.chunk.location
            assert f"| {n + 1},{120 + n} |" in "\n".join(lines[place.line_start - 1 : place.line_end])
            assert "Model | Price" in hit.chunk.indexed_text
            assert tokens(f"{n + 1},{120 + n}")[0] in tokens(hit.chunk.text)
