"""What becomes of a source file: which files are read, their metadata, their headings and blocks."""

from __future__ import annotations

import codecs
import itertools
import json
import os
import re
import subprocess
import sys
import unicodedata
from datetime import UTC, datetime
from pathlib import Path

import pytest
from builders import ascii_place
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evidencedesk import documents
from evidencedesk.documents import (
    MAX_HEADING_CHARS,
    MAX_NAME_CHARS,
    decode,
    find_sources,
    load_documents,
    parse_document,
    read_document,
)
from evidencedesk.errors import EncodingError, FrontMatterError, NoContentError, SourceError
from evidencedesk.records import STATUSES, Block, Section, Skipped, SourceDocument
from evidencedesk.text import line_spans

YA_COMPOSED, YA_DECOMPOSED = "\u09df", "\u09af\u09bc"  # excluded from composition: NFC is the second


def with_front(*lines: str, body: str = "Text.\n") -> str:
    return "\n".join(["---", *lines, "---", body])


def parse(source: str, path: str = "policy.md") -> SourceDocument:
    return parse_document(source, path)


def outline(source: str) -> list[tuple[tuple[str, ...], str, str]]:
    """(heading path, kind, lines as text) of each block."""
    document = parse(source)
    lines = document.source.replace("\r\n", "\n").split("\n")
    return [
        (section.headings, block.kind, "\n".join(lines[block.line_start - 1 : block.line_end]))
        for section in document.sections
        for block in section.blocks
    ]


def refusal(source: str, path: str = "policy.md") -> FrontMatterError:
    with pytest.raises(FrontMatterError) as caught:
        parse(source, path)
    return caught.value


# ---------------------------------------------------------------- a whole document


def test_a_source_with_front_matter_becomes_this_record() -> None:
    """Known keys fill the record, all others are metadata, and lines count from the file's first one."""
    source = with_front(
        "doc_id: kc-returns-v3-bn",
        "title: রিটার্ন নীতি",
        "version: v3",
        "lang: BN",
        "status: current",
        "effective_from: 2025-03-01",
        "effective_to: 2026-03-01T06:00:00+06:00",
        "owner: desk",
        body="# রিটার্ন নীতি\n\n## বাইক ফেরত\n৩০ দিন।\n",
    )
    assert parse(source, "bn/returns.md") == SourceDocument(
        path="bn/returns.md",
        doc_id="kc-returns-v3-bn",
        family="kc-returns",
        version="v3",
        lang="bn",
        title="রিটার্ন নীতি",
        source=source,
        sections=(Section(("বাইক ফেরত",), (Block("text", 14, 14),)),),
        declared_status="current",
        effective_from=datetime(2025, 3, 1, tzinfo=UTC),
        effective_to=datetime(2026, 3, 1, tzinfo=UTC),
        metadata={"owner": "desk"},
    )


@pytest.mark.parametrize(
    ("path", "body", "doc_id", "version", "title"),
    [
        ("rules.md", "# The rules\n\nBe kind.\n", "rules-v1", "1", "The rules"),
        ("sub/rules-v2.1.MARKDOWN", "Be kind.\n", "sub/rules-v2.1", "2.1", "rules-v2.1"),
        ("notes.txt", "Plain text.\n", "notes-v1", "1", "notes"),
        ("report-12", "## First\n\nx\n", "report-12-v1", "1", "First"),
    ],
)
def test_without_front_matter_path_and_first_heading_name_the_document(
    path: str, body: str, doc_id: str, version: str, title: str
) -> None:
    """The doc_id is the path without its suffix, the language undetermined, the version the mark's or 1."""
    document = parse(body, path)
    assert (document.doc_id, document.version, document.title, document.lang) == (doc_id, version, title, "und")


@pytest.mark.parametrize(
    ("lines", "doc_id", "family", "version"),
    [
        (["doc_id: privacy", "version: v19", "lang: en"], "privacy-v19", "privacy", "v19"),
        (["doc_id: privacy", "version: v19", "lang: bn"], "privacy-v19-bn", "privacy", "v19"),
        (["doc_id: privacy-bn-v19", "lang: bn"], "privacy-bn-v19", "privacy", "19"),
        (["doc_id: privacy-v19", "family: legal/privacy"], "privacy-v19", "legal/privacy", "19"),
        (["doc_id: terms", "version: 1.10"], "terms-v1.10", "terms", "1.10"),
        (["doc_id: terms", "version: 2024-01"], "terms-v2024.01", "terms", "2024-01"),
        (["version: 7"], "policy-v7", "policy", "7"),
    ],
)
def test_a_doc_id_always_carries_its_version(lines: list[str], doc_id: str, family: str, version: str) -> None:
    """The mark is added where it lacks, taken as the version where none is given, and left out of the family."""
    document = parse(with_front(*lines))
    assert (document.doc_id, document.family, document.version) == (doc_id, family, version)


def test_a_mark_that_contradicts_the_version_is_an_error_at_its_line() -> None:
    """`kc-v2` cannot be version 3, whether the front matter or the path says so."""
    error = refusal(with_front("title: x", "doc_id: kc-v2", "version: v3"))
    assert (error.line, error.path) == (3, "policy.md")
    assert "make them agree" in str(error)
    assert refusal(with_front("title: x", "version: v3"), "kc-v2.md").line == 3


