r"""Files -> SourceDocument: which files are read, their metadata, their headings and blocks. No database.

Links: a symbolic link below the root is never followed. One that leads out would pull in foreign text, one
that stays inside would take a text twice; both are skipped and reported, by the listing and again by the
reading. The root itself may be a link. A hard link is a file like any other.

Bounds: a file of more than MAX_FILE_BYTES, or more than MAX_FOLDERS_DEEP folders deep, is skipped and reported.

Metadata: YAML between two `---` lines at the very start. A `---` that nothing closes is a rule, unless a
`key:` line follows at once: then a metadata block was meant, and the file is refused.

Text: CommonMark plus tables, plain text files too, with these departures. Text above a `---` that has several
lines or ends like a sentence is a paragraph, and so is a heading of more than 500 characters. Form feeds and
other characters that only look like line ends count as spaces. Link definitions and top-level HTML comments
are no content; a section ends at such a comment and goes on behind it, so that what was commented out is
never quoted as evidence.
"""

from __future__ import annotations

import difflib
import html
import itertools
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NamedTuple

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from evidencedesk.errors import EncodingError, FrontMatterError, NoContentError, UnreadableSource
from evidencedesk.records import STATUSES, Block, BlockKind, Section, Skipped, SourceDocument
from evidencedesk.text import line_spans
from evidencedesk.versions import full_doc_id, parse_instant, split_marks, version_parts

MAX_FILE_BYTES = 32 * 1024 * 1024
MAX_FOLDERS_DEEP = 100
"""Below the root: Python itself gives up at a thousand."""
MAX_NAME_CHARS = 200
MAX_HEADING_CHARS = 500
"""For titles too: both stand in front of every chunk below them."""
MAX_FRONT_MATTER_CHARS = 65_536
MAX_FRONT_MATTER_VALUES = 10_000
"""Counted with aliases followed, so that a few lines cannot stand for millions of values."""

_KNOWN_KEYS = ("doc_id", "family", "title", "version", "lang", "status", "effective_from", "effective_to")
_KNOWN_BY_LETTERS = {key.replace("_", ""): key for key in _KNOWN_KEYS}
_SUFFIX = re.compile(r"\.(md|markdown|txt)$", re.I)
_KEY_LINE = re.compile(r"[A-Za-z_][\w-]*[ \t]*:(?:\s|$)")
# A word behind a # in a value: to YAML a comment, to the author of `title: Policy #12` a part of the title.
_LOST = re.compile(r"[ \t]+#[^\s#]")
# What YAML does not allow, and what it takes for a line end but is none here.
_NOT_YAML = re.compile(r"[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\r(?!\n)")
_LANG = re.compile(  # BCP 47; a language of four letters or more could be well formed, but none is registered
    r"[a-z]{2,3}(-[a-z]{3}){0,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(-[a-wyz0-9](-[a-z0-9]{2,8})+)*(-x(-[a-z0-9]{1,8})+)?|x(-[a-z0-9]{1,8})+"
)
_FALSE_LINE_ENDS = re.compile("\r(?!\n)|[\v\f\x1c-\x1e\x85\u2028\u2029]")
_LINK_DEFINITION = re.compile(r" {0,3}\[[^\]^][^\]]*\]:[ \t]*<?([a-z]+:|[./#])\S+[ \t]*([\"'(].*)?", re.I)
_COMMENTS = re.compile(r"(\s*<!--(?:-?>|.*?-->))*+\s*", re.S)

_BLOCK_PARSER = MarkdownIt("commonmark").enable("table").disable("reference")
_BLOCK_PARSER.core.ruler.enableOnly(["normalize", "block"])
_INLINE_PARSER = MarkdownIt("commonmark")


def find_sources(root: Path | str) -> tuple[list[str], list[Skipped]]:
    """List the sources below `root` by relative POSIX path, and what was left out with the reason.

    Paths are NFC and sorted. Hidden files and folders are left out without a word. A
    root that is a file is its own only source. FileNotFoundError when there is nothing at `root`.
    """
    top = Path(root).resolve()
    if top.is_file():
        return [_shown(Path(root).name)], []
    if not top.is_dir():
        raise FileNotFoundError(f"there is no file or folder {root}; check the path")
    found: set[str] = set()
    skipped: list[Skipped] = []

    def unreadable(error: OSError) -> None:
        path = Path(os.fsdecode(error.filename)).relative_to(top).as_posix()
        skipped.append(Skipped(_shown(path), f"cannot be read: {error.strerror}"))

    for folder, folders, files in os.walk(top, onerror=unreadable):
        visible = {name for name in folders + files if not name.startswith(".")}
        sources = {name for name in visible.intersection(files) if _SUFFIX.search(name)}
        folders[:] = sorted(visible.intersection(folders))
        for name in sorted(visible):
            place = Path(folder, name)
            path = _shown(place.relative_to(top).as_posix())
            reason = _refusal(top, place) if name in folders or name in sources else "not a Markdown or text file"
            if reason is None and path in found:
                reason = "another file has this name in another Unicode form"
            if reason:
                skipped.append(Skipped(path, reason))
                folders[:] = [other for other in folders if other != name]
            elif name in sources:
                found.add(path)
    return sorted(found), sorted(skipped, key=lambda entry: entry.path)


