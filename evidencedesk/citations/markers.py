"""Reads the citation marks of an answer's text: which sentence cites what, as it was written.

What is a mark, and what is prose:

- A chunk id (`kc-returns-v3:c0`) in any bracket, or bare when it has its version mark. A doc_id may hold dots, slashes,
  spaces, letters of any script and brackets that match: the id ends at `:c` and a number.
- In square brackets (`[ ] ［ ］ 【 】 〔 〕`, doubled or escaped): a number of any script, several parted by , ; & or
  `and`, a range (1-3), each also as a footnote (^3) or behind a word such as `source` or `ID`; `source:` and anything.
- What was meant as one and leads nowhere is malformed, not prose: a range that falls, `1a`, `1/3`, `^note`, a doc_id
  without a chunk (`kc-returns-v3`), a file (`a.md#2`), an address, `4:0†source`.
- In round brackets a number needs more, since `(30)` and `(2024)` are prose: one or two digits, white space or the end
  of a sentence before it, the end of a clause or another mark behind it; not at the start of a line, where it counts a
  list, nor after a word for a number or a part (`thirty (30).`, `section (2).`). `(source 1)` needs none of this.
- Everything else is prose: `[sic]`, `[RD2-24 only]`, `[text](url)` unless its text is a mark, task boxes, code (save a
  chunk id in backticks). A number that is not taken for a mark stays in the claim's text and is checked as any other.

Which sentence a mark belongs to: the one that it stands in; between two, the one before it, or the one behind it when
the mark begins its line. A list of sources (a line `## Sources`, `References:`, `সূত্র:` with its entries behind it, a
line `Sources: [1], [2]`, footnotes `[^1]: ...`) is no claim; its references go to the sentences above that have no
mark, or, when all have, those that none of them has go to the last, so that none goes unlooked at. An entry without a
readable reference is a malformed one. A sentence that begins with `Sources of ...` is prose.

Every function takes any text, raises nothing, writes nothing, and takes time linear in the text's length.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from evidencedesk.text import Span, key_words, normalise, numbers, sentences


@dataclass(frozen=True, slots=True)
class Reference:
    """What one mark or list entry points to. With neither number nor chunk id it is malformed."""

    written: str
    number: int | None = None
    """Number of a passage of the request, from 1; any that was written, 0 included."""
    chunk_id: str | None = None
    """NFC, the digits behind `:c` ASCII; whether there is such a chunk is not known here."""


@dataclass(frozen=True, slots=True)
class MarkedClaim:
    """One sentence of an answer and what it cites."""

    text: str
    """Without its marks; empty when the answer consists of marks alone."""
    span: Span
    """Where sentence and marks stand in the answer."""
    references: tuple[Reference, ...]


_LONGEST_MARK = 1000  # characters: a list of several long chunk ids
_LONGEST_RANGE = 50  # passages
_LONGEST_NUMBER = 9  # digits

# ---------------------------------------------------------------- what stands inside a mark

_SEPARATOR = r"(?:\s*[,;،、，；&|]\s*|\s+(?:and|ও|এবং|আর)\s+)"
_NUMBER = re.compile(rf"[\^#]?(?P<first>\d+)\^?(?:\s*[-‐‑–—]\s*(?P<last>\d+))?+(?={_SEPARATOR}|\s+\d|\Z)", re.I)
_CHUNK_ID = re.compile(r"\S.*?:c(?P<ordinal>\d+)(?=[\s,;،、，；&|]|\Z)", re.DOTALL)
_BETWEEN = re.compile(rf"{_SEPARATOR}|\s+|\Z", re.I)
_PASSAGE_WORD = r"(?:sources?|src|passages?|chunks?|citations?|cited?|তথ্যসূত্র|সূত্র|উৎস)"
_ANY_WORD = rf"(?:{_PASSAGE_WORD}|ids?|docs?|documents?|refs?|references?|context|আইডি|নথি)"
_NAMED = re.compile(
    rf"(?:see\s+)?{_ANY_WORD}\.?(?:\s*(?P<sign>[:：ঃ=#])\s*|\s+(?=\^?\d))(?P<rest>\S.*)", re.IGNORECASE | re.DOTALL
)
_PASSAGE_NAMED = re.compile(rf"(?:see\s+)?{_PASSAGE_WORD}(?!\w)", re.I)
_UNFOLLOWABLE = re.compile(
    r"\^.+|-\d+|\d+\.\d*|\d+(?:\s*(?:[/+.…]+|to)\s*\d+)+|\d+[a-z]|\d.*†.*|:?c\d+|\?+|https?://\S+"
    r"|\S*-v\d+(?:\.\d+)*+(?:-[A-Za-z]{2,8})*+(?:[#:/]\S*)?|\S*\#\d+|\S+\.(?:md|txt|pdf|html?|docx?|csv)(?:[#:]\S*)?",
    re.I,
)


def references(source: str | int) -> tuple[Reference, ...]:
    """Read one entry of a model's list of sources: `1`, `"১"`, `"[1, 2]"`, `"kc-returns-v3:c0"`, a whole label.

    Gives at least one reference: what cannot be read is a malformed one.
    """
    if not isinstance(source, str):
        return (_numbered(str(source) if abs(source) < 10**18 else hex(source)),)
    bare = source.strip("`\"' \t\r\n")
    while len(bare) > 2 and _CLOSING.get(bare[0]) == bare[-1] and not _BRACKET.search(bare, 1, len(bare) - 1):
        bare = bare[1:-1].strip()
    if found := _inside(bare):
        return found
    marks = _find_marks(source, {}, ())
    return tuple(reference for mark in marks for reference in mark.references) or (Reference(source.strip()),)


def _inside(content: str) -> tuple[Reference, ...]:
    """Read what stands in square brackets; empty for prose, and for what holds the marks in brackets of its own."""
    if named := _NAMED.fullmatch(content):
        rest = named["rest"]
        return _listed(rest) or ((Reference(rest),) if named["sign"] and not _BRACKET.search(rest) else ())
    if found := _listed(content):
        return found
    # Only short ones: in a long one without a space the pattern would try each of its beginnings with each of its ends.
    return (Reference(content),) if len(content) <= _LONGEST_MARK and _UNFOLLOWABLE.fullmatch(content) else ()


def _listed(content: str) -> tuple[Reference, ...]:
    """Read numbers, ranges and chunk ids; a rest behind a separator that is none of them is malformed."""
    found: list[Reference] = []
    at, parted = 0, False
    while at < len(content):
        if number := _NUMBER.match(content, at):
            found += _range(number)
            at = number.end()
        elif chunk := _CHUNK_ID.match(content, at):
            name = unicodedata.normalize("NFC", chunk[0][: chunk.start("ordinal") - at])
            found.append(Reference(chunk[0], chunk_id=f"{name}{_ascii(chunk['ordinal'])}"))
            at = chunk.end()
        elif parted:
            return (*found, Reference(content[at:]))
        else:
            return ()
        between = _BETWEEN.match(content, at)
        at, parted = (between.end(), bool(between[0].strip())) if between else (at, False)
    return tuple(found)


def _range(number: re.Match[str]) -> list[Reference]:
    first, last = _numbered(number["first"]), _numbered(number["last"] or number["first"])
    if first.number is None or last.number is None or not 0 <= last.number - first.number < _LONGEST_RANGE:
        return [Reference(number[0])]
    if number["last"] is None:
        return [first]
    return [Reference(str(value), value) for value in range(first.number, last.number + 1)]


def _numbered(digits: str) -> Reference:
    readable = digits.isdecimal() and len(digits) <= _LONGEST_NUMBER
    return Reference(digits, int(digits) if readable else None)


def _ascii(digits: str) -> str:
    return "".join(str(unicodedata.decimal(digit)) for digit in digits)


# ---------------------------------------------------------------- where the marks stand

_FENCED = re.compile(r"^ {0,3}(?P<fence>```|~~~)[^\n]*(?:\n(?! {0,3}(?P=fence))[^\n]*)*+(?:\n[^\n]*)?", re.MULTILINE)
_IN_BACKTICKS = re.compile(r"(?<!`)(?P<ticks>`++)(?P<code>[^`\n]{1,1000})(?P=ticks)(?!`)")
_CODED_ID = re.compile(r"\[?[^\s\[\]]+:c\d+\]?")
_CLOSING = {"[": "]", "［": "］", "【": "】", "〔": "〕", "(": ")", "（": "）"}
_OPENING = {close: open_ for open_, close in _CLOSING.items()}
_BRACKET = re.compile(r"[\[\]［］【】〔〕()（）]")
_BRACKET_OR_LINE_END = re.compile(rf"{_BRACKET.pattern}|\n")
_PLACE = re.compile(r"(?:.*, )?lines? \d+(?:-\d+)?")
_UNSPACED = re.compile(r"[^\s\[\](){}（）【】<>\"'`,;]++")
_VERSION_MARK = re.compile(r"-v\d")
_ORDINAL = re.compile(r":c\d+\Z")

# Of a number in round brackets: what before it makes it count a list or a part, what behind it ends a clause.
_BEGINS_LINE = re.compile(r"\n[ \t]*(?:[-*+•][ \t]+)?\Z")
_LAST_WORD = re.compile(r"[^\s(\[]+(?=\s*\Z)")
_CLAUSE_ENDS = re.compile(r"[ \t]*(?:[.,;:!?।…\n\r]|\Z|[\[【(（]\s*\^?\d)")
_COUNTED = frozenset(
    normalise(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
        " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred section paragraph clause"
        " article rule step option part table figure এক দুই তিন চার পাঁচ ছয় সাত আট নয় দশ পনেরো বিশ কুড়ি ত্রিশ"
        " চল্লিশ পঞ্চাশ ষাট সত্তর আশি নব্বই একশ ধারা অনুচ্ছেদ ধাপ"
    ).split()
)


class _Mark(NamedTuple):
    """A mark, or a whole list of sources: characters [start, end) and what it points to."""

    start: int
    end: int
    references: tuple[Reference, ...]


def _find_marks(text: str, labels: Mapping[str, str], passages: Collection[str]) -> list[_Mark]:
    marks: list[_Mark] = []
    taken = bytearray(len(text))
    quoted: dict[str, bool] = {}

    def add(start: int, end: int, found: Sequence[Reference], written: str = "") -> None:
        if written and written not in quoted:
            quoted[written] = any(written in passage for passage in passages)
        if found and not quoted.get(written) and not any(taken[start:end]):
            marks.append(_Mark(start, end, tuple(found)))
            taken[start:end] = b"\x01" * (end - start)

    for label in sorted(filter(None, labels), key=len, reverse=True):
        for place in re.finditer(re.escape(label), text):
            add(*place.span(), [Reference(labels[label], chunk_id=labels[label])])
    unfenced = _FENCED.sub(_blanked, text)
    for code in _IN_BACKTICKS.finditer(unfenced):
        if _CODED_ID.fullmatch(code["code"]):
            add(*code.span(), references(code["code"]), code["code"])
    prose = _IN_BACKTICKS.sub(_blanked, unfenced)
    pairs = _bracket_pairs(prose)
    place_of = {end: start for start, end in pairs if text[start] == "(" and _PLACE.fullmatch(text, start + 1, end - 1)}
    for start, end in pairs:
        content = prose[start + 1 : end - 1].strip(" \t\\")
        if prose[start] in "(（":
            add(start, end, _inside_round(content, prose, start, end, taken), text[start:end])
        elif found := _inside(content):
            is_escaped = start > 0 and prose[start - 1] == prose[end - 2] == "\\"
            begin = start - is_escaped
            if found[0].chunk_id:  # the place of a label belongs to it
                begin = place_of.get(start, place_of.get(start - 1, begin))
            add(begin, end, found, text[start:end])
    for word in _UNSPACED.finditer(prose):
        bare = word[0].strip("*_").rstrip(".:!?।*_")
        if _ORDINAL.search(bare) and _VERSION_MARK.search(bare):
            start = word.start() + word[0].index(bare)
            add(start, start + len(bare), _listed(bare), bare)
    return sorted(marks)


def _blanked(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _bracket_pairs(text: str) -> list[tuple[int, int]]:
    """List the stretches between brackets that match on one line and are short enough to be marks, outer ones first."""
    opened: dict[str, list[int]] = {opening: [] for opening in _CLOSING}
    pairs = []
    for found in _BRACKET_OR_LINE_END.finditer(text):
        bracket = found[0]
        if bracket == "\n":
            for starts in opened.values():
                starts.clear()
        elif bracket in _CLOSING:
            opened[bracket].append(found.start())
        elif (starts := opened[_OPENING[bracket]]) and found.end() - (start := starts.pop()) <= _LONGEST_MARK:
            pairs.append((start, found.end()))
    return sorted(pairs)


def _inside_round(content: str, text: str, start: int, end: int, taken: bytearray) -> tuple[Reference, ...]:
    """Read what stands in round brackets, where more is prose than in square ones."""
    if _PASSAGE_NAMED.match(content):
        return _inside(content)
    found = _listed(content)
    if any(reference.chunk_id for reference in found):
        return found
    if not all(reference.number is not None and len(reference.written) <= 2 for reference in found):
        return ()
    before = "\n" + text[:start] if start < 40 else text[start - 40 : start]
    last_word = _LAST_WORD.search(before)
    apart = before[-1].isspace() or before[-1] in '.।!?"”’»' or (start > 0 and taken[start - 1])
    counts = _BEGINS_LINE.search(before) or (last_word and normalise(last_word[0]) in _COUNTED)
    return found if apart and not counts and _CLAUSE_ENDS.match(text, end) else ()


# ---------------------------------------------------------------- lists of sources

_LIST_WORD = (
    r"(?:sources?|references?|citations?|footnotes?|bibliography|works\s+cited"
    r"|(?:তথ্য)?সূত্র(?:সমূহ|গুলি|গুলো|াবলি)?|উৎস(?:সমূহ|গুলি|গুলো)?|রেফারেন্স(?:সমূহ)?|গ্রন্থপঞ্জি)"
)
_HEAD = rf"[*_]{{0,3}}{_LIST_WORD}[ \t]*[*_]{{0,3}}"
_COLON = r"[ \t]*[:：ঃ][*_]{0,3}"
_LIST_HEADER = re.compile(rf"[ \t]{{0,3}}(?:\#{{1,6}}[ \t]+)?{_HEAD}(?:{_COLON})?[ \t]*\#*\s*", re.I)
_SOURCES_LINE = re.compile(rf"[ \t]*(?:[-*+•][ \t]+)?{_HEAD}{_COLON}(?P<rest>.*\S.*)", re.I | re.DOTALL)
_ENTRY = re.compile(r"[ \t]*(?:[-*+•]|\(?(?P<ordinal>\d{1,3})[.)।])[ \t]+\S")
_CONTINUED = re.compile(r"[ \t]{2,}\S")
_FOOTNOTE = re.compile(r" {0,3}\[(?:\^[^\]\n]{1,80}\]:|\d+\]:[ \t]*<?https?://)")
_SENTENCE_END = re.compile(r"[.!?।]\s*\Z")


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    marks: Sequence[_Mark]

    @property
    def references(self) -> list[Reference]:
        return [reference for mark in self.marks for reference in mark.references]

    @property
    def begins_with_mark(self) -> bool:
        return bool(self.marks) and not self.text[: max(0, self.marks[0].start - self.start)].strip()


def _source_lists(text: str, marks: Sequence[_Mark]) -> list[_Mark]:
    starts = [mark.start for mark in marks]
    lines = [
        _Line(*found.span(), found[0], marks[bisect_left(starts, found.start()) : bisect_left(starts, found.end())])
        for found in re.finditer(r"[^\n]*\n|[^\n]+", text)
    ]
    shadow = _shadow(text, marks)
    lists: list[_Mark] = []
    at = 0
    while at < len(lines):
        line, last = lines[at], at
        found: list[Reference] = []
        if _FOOTNOTE.match(line.text):
            found = line.references
        elif _LIST_HEADER.fullmatch(line.text):
            found, last = _entries(lines, at)
        elif named := _SOURCES_LINE.fullmatch(line.text):
            is_prose = re.search(r"\w", shadow[line.start + named.start("rest") : line.end])
            found = list(_listed(named["rest"].strip(" \t\r\n.*_"))) if is_prose else line.references
        if found:
            lists.append(_Mark(line.start, lines[last].end, tuple(dict.fromkeys(found))))
        at = last + 1
    return lists


def _entries(lines: Sequence[_Line], header: int) -> tuple[list[Reference], int]:
    """Read the entries behind a header: their references, and the number of the last line. None: it is no header."""
    found: list[Reference] = []
    last = header
    for at in range(header + 1, len(lines)):
        line = lines[at]
        entry = _ENTRY.match(line.text)
        follows = not found or last == at - 1
        if not line.text.strip():
            continue
        if entry:
            named = _numbered(entry["ordinal"]) if entry["ordinal"] else Reference(line.text[entry.end() - 1 :].strip())
            found += line.references or [named]
        elif (
            line.begins_with_mark
            or (line.marks and follows and not _SENTENCE_END.search(line.text))
            or (found and follows and _CONTINUED.match(line.text))
        ):
            found += line.references
        else:
            break
        last = at
    return found, last


# ---------------------------------------------------------------- the sentences, and what each cites

# In the shadow of a text each character of a mark is this one, which then stands nowhere else in it.
_GONE = "\x00"
_ENCLOSED = re.compile(rf"[(（\[【][ \t]*(?:(?:see|cf\.?|দেখুন)[ \t]*)?{_GONE}[{_GONE} \t]*+[)）\]】]", re.I)
_TARGET = re.compile(rf"(?<={_GONE})\((?=[^\s()]*[/#:.])(?:[^\s()]|\([^\s()]*+\))++\)")
_WRAPPED = re.compile(rf"<sup>{_GONE}++</sup>|(?P<emphasis>\*{{1,3}}|_{{1,3}}){_GONE}++(?P=emphasis)", re.I)
_JOINT = re.compile(rf"(?<={_GONE}){_SEPARATOR}(?={_GONE})", re.I)
_LEAD = re.compile(rf"(?<!\w){_HEAD}{_COLON}[ \t]*(?={_GONE})", re.I)
_COLON_BEHIND = re.compile(rf"(?<={_GONE})[:：](?=[ \t])")
_ABSORBED = (_TARGET, _ENCLOSED, _TARGET, _WRAPPED, _JOINT, _LEAD, _ENCLOSED, _COLON_BEHIND)

_GAP = re.compile(rf"(?<!\s)\s*+{_GONE}[{_GONE}\s]*+")
_CLOSES = tuple(".,;:!?।…)]}”’»")
_ANSWERING = frozenset(key_words("yes no ok okay sure certainly correct indeed হ্যাঁ হাঁ জি জ্বি না অবশ্যই"))


def split_claims(
    text: str, *, labels: Mapping[str, str] | None = None, passages: Collection[str] = ()
) -> tuple[MarkedClaim, ...]:
    """Split an answer's text into its sentences, each with its references, in order.

    `labels` maps the labels of the passages that the answer was written from to their chunk ids: a label that stands in
    the text whole is one mark. Without them the place and the id of a label are a mark, and its title, which nothing
    marks off, stays in the sentence. A mark that stands verbatim in one of the `passages` is taken for the document's
    own footnote, quoted, and stays in the text. `Yes.` and its like belong to the sentence behind them.

    A text without letters and digits gives nothing; one of marks alone gives one claim without text.
    """
    marks = _find_marks(text, labels or {}, passages)
    lists = _source_lists(text, marks)
    loose = [mark for mark in marks if not _stands_in(mark, lists)]
    shadow = _shadow(_filled(text, lists, " "), loose)
    spans = _claim_spans(shadow)
    if not spans:
        found = tuple(dict.fromkeys(reference for mark in (*loose, *lists) for reference in mark.references))
        return (MarkedClaim("", Span(0, len(text)), found),) if found else ()
    bounds = [[*span] for span in spans]
    marks_of: list[list[_Mark]] = [[] for _ in spans]
    starts = [span.start for span in spans]
    line_ends = [found.start() for found in re.finditer("\n", shadow)]
    for mark in loose:
        owner = bisect_right(starts, mark.start) - 1
        follows = owner >= 0 and not _any_between(line_ends, spans[owner].end, mark.start)
        if not follows and owner + 1 < len(spans):
            leads = not _any_between(line_ends, mark.end, spans[owner + 1].start)
            owner += leads or owner < 0
        marks_of[owner].append(mark)
        bounds[owner] = [min(bounds[owner][0], mark.start), max(bounds[owner][1], mark.end)]
    cited = [tuple(dict.fromkeys(reference for mark in own for reference in mark.references)) for own in marks_of]
    _share(lists, spans, cited)
    return tuple(
        MarkedClaim(_without_marks(shadow[slice(*span)]), Span(*bound), found)
        for span, bound, found in zip(spans, bounds, cited, strict=True)
    )


def _stands_in(mark: _Mark, lists: Sequence[_Mark]) -> bool:
    at = bisect_right(lists, mark.start, key=lambda listed: listed.start) - 1
    return at >= 0 and mark.start < lists[at].end


def _any_between(places: Sequence[int], start: int, end: int) -> bool:
    return bisect_left(places, start) < bisect_left(places, end)


def _filled(text: str, marks: Sequence[_Mark], filler: str) -> str:
    pieces = []
    at = 0
    for mark in marks:
        pieces += [text[at : mark.start], re.sub(r"[^\n]", filler, text[mark.start : mark.end])]
        at = mark.end
    return "".join((*pieces, text[at:]))


def _shadow(text: str, marks: Sequence[_Mark]) -> str:
    """Give the text, character for character, with its marks gone and what leads, parts and encloses marks alone."""
    shadow = _filled(text.replace(_GONE, " "), marks, _GONE)
    for pattern in _ABSORBED:
        shadow = pattern.sub(lambda found: _GONE * len(found[0]), shadow)
    return shadow


def _claim_spans(shadow: str) -> list[Span]:
    """List the sentences that hold a letter or digit; one that only answers (`Yes.`) is one with the next."""
    readable = shadow.replace(_GONE, " ")
    spans: list[Span] = []
    answering: Span | None = None
    for span in sentences(readable):
        said = readable[slice(*span)]
        if not any(map(str.isalnum, said)):
            continue
        whole = Span(answering.start if answering else span.start, span.end)
        only_answers = len(said) <= 40 and not numbers(said) and _ANSWERING.issuperset(key_words(said))
        answering = whole if only_answers else None
        if answering is None:
            spans.append(whole)
    return [*spans, answering] if answering else spans


def _share(lists: Sequence[_Mark], spans: Sequence[Span], cited: list[tuple[Reference, ...]]) -> None:
    """Give the references of lists to the sentences between the lists before and these (before any: to all)."""
    ends = [span.end for span in spans]
    former = 0
    for here, together in groupby(lists, lambda listed: bisect_right(ends, listed.start)):
        listed = tuple(dict.fromkeys(reference for one in together for reference in one.references))
        above = range(former, here) or range(len(spans))
        former = here
        unmarked = [at for at in above if not cited[at]]
        for at in unmarked:
            cited[at] = listed
        if not unmarked:
            known = {reference for at in above for reference in cited[at]}
            cited[above[-1]] += tuple(reference for reference in listed if reference not in known)


def _without_marks(piece: str) -> str:
    def gap(found: re.Match[str]) -> str:
        behind = piece[found.end() : found.end() + 1]
        return " " if found.start() and behind and behind not in _CLOSES else ""

    return _GAP.sub(gap, piece).strip()
