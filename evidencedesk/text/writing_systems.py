"""Scripts of texts and of languages."""

import re
import unicodedata
from functools import lru_cache

from evidencedesk.text.spelling import normalise
from evidencedesk.text.tokenizer import pieces_of, shape_of

_NAMES = """
LATIN Latn|BENGALI Beng|DEVANAGARI Deva|ARABIC Arab|CYRILLIC Cyrl|GREEK Grek|HEBREW Hebr|ARMENIAN Armn|GEORGIAN Geor
GURMUKHI Guru|GUJARATI Gujr|ORIYA Orya|TAMIL Taml|TELUGU Telu|KANNADA Knda|MALAYALAM Mlym|SINHALA Sinh|THAI Thai
LAO Laoo|TIBETAN Tibt|MYANMAR Mymr|KHMER Khmr|ETHIOPIC Ethi|HANGUL Hang|HIRAGANA Jpan|KATAKANA Jpan|CJK Hani
"""
_SCRIPT_OF_NAME = dict(map(str.split, re.findall(r"[^|\n]+", _NAMES)))
_SAME_SCRIPT = {"Hans": "Hani", "Hant": "Hani", "Hira": "Jpan", "Kana": "Jpan", "Kore": "Hang"}
_LANGUAGES = """
Latn en de fr es it pt nl sv da nb nn no fi is et lv lt pl cs sk sl hr bs ro hu tr az sq ga cy eu ca gl id ms vi tl sw
Beng bn as|Deva hi mr ne sa mai|Arab ar fa ur ps sd ug ckb|Cyrl ru uk be bg mk sr kk ky mn tg|Grek el|Guru pa|Hebr he yi
Armn hy|Geor ka|Gujr gu|Orya or|Taml ta|Telu te|Knda kn|Mlym ml|Sinh si|Thai th|Laoo lo|Tibt bo dz|Mymr my|Khmr km
Ethi am ti|Hang ko|Jpan ja|Hani zh yue
"""
_SCRIPT_OF_LANGUAGE = {
    language: script
    for script, *languages in map(str.split, re.findall(r"[^|\n]+", _LANGUAGES))
    for language in languages
}


def scripts(text: str) -> frozenset[str]:
    """Name the scripts (ISO 15924) of a text's words, codes such as RD2-24 left out; empty when it has no words.

    Kana is `Jpan`, every kind of Han `Hani`; a letter of a script that is not known here counts as nothing.
    """
    plain = (piece for piece in pieces_of(text, shape_of(text)) if piece.kind == "word" and not piece.inner)
    letters = set("".join(map(normalise, {text[piece.start : piece.end] for piece in plain})))
    return frozenset(script for script in map(_script_of_letter, letters) if script)


@lru_cache(maxsize=1 << 12)
def _script_of_letter(char: str) -> str | None:
    return _SCRIPT_OF_NAME.get(unicodedata.name(char, "").partition(" ")[0]) if char.isalpha() else None


def script_of_language(lang: str) -> str | None:
    """Name the script, as `scripts` does, of a BCP 47 tag: its script subtag, else what its language is written in.

    None for `und` and languages that are not known here.
    """
    language, *subtags = lang.replace("_", "-").lower().split("-")
    for subtag in subtags[:2]:
        if len(subtag) == 4 and subtag.isalpha():
            return _SAME_SCRIPT.get(subtag.title(), subtag.title())
    return _SCRIPT_OF_LANGUAGE.get(language)