def read_document(root: Path | str, relative: str) -> SourceDocument:
    """Read a file as `find_sources` lists it, by the same rules; SourceError for whatever is wrong."""
    wrong = partial(UnreadableSource, path=_shown(relative), line=1)
    top, parts = Path(root).resolve(), PurePosixPath(relative).parts
    if top.is_file() and relative == Path(root).name:
        top, parts = top.parent, (top.name,)
    if _has_control(relative) or ".." in parts or Path(relative).anchor:
        raise wrong(problem="the path must be relative, without .. and control characters")
    place = top
    try:
        for part in parts:
            # The disk may hold the name in another Unicode form than we list it in.
            others = [] if os.path.lexists(place / part) else place.iterdir()
            place = next((other for other in others if _shown(other.name) == _shown(part)), place / part)
        if reason := _refusal(top, place):
            raise wrong(problem=reason)
        can_step = os.open in os.supports_dir_fd
        data = _read_below(None, [str(top), *place.relative_to(top).parts] if can_step else [str(place)])
    except OSError as error:
        raise wrong(problem=f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise wrong(problem=f"larger than {MAX_FILE_BYTES // 1024**2} MB; split it")
    return parse_document(decode(data, _shown(relative)), relative)


def load_documents(folder: Path | str) -> list[SourceDocument]:
    """Read every source below `folder`, in the order of paths; the first bad one raises its SourceError."""
    return [read_document(folder, relative) for relative in find_sources(folder)[0]]


def _shown(path: str) -> str:
    """Spell a path for records and messages: NFC, and bytes that are no UTF-8 as question marks."""
    return unicodedata.normalize("NFC", path.encode("utf-8", "replace").decode("utf-8"))


def _has_control(text: str) -> bool:
    return any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text)


def _refusal(top: Path, place: Path) -> str | None:
    """Say why a file or folder below `top` (a real path) must not be read; None: it may."""
    if len(place.relative_to(top).parts) > MAX_FOLDERS_DEEP:
        return f"more than {MAX_FOLDERS_DEEP} folders deep"
    if _has_control(str(place.relative_to(top))):
        return "the name holds control characters or is not UTF-8; rename it"
    real = Path(os.path.realpath(place))
    if os.path.normcase(real) == os.path.normcase(place):
        may_be_read = os.access(real, os.F_OK) and (real.is_file() or real.is_dir())
        return None if may_be_read else "not a regular file that can be looked at"
    if not real.is_relative_to(top):
        return "a symbolic link that leads out of the folder"
    if not os.access(real, os.F_OK):
        return "a symbolic link that leads nowhere"
    target = _shown(real.relative_to(top).as_posix())
    return f"a symbolic link to {target}; links are not followed, so that no text is taken twice"


def _read_below(folder: int | None, steps: Sequence[str]) -> bytes:
    """Read a file step by step from an open folder, so that a link put in its way since is not followed."""
    # O_NONBLOCK: a pipe put there would wait for ever.
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    descriptor = os.open(steps[0], flags, dir_fd=folder)
    try:
        if steps[1:]:
            return _read_below(descriptor, steps[1:])
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_FILE_BYTES + 1)
    finally:
        os.close(descriptor)


def decode(data: bytes, path: str) -> str:
    """Decode strict UTF-8 and take off the byte-order mark.

    EncodingError with the offset of the first bad byte and its line for anything else, NUL bytes included.
    """
    text, offset, problem = "", data.find(b"\0"), "a NUL byte: the file is binary or UTF-16"
    try:
        text = data[: offset if offset >= 0 else None].decode("utf-8")
    except UnicodeDecodeError as error:
        offset, problem = error.start, f"byte 0x{data[error.start]:02x} is not UTF-8 here"
    if offset < 0:
        return text.lstrip("\ufeff")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        problem = "the file looks like UTF-16 or UTF-32"
    raise EncodingError(path=path, line=data.count(b"\n", 0, offset) + 1, byte_offset=offset, problem=problem)


