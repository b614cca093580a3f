"""Attacks on the check of claims, made from a desk's own documents: no labels, no model, English and Bangla.

Each attack takes a sentence that stands in a document and makes a claim of it that its evidence does not hold:

- `number`: one number is another, in the same digits;
- `negation`: it says no where the sentence says yes, or the reverse;
- `subject`: it speaks of another document's subject, or of another text's name or code;
- `outdated`: a sentence of a former version whose number, code or most of its words the version in force does not have,
  cited to that version;
- `other_document`: a true sentence, cited to a chunk of another document that speaks of similar things.

A check that blocks everything would block them all, so there are controls that must not be blocked: `verbatim`, the
sentence itself, and `reworded`, which writes it another way (do not for don't, 5000 for 5,000, 30 for ৩০).

Rules make the claims (`rewriting`), and only where they are safe. Everything is decided by hashes of the texts and the
seed: the same documents give the same attacks, and a new document leaves most attacks on the others as they were.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, get_args

from evidencedesk.citations.support import SupportChecker
from evidencedesk.evaluation.metrics import Rate
from evidencedesk.evaluation.rewriting import (
    choose,
    reworded,
    stable_hash,
    with_another_number,
    with_another_polarity,
)
from evidencedesk.records import Answer, Chunk, Document, Support, require_count
from evidencedesk.text import analyse, key_words, normalise, numbers, sentences
from evidencedesk.text.spelling import word_set

AttackKind = Literal["number", "negation", "subject", "outdated", "other_document", "verbatim", "reworded"]
KINDS: tuple[AttackKind, ...] = get_args(AttackKind)
CONTROLS: frozenset[AttackKind] = frozenset({"verbatim", "reworded"})
"""True claims: to block one of them is wrong."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A claim and what it cites; for a control, a true one."""

    kind: AttackKind
    claim: str
    chunk_id: str
    evidence: str
    """Text of the cited chunk."""
    sentence: str
    """What the claim was made from, as it stands in its document."""


def make_attacks(documents: Sequence[Document], *, seed: int = 0, per_kind: int = 200) -> list[Attack]:
    """Make up to `per_kind` attacks of each kind from documents of every status, in the order of KINDS.

    Sentences come from the documents in force, for `outdated` from superseded ones of the same family and language.
    A kind that the documents give no safe material for has fewer, or none. ValueError for a per_kind below 1.
    """
    per_kind = min(require_count("per_kind", per_kind), sys.maxsize)
    documents = sorted(documents, key=lambda document: document.doc_id)
    current = [document for document in documents if document.status == "current"]
    corpus = _Corpus(current)
    stated = [(chunk, said) for document in current for chunk in document.chunks for said in _stated(chunk.text)]
    outdated = list(_outdated(documents))

    def tried(kind: AttackKind) -> Iterator[Attack]:
        for chunk, sentence in _shuffled(outdated if kind == "outdated" else stated, seed, kind):
            cited = corpus.similar_chunk(sentence, chunk) if kind == "other_document" else chunk
            claim = _CHANGES[kind](sentence, chunk, corpus) if kind in _CHANGES else sentence
            if cited is not None and claim is not None:
                yield Attack(kind, claim, cited.id, cited.text, sentence)

    return [attack for kind in KINDS for attack in islice(tried(kind), per_kind)]


def _shuffled(pairs: Iterable[tuple[Chunk, str]], seed: int, kind: str) -> list[tuple[Chunk, str]]:
    """Shuffle by hash, each sentence once, so that a text in many versions does not outweigh the others."""
    once = {sentence: (chunk, sentence) for chunk, sentence in pairs}
    return sorted(once.values(), key=lambda pair: stable_hash(seed, kind, pair[0].id, pair[1]))


# ---------------------------------------------------------------- sentences that can be claimed

