"""Parsed documents -> passages whose lines are proved; and the plain windows of the overlap study. Pure.

A passage is a section, or a part of one that is longer than the limit. Such a section is split between its
blocks; a block that is too long itself is split between table rows, between the lines of a fence, or in
running text at sentence ends, else at line ends, else at white space, else anywhere, but not inside a number
and never inside a letter with its marks. The parts are packed up to the limit, and a border is moved where
that spares a piece that is too small to say anything. A table row is never cut, however long it is.

The text of a passage is the source as it stands. Nothing is written into it: what a piece of a table needs of
its header stands in the preamble.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from evidencedesk.records import Block, Chunk, Location, Passage, SourceDocument, require_count
from evidencedesk.text import Span, line_spans, sentences

CHUNKER_VERSION = "1"
"""Changes whenever the same document would give other passages."""
DEFAULT_CHUNK_CHARS = 1000
"""The limit on the characters of a passage's text; the preamble comes on top."""

_SMALL = 0.15
"""Share of the limit below which a piece is joined differently where it can be."""
# White space, but not the kinds that hold a number and its unit together.
_LAST_SPACE = re.compile(r".*(?=[^\S\xa0\u2007\u202f])", re.S)
_VIRAMA = 9
"""The combining class of the signs that bind the next letter, such as the Bangla hasanta."""


def chunk_document(document: SourceDocument, max_chars: int = DEFAULT_CHUNK_CHARS) -> tuple[Passage, ...]:
    """Cut a document into passages of at most `max_chars` characters of text, in the order of the source.

    Only a single table row (the first one with its header), or a letter with more marks than that, is longer.
    ValueError when max_chars is not a whole number of at least 1.
    """
    limit = require_count("max_chars", max_chars)
    source = document.source
    starts = [start for start, _ in line_spans(source)]
    passages: list[Passage] = []
    for section in document.sections:
        heading = " > ".join(section.headings)
        for piece in _pieces(source, section.blocks, limit):
            line_start = bisect_right(starts, piece.start)
            header = _repeated_header(source, section.blocks, line_start, limit)
            passages.append(
                Passage(
                    ordinal=len(passages),
                    heading=heading,
                    line_start=line_start,
                    line_end=bisect_right(starts, piece.end - 1),
                    preamble="\n".join(line for line in (document.title, heading, *header) if line),
                    text=source[piece.start : piece.end],
                )
            )
    return tuple(passages)


def chunk_corpus(documents: Iterable[SourceDocument], max_chars: int = DEFAULT_CHUNK_CHARS) -> list[Chunk]:
    """Cut documents into chunks without a desk: their status is the declared one, or "current"."""
    return [
        Chunk(
            id=f"{document.doc_id}:c{passage.ordinal}",
            doc_id=document.doc_id,
            version=document.version,
            lang=document.lang,
            status=document.declared_status or "current",
            text=passage.text,
            indexed_text=passage.indexed_text,
            location=Location(document.path, passage.heading, passage.line_start, passage.line_end),
            family=document.family,
        )
        for document in documents
        for passage in chunk_document(document, max_chars)
    ]


def holds(source: str, line_start: int, line_end: int, text: str) -> bool:
    """Tell whether `text` begins in line `line_start` of `source` and ends in line `line_end` (from 1)."""
    spans = line_spans(source)
    if not text or not 1 <= line_start <= line_end <= len(spans):
        return False
    # A text with as many line ends as the lines have between them touches both the first and the last.
    region = source[spans[line_start - 1][0] : spans[line_end - 1][1]]
    return text.count("\n") == line_end - line_start and text in region


# ---------------------------------------------------------------- sections into pieces


def _block_span(source: str, blocks: Sequence[Block]) -> Span:
    lines = line_spans(source)
    return Span(lines[blocks[0].line_start - 1][0], lines[blocks[-1].line_end - 1][1])