def test_the_title_is_the_first_heading_and_else_the_name_of_the_file() -> None:
    """Front matter without a title does not leave the document unnamed."""
    assert parse(with_front("lang: en", body="## *Bike* `care` &amp; [more](x)\n\nx")).title == "Bike care & more"
    assert parse(with_front("lang: en", body="No heading."), "a/b-v2.md").title == "b-v2"


# ---------------------------------------------------------------- bytes


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_a_byte_order_mark_does_not_hide_the_metadata(mark: bytes) -> None:
    """BR-59: UTF-8 with a byte-order mark and CRLF keeps its metadata, and the mark is no part of the text."""
    data = mark + "---\r\ndoc_id: a-v2\r\ntitle: ক\r\n---\r\nText.\r\n".encode()
    document = parse(decode(data, "policy.md"))
    assert (document.doc_id, document.title, document.source[:5]) == ("a-v2", "ক", "---\r\n")
    assert document.sections == (Section((), (Block("text", 5, 5),)),)


def test_text_with_a_byte_order_mark_can_be_parsed_without_decoding_it() -> None:
    """BR-59: a caller who read the file himself loses nothing either."""
    assert parse("\ufeff---\ndoc_id: a-v2\n---\nText.").doc_id == "a-v2"


@pytest.mark.parametrize(
    ("data", "byte_offset", "line", "says"),
    [
        (b"one\ntwo \x97 three", 8, 2, "0x97"),
        ("---\ntitle: x\n---\n".encode("utf-16"), 0, 1, "UTF-16"),
        ("---\ntitle: x\n---\n".encode("utf-16-be"), 0, 1, "NUL"),
        ("x".encode("utf-32"), 0, 1, "UTF-32"),
        (b"a\nb\0c", 3, 2, "NUL"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 0, 1, "0x89"),
        (b"a\xed\xa0\x80", 1, 1, "0xed"),
    ],
)
def test_other_bytes_are_refused_with_their_place(data: bytes, byte_offset: int, line: int, says: str) -> None:
    """BR-66: nothing is guessed and nothing dropped; the error says where to look."""
    with pytest.raises(EncodingError, match=says) as caught:
        decode(data, "policy.md")
    assert (caught.value.byte_offset, caught.value.line, caught.value.path) == (byte_offset, line, "policy.md")


@pytest.mark.parametrize("text", ["a\0b", "a\ud83db"])
def test_text_that_no_file_could_hold_is_refused_too(text: str) -> None:
    """NUL and half characters never reach a document by way of a string."""
    with pytest.raises(EncodingError) as caught:
        parse(text)
    assert caught.value.byte_offset == 1


def test_bad_files_stop_only_themselves(tmp_path: Path) -> None:
    """BR-66: of ten files, the four that are no UTF-8 text are named, and the six others are read."""
    for n in range(10):
        (tmp_path / f"{n}.md").write_text(f"Rule {n}: ক।\n", encoding="utf-8")
    (tmp_path / "3.md").write_bytes(b"Windows \x97 dash")
    (tmp_path / "4.md").write_bytes("Rule".encode("utf-16"))
    (tmp_path / "5.md").write_bytes(b"Rule\0")
    (tmp_path / "6.md").write_bytes(b"\x89PNG\r\n\x1a\n")
    read, failed = [], {}
    for path in find_sources(tmp_path)[0]:
        try:
            read.append(read_document(tmp_path, path).path)
        except EncodingError as error:
            failed[path] = error.byte_offset
    assert read == ["0.md", "1.md", "2.md", "7.md", "8.md", "9.md"]
    assert failed == {"3.md": 8, "4.md": 0, "5.md": 4, "6.md": 0}


@ascii_place
def test_reading_does_not_depend_on_the_locale(tmp_path: Path) -> None:
    """BR-66: a file is UTF-8 whatever the environment says."""
    (tmp_path / "a.md").write_text("# নীতি\n\nক।\n", encoding="utf-8")
    code = "import sys; from evidencedesk.documents import load_documents as l; print(ascii(l(sys.argv[1])[0].title))"
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    plain["PYTHONPATH"] = str(Path(documents.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", code, tmp_path], env=plain, capture_output=True, check=True)
    assert done.stdout.decode().strip() == ascii("নীতি")


# ---------------------------------------------------------------- front matter


def test_an_empty_block_is_metadata_with_nothing_in_it() -> None:
    """Two fences with nothing or only remarks between them are no mistake."""
    for lines in ([], ["# later"], [""]):
        assert parse(with_front(*lines)).doc_id == "policy-v1"


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        ("\n---\ntitle: x\n---\nText.", 2, "nothing may stand before"),
        (" ---\ntitle: x\n---\nText.", 1, "nothing may stand before"),
        ("\r\n\r\n---\r\ntitle: x\r\n---\r\nText.", 3, "nothing may stand before"),
        ("---\ntitle: x\n\nText.", 1, "no --- closes"),
        ("---\ntitle: x\n...\nText.\n", 1, "no --- closes"),
        ("---\n- a\n- b\n---\nText.", 2, "no `key: value`"),
        ("---\nJust a sentence.\n---\nText.", 2, "no `key: value`"),
        ("---\rtitle: x\r---\rText.", 1, "lone carriage return"),
    ],
)
def test_metadata_that_was_meant_is_never_taken_for_text(source: str, line: int, says: str) -> None:
    """BR-59: a block that cannot be read is an error with its line, never silently "no metadata"."""
    error = refusal(source)
    assert says in str(error)
    assert error.line == line


