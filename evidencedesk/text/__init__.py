"""Reads text: words, numbers, codes and sentences, English and Bangla alike. Pure: no file, no database.

Offsets are those of the text that came in. Every function takes any text, raises nothing, writes nothing and ends in
time linear in the text's length. How a stretch is read:

- A *word* is letters with their marks and joiners, apostrophes inside it included. Hyphens and a lone slash part words:
  `e-bike` and `and/or` are two each. A script without spaces gives one word a run; `l'homme` is not split.
- A *number* has decimal digits of any script. Commas, apostrophes and fixed-width spaces group (1,000 and 12,50,000), a
  plain space does after one or two digits or before zeros only (`1 000`, `100 000`): `101 102` stays two. A comma that
  does not group is a list's comma: `1,0000` is 1 and 0. A point is a decimal point. An ordinal or case ending behind it
  is left aside (`30th`, `২০২৪-এর`), a unit or a hyphenated word is a word (`10kg`, `30-day`).
- A *range* (`5-7`, `30–60`, `2019-20`) is two numbers when it rises and nothing begins with a zero.
- A *code* is anything else with a digit in it or joined by one of `_ @ . : &` or several slashes: `RD2-24`, `v2.1.3`,
  `2024-01-15`, `10:30`, `24/7`, `user@example.org`, `/etc/hosts`. It gives the whole, then its parts, so `rd2 24` finds
  `RD2–24`. A decimal after a word such as *version* or *section* is a code too.
"""

from evidencedesk.text.quantities import Number, numbers
from evidencedesk.text.segmentation import Span, line_spans, sentences
from evidencedesk.text.spelling import normalise
from evidencedesk.text.stemming import BANGLA_STOP_WORDS, ENGLISH_STOP_WORDS, is_stop_word, stem
from evidencedesk.text.terms import TEXT_VERSION, Token, analyse, key_words, tokens
from evidencedesk.text.tokenizer import Kind
from evidencedesk.text.units import UNITS
from evidencedesk.text.writing_systems import script_of_language, scripts

__all__ = [
    "BANGLA_STOP_WORDS",
    "ENGLISH_STOP_WORDS",
    "TEXT_VERSION",
    "UNITS",
    "Kind",
    "Number",
    "Span",
    "Token",
    "analyse",
    "is_stop_word",
    "key_words",
    "line_spans",
    "normalise",
    "numbers",
    "script_of_language",
    "scripts",
    "sentences",
    "stem",
    "tokens",
]
