"""Text of documents inside a request: between borders that it can neither close nor imitate."""

from __future__ import annotations

import re
import secrets
import unicodedata

_LINE_BREAK = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_HIDDEN = {"Cc", "Cf", "Cs", "Co"}
"""Control, format (bidirectional marks and the invisible tag letters among them), surrogate, private characters."""
_KEPT = "\n\t\u200c\u200d"
_LIKE_BORDER = re.compile(r"^(?=[^\w\n]*={3,}[^\S\n]*[^\s=])", re.MULTILINE)


def random_mark() -> str:
    """Give 64 random bits in hexadecimal: what no document that was written before can hold."""
    return secrets.token_hex(8)


def visible(text: str) -> str:
    """Give the text as it may stand in a request: one kind of line break, and nothing that a reader would not see.

    Control, format, surrogate and private-use characters go, so do the variation selectors that can carry hidden
    bytes; tabs stay, and so do ZWJ and ZWNJ, which Bangla is spelt with.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in _LINE_BREAK.sub("\n", text) if char in _KEPT or not _is_hidden(char))


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN or "\U000e0100" <= char <= "\U000e01ef"


def one_line(text: str) -> str:
    """Give the visible text with every white space a single space."""
    return " ".join(visible(text).split())


def fenced(mark: str, name: str, text: str, *, note: str = "") -> str:
    """Put the visible text between two border lines with the mark. `note` says what was done to the text.

    ValueError when the text holds the mark: it must be one that no document can know.
    """
    inside = visible(text).strip("\n")
    if mark in inside:
        raise ValueError(f"a text holds the mark {mark!r} of its own fence")
    # A line of a document that begins like a border is set off, so that it is none even to a careless reader.
    inside = _LIKE_BORDER.sub(r"\\", inside)
    return f"=== {mark} {name} begins ===\n{inside}\n=== {mark} {name} ends{note} ===\n"