def parse_document(source: str, path: str) -> SourceDocument:
    """Parse a source; `path` is its relative POSIX name, for messages and the default doc_id.

    FrontMatterError for wrong metadata, EncodingError for text that UTF-8 cannot hold and for NUL,
    NoContentError when there is nothing to quote.
    """
    path = _shown(path)
    source = decode(source.encode("utf-8", "surrogatepass"), path)
    line_count, front, key_lines = _read_front_matter(source, path)
    outline = list(_outline(source, line_count))

    lang: str = front.get("lang", "und")
    key = "doc_id" if "doc_id" in front else "version"
    try:
        given_id: str = front.get("doc_id") or _name(_SUFFIX.sub("", path))
        version: str = front.get("version") or split_marks(given_id, lang).version or "1"
        doc_id = _name(full_doc_id(given_id, version, lang))
        marks = split_marks(given_id, lang)
        if "doc_id" in front and marks.version is None and (almost := re.search(r"-v\d[^-/]*$", marks.base)):
            problem = f"{almost[0]} at the end of doc_id {given_id!r} is no version mark such as -v2"
            raise ValueError(f"{problem}; mend it, or write {doc_id} if it is part of the name")
    except ValueError as error:
        problem = str(error) if "doc_id" in front else f"no doc_id from the path: {error}; write a `doc_id:`"
        raise FrontMatterError(path=path, line=key_lines.get(key, 1), problem=problem) from error
    effective_from, effective_to = front.get("effective_from"), front.get("effective_to")
    if effective_from and effective_to and effective_to <= effective_from:
        problem = "effective_to must be after effective_from"
        raise FrontMatterError(path=path, line=key_lines["effective_to"], problem=problem)

    heading = next((entry.text for entry in outline if isinstance(entry, _Heading)), "")
    title: str = front.get("title") or heading or _SUFFIX.sub("", PurePosixPath(path).name)
    sections = tuple(_sections(outline, title))
    if not sections:
        raise NoContentError(path=path, line=1, problem="no content")
    return SourceDocument(
        path=path,
        doc_id=doc_id,
        family=front.get("family") or split_marks(doc_id, lang).base,
        version=version,
        lang=lang,
        title=title,
        source=source,
        sections=sections,
        declared_status=front.get("status"),
        effective_from=effective_from,
        effective_to=effective_to,
        metadata={key: value for key, value in front.items() if key not in _KNOWN_KEYS},
        named_by_path="doc_id" not in front,
    )


def _name(text: str) -> str:
    name = unicodedata.normalize("NFC", text)
    if not name.strip() or name != name.strip() or _has_control(name) or len(name) > MAX_NAME_CHARS:
        limits = f"1 to {MAX_NAME_CHARS} characters, no control characters, no white space at the ends"
        raise ValueError(f"a name has {limits}: {name[:MAX_NAME_CHARS]!r}")
    if re.match(r"/|[A-Za-z]:", name) or re.search(r"\\|://|(^|/)\.\.(/|$)", name):
        raise ValueError(f"{name!r} looks like a path or an address; it must be a plain name")
    return name


def _language(text: str) -> str:
    tag = text.lower()
    if not _LANG.fullmatch(tag):
        raise ValueError(f"a language is a BCP 47 tag such as en, bn or en-GB, not {text!r}")
    parts = tag.split("-")
    plain = next((n for n, part in enumerate(parts) if len(part) == 1), len(parts))
    for n in range(1, plain):  # the case that RFC 5646, 2.1.1 recommends
        parts[n] = {2: parts[n].upper(), 4: parts[n].capitalize()}.get(len(parts[n]), parts[n])
    return "-".join(parts)


def _checked(key: str, text: str) -> Any:
    """Read the text of a known key; ValueError when it will not do."""
    if key in ("doc_id", "family"):
        return _name(text)
    text = " ".join(text.split())
    match key:
        case "lang":
            return _language(text)
        case "effective_from" | "effective_to":
            return parse_instant(text)
        case "version":
            version_parts(text)
        case "status" if text not in STATUSES:
            raise ValueError(f"a status is one of {', '.join(STATUSES)}, not {text!r}")
        case "title" if not 1 <= len(text) <= MAX_HEADING_CHARS:
            raise ValueError(f"a title has 1 to {MAX_HEADING_CHARS} characters, not {len(text)}")
    return text