def _pieces(source: str, blocks: Sequence[Block], limit: int) -> list[Span]:
    whole = _block_span(source, blocks)
    if whole.end - whole.start <= limit:
        return [whole]
    pieces: list[list[Span]] = []
    for unit in (unit for block in blocks for unit in _units(source, block, limit)):
        if pieces and unit.end - pieces[-1][0].start <= limit:
            pieces[-1].append(unit)
        else:
            pieces.append([unit])
    for left, right in pairwise(pieces):
        _even_out(left, right, limit)
    return [Span(piece[0].start, piece[-1].end) for piece in pieces]


def _even_out(left: list[Span], right: list[Span], limit: int) -> None:
    """Move the border between two pieces to where the smaller one is largest, if one of them is small."""
    units = [*left, *right]

    def smaller(at: int) -> int:
        sizes = (units[at - 1].end - units[0].start, units[-1].end - units[at].start)
        return min(sizes) if max(sizes) <= limit else -1

    if min(left[-1].end - left[0].start, right[-1].end - right[0].start) < _SMALL * limit:
        best = max(range(1, len(units)), key=smaller)
        if smaller(best) > smaller(len(left)):
            left[:], right[:] = units[:best], units[best:]


def _units(source: str, block: Block, limit: int) -> Iterator[Span]:
    """Yield the parts of a block that are not cut any further, in order; a block within the limit is one."""
    whole = _block_span(source, [block])
    if whole.end - whole.start <= limit:
        yield whole
        return
    lines = [Span(*span) for span in line_spans(source)[block.line_start - 1 : block.line_end]]
    if block.kind == "table":
        rows = lines[block.header_lines :]
        yield Span(whole.start, rows[0].end if rows else whole.end)
        yield from rows[1:]
    elif block.kind == "fence":
        for line in lines:
            if line.end - line.start > limit:
                yield from _cut(source, line, limit)
            elif source[line.start : line.end].strip():
                yield line
    else:
        ends = [whole.start + sentence.end for sentence in sentences(source[whole.start : whole.end])]
        inner = [end for end in ends if end < whole.end and not _splits_letter(source, end)]
        for start, end in pairwise([whole.start, *inner, whole.end]):
            yield from _cut(source, Span(start, end), limit)


def _repeated_header(source: str, blocks: Sequence[Block], line: int, limit: int) -> list[str]:
    """Give the table header that a piece beginning in `line` has lost; nothing when it exceeds the limit."""
    block = blocks[bisect_right(blocks, line, key=lambda block: block.line_start) - 1]
    if line < block.line_start + block.header_lines or block.kind != "table":
        return []
    spans = line_spans(source)[block.line_start - 1 : block.line_start - 1 + block.header_lines]
    return [source[start:end] for start, end in spans] if spans[-1][1] - spans[0][0] <= limit else []


# ---------------------------------------------------------------- cutting text that has no better place


def _cut(source: str, span: Span, limit: int) -> Iterator[Span]:
    """Yield the text of `span`, without white space around it, in parts of at most `limit` characters."""
    start, end = span.start, span.start + len(source[span.start : span.end].rstrip())
    while start < end:
        while source[start].isspace():
            start += 1
        stop = end if end - start <= limit else _cut_point(source, start, end, limit)
        yield Span(start, start + len(source[start:stop].rstrip()))
        start = stop


def _cut_point(source: str, start: int, end: int, limit: int) -> int:
    """Find where to end a part that begins at `start`; `end` is further away than `limit`."""
    # The last two parts share what is left, so that no small rest remains.
    longest = limit if end - start > (1 + _SMALL) * limit else (end - start + 1) // 2
    last = start + longest
    first = start + max(1, int(_SMALL * limit))
    if (line_end := source.rfind("\n", first, last + 1)) >= 0:
        return line_end
    if space := _LAST_SPACE.match(source, first, last + 1):
        return space.end()
    for at in range(last, first - 1, -1):
        if not _splits_letter(source, at) and not _splits_number(source, at):
            return at
    for at in chain(range(last, start, -1), range(last + 1, end)):
        if not _splits_letter(source, at):
            return at
    return end