_LIST_MARK = re.compile(r"(?:[-*+•]|\d{1,3}[.)।])[ \t]+")
_MARKUP = re.compile(r"[|`#<>{}=_*]|\]\(|https?://|\n\s*\n")
_STOP = re.compile(r"(?:[^A-Z][.!]|।)\Z")  # not the stop of an initial, as in U.S.
_MIN_CHARS, _MAX_CHARS, _MIN_WORDS, _MIN_KEY_WORDS = 20, 300, 5, 3
_POINTER = re.compile(r"\bplease\b|^(?:see|for (?:more|further|full|additional))\b", re.IGNORECASE)
_NO_STATEMENT = word_set(
    "it its he his she her they their them this that these those such both here there so then"
    " এটি এটা সেটি সেটা এগুলো সেগুলো তিনি তাঁর তারা তাদের এর তার এই সেই এখানে সেখানে তখন"
)
_FIRST_WORD = re.compile(r"[^\s,.;:।'’]+")


def _stated(text: str) -> Iterator[str]:
    """Give the sentences that a claim can be made of: prose of some length that does not begin with `it`.

    Nor one that only points elsewhere (`For more, please see ...`), unless to an address: many documents do that alike.
    """
    for start, end in sentences(text):
        mark = _LIST_MARK.match(text, start, end)
        written = text[mark.end() if mark else start : end]
        sentence = " ".join(written.split())
        opening = _FIRST_WORD.match(sentence)
        if (
            _MIN_CHARS <= len(sentence) <= _MAX_CHARS
            and sentence.count(" ") >= _MIN_WORDS - 1
            and _STOP.search(sentence)
            and not _MARKUP.search(written)
            and ("@" in sentence or not _POINTER.search(sentence))
            and opening is not None
            and normalise(opening[0]) not in _NO_STATEMENT
            and len(key_words(sentence)) >= _MIN_KEY_WORDS
        ):
            yield sentence


class _Corpus:
    """What a change of one sentence has to know of all documents in force."""

    def __init__(self, current: Sequence[Document]) -> None:
        self.documents = {document.doc_id: document for document in current}
        self._chunks = [chunk for document in current for chunk in document.chunks]
        self._words = [frozenset(key_words(chunk.text)) for chunk in self._chunks]
        self._holders: dict[str, list[int]] = defaultdict(list)
        for at, words in enumerate(self._words):
            for word in words:
                self._holders[word].append(at)
        self._in_lower_case = {word for chunk in self._chunks for word in _LOWER_CASE.findall(chunk.text)}
        names = [(name, chunk.lang) for chunk in self._chunks for name in self.names_in(chunk.text)]
        self.names = tuple(dict.fromkeys(names))
        """Names and codes, each with the language of a text that has it."""
        titles = [document.title for document in current]
        self.nouns = {title: _title_noun(title) for title in titles}
        self._terms = {words: _terms(words) for words in (*titles, *self.nouns.values(), *(name for name, _ in names))}

    def strange(self, options: Iterable[str], held: frozenset[str]) -> list[str]:
        """Give the titles, nouns and names that share no term with what is held."""
        return [option for option in options if (terms := self._terms[option]) and held.isdisjoint(terms)]

    def names_in(self, text: str) -> Iterator[str]:
        """Give words with a capital inside a sentence that no text writes without, and codes of capitals and digits."""
        for found in _NAME.finditer(text):
            if found["name"].lower() not in self._in_lower_case and normalise(found["name"]) not in _CALENDAR:
                yield found["name"]
        end = 0  # RD2 inside RD2-24 is a code of its own to a search, but not a name
        for token in analyse(text):
            if token.kind == "code" and token.start >= end and _CODE.fullmatch(text, token.start, token.end):
                yield text[token.start : token.end]
            end = max(end, token.end)

    def similar_chunk(self, sentence: str, own: Chunk) -> Chunk | None:
        """Find the chunk of another family that shares most words with the sentence, and yet does not say it.

        It lacks a number or code of the sentence, or half of its words: documents say many things in like words.
        """
        wanted = set(key_words(sentence))
        rare = [word for word in wanted if len(self._holders[word]) <= _TOO_COMMON]
        near = Counter(at for word in rare for at in self._holders[word])
        shares = {
            at: len(wanted & self._words[at])
            for at in near
            if self._chunks[at].family != own.family and self._chunks[at].lang == own.lang
        }
        amounts = _amounts_and_codes(sentence)
        for at in sorted(shares, key=lambda at: (-shares[at], at)):
            if 2 * shares[at] <= len(wanted) or not amounts <= _amounts_and_codes(self._chunks[at].text):
                return self._chunks[at]
        return None