class _Loader(yaml.SafeLoader):
    """SafeLoader in which every scalar stays the text as written: nothing is a number, a date or a yes."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]


def _read_front_matter(source: str, path: str) -> tuple[int, dict[str, Any], dict[str, int]]:
    """Give the lines it takes (0: there is none), its values (of known keys checked), and each key's line."""
    wrong = partial(FrontMatterError, path=path)
    key_lines: dict[str, int] = {}
    line_count = _front_matter_lines(source, path)
    if line_count == 0:
        return 0, {}, key_lines
    spans = line_spans(source)
    block = source[spans[1][0] : spans[line_count - 1][0]]
    if len(block) > MAX_FRONT_MATTER_CHARS:
        raise wrong(line=1, problem=f"the metadata has more than {MAX_FRONT_MATTER_CHARS} characters")
    if odd := _NOT_YAML.search(block):
        line = block.count("\n", 0, odd.start()) + 2
        raise wrong(line=line, problem=f"remove the control character U+{ord(odd[0]):04X}")
    try:
        root = yaml.compose(block, Loader=_Loader)
        values = _value(root, itertools.count(1), key_lines) if root else {}
        if root and not isinstance(values, dict):
            raise _misfit(root, "there is no `key: value` between the --- lines; for a rule write ***")
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        # The last three: escapes beyond Unicode, and values nested a thousand deep.
        problem = getattr(error, "problem", None) or "the metadata is nested too deeply or has a bad escape"
        if isinstance(error, yaml.scanner.ScannerError | yaml.parser.ParserError):
            problem += "; put a value that holds a colon, a bracket or a quotation mark in quotes"
        mark = getattr(error, "problem_mark", None)
        raise wrong(line=mark.line + 2 if mark else 1, problem=problem) from error
    for key, value in values.items():
        line, meant = key_lines[key], _KNOWN_BY_LETTERS.get(re.sub(r"[\W_]", "", key.lower()))
        if meant is None:
            if near := difflib.get_close_matches(key, _KNOWN_KEYS, 1, cutoff=0.88):
                raise wrong(
                    line=line, problem=f"unknown key {key!r}; write {near[0]}, or give your own key another name"
                )
            continue
        if key != meant:
            raise wrong(line=line, problem=f"the key {key!r} must be written {meant}")
        if not isinstance(value, str):
            raise wrong(line=line, problem=f"{key} is a list or a mapping; put the value in quotes")
        try:
            values[key] = _checked(key, value)
        except ValueError as error:
            raise wrong(line=line, problem=f"{key}: {error}") from error
    return line_count, values, key_lines


def _front_matter_lines(source: str, path: str) -> int:
    """Count the lines of the metadata block; FrontMatterError when one was meant but is not well placed."""
    wrong = partial(FrontMatterError, path=path)
    blank = len(source) - len(source.lstrip())
    if not re.match(r"---[ \t]*[\r\n]", source[blank:]):
        opening = itertools.takewhile(lambda text: not re.match(r"#|```|~~~", text), source.split("\n")[:30])
        for number, text in enumerate(opening, 1):
            if re.match(r"(?:.*\r)?\W*doc_id[ \t]*[:=]", text):
                raise wrong(line=number, problem="this looks like metadata, but the file does not begin with ---")
        return 0
    line, lines = source.count("\n", 0, blank) + 1, source[blank:].split("\n")
    if lines[0].strip() != "---":
        raise wrong(line=line, problem="lines end in a lone carriage return; save the file with line feeds")
    closing = next((n for n, text in enumerate(lines) if n and text.rstrip() == "---"), 0)
    if blank == 0 and closing:
        return closing + 1
    if any(_KEY_LINE.match(text) for text in itertools.takewhile(str.strip, lines[1:])):
        problem = "nothing may stand before the metadata's ---" if blank else "no --- closes the metadata"
        raise wrong(line=line, problem=problem)
    return 0


def _misfit(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)