@pytest.mark.parametrize("source", ["---\n\nText.\n", "---\nText\nand more.\n", "\n---\nText\n", "---\n\nkey: value\n"])
def test_a_lone_rule_at_the_top_is_a_rule(source: str) -> None:
    """A `---` that nothing closes and no `key:` line follows at once belongs to a plain document."""
    assert parse(source).doc_id == "policy-v1"


@pytest.mark.parametrize(
    ("lines", "line", "says"),
    [
        (["lang: en", "title: Re: booking"], 3, "in quotes"),
        (["key: value: more"], 2, "in quotes"),
        (["title: [draft] x"], 2, "in quotes"),
        (["title: [draft]"], 2, "a list or a mapping"),
        (["title:", "  sub: x"], 2, "a list or a mapping"),
        (["title: x", "\tlang: en"], 3, "in quotes"),
        (["title:\tx"], 2, "'\\t' that cannot start"),
        (["lang: en", "title: x", "lang: bn"], 4, "stands twice"),
        (["owner:", "  name: x", "  name: y"], 4, "stands twice"),
        (["title: 'x"], 3, "in quotes"),
        (["? [a]", ": b"], 2, "a key must be a word"),
        (["owner: !!python/object:os.system x"], 2, "tag"),
        (["owner: *nobody"], 2, "nobody"),
        (['owner: "a\\0b"'], 2, "control character"),
        (['owner: "\\ud83d"'], 2, "control character"),
        (['owner: "\\UFFFFFFFF"'], 1, "bad escape"),
        (["lang: en", "title: a\fb"], 3, "U+000C"),
        (["lang: en", "title: a\u2028b"], 3, "U+2028"),
        (["lang: en", "title: a\rb"], 3, "U+000D"),
        (["Title: x"], 2, "must be written title"),
        (["effective-from: 2024-01-01"], 2, "must be written effective_from"),
    ],
)
def test_yaml_that_cannot_be_read_is_named_by_file_and_line(lines: list[str], line: int, says: str) -> None:
    """BR-60: the author is told which line of the file, and what to do with a colon."""
    error = refusal(with_front(*lines))
    assert says in str(error)
    assert error.line == line
    assert str(error).startswith(f"policy.md, line {line}: ")


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("title: 10:30 rule", "10:30 rule"),
        ("title: 'Re: booking'", "Re: booking"),
        ('title: "[draft] x"', "[draft] x"),
        ("title: 1.10", "1.10"),
        ("title: no", "no"),
        ("title: |\n  two\n  lines", "two lines"),
        ("title: null", "policy"),
        ("title: ~", "policy"),
        ("title:", "policy"),
        ('title: ""', "policy"),
        ('title: "null"', "null"),
    ],
)
def test_a_scalar_is_the_text_as_written(line: str, title: str) -> None:
    """BR-60: no value turns into a number, a time or a truth value; null, ~ and empty are absent."""
    assert parse(with_front(line)).title == title


@pytest.mark.parametrize(
    "value", ["2024-01-15", "2024-01-15T10:00:00Z", "2024", "yes", "1e3", "0123", "1_000", "12:30:45", ".inf", "0x1F"]
)
def test_unknown_keys_keep_their_text_and_export_as_json(value: str) -> None:
    """BR-62: a date stays ISO text, so that the JSON written far from here cannot fail on it."""
    metadata = parse(with_front(f"effective: {value}", f"more: [{value}, null]", f"deep: {{a: {value}, b: }}")).metadata
    assert metadata == {"effective": value, "more": [value], "deep": {"a": value}}
    assert json.loads(json.dumps(metadata)) == metadata


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2024-01-15", datetime(2024, 1, 15, tzinfo=UTC)),
        ("'2024-01-15'", datetime(2024, 1, 15, tzinfo=UTC)),
        ("2024-01-15T10:00:00Z", datetime(2024, 1, 15, 10, tzinfo=UTC)),
        ("২০২৪-০১-১৫", datetime(2024, 1, 15, tzinfo=UTC)),
        ("null", None),
        ("", None),
    ],
)
def test_dates_are_read_as_dates(value: str, instant: datetime | None) -> None:
    """BR-62: the keys that are compared hold instants; null is no date."""
    assert parse(with_front(f"effective_from: {value}")).effective_from == instant


@pytest.mark.parametrize(
    "value", ["2024-13-45", "15/01/2024", "2024", "yes", "1e3", "0123", "2023-02-29", "[2024-01-15]"]
)
def test_what_is_no_date_is_named(value: str) -> None:
    """BR-62: an invalid date is an error at its line that names the key."""
    error = refusal(with_front("title: x", f"effective_to: {value}"))
    assert error.line == 3
    assert "effective_to" in str(error)


def test_a_validity_must_not_be_empty() -> None:
    """BR-62: effective_to is compared as a date and lies after effective_from."""
    error = refusal(with_front("effective_from: 2024-03-01", "effective_to: 2024-03-01"))
    assert (error.line, "after effective_from" in str(error)) == (3, True)


@pytest.mark.parametrize(
    ("given_tag", "tag"),
    [
        ("EN", "en"),
        ("en-gb", "en-GB"),
        ("zh-hant-tw", "zh-Hant-TW"),
        ("sl-ROZAJ-biske-1994", "sl-rozaj-biske-1994"),
        ("en-US-x-TWAIN", "en-US-x-twain"),
        ("es-419", "es-419"),
        ("no", "no"),
        ("x-Klingon", "x-klingon"),
        ("~", "und"),
    ],
)
def test_a_language_has_one_spelling(given_tag: str, tag: str) -> None:
    """A language is a BCP 47 tag in the case that its standard recommends; none means undetermined."""
    assert parse(with_front(f"lang: {given_tag}")).lang == tag