_TOO_COMMON = 1000
"""A word that more chunks hold is no way to find similar ones: it would compare nearly all with all."""


# ---------------------------------------------------------------- another subject

_NAME = re.compile(r"(?<![\w’'])[a-z]+,? (?P<name>[A-Z][a-z]{2,})\b(?![’'-]|\.\w| [A-Z])")
_LOWER_CASE = re.compile(r"\b[a-z]+\b")
_CODE = re.compile(r"[A-Z]+\d+(?:-[A-Z\d]+)*|[A-Z]+-\d[A-Z\d-]*")
_CALENDAR = word_set(
    "January February March April May June July August September October November December"
    " Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
)
_PLAIN_TITLE_WORDS = frozenset(
    key_words("policy policies terms service rules guide information notice page and নীতি নীতিমালা নিয়ম তথ্য ও")
)
_DETERMINED = re.compile(r"\b(?P<determiner>an?|the|this|your|our|each|every|any) (?P<noun>[a-z]+)\b(?!['’-])", re.I)


def _with_another_subject(sentence: str, chunk: Chunk, corpus: _Corpus) -> str | None:
    """Put another document's title, another text's name or code, or another title's noun in the place of one here.

    What is put in shares no term with the cited chunk, its title and its headings.
    """
    own = corpus.documents[chunk.doc_id]
    held = _terms(chunk.indexed_text)
    titles = sorted({d.title for d in corpus.documents.values() if d.family != own.family and d.lang == own.lang})
    titled = _whole(own.title).search(sentence) if own.title else None
    if titled and (title := choose(corpus.strange(titles, held), sentence)):
        title = title if titled[0][0].isupper() or title[1:2].isupper() else title[0].lower() + title[1:]
        return sentence[: titled.start()] + title + sentence[titled.end() :]
    for name in dict.fromkeys(corpus.names_in(sentence)):
        alike = [
            n
            for n, lang in corpus.names
            if bool(_CODE.fullmatch(n)) == bool(_CODE.fullmatch(name)) and lang == own.lang
        ]
        if other := choose(corpus.strange(alike, held), sentence):
            return _whole(name).sub(other, sentence)
    own_noun = key_words(corpus.nouns[own.title])
    for found in _DETERMINED.finditer(sentence):
        nouns = corpus.strange(filter(None, map(corpus.nouns.__getitem__, titles)), held)
        if own_noun and key_words(found["noun"]) == own_noun and (noun := choose(nouns, sentence)):
            noun = noun if found["noun"].endswith("s") else _singular(noun)
            determiner = found["determiner"]
            if determiner.lower() in ("a", "an"):
                determiner = determiner[0] + ("n" if noun[0] in "aeiou" else "")
            return f"{sentence[: found.start()]}{determiner} {noun}{sentence[found.end() :]}"
    return None


def _terms(text: str) -> frozenset[str]:
    return frozenset(token.term for token in analyse(text)) - _PLAIN_TITLE_WORDS


def _whole(words: str) -> re.Pattern[str]:
    """Match words that stand alone, also beside a Bangla vowel sign, which a pattern does not count to a word."""
    return re.compile(rf"(?<![\w\u0980-\u09ff]){re.escape(words)}(?![\w\u0980-\u09ff])", re.IGNORECASE)


