"""Seeded inputs for `benchmarks.fuzz`: pieces of every language that the product reads, put together and damaged.

Four ways: fragments one behind the other; what is well formed, with any values; a whole sample with a few mutations;
and a fragment repeated very often between two others, which is what makes a parser slow that is not linear.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
LONGEST = 20_000
"""Characters of an input."""


def _parted(separator: str, text: str) -> list[str]:
    return text.split(separator)


SPECIAL = _parted(
    "|",
    "\x00|\x01|\x1b|\x7f|\x85|\xa0|\xad|\u0300|\u0345|\u061c|\u09bc|\u09be|\u09cd|\u09dc|\u09df|\u0e33|\u180e"
    "|\u200b|\u200c|\u200d|\u200e|\u200f|\u2028|\u2029|\u202a|\u202e|\u2066|\u2069|\u212a|\u2212|\u3000|\ud800"
    "|\udfff|\ufdfa|\ufe0f|\ufeff|\ufffd|\uffff|\U0001d7d8|\U0001f468\u200d\U0001f469|\U000e0041|\U000e0100"
    "|\U0010ffff|\t|\n|\r|\r\n|\x0b|\x0c|\x1c| |  ",
)

WORDS = _parted(
    " ",
    "bike return within 30 days of delivery not never no free charge above 500 taka only unless except refund"
    " warranty শিরোনাম বাইক ফেরত দিতে ৩০ দিন পাব না নয় বিনামূল্যে কত টাকা । ॥ the it a RD2-24 E21 v3 1,000"
    " 12,50,000 1.5 30% ২০২৪ ½ ² ௧ 5-7 2019-20 1st Q3 $890M 10:30 2024-06-01 one hundred and twenty half a"
    " month İ ß ﬁ Ǆ e.g. U.S. Mr. … ? ! www.example.org/a?b=c me@example.org C++ .NET x² -5 −5 +880-17"
    " 000000000000000001 1e400 0x1F",
)

MARKDOWN = _parted(
    "¦",
    "# ¦## ¦###### ¦####### ¦Title\n===\n¦a\n---\n¦---\n¦***\n¦- ¦* ¦1. ¦1) ¦> ¦>> ¦    code\n¦\t¦```\n"
    "¦```python\n¦~~~\n¦`¦``¦[¦]¦(¦)¦[a](b)¦![a](b)¦[a]: http://x\n¦<!-- ¦-->¦<!--x-->¦<b>¦</b>¦<script>¦&amp;"
    "¦&#0;¦&#x110000;¦\\¦*¦**¦_¦__¦a \\¦ b¦\x00¦* * *¦\n\n¦\n¦  \n¦\\\n¦- [ ] ¦[^1]: ¦<http://x>¦~¦:--¦=¦==="
    "¦| a | b |\n|---|---|\n| 1 | 2 |\n¦| a |\n¦|---|\n¦|",
)

FRONT_MATTER = _parted(
    ";",
    "---\n;doc_id: ;doc_id: kc-x-v2\n;title: ;version: ;version: 1.10\n;lang: ;lang: en\n;lang: bn-Beng-BD\n"
    ";status: ;family: ;effective_from: ;effective_to: ;2024-01-01\n;2024-02-30\n;: ;:\n;- ;? ;! "
    ';!!python/object:os.system ;!!binary ;&a ;*a\n;&a [*a, *a]\n;<<: *a\n;{a: b};[a, b];\'x\';"x";"\\u0000"'
    ';"\\ud800";|\n;>-\n;# c\n;%YAML 1.1\n;...\n;null;~;yes;0o7;1e3;.inf;  a: 1\n;\t;@;`;doc-id: ;Version: '
    ";../../etc;C:\\x;file://x;x-v1;-v3;-v1.2.3;-bn;১২;999999999999999",
)

MARKERS = _parted(
    "¦",
    "[1]¦[1, 2]¦[1-3]¦[1–3]¦[[4]]¦[^3]¦[3^]¦(1)¦(source 1)¦［১］¦【২】¦【4:0†source】¦〔3〕¦[kc-returns-v3:c0]"
    "¦kc-returns-v3:c0¦`kc-returns-v3:c0`¦[kc-returns-v9:c0]¦[kc-returns-v3]¦[a.md#2]¦[source: 1]¦[ID:১২]"
    "¦Sources: [1], [2]¦## Sources\n- 1. a¦References:\n[1] x¦সূত্র:\n¦[^1]: x¦Sources of this ¦[0]¦[-1]"
    "¦[999999999999999999999]¦[1¦[¦]¦(¦)¦:c¦:c0¦:c٣¦-v3"
    "¦Returns policy (Returning a bike, lines 11-12) [kc-returns-v3:c0]¦<sup>[1]</sup>¦**[1]**¦[1](http://x)"
    "¦\\[1\\]¦Yes.¦. ¦।¦\n¦\n- ¦[sic]¦(30)¦thirty (30)¦[see 2]¦[1 and 2]¦[1¦2]¦、¦,",
)

JSON = _parted(
    "¦",
    '{¦}¦[¦]¦"¦:¦,¦\\¦{"abstained": false, "claims": [{"text": "A bike can be returned.", "sources": [1]}]}'
    '¦{"abstained": true, "claims": []}¦"abstained": ¦"claims": ¦"text": ¦"sources": ¦true¦false¦null¦1¦-0'
    '¦1e400¦NaN¦Infinity¦"\\ud800"¦"\\u0000"¦```json\n¦```¦<think>¦</think>¦<thinking>¦\ufeff¦\n¦, ¦"id": "x"'
    '¦"question": "x"¦"answerable": true¦"expected_doc_ids": ["kc-returns"]¦"must_cite": true'
    '¦"tags": ["direct"]¦"as_of": "2024-06-01"¦"reply": ¦"chunk_id": ¦"hits"'
    '¦"answer": "Bikes. [kc-returns-v3:c0]"¦"chunk": {"id": "kc-returns-v3:c0"}¦"text": "Bikes. [1]"'
    '¦"citations": [¦123456789012345678901',
)

INSTANTS = _parted(
    "|",
    "2024-06-01|2024-02-29|2023-02-29|0001-01-01|9999-12-31|2024-06-01T10:30|2024-06-01 10:30:59.123456|T24:00"
    "|:60|Z|z|+06:00|-2359|+24:00|২০২৪-০৬-০১|٢٠٢٤|2024-W23|2024-153|20240601|T|-|:|.|+| |1|0|00|now|NaN|1e9"
    "|0000-00-00|10000-01-01|２０２４",
)

NAMES = _parted(
    "¦",
    "kc-returns¦kc-returns-v3¦kc-returns-v3-bn¦en¦bn¦en-GB¦und¦x-y¦*¦%¦_¦'¦''¦\"¦;¦--¦ OR 1=1¦)¦(¦:c0¦:c¦c0"
    "¦../¦/etc/passwd¦\\¦\x00¦:memory:¦é¦é¦য়¦a¦A¦-v1¦-v1.0¦-v2024-01¦-v¦v3¦1.10¦2024-01¦999999999999"
    "¦9999999999999¦.¦-",
)

KEYS = _parted(" ", "doc_id family title version lang status effective_from effective_to owner tags")
JSON_KEYS = _parted(
    " ",
    "abstained claims text sources id question expected_doc_ids answerable must_cite tags as_of reply answer"
    " citations cited hits chunk chunk_id source",
)

FRAGMENTS = {
    "words": WORDS,
    "markdown": MARKDOWN,
    "front matter": FRONT_MATTER,
    "markers": MARKERS,
    "json": JSON,
    "instants": INSTANTS,
    "names": NAMES,
}


def samples() -> dict[str, list[str]]:
    """Whole inputs to begin from, by kind: the shipped corpus, cases and replies."""
    corpus = [path.read_text(encoding="utf-8") for path in sorted((CHECKOUT / "corpus").glob("*.md"))]
    lines = [
        line
        for name in ("rag_cases", "rag_replies")
        for line in (CHECKOUT / "data" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    sentences = [line for text in corpus for line in text.splitlines() if line.endswith((".", "।"))]
    answers = [f"{sentence} [kc-returns-v3:c{number % 3}]" for number, sentence in enumerate(sentences)]
    return {
        "words": sentences,
        "markdown": corpus,
        "front matter": [text.split("---\n")[1] for text in corpus],
        "markers": [*answers, "\n".join(answers)],
        "json": [*lines, "\n".join(lines)],
        "instants": ["2024-06-01", "2024-06-01T10:30:00Z"],
        "names": ["kc-returns", "kc-returns-v3-bn:c0"],
    }


@dataclass(frozen=True, slots=True)
class Pumped:
    """A fragment repeated between two others."""

    before: str
    unit: str
    behind: str

    def text(self, length: int) -> str:
        """About so many characters."""
        return self.before + self.unit * (length // max(1, len(self.unit))) + self.behind


@dataclass(slots=True)
class Inputs:
    """Inputs of some kinds; the same seed gives the same ones."""

    kinds: Sequence[str]
    whole: dict[str, list[str]]

    def text(self, random: Random) -> str:
        """One input."""
        way = random.random()
        if way < 0.4:
            return self._joined(random, random.choice((1, 3, 8, 25, 80)))
        if way < 0.6:
            return self._well_formed(random)[:LONGEST]
        if way < 0.97:
            return self._mutated(random)
        return self.pumped(random).text(random.choice((100, 1000, 4000)))[:LONGEST]

    def pumped(self, random: Random) -> Pumped:
        """What `text` repeats in its third way."""
        before, behind = self._joined(random, 2), self._joined(random, 2)
        return Pumped(before, self._joined(random, random.choice((1, 1, 2, 4))) or "a", behind)

    def _fragment(self, random: Random) -> str:
        way = random.random()
        if way < 0.12:
            return random.choice(SPECIAL)
        if way < 0.16:
            return chr(random.choice((random.randrange(0x250), random.randrange(0x10000), random.randrange(0x110000))))
        kind = random.choice(self.kinds) if way < 0.9 else random.choice(list(FRAGMENTS))
        return random.choice(FRAGMENTS[kind])

    def _joined(self, random: Random, most: int) -> str:
        parts = [self._fragment(random) for _ in range(random.randint(1, most))]
        return random.choice(("", "", " ", "\n")).join(parts)

    def _well_formed(self, random: Random) -> str:
        match random.choice(self.kinds):
            case "front matter":
                keys = random.sample(KEYS, random.randint(1, len(KEYS)))
                return "\n".join(f"{key}: {self._joined(random, 3)}" for key in keys)
            case "json":
                lines = [json.dumps(self._value(random, 4), ensure_ascii=random.random() < 0.5) for _ in range(3)]
                return "\n".join(lines[: random.choice((1, 1, 1, 3))])
            case "instants":
                year, month, day = random.randrange(10_000), random.randrange(14), random.randrange(33)
                time = f"T{random.randrange(26):02}:{random.randrange(62):02}" if random.random() < 0.5 else ""
                return (
                    f"{year:04}-{month:02}-{day:02}{time}{random.choice(('', '', 'Z', '+06:00', '-12:34', '+23:59'))}"
                )
            case "names":
                version = ".".join(
                    str(random.randrange(10 ** random.randint(1, 13))) for _ in range(random.randint(1, 4))
                )
                return (
                    random.choice(("", "v", "a-v", "kc-returns-v")) + version + random.choice(("", "-en", ":c0", " bn"))
                )
            case _:
                return " ".join(
                    self._joined(random, 6) + random.choice([".", "!", "?", "।", "\n", "\n\n"]) for _ in range(4)
                )

    def _value(self, random: Random, depth: int) -> Any:
        """What JSON can hold, mostly under keys that some reader knows."""
        way = random.random() if depth else 1.0
        if way < 0.45:
            keys = random.sample(JSON_KEYS, random.randint(1, 6))
            return {
                key if random.random() < 0.95 else self._joined(random, 2): self._value(random, depth - 1)
                for key in keys
            }
        if way < 0.6:
            return [self._value(random, depth - 1) for _ in range(random.randrange(4))]
        return random.choice(
            (self._joined(random, 4), True, False, None, random.randrange(-2, 9), 1.5, "kc-returns-v3:c0")
        )

    def _mutated(self, random: Random) -> str:
        text = random.choice(self.whole[random.choice(self.kinds)])
        for _ in range(random.choice((1, 1, 2, 4, 12))):
            start = random.randrange(len(text) + 1)
            end = min(len(text), start + random.choice((0, 0, 1, 1, 3, 20, 200)))
            match random.randrange(5):
                case 0:
                    new = ""
                case 1:
                    new = text[start:end] * 2
                case 2:
                    new = random.choice(text) if text else ""
                case 3:
                    other = random.choice(self.whole[random.choice(self.kinds)])
                    cut = random.randrange(len(other) + 1)
                    new = other[cut : cut + random.randrange(60)]
                case _:
                    new = self._fragment(random)
            text = text[:start] + new + text[end:]
        return text[:LONGEST]