@pytest.mark.parametrize("tag", ["English", "en_GB", "e", "bn-", "বাংলা", "en--GB", "[en, bn]"])
def test_what_is_no_language_tag_is_named(tag: str) -> None:
    """A tag that is not well formed would make a line of versions of its own."""
    error = refusal(with_front("title: x", f"lang: {tag}"))
    assert (error.line, "lang" in str(error)) == (3, True)


@pytest.mark.parametrize("status", STATUSES)
def test_a_declared_status_is_kept(status: str) -> None:
    """It is reported when the rule disagrees, so it must be one that there is."""
    assert parse(with_front(f"status: {status}")).declared_status == status
    assert "current, superseded" in str(refusal(with_front("status: draft")))


def test_a_version_without_numbers_is_named() -> None:
    """Versions are compared by their numbers."""
    error = refusal(with_front("title: x", "version: final"))
    assert (error.line, "version" in str(error)) == (3, True)


@pytest.mark.parametrize("key", ["doc_id", "family"])
@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd", "a/../b", "..", "/etc/passwd", "C:\\\\x", "c:x", "a\\\\b", "file://x", "a\\0b", "a\\nb",
        " a", "a ", "\\u3000", " ", "a\\u2028b", "a\\u0085b", "x" * (MAX_NAME_CHARS + 1),
    ],
)  # fmt: skip
def test_a_name_that_could_be_a_path_is_refused(key: str, name: str) -> None:
    """BR-114: nothing is ever opened by a doc_id, and one that looks like a place elsewhere does not come in."""
    error = refusal(with_front("title: x", f'{key}: "{name}"'))
    assert error.line == 3


@pytest.mark.parametrize(
    "name",
    [
        "a/b",
        "a..b",
        "trailing.",
        "trailing/",
        "with space",
        "[x] (y)",
        "নীতি",
        "র\u200d্যাব",
        "A",
        "ab:c",
        "~x",
        "1" * 190,
    ],
)
def test_other_names_are_legal(name: str) -> None:
    """BR-114: spaces, brackets, dots, other letters and a slash at the end are an author's own affair."""
    assert parse(with_front(f'doc_id: "{name}"')).doc_id == f"{name}-v1"


def test_both_spellings_of_a_letter_give_one_name() -> None:
    """BR-49: a doc_id, a family, a key and a path are NFC, while the text stays as it was written."""
    composed, decomposed = (
        parse(
            with_front(f"doc_id: {ya}-v1", f"family: {ya}e\u0301", f"{ya}: {ya}", body=f"# T\n\n{ya}\n"),
            f"{ya}/e\u0301.md",
        )
        for ya in (YA_COMPOSED, YA_DECOMPOSED)
    )
    assert composed.doc_id == decomposed.doc_id == f"{YA_DECOMPOSED}-v1"
    assert composed.family == decomposed.family == f"{YA_DECOMPOSED}\u00e9"
    assert composed.path == decomposed.path == f"{YA_DECOMPOSED}/\u00e9.md"
    assert (composed.metadata, decomposed.metadata) == (
        {YA_DECOMPOSED: YA_COMPOSED},
        {YA_DECOMPOSED: YA_DECOMPOSED},
    )
    assert composed.source.endswith(f"{YA_COMPOSED}\n")


def test_a_heading_that_repeats_the_title_in_another_spelling_is_left_out_of_the_paths() -> None:
    """BR-49: the comparison of heading and title does not see code points."""
    source = with_front(f"title: {YA_COMPOSED}  x", body=f"# {YA_DECOMPOSED} x\n\n## Part\n\ntext")
    assert outline(source) == [(("Part",), "text", "text")]


