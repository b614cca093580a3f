"""Stems and stop words."""

import re
import unicodedata

from evidencedesk.text.spelling import normalise, word_set

ENGLISH_STOP_WORDS = word_set(
    "a an the this that these those i you he she it we they me him her them my your his its our their is are was were"
    " be been being am do does did have has had can could will would shall should of to in on at by for from with as"
    " and or what which who whom whose how when where why"
)
BANGLA_STOP_WORDS = word_set(
    "এ ও এই ওই সেই যে সে তা যা এবং আর বা এটি এটা একটি একটা তার তাঁর তাদের আমি আমার আমরা আমাদের আপনি আপনার"
    " তুমি তোমার তিনি তারা কি কী কে কেন কোন কোথায় কখন কবে কত কীভাবে কিভাবে হয় হবে হয়েছে হয়েছিল ছিল ছিলেন"
    " আছে করে করা করতে করেন জন্য থেকে দিয়ে সঙ্গে সাথে পারি পারে পারেন পারবেন পারব এর র তে টি টা"
)
"""Bare case endings (`10%-এর`) included. Neither list holds a negation."""

_IRREGULAR = {"buses": "bus", "gases": "gas", "statuses": "status", "viruses": "virus", "bonuses": "bonus"}
_IRREGULAR |= {"menus": "menu", "news": "news", "goods": "goods", "customs": "customs", "lens": "lens"}
_LATIN_MARKS = re.compile("(?<=[a-z])[\u0300-\u036f]+")
_SILENT_E = re.compile(r"(?:ch|sh|x|ss|zz)e$")
# The leftmost match is the longest ending. -র and -তে stand after vowels; after consonants they are the word's own
# letters (বছর, ভারত + ে).
_BANGLA_ENDING = re.compile(
    "(?<!\u09cd)(?:গুলি|গুলো|গুলা|সমূহ|দেরকে|দের|েরা|রা|টি|টা|(?<=[\u09be-\u09cc])(?:কে|তে|র|য\u09bc)"
    "|(?<=[\u0985-\u0994\u09be-\u09cc])(?:য\u09bcের|য\u09bcে)|ের|ে|ই|ও)$"
)


def stem(word: str) -> str:
    """Give the stem of a normalised word: English plurals and possessives, Bangla case and plural endings.

    English after Harman's S-stemmer ("How effective is suffixing?", 1991), kept equal for singular and plural (`cookie`
    and `cookies`: cooky). `can't` is `cannot`, any other n't is `not`; other apostrophes go, as do marks on Latin
    letters (`café`: cafe).
    """
    if "'" in word:
        if word.endswith("n't"):
            return "cannot" if word == "can't" else "not"
        word = word.removesuffix("'s").replace("'", "")
    if "\u0980" <= word[-1:] <= "\u09ff":
        return _bangla_stem(word)
    if not word.isascii():
        word = unicodedata.normalize("NFC", _LATIN_MARKS.sub("", unicodedata.normalize("NFD", word)))
    if len(word) < 4 or word in _IRREGULAR:
        return _IRREGULAR.get(word, word)
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-2] if word.endswith("oes") and len(word) > 5 else word[:-1]
    if word.endswith("ie") and len(word) > 3:
        return word[:-2] + "y"
    return word[:-1] if _SILENT_E.search(word) else word


def _bangla_stem(word: str) -> str:
    """Strip endings one by one while two letters (signs not counted) stay in front."""
    letters = [at for at, char in enumerate(word) if char.isalpha()]
    if len(letters) < 2:
        return word
    # Behind a consonant, -কে is the object's ending of long words (মানুষকে), but ক + ে of short ones (দশকে).
    end = len(word) - 2 if word.endswith("কে") and len(letters) > 3 else len(word)
    while found := _BANGLA_ENDING.search(word, max(letters[1] + 1, end - 5), end):
        end = found.start()
    return word[:end]


def is_stop_word(word: str) -> bool:
    """Tell whether a word, in any spelling, is too common to search for (`it's` and `you're` as well)."""
    word = normalise(word)
    head, _, clitic = word.partition("'")
    return word in BANGLA_STOP_WORDS or (head in ENGLISH_STOP_WORDS and clitic in ("", "s", "re", "ve", "ll", "d", "m"))
