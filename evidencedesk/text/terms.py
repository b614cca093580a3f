"""Search terms: what the keyword index and the questions to it are made of."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from evidencedesk.text.spelling import DASHES, digits_of, is_one_letter, normalise
from evidencedesk.text.stemming import is_stop_word, stem
from evidencedesk.text.tokenizer import Kind, Piece, pieces_of, shape_of

TEXT_VERSION = "1"
"""Version of tokenizer and stemmer. A file remembers the one that its terms were made with."""

_ANY_DASH = re.compile(f"[{DASHES}]")


@dataclass(frozen=True, slots=True)
class Token:
    """One search term and the stretch [start, end) of the source, in characters, that it stands for.

    The tokens of a code's parts come after the code's own and lie inside its stretch.
    """

    term: str
    start: int
    end: int
    kind: Kind


def _number_term(numeral: str) -> str:
    whole, point, fraction = digits_of(numeral).partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


@lru_cache(maxsize=1 << 16)
def _word_term(surface: str) -> str:
    """Give the word's term; empty for a stop word."""
    word = normalise(surface)
    return "" if is_stop_word(word) else stem(word)


def _code_term(surface: str) -> str:
    term = _ANY_DASH.sub("-", normalise(surface))
    letters = term.split(".")
    return "".join(letters) if all(map(is_one_letter, letters)) and not any(map(str.isdecimal, term)) else term


def _terms(text: str) -> Iterator[tuple[str, Piece]]:
    for piece in pieces_of(text, shape_of(text)):
        surface = text[piece.start : piece.end]
        if piece.kind == "word":
            # A long run is seldom met twice and would fill the memory of the cache.
            term = _word_term(surface) if len(surface) <= 40 else _word_term.__wrapped__(surface)
        else:
            term = _number_term(surface) if piece.kind == "number" else _code_term(surface)
        if term:
            yield term, piece


def analyse(text: str) -> list[Token]:
    """List the search terms of a text in order: stemmed words but the stop words, numbers, codes and their parts."""
    return [Token(term, piece.start, piece.end, piece.kind) for term, piece in _terms(text)]


def tokens(text: str) -> list[str]:
    """List the terms of `analyse`, each as often as it occurs."""
    return [term for term, _ in _terms(text)]


def key_words(text: str) -> list[str]:
    """List the distinct stemmed words by first occurrence, those inside codes too: no numbers, no stop words."""
    return list(dict.fromkeys(term for term, piece in _terms(text) if piece.kind == "word"))