def _title_noun(title: str) -> str:
    """Give the last word of an English title that says what the text is about; empty when there is none."""
    words = re.findall(r"[a-z-]+", title.lower())
    telling = [word for word in words if not _PLAIN_TITLE_WORDS.issuperset(key_words(word))]
    return telling[-1] if telling and "-" not in telling[-1] else ""


def _singular(noun: str) -> str:
    return noun[:-3] + "y" if noun.endswith("ies") else noun if noun.endswith("ss") else noun.removesuffix("s")


# ---------------------------------------------------------------- what no longer holds


def _outdated(documents: Sequence[Document]) -> Iterator[tuple[Chunk, str]]:
    """Give sentences of superseded versions, each with the chunk in force that shares most words with it.

    Only those that hold a number or code that the version in force has nowhere, or of whose key words it lacks half: a
    sentence that was only worded anew may still be true.
    """
    former: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)  # versions repeat most of their texts
    for document in documents:
        if document.status == "superseded":
            former[document.family, document.lang].update(dict.fromkeys(chunk.text for chunk in document.chunks))
    for now in documents:
        texts = former.get((now.family, now.lang)) if now.status == "current" and now.chunks else None
        if texts is None:
            continue
        whole = " ".join(" ".join(chunk.text for chunk in now.chunks).split())
        amounts, words = _amounts_and_codes(whole), set(key_words(whole))
        by_chunk = [(chunk, set(key_words(chunk.text))) for chunk in now.chunks]
        for sentence in dict.fromkeys(sentence for text in texts for sentence in _stated(text)):
            wanted = set(key_words(sentence))
            is_gone = not _amounts_and_codes(sentence) <= amounts or 2 * len(wanted - words) >= len(wanted)
            if is_gone and sentence not in whole:
                yield max(by_chunk, key=lambda pair: len(wanted & pair[1]))[0], sentence


def _amounts_and_codes(text: str) -> set[object]:
    codes = {token.term for token in analyse(text) if token.kind == "code" and re.search(r"[\d@]", token.term)}
    return {number.value for number in numbers(text)} | codes


_CHANGES: Mapping[AttackKind, Callable[[str, Chunk, _Corpus], str | None]] = {
    "number": lambda sentence, chunk, _: with_another_number(sentence, chunk.text),
    "negation": lambda sentence, _, __: with_another_polarity(sentence),
    "subject": _with_another_subject,
    "reworded": lambda sentence, _, __: reworded(sentence),
}
"""Kinds whose claim is not the sentence itself."""


# ---------------------------------------------------------------- what a check makes of them


@dataclass(frozen=True, slots=True)
class Judged:
    """An attack, and what a check said of it."""

    attack: Attack
    support: Support | None
    """None: the check failed."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class BlockReport:
    """How many attacks a check blocked, and those that it judged wrongly."""

    blocked: Mapping[AttackKind, Rate]
    """For attacks, more is better; for the controls, none is right."""
    passed: tuple[Judged, ...]
    """Attacks that it took for supported."""
    turned_away: tuple[Judged, ...]
    """Controls that it did not."""
    failed: tuple[Judged, ...]
    """Attacks on which it raised: counted as passed, and controls as turned away."""


def block_rates(attacks: Iterable[Attack], checker: SupportChecker) -> BlockReport:
    """Have a check judge each attack; only `supported` lets a claim through.

    Every kind has its Rate, one without attacks a Rate of 0 cases. An exception of the check is an outcome, counted
    against it, so that nothing leaves the denominator.
    """
    counts = dict.fromkeys(KINDS, Rate(0, 0))
    passed: list[Judged] = []
    turned_away: list[Judged] = []
    failed: list[Judged] = []
    for attack in attacks:
        is_control = attack.kind in CONTROLS
        try:
            (support,) = checker.check(attack.claim, [attack.evidence])
        except Exception as error:  # noqa: BLE001 - a host's check may raise anything
            is_blocked = is_control
            failed.append(Judged(attack, None, f"{type(error).__name__}: {error}"))
        else:
            is_blocked = not support.ok
            if is_blocked == is_control:
                (turned_away if is_control else passed).append(Judged(attack, support))
        counts[attack.kind] += Rate(int(is_blocked), 1)
    return BlockReport(counts, tuple(passed), tuple(turned_away), tuple(failed))


@dataclass(frozen=True, slots=True)
class AttackReport:
    """What attacks from a file's own documents found."""

    claims: BlockReport
    questions_refused: Rate
    """Of the questions that the documents cannot answer."""
    answered: tuple[Answer, ...]
    """Those that were answered all the same."""


