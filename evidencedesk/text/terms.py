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

_LONGEST_KEPT = 40
"""Characters; a longer word is seldom met twice and would fill the memory of the cache."""

_ANY_DASH = re.compile(f"[{DASHES}]")
_DIGIT, _SPACE = re.compile(r"\d"), re.compile(r"\s")


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


def _terms(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[str, Piece]]:
    for piece in pieces_of(text, shape_of(text), start, end):
        surface = text[piece.start : piece.end]
        if piece.kind == "word":
            term = _word_term(surface) if len(surface) <= _LONGEST_KEPT else _word_term.__wrapped__(surface)
        else:
            term = _number_term(surface) if piece.kind == "number" else _code_term(surface)
        if term:
            yield term, piece


def analyse(text: str) -> list[Token]:
    """List the search terms of a text in order: stemmed words but the stop words, numbers, codes and their parts."""
    return [Token(term, piece.start, piece.end, piece.kind) for term, piece in _terms(text)]


def tokens(text: str) -> list[str]:
    """List the terms of `analyse`, each as often as it occurs.

    Much faster than that: without a digit, what stands between two spaces reads the same wherever it stands, and
    most of it was read before. How digits read may depend on their neighbours, so they are read in place.
    """
    found: list[str] = []
    done = 0
    for start, end in _stretches_with_digits(text):
        _add_words(found, text[done:start])
        found.extend(term for term, _ in _terms(text, start, end))
        done = end
    _add_words(found, text[done:] if done else text)
    return found


def _add_words(terms: list[str], text: str) -> None:
    for word in text.split():
        terms.extend(_terms_of(word) if len(word) <= _LONGEST_KEPT else _terms_of.__wrapped__(word))


@lru_cache(maxsize=1 << 17)
def _terms_of(word: str) -> tuple[str, ...]:
    if word.isalpha():
        term = _word_term.__wrapped__(word)
        return (term,) if term else ()
    return tuple(term for term, _ in _terms(word))


def _stretches_with_digits(text: str) -> Iterator[tuple[int, int]]:
    """[start, end) of each longest row of words with digits in them, from space to space."""
    start = end = -1
    while found := _DIGIT.search(text, max(end, 0)):
        begin = found.start()
        while begin > max(end, 0) and not text[begin - 1].isspace():
            begin -= 1
        if end < 0:
            start = begin
        elif not text[end:begin].isspace():
            yield start, end
            start = begin
        space = _SPACE.search(text, begin)
        end = space.start() if space else len(text)
    if start >= 0:
        yield start, end


def key_words(text: str) -> list[str]:
    """List the distinct stemmed words by first occurrence, those inside codes too: no numbers, no stop words."""
    return list(dict.fromkeys(term for term, piece in _terms(text) if piece.kind == "word"))
