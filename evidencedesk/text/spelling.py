"""One form for every spelling, and what is asked of a word or numeral in any of them."""

import re
import unicodedata

# Unicode's Default_Ignorable_Code_Point: joiners, soft hyphen, byte-order mark, variation selectors ...
IGNORABLES = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_NO_DIGIT = re.compile(r"[^0-9.]")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
# Both are the inside of a character class.
QUOTES = "'\u2019\u02bc\uff07"
DASHES = "\\-\u2010\u2011\u2012\u2013\u2212\uff0d"
# Khanda ta is also typed as ta + virama (+ joiner).
_FOLD = {0xFF01 + at: chr(0x21 + at) for at in range(94)} | {0x3000: " ", 0x09CE: "\u09a4\u09cd"}
_FOLD |= dict.fromkeys(map(ord, QUOTES), "'")


def normalise(text: str) -> str:
    """Give the form in which words are compared. Idempotent.

    Canonically equal spellings become one (in Bangla: U+09DC/DD/DF and base with nukta, the two-part vowel signs and
    their halves), case is folded, default-ignorable characters go, digits and full-width forms become ASCII,
    apostrophes straight.
    """
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFD", IGNORABLES.sub("", text)).casefold().translate(_FOLD)
    composed = unicodedata.normalize("NFC", folded)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), composed)


def word_set(listed: str) -> frozenset[str]:
    """Give the words of a list, parted by white space, normalised."""
    return frozenset(map(normalise, listed.split()))


def is_one_letter(word: str) -> bool:
    """Tell whether a word has one letter, marks and other characters not counted."""
    return sum(map(str.isalpha, normalise(word))) == 1


def digits_of(numeral: str) -> str:
    """Give the ASCII digits and points of a numeral, without its grouping."""
    return numeral if numeral.isascii() and numeral.isdigit() else _NO_DIGIT.sub("", normalise(numeral))
