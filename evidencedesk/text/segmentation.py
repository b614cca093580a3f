"""Lines and sentences."""

import re
from functools import lru_cache
from typing import NamedTuple

from evidencedesk.text.spelling import is_one_letter, normalise, word_set


class Span(NamedTuple):
    """Character offsets [start, end)."""

    start: int
    end: int


_LINE = re.compile(r"(?!\Z)([^\n]*?)(?:\r?\n|\Z)")
_CLOSING = r"(?:[\"'”’»)\]}*_]|\[[^\[\]\s]{1,80}\])*+"
_BREAK = re.compile(
    r"(?P<block>^[ \t]*(?:\|[^\n]*|\#{1,6}[ \t][^\n]*)(?:\n|\Z))"  # a table row, a heading
    r"|(?P<mark>^[ \t]*\d{1,3}[.)।](?=[ \t]))"
    r"|(?P<line>\n(?=[ \t\r]*\n|[ \t]*(?:(?:[-*+•]|\d{1,3}[.)।]|\#{1,6})[ \t]|\|)))"
    rf"|(?P<danda>(?:[।॥。！？]++|(?<=[ঀ-৿])\|++(?=\s|\Z)){_CLOSING})"
    rf"|(?P<stop>(?<![.!?…])[.!?…]++{_CLOSING}(?=\s|\Z))",
    re.MULTILINE,
)
_LAST_WORD = re.compile(r"[^\s(\[{\"'“‘«/—–]*\Z")
_ABBREVIATIONS = word_set(
    "mr mrs ms dr prof st rev hon gen col capt lt sgt gov sen messrs e.g i.e eg ie cf vs viz approx ca al"
    " ড ডা মো মোঃ মোছা মি প্রফেসর অধ্যা ইঞ্জি লে"
)
_BEFORE_NUMBER = word_set("no nos p pp vol art sec fig ch para cl tk rs নং পৃ")
_BEFORE_CAPITAL = word_set("etc a.m p.m inc ltd co corp jr sr ইত্যাদি লি")


@lru_cache(maxsize=4)
def line_spans(text: str) -> tuple[tuple[int, int], ...]:
    r"""Give (start, end) in characters of each line, without its line end: the one definition of a line.

    Lines end at `\n` or `\r\n` and nowhere else, in every module; the last line end opens no further line. Line n
    of a file is element n - 1.
    """
    return tuple(match.span(1) for match in _LINE.finditer(text))


def sentences(text: str) -> list[Span]:
    """List the sentences, trimmed of white space; together they hold every other character, once and in order.

    A sentence ends at . ! ? … before white space, at a danda anywhere (and at a bar typed for one: right after a Bangla
    letter, before white space), each with its closing quotes, brackets and attached citation marks; at a blank line;
    before a list mark. A table row (its line begins with a bar) and a heading stand alone. A newline ends nothing, nor
    do abbreviations, initials and list numbers.
    """
    spans: list[Span] = []
    begin = 0
    cuts = [cut.end() for cut in _BREAK.finditer(text) if _ends_sentence(text, cut)]
    for end in (*cuts, len(text)):
        stretch = text[begin:end]
        if bare := stretch.strip():
            start = begin + len(stretch) - len(stretch.lstrip())
            spans.append(Span(start, start + len(bare)))
        begin = end
    return spans


def _ends_sentence(text: str, found: re.Match[str]) -> bool:
    dot = found.start()
    if found.lastgroup != "stop" or text[dot] != "." or text.startswith((".", "!", "?", "…"), dot + 1):
        return found.lastgroup != "mark"
    word = _LAST_WORD.findall(text, max(0, dot - 24), dot)[0]
    key = normalise(word)
    following = text[found.end() : found.end() + 80].lstrip()[:1]
    if key in _BEFORE_NUMBER:
        return not following.isdigit()
    if key in _BEFORE_CAPITAL:
        return not following or following.isupper()
    initials = all(map(is_one_letter, key.split("."))) and not word.islower() and key not in ("i", "না", "নি")
    return not initials and key not in _ABBREVIATIONS