def _splits_number(text: str, at: int) -> bool:
    return all(char.isdecimal() or char in ".,٬٫" for char in text[at - 1 : at + 1])


def _splits_letter(text: str, at: int) -> bool:
    """Tell whether a cut before text[at] would part a letter from its marks, or the parts of a sign."""
    before, after = text[at - 1], text[at]
    if unicodedata.category(after).startswith("M") or after in "\u200c\u200d":
        return True
    if (before in "\u200c\u200d" or unicodedata.combining(before) == _VIRAMA) and not after.isspace():
        return True
    return (
        "\u1160" <= after <= "\u11ff"  # Hangul vowels and finals
        or after in "\u0e33\u0eb3"  # the Thai and Lao vowel sign am
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= after <= "\U000e007f"  # tags of flags
        or all("\U0001f1e6" <= char <= "\U0001f1ff" for char in (before, after))  # flags
        or (before, after) == ("\r", "\n")
    )


# ---------------------------------------------------------------- windows, and the study of overlap


def chunk_fixed(text: str, size: int, overlap: int) -> list[Span]:
    """Give windows of `size` characters that each repeat the last `overlap` characters of the one before.

    The last window ends with the text and may be shorter. ValueError, before any work, unless size >= 1 and
    0 <= overlap < size, both whole numbers. Windows cut words and letters: they are for study alone.
    """
    require_count("size", size)
    if require_count("overlap", overlap, minimum=0) >= size:
        raise ValueError(f"overlap must be smaller than size ({size}), not {overlap}")
    # The window before the last one must end before the text does.
    starts = range(0, max(len(text) - overlap, min(len(text), 1)), size - overlap)
    return [Span(start, min(start + size, len(text))) for start in starts]


def chunk_sentences(text: str, n: int) -> list[Span]:
    """Give windows of `n` sentences, the last one with what is left; ValueError unless n is at least 1."""
    require_count("n", n)
    found = sentences(text)
    groups = [found[start : start + n] for start in range(0, len(found), n)]
    return [Span(group[0].start, group[-1].end) for group in groups]


@dataclass(frozen=True, slots=True)
class OverlapRow:
    """What fixed windows with one overlap do to a corpus."""

    overlap: int
    chunks: int
    repeated_share: float
    """Characters that stand in windows beyond their first time, over the characters of the text."""
    whole_sentences: int
    """Sentences that stand whole in at least one window."""
    sentences: int


def overlap_study(
    documents: Iterable[SourceDocument], size: int = 120, overlaps: Sequence[int] = (0, 40, 80)
) -> list[OverlapRow]:
    """Cut every section into windows of at most `size` characters, once for each overlap, and count.

    ValueError as for chunk_fixed.
    """
    for overlap in overlaps:
        chunk_fixed("", size, overlap)
    texts = []
    for document in documents:
        spans = [_block_span(document.source, section.blocks) for section in document.sections]
        texts += [document.source[span.start : span.end] for span in spans]
    found = [sentences(text) for text in texts]
    rows = []
    for overlap in overlaps:
        chunks = characters = whole_sentences = 0
        for text, spans_of_sentences in zip(texts, found, strict=True):
            windows = chunk_fixed(text, size, overlap)
            chunks += len(windows)
            characters += sum(window.end - window.start for window in windows)
            for sentence in spans_of_sentences:
                # Of the windows that begin before the sentence, the last one reaches furthest.
                last = min(sentence.start // (size - overlap), len(windows) - 1)
                whole_sentences += sentence.end <= windows[last].end
        length = sum(map(len, texts))
        repeated_share = (characters - length) / length if length else 0.0
        rows.append(OverlapRow(overlap, chunks, repeated_share, whole_sentences, sum(map(len, found))))
    return rows