def test_a_small_block_cannot_stand_for_millions_of_values() -> None:
    """Aliases work, but they are counted as often as they are used, and a cycle ends."""
    assert parse(with_front("a: &x [1, 2]", "b: *x")).metadata == {"a": ["1", "2"], "b": ["1", "2"]}
    bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    bomb += [f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
    assert "more than 10000 values" in str(refusal(with_front(*bomb)))
    assert "nested too deeply" in str(refusal(with_front("a: &a [*a]")))
    assert "nested too deeply" in str(refusal(with_front("a: " + "[" * 700 + "]" * 700)))
    assert "65536 characters" in str(refusal(with_front("a: " + "x" * 70_000)))


# ---------------------------------------------------------------- nothing to quote


@pytest.mark.parametrize(
    "source",
    [
        "", "\n", "\r\n \r\n", "\ufeff", "---", "---\n", "---\n---\n", "---\ntitle: x\n---\n", "---\ntitle: x\n---",
        "<!-- a -->", "<!-- a\n\nb -->\n<!---->\n", "***\n", "[a]: https://example.org/ 'x'\n", "# Only a title\n",
        "# A\n\n## B\n\n<!-- later -->\n", "\f\n\u2028\n",
    ],
)  # fmt: skip
def test_a_file_with_nothing_to_quote_is_no_document(source: str) -> None:
    """BR-37: no text, only metadata, comments, rules, link definitions or headings: "no content", and no chunk."""
    with pytest.raises(NoContentError, match="no content"):
        parse(source)


# ---------------------------------------------------------------- headings and blocks


def test_sections_follow_each_other_under_their_heading_paths() -> None:
    """The title's own heading is left out, a deeper heading stands under the last higher one."""
    source = "intro\n\n# Rules\n\nlead\n\n### Deep\n\na\n\n## Part\n\nb\n\n### Small\n\nc\n\n# Annex\n\nd\n"
    assert outline(with_front("title: Rules", body=source)) == [
        ((), "text", "intro"),
        ((), "text", "lead"),
        (("Deep",), "text", "a"),
        (("Part",), "text", "b"),
        (("Part", "Small"), "text", "c"),
        (("Annex",), "text", "d"),
    ]


def test_a_first_heading_that_says_something_else_stays_in_the_paths() -> None:
    """Only a level-1 heading that equals the title is left out."""
    assert outline(with_front("title: Rules", body="# Regeln\n\n## Part\n\nx")) == [(("Regeln", "Part"), "text", "x")]
    assert outline("## Rules\n\nx") == [(("Rules",), "text", "x")]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("```sh\n# not a heading\nls\n```", "fence"),
        ("~~~\n# not a heading\n\n---\n~~~", "fence"),
        ("````\n```\n# not a heading\n```\n````", "fence"),
        ("    # not a heading\n\n    more", "fence"),
        ("```# not a heading```", "text"),
        ("`# not` a heading", "text"),
        ("<div>\n# not a heading\n</div>", "text"),
        ("> # not a heading of ours", "text"),
    ],
)
def test_code_holds_no_headings(code: str, kind: str) -> None:
    """BR-56: a remark in an example is neither a section title nor a place to cut."""
    assert outline(f"# T\n\n## Real\n\n{code}\n\n## Next\n\nx\n") == [
        (("Real",), kind, code),
        (("Next",), "text", "x"),
    ]


def test_an_unclosed_fence_runs_to_the_end() -> None:
    """BR-56: as in CommonMark, and its text is not lost."""
    assert outline("# T\n\n```\n# a\n\n## b\nc\n\n") == [((), "fence", "```\n# a\n\n## b\nc")]


def test_a_fence_in_a_list_is_a_block_of_its_own() -> None:
    """BR-56: a list gives a block for each paragraph, fence and table in it, and none of its lines is lost."""
    source = "- one\n  - two\n\n    ```\n    # no\n    ```\n-\n- three\n  lazy\nlazier\n\n> quoted\n>\n> - x\n"
    assert outline(source) == [
        ((), "text", "- one"),
        ((), "text", "  - two"),
        ((), "fence", "    ```\n    # no\n    ```\n-"),
        ((), "text", "- three\n  lazy\nlazier"),
        ((), "text", "> quoted\n>"),
        ((), "text", "> - x"),
    ]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("Title\n===\n\nx", [((), "text", "x")]),  # it is the title
        ("T\n=\n\nTitle\n-\n\nx", [(("Title",), "text", "x")]),
        ("T\n=\n\n#1 Goals\n----\n\nx", [(("#1 Goals",), "text", "x")]),
        ("T\n=\n\nTwo\nlines\n===\n\nx", [(("Two lines",), "text", "x")]),
        ("#hashtag\n\n#1 Goals\n\n####### seven", [((), "text", "#hashtag"), ((), "text", "#1 Goals"), ((), "text", "####### seven")]),
        ("a\n\n---\n\nb", [((), "text", "a"), ((), "text", "b")]),
        ("| a |\n|---|\n| 1 |\n---\nb", [((), "table", "| a |\n|---|\n| 1 |"), ((), "text", "b")]),
    ],
)  # fmt: skip
def test_underlined_headings_follow_commonmark(text: str, paths: list[tuple[tuple[str, ...], str, str]]) -> None:
    """BR-57: a heading may be underlined; a rule after a blank line or a table makes none."""
    assert outline(text) == paths


@pytest.mark.parametrize("text", ["Refunds take\n5 days", "Refunds take 5 days.", "ফেরত ৫ দিনে।"])
def test_a_rule_glued_to_a_paragraph_makes_no_heading_of_it(text: str) -> None:
    """BR-57: a statement that happens to stand above `---` stays text that can be quoted."""
    assert outline(f"# T\n\n## Part\n\n{text}\n---\nmore") == [(("Part",), "text", text), (("Part",), "text", "more")]


def test_an_underline_after_the_front_matter_is_not_taken_for_a_heading() -> None:
    """BR-57: the closing fence underlines nothing."""
    assert outline("---\ntitle: x\n---\n---\ntext") == [((), "text", "text")]