def attack_report(claims: BlockReport, answers: Sequence[Answer]) -> AttackReport:
    """Put the attacks on claims and the answers to questions that have none into one report."""
    answered = tuple(answer for answer in answers if not answer.abstained)
    return AttackReport(claims, Rate(len(answers) - len(answered), len(answers)), answered)


# ---------------------------------------------------------------- questions that nothing answers

_OFF_CORPUS = (
    ("What is the boiling point of mercury?", "mercury boiling"),
    ("Which planet is closest to the Sun?", "planet sun"),
    ("Who wrote the play Hamlet?", "hamlet"),
    ("How many strings does a violin have?", "violin strings"),
    ("What is the capital of Mongolia?", "mongolia capital"),
    ("When did the Berlin Wall fall?", "berlin wall"),
    ("Which gas do plants take in for photosynthesis?", "photosynthesis gas"),
    ("How tall is Mount Kilimanjaro?", "kilimanjaro"),
    ("Who painted the ceiling of the Sistine Chapel?", "sistine ceiling"),
    ("What is the square root of 1764?", "square root"),
    ("Which chess piece moves only diagonally?", "chess diagonally"),
    ("How do I bake sourdough bread?", "sourdough bread"),
    ("সূর্যের সবচেয়ে কাছের গ্রহ কোনটি?", "সূর্য গ্রহ"),
    ("মঙ্গোলিয়ার রাজধানীর নাম কী?", "মঙ্গোলিয়া রাজধানী"),
    ("বেহালায় কয়টি তার থাকে?", "বেহালা"),
    ("হ্যামলেট নাটকটি কে লিখেছেন?", "হ্যামলেট নাটক"),
    ("কিলিমাঞ্জারো পর্বতের উচ্চতা কত?", "কিলিমাঞ্জারো পর্বত"),
    ("সালোকসংশ্লেষণে উদ্ভিদ কোন গ্যাস নেয়?", "সালোকসংশ্লেষণ উদ্ভিদ"),
    ("দাবা খেলায় ঘোড়া কীভাবে চলে?", "দাবা ঘোড়া"),
    ("পারদের স্ফুটনাঙ্ক কত?", "পারদ স্ফুটনাঙ্ক"),
    ("বার্লিন প্রাচীর কবে ভাঙা হয়?", "বার্লিন প্রাচীর"),
    ("মানুষের হৃৎপিণ্ডে কয়টি প্রকোষ্ঠ আছে?", "হৃৎপিণ্ড প্রকোষ্ঠ"),
    ("ইলিশ ভাপা কীভাবে রাঁধতে হয়?", "ইলিশ ভাপা"),
    ("পিরামিড কোন দেশে অবস্থিত?", "পিরামিড"),
)
"""Question, and words that a text which answers it would hold."""


def off_corpus_questions(documents: Iterable[Document]) -> tuple[str, ...]:
    """Give questions of general knowledge, English and Bangla, that these documents answer nowhere.

    One is left out when any document, of whatever status, holds one of its key words.
    """
    held = {word for document in documents for chunk in document.chunks for word in key_words(chunk.indexed_text)}
    return tuple(question for question, words in _OFF_CORPUS if held.isdisjoint(key_words(words)))