def _value(node: yaml.Node, counter: Iterator[int], key_lines: dict[str, int]) -> Any:
    """Give text, list or dict, without what is null or empty; notes the line of each key of this mapping."""
    if next(counter) > MAX_FRONT_MATTER_VALUES:
        raise _misfit(node, f"the metadata holds more than {MAX_FRONT_MATTER_VALUES} values")
    if node.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"):
        raise _misfit(node, f"the tag {node.tag} is not read here; remove it")
    if isinstance(node, yaml.SequenceNode):
        values = [_value(child, counter, {}) for child in node.value]
        return [value for value in values if value is not None]
    if isinstance(node, yaml.ScalarNode):
        if _has_control(re.sub(r"[\t\n]", "", node.value)):
            raise _misfit(node, "a value holds an escaped control character; remove it")
        end = node.end_mark
        if node.style is None and end.buffer is not None and _LOST.match(end.buffer, end.pointer):
            raise _misfit(node, "a word behind a # would be lost as a comment; put the value in quotes")
        is_null = node.style is None and node.value in ("~", "null", "Null", "NULL")
        return None if is_null or not node.value else node.value
    mapping = {}
    for key_node, value_node in node.value:
        key = _value(key_node, counter, {})
        if not isinstance(key, str):
            raise _misfit(key_node, "a key must be a word")
        key = unicodedata.normalize("NFC", key)
        if key in key_lines:
            raise _misfit(key_node, f"the key {key!r} stands twice")
        key_lines[key] = key_node.start_mark.line + 2
        mapping[key] = _value(value_node, counter, {})
    return {key: value for key, value in mapping.items() if value is not None}


class _Heading(NamedTuple):
    level: int
    text: str


_BLOCK_KINDS: dict[str, BlockKind] = {
    "paragraph_open": "text",
    "heading_open": "text",  # one in a list or a quotation, or turned down by _heading
    "html_block": "text",
    "fence": "fence",
    "code_block": "fence",
    "table_open": "table",
}


def _outline(source: str, skip_lines: int) -> Iterator[_Heading | Block | None]:
    """Headings, blocks and comments (None) in the order of the file; the first `skip_lines` are metadata."""
    spans = line_spans(source)
    if skip_lines >= len(spans):
        return
    # The same line ends as the file has, so that the parser's line numbers are ours.
    tokens = _BLOCK_PARSER.parse(_FALSE_LINE_ENDS.sub(" ", source[spans[skip_lines][0] :]))
    tops = [n for n, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0]
    for at, after in itertools.pairwise([*tops, len(tokens)]):
        first, last = tokens[at].map or (0, 0)
        match tokens[at].type:
            case "heading_open" if heading := _heading(tokens[at], tokens[at + 1].content):
                yield heading
                continue
            case "heading_open" if tokens[at].markup in "-=":
                last -= 1  # the underline, which is now a rule
            case "html_block" if _COMMENTS.fullmatch(tokens[at].content):
                yield None
                continue
            case "paragraph_open" if all(map(_LINK_DEFINITION.fullmatch, tokens[at + 1].content.split("\n"))):
                continue
            case "hr":
                continue
        # Each paragraph, fence or table is a block, however deep in a list or quotation; what stands between
        # two of them, such as an empty list entry, belongs to the former.
        leaves = [t for t in tokens[at:after] if t.map and t.type in _BLOCK_KINDS] or [tokens[at]]
        starts = [first, *(leaf.map[0] for leaf in leaves[1:] if leaf.map), last]
        for leaf, (start, end) in zip(leaves, itertools.pairwise(starts), strict=True):
            lines = range(skip_lines + start, skip_lines + end)
            filled = [n for n in lines if source[slice(*spans[n])].strip()]
            if filled:
                kind = _BLOCK_KINDS.get(leaf.type, "text")
                above = skip_lines + leaf.map[0] - filled[0] if leaf.map else 0
                yield Block(kind, filled[0] + 1, filled[-1] + 1, above + 2 if kind == "table" else 0)


def _heading(opening: Token, text: str) -> _Heading | None:
    """Read a heading as plain text; None for a paragraph that only looks like one."""
    is_above_a_rule = opening.markup == "-" and ("\n" in text or text.endswith((".", "।")))
    if is_above_a_rule or len(text) > MAX_HEADING_CHARS:
        return None
    plain = html.unescape(re.sub("<[^>]*>", "", _INLINE_PARSER.renderInline(text)))
    return _Heading(int(opening.tag[1:]), " ".join(plain.split()))


def _sections(outline: list[_Heading | Block | None], title: str) -> Iterator[Section]:
    """Group blocks under their heading path, in which a first heading that repeats the title is left out."""
    path: list[_Heading] = []
    blocks: list[Block] = []
    for entry in [*outline, None]:
        if isinstance(entry, Block):
            blocks.append(entry)
            continue
        if blocks:
            yield Section(tuple(heading.text for heading in path if heading.text), tuple(blocks))
            blocks = []
        if entry:
            repeats = unicodedata.normalize("NFC", entry.text) == unicodedata.normalize("NFC", title)
            shown = entry._replace(text="") if repeats and not path and entry.level == 1 else entry
            path = [*(heading for heading in path if heading.level < entry.level), shown]