def test_a_heading_that_is_too_long_is_a_paragraph() -> None:
    """Headings are repeated in front of every chunk below them, so a page of text is none."""
    long = "# " + "word " * (MAX_HEADING_CHARS // 5) + "end"
    assert outline(f"{long}\n\nx") == [((), "text", long), ((), "text", "x")]
    assert len(outline(f"{long[:MAX_HEADING_CHARS]}\n\nx")) == 1


def test_a_comment_is_no_content_and_nothing_is_quoted_across_it() -> None:
    """BR-37: what was commented out is not evidence, so the section goes on behind it as another one."""
    document = parse("# T\n\n## Part\n\nnow 30 days\n\n<!-- was\n\n14 days -->\n\nsince May\n")
    assert document.sections == (
        Section(("Part",), (Block("text", 5, 5),)),
        Section(("Part",), (Block("text", 11, 11),)),
    )
    assert outline("<!-- a --> visible\n") == [((), "text", "<!-- a --> visible")]
    assert outline("<!-- never closed\n\nvisible\n") == [((), "text", "<!-- never closed\n\nvisible")]


def test_link_definitions_are_no_content_but_a_statement_in_brackets_is() -> None:
    """BR-37: a paragraph counts as definitions only when every line leads somewhere."""
    assert outline("text [a]\n\n[a]: https://example.org\n[b]: ./x.md 'title'\n") == [((), "text", "text [a]")]
    assert outline("[Limit]: 30\n\n[^1]: ./x\n") == [((), "text", "[Limit]: 30"), ((), "text", "[^1]: ./x")]


@pytest.mark.parametrize(
    ("table", "header_lines"),
    [
        ("| a | b |\n|---|--:|\n| 1 | 5,120 |", 2),
        ("a | b\n-|-\n1 | 2", 2),
    ],
)
def test_a_table_is_one_block_and_knows_its_header(table: str, header_lines: int) -> None:
    """BR-70: glued to a heading or under a caption, a table is a block of its own."""
    assert outline(f"# T\n## Part\n{table}\n\nx") == [(("Part",), "table", table), (("Part",), "text", "x")]
    assert outline(f"Caption\n{table}") == [((), "text", "Caption"), ((), "table", table)]
    document = parse(f"- item\n\n  {table.replace(chr(10), chr(10) + '  ')}\n")
    assert document.sections[0].blocks == (Block("text", 1, 1), Block("table", 3, 5, header_lines))


def test_lines_are_counted_in_the_file() -> None:
    """BR-63: metadata of any length, blank lines after it and CRLF do not shift a line number."""
    for front in ("", "---\ntitle: x\n---\n", "---\n" + "# remark\n" * 9 + "---\n"):
        for blank in ("", "\n\n"):
            for line_end in ("\n", "\r\n"):
                source = f"{front}{blank}## H\ntext one\ntext two".replace("\n", line_end)
                first = source.split("\n").index(f"text one{line_end[:-1]}") + 1
                assert parse(source).sections == (Section(("H",), (Block("text", first, first + 1),)),)


def test_only_line_feeds_end_lines() -> None:
    """BR-65: form feeds, U+2028, U+0085, vertical tabs and lone carriage returns are white space in a line."""
    odd = "a\fb\vc\x85d\u2028e\u2029f\rg"
    source = f"{odd}\n\n{odd}\r\n\r\nlast"
    assert [source[start:end] for start, end in line_spans(source)] == [odd, "", odd, "", "last"]
    assert parse(source).sections == (Section((), (Block("text", 1, 1), Block("text", 3, 3), Block("text", 5, 5))),)
    assert outline("a\n\f\nb") == [((), "text", "a"), ((), "text", "b")]


@given(st.text(alphabet="a\n\r\f\u2028\x85\v", max_size=30))
@example("\r\r\n")
@example("a\r")
def test_lines_are_those_of_a_plain_split(text: str) -> None:
    r"""A line is what stands between `\n`, less one `\r` before it; a last `\n` opens no further line."""
    expected = [line.removesuffix("\r") for line in text.split("\n")]
    expected[-1] = text.split("\n")[-1]
    if expected[-1] == "":
        expected.pop()
    assert [text[start:end] for start, end in line_spans(text)] == expected


SNIPPETS = [
    "fact", "fact is 5,120.", "ক্ষমতা।", "# fact", "## ", "---", "===", "-", "***", "```", "~~~", "    code", "- fact", "-",
    "  - fact", "1. fact", "> fact", ">", "| a | b |", "|---|---|", "| 1 | 2 |", "<!-- fact -->", "<!-- fact", "-->", "<div>",
    "[a]: https://x.y", "[^1]: fact", "\tfact", "key: value", "title: x", "a: [", "\f", "\u2028", "fact\x85fact", "fact\rfact",
    "\u00a0", "\\", "&amp;", "\u200d", "\ufeff", "\ufeff---",
]  # fmt: skip
SOURCES = st.lists(
    st.tuples(st.sampled_from(SNIPPETS), st.sampled_from(["\n", "\r\n", "\n\n"])).map("".join), max_size=25
).map("".join)


@settings(max_examples=300, deadline=None)
@given(SOURCES)
@example("---\n- a: b\n---\n- ***\n")
def test_no_line_is_lost_or_taken_twice(source: str) -> None:
    """A line that is not blank is a heading, a rule, a comment, a definition, or lies in exactly one block."""
    try:
        document = parse(source)
    except SourceError:
        return
    taken: list[int] = []
    for section in document.sections:
        assert section.blocks
        for block in section.blocks:
            assert block.line_start <= block.line_end
            taken.extend(range(block.line_start, block.line_end + 1))
    assert taken == sorted(set(taken))
    lines = [re.sub("[\f\u2028\x85\r]", " ", line) for line in document.source.split("\n")]
    skipped = lines.index("---", 1) + 1 if re.match("---[ \r]*\n", document.source) and "---" in lines[1:] else 0
    is_comment = False
    for number in range(skipped, len(lines)):
        line = lines[number].strip()
        is_comment = is_comment or line.startswith("<!--")
        if number + 1 not in taken and line and not is_comment:
            below = itertools.takewhile(lambda n: n + 1 not in taken, range(number, len(lines)))
            is_underlined = any(re.fullmatch(r" {0,3}(=+|-+)\s*", lines[n]) for n in below)
            assert is_underlined or re.match(r"#{1,6}(\s|$)|([-*][ \t]*)+$|\[a\]: https:", line), (number, line)
        is_comment = is_comment and "-->" not in line


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), SOURCES, st.builds("---\n{}\n---\n{}".format, st.text(), st.text())))
def test_any_text_is_a_document_or_a_source_error(source: str) -> None:
    """Whatever stands in a file, nothing but a SourceError comes out."""
    problem = None
    try:
        document = parse(source)
    except SourceError as error:
        problem = error
    if problem is None:
        assert document.source == source.lstrip("\ufeff")
    else:
        assert problem.path == "policy.md"
        assert 1 <= problem.line <= source.count("\n") + 1


# ---------------------------------------------------------------- files


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"Text of {name}.\n", encoding="utf-8")


def test_sources_are_listed_sorted_and_by_suffix(tmp_path: Path) -> None:
    """Markdown and plain text in any case of letters; hidden files and folders do not count, other kinds are named."""
    put(tmp_path, "b.md", "a/z.MD", "a/y.markdown", "c.Txt", "d.pdf", ".hidden.md", ".git/x.md", "md", "e.md.bak")
    found, skipped = find_sources(tmp_path)
    assert found == ["a/y.markdown", "a/z.MD", "b.md", "c.Txt"]
    assert skipped == [Skipped(name, "not a Markdown or text file") for name in ("d.pdf", "e.md.bak", "md")]
    assert [document.path for document in load_documents(tmp_path)] == ["a/y.markdown", "a/z.MD", "b.md", "c.Txt"]


def test_a_root_can_be_a_single_file(tmp_path: Path) -> None:
    """Its name is its path; a root that is not there is an error."""
    put(tmp_path, "one-v2.md")
    assert find_sources(tmp_path / "one-v2.md") == (["one-v2.md"], [])
    assert read_document(tmp_path / "one-v2.md", "one-v2.md") == read_document(tmp_path, "one-v2.md")
    with pytest.raises(FileNotFoundError, match="none"):
        find_sources(tmp_path / "none")


def test_the_first_bad_file_stops_a_lesson(tmp_path: Path) -> None:
    """load_documents is for folders that are known to be good, and says which file is not."""
    put(tmp_path, "a.md")
    (tmp_path / "b.md").write_text("---\ntitle: Re: x\n---\n", encoding="utf-8")
    with pytest.raises(FrontMatterError, match="^b.md, line 2: "):
        load_documents(tmp_path)


def test_two_files_with_the_same_text_are_two_documents(tmp_path: Path) -> None:
    """BR-80: identity is the doc_id, never the content."""
    (tmp_path / "x.md").write_text("Same.", encoding="utf-8")
    (tmp_path / "y.md").write_text("Same.", encoding="utf-8")
    assert [(d.doc_id, d.source) for d in load_documents(tmp_path)] == [("x-v1", "Same."), ("y-v1", "Same.")]


def test_a_file_name_in_another_unicode_form_is_the_same_path(tmp_path: Path) -> None:
    """BR-49: listed and stored in NFC, and found on the disk however that spells it."""
    name = "e\u0301/নিয়\u09bcম.md".replace("\u09df", YA_DECOMPOSED)
    put(tmp_path, unicodedata.normalize("NFD", name))
    listed = unicodedata.normalize("NFC", name)
    assert find_sources(tmp_path) == ([listed], [])
    document = read_document(tmp_path, listed)
    assert (document.path, document.doc_id) == (listed, f"{listed.removesuffix('.md')}-v1")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot hold such names")
def test_names_that_cannot_be_stored_are_reported(tmp_path: Path) -> None:
    """A name that is no UTF-8, holds a line end, or differs from another only in its Unicode form."""
    put(tmp_path, "a\nb.md", "e\u0301.md", "\u00e9.md")
    (tmp_path / os.fsdecode(b"\xff.md")).write_text("x", encoding="utf-8")
    found, skipped = find_sources(tmp_path)
    assert found == ["\u00e9.md"]
    assert {(entry.path, entry.reason.split(";")[0]) for entry in skipped} == {
        ("?.md", "the name holds control characters or is not UTF-8"),
        ("a\nb.md", "the name holds control characters or is not UTF-8"),
        ("\u00e9.md", "another file has this name in another Unicode form"),
    }


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A root with one file, a secret beside it, and links of every kind."""
    put(tmp_path, "root/real.md", "root/sub/inner.md", "outside/secret.md", "outside/folder/secret.md")
    root = tmp_path / "root"
    for name, target in {
        "out.md": "../outside/secret.md",
        "outfolder": "../outside/folder",
        "twice.md": "out.md",
        "gone.md": "nowhere.md",
        "loop.md": "loop.md",
        "again.md": "real.md",
        "againfolder": "sub",
        ".quiet.md": "../outside/secret.md",
        "picture.png": "../outside/secret.md",
    }.items():
        (root / name).symlink_to(target)
    os.link(root / "real.md", root / "hard.md")
    return root


def test_links_are_skipped_and_reported(linked: Path) -> None:
    """BR-113: links out of the root bring nothing in, links inside it bring nothing in twice."""
    found, skipped = find_sources(linked)
    assert found == ["hard.md", "real.md", "sub/inner.md"]
    inside = "links are not followed, so that no text is taken twice"
    assert skipped == [
        Skipped("again.md", f"a symbolic link to real.md; {inside}"),
        Skipped("againfolder", f"a symbolic link to sub; {inside}"),
        Skipped("gone.md", "a symbolic link that leads nowhere"),
        Skipped("loop.md", "not a regular file that can be looked at"),
        Skipped("out.md", "a symbolic link that leads out of the folder"),
        Skipped("outfolder", "a symbolic link that leads out of the folder"),
        Skipped("picture.png", "not a Markdown or text file"),
        Skipped("twice.md", "a symbolic link that leads out of the folder"),
    ]


@pytest.mark.parametrize(
    "path", ["out.md", "outfolder/secret.md", "twice.md", "gone.md", "loop.md", "again.md", "againfolder/inner.md"]
)
def test_reading_refuses_the_links_that_listing_skips(linked: Path, path: str) -> None:
    """BR-113: the policy is the same when a path is given."""
    with pytest.raises(SourceError, match="symbolic link|not a regular file"):
        read_document(linked, path)


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="needs openat")
@pytest.mark.parametrize("path", ["out.md", "outfolder/secret.md"])
def test_a_link_put_there_after_the_check_is_not_followed(
    linked: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-113: between the check and the read a file or a folder may be swapped for a link."""
    monkeypatch.setattr(documents, "_refusal", lambda top, place: None)
    with pytest.raises(SourceError, match="cannot be read"):
        read_document(linked, path)


def test_a_root_may_be_reached_through_a_link(linked: Path) -> None:
    """BR-114: the user named the root, so what leads to it is his; below it nothing is followed."""
    (linked.parent / "alias").symlink_to("root")
    root = linked.parent / "alias" / "sub"
    assert find_sources(root) == (["inner.md"], [])
    assert read_document(root, "inner.md").path == "inner.md"
    assert find_sources(linked / "again.md") == (["again.md"], [])
    assert read_document(linked / "again.md", "again.md").source == "Text of root/real.md.\n"


@pytest.mark.parametrize(
    "relative",
    [
        "../outside/secret.md",
        "sub/../../outside/secret.md",
        "/etc/passwd",
        "a\0.md",
        "a\n.md",
        "",
        ".",
        "x" * 5000,
        "none.md",
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(linked: Path, relative: str) -> None:
    """BR-114: only a relative path below the root is opened, and an unreadable one is an error of that file."""
    with pytest.raises(SourceError):
        read_document(linked, relative)


def test_a_doc_id_opens_nothing(linked: Path) -> None:
    """BR-114: a file whose metadata names another place is refused by its own line."""
    (linked / "evil.md").write_text("---\ndoc_id: ../outside/secret\n---\nx\n", encoding="utf-8")
    with pytest.raises(FrontMatterError, match="^evil.md, line 2: doc_id"):
        read_document(linked, "evil.md")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Only regular files are sources."""
    os.mkfifo(tmp_path / "pipe.md")
    found, skipped = find_sources(tmp_path)
    assert (found, [entry.path for entry in skipped]) == ([], ["pipe.md"])
    with pytest.raises(SourceError, match="not a regular file"):
        read_document(tmp_path, "pipe.md")


def test_a_folder_that_may_not_be_listed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be looked at is not silently absent."""
    put(tmp_path, "a.md", "closed/b.md")
    list_folder = os.scandir

    def list_open_folder(path: str) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", path)
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", list_open_folder)
    assert find_sources(tmp_path) == (["a.md"], [Skipped("closed", "cannot be read: Permission denied")])


@pytest.mark.parametrize(
    "source",
    [
        "<!-- made by a tool -->\n---\ndoc_id: a-v1\n---\nText.\n",
        "----\ndoc_id: a-v1\n----\nText.\n",
        "\u200b---\ndoc_id: a-v1\n---\nText.\n",
        '+++\ndoc_id = "a-v1"\n+++\nText.\n',
        "doc_id: a-v1\ntitle: A\n---\nText.\n",
    ],
)
def test_metadata_in_another_dress_is_an_error_and_never_text(source: str) -> None:
    """BR-59 and BR-60: whoever writes a doc_id means metadata; losing it silently loses family, version and dates."""
    with pytest.raises(FrontMatterError, match="does not begin with ---"):
        parse_document(source, "a.md")
    assert parse_document("# How to\n\n```\ndoc_id: a-v1\n```\n", "howto.md").doc_id == "howto-v1"


@pytest.mark.parametrize("key", ["docid", "Doc-ID", "effectivefrom", "Effective_From", "LANG"])
def test_a_known_key_in_another_spelling_is_named(key: str) -> None:
    with pytest.raises(FrontMatterError, match=f"line 2: the key '{key}' must be written"):
        parse_document(f"---\n{key}: x\n---\nText.\n", "a.md")


@pytest.mark.parametrize("key", ["effective_form", "effective_too", "titles", "statu"])
def test_a_mistyped_key_is_named(key: str) -> None:
    """A date that is lost silently makes every search of the past wrong."""
    with pytest.raises(FrontMatterError, match=f"line 2: unknown key '{key}'; write"):
        parse_document(f"---\n{key}: x\n---\nText.\n", "a.md")


def test_what_is_almost_a_version_mark_is_an_error() -> None:
    """A typo would otherwise found a family of its own, current beside the one that was meant."""
    with pytest.raises(
        FrontMatterError, match="-v2b at the end of doc_id 'leave-v2b' is no version mark.*leave-v2b-v2"
    ):
        parse_document("---\ndoc_id: leave-v2b\nversion: v2\n---\nText.\n", "a.md")
    assert parse_document("---\ndoc_id: leave-v2b-v2\n---\nText.\n", "a.md").family == "leave-v2b"
