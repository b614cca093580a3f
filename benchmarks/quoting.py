"""Does an answer by quotation hold the phrase that answers? Real questions, the three best passages of a search.

`python -m benchmarks.quoting`. Counted are the answerable questions with a phrase whose right passage is among the
three: what retrieval missed, no quotation can mend. `right`: the quoted text holds the phrase. `none`: nothing was
quoted. Unanswerable questions are asked too, with what the search finds for them, without a guard in front.
The weights were chosen on questions whose id has an even SHA-1; the figures are of the odd half unless --half says so.
With --choices also what else could have been chosen: each part of the score left out, and each floor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from benchmarks.common import (
    Case,
    QuestionSet,
    add_question_sets,
    chosen_sets,
    command,
    desks_in,
    is_chosen_on,
    is_right_passage,
    opened,
    rate,
    read_cases,
    squashed,
)
from evidencedesk import EvidenceDeskError
from evidencedesk.llm import LLMClient, QuotingAnswerer, quoting
from evidencedesk.records import ModelRequest, NumberedPassage
from evidencedesk.text import sentences, tokens

SETS = ("en_squad2", "bn_tydi", "ver_policies")
PASSAGES = 3


class FirstSentence:
    """A baseline: the first sentence of the first passage."""

    name = "first sentence"

    def complete(self, request: ModelRequest) -> str:
        return reply(next(_all_sentences(request), None))


class PlainOverlap:
    """A baseline: the sentence with the most distinct terms of the question, among equals the first."""

    name = "plain overlap"

    def complete(self, request: ModelRequest) -> str:
        asked = set(tokens(request.question))
        rows = _all_sentences(request)
        return reply(max(rows, key=lambda row: len(asked.intersection(tokens(row[1]))), default=None))


def _all_sentences(request: ModelRequest) -> Iterator[tuple[int, str]]:
    for passage in request.passages:
        text = passage.chunk.text
        yield from ((passage.number, text[start:end]) for start, end in sentences(text))


def reply(quoted: tuple[int, str] | None) -> str:
    claims = [{"text": quoted[1], "sources": [quoted[0]]}] if quoted else []
    return json.dumps({"abstained": not claims, "claims": claims})


ANSWERERS: Mapping[str, LLMClient] = {
    "first sentence": FirstSentence(),
    "plain overlap": PlainOverlap(),
    "quoting, one sentence, never none": QuotingAnswerer(most_sentences=1, min_score=0),
    "quoting, never none": QuotingAnswerer(min_score=0),
    "quoting": QuotingAnswerer(),
}

FLOORS = (0, 0.15, 0.2, 0.25, 0.3, 0.35)
PARTS = {
    "words of the sentence before": "NEAR",
    "words of title and heading": "HEAD",
    "the kind of thing asked for": "WANTED",
    "the passage's rank": "RANK",
}
"""The parts of a sentence's score, by the name of their weight in `quoting`."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A case with its request, and whether a right passage is in it."""

    case: Case
    request: ModelRequest
    answer_is_there: bool


def in_half(case_id: str, half: str) -> bool:
    return half == "all" or is_chosen_on(case_id) == (half == "even")


def requests(source: QuestionSet, cache: Path, embedder: str, half: str, limit: int | None) -> list[Asked]:
    """Search for every case of a half. An error of search or ingest is raised: no case may leave the denominator."""
    asked = []
    with opened(source, embedder, cache) as desk:
        documents = {document.doc_id: document for document in desk.documents()}
        for case in [case for case in read_cases(source.cases) if in_half(case.id, half)][:limit]:
            hits = desk.search(case.question, k=PASSAGES, as_of=case.as_of)
            passages = tuple(NumberedPassage(n, hit.label, hit.chunk) for n, hit in enumerate(hits, 1))
            found = [hit.chunk for hit in hits]
            right = any(is_right_passage(case, documents[chunk.doc_id], chunk.text) for chunk in found)
            asked.append(Asked(case, ModelRequest(case.question, passages, "", "", {}), case.answerable and right))
    return asked


@dataclass(frozen=True, slots=True)
class Counts:
    right: int
    none: int
    answerable: int
    characters: int
    quoted_unanswerable: int
    unanswerable: int


def count(answerer: LLMClient, asked: Sequence[Asked]) -> Counts:
    right = none = answerable = characters = quoted_unanswerable = unanswerable = 0
    for one in asked:
        quoted = [claim["text"] for claim in json.loads(answerer.complete(one.request))["claims"]]
        if one.answer_is_there:
            answerable += 1
            none += not quoted
            characters += sum(map(len, quoted))
            right += any(squashed(phrase) in squashed(text) for phrase in one.case.phrases for text in quoted)
        elif not one.case.answerable:
            unanswerable += 1
            quoted_unanswerable += bool(quoted)
    return Counts(right, none, answerable, characters, quoted_unanswerable, unanswerable)


def row(label: str, got: Counts) -> str:
    answered = got.answerable - got.none
    length = f"{got.characters / answered:.0f} characters" if answered else "not applicable"
    shown = rate(got.right, got.answerable) if got.answerable else "not applicable"
    unanswerable = f"{got.quoted_unanswerable} of {got.unanswerable} unanswerable quoted"
    return f"  {label:<38} right {shown}   none {got.none}   {length}   {unanswerable}"


def table(name: str, asked: Sequence[Asked]) -> str:
    rows = [row(label, count(answerer, asked)) for label, answerer in ANSWERERS.items()]
    return "\n".join([f"{name}: {len(asked)} questions", *rows])


def choices(asked: Sequence[Asked]) -> str:
    """Each part of the score left out, without a floor; then each floor, with every part."""
    rows = []
    for part, weight in PARTS.items():
        with patch.object(quoting, weight, 0):
            rows.append(row(f"without {part}", count(QuotingAnswerer(min_score=0), asked)))
    rows += [row(f"floor {floor:g}", count(QuotingAnswerer(min_score=floor), asked)) for floor in FLOORS]
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0; 1 when a set could not be measured; 2 when the data is not there or an option is wrong."""
    parser = command("quoting", __doc__)
    add_question_sets(parser, SETS)
    parser.add_argument("--embedder", default="e5", choices=("toy", "e5"))
    parser.add_argument("--half", default="odd", choices=("odd", "even", "all"))
    parser.add_argument("--choices", action="store_true", help="also with parts of the score left out and other floors")
    options = parser.parse_args(arguments)
    chosen = chosen_sets(parser, options)
    print(f"{options.half} half, {options.embedder}, the {PASSAGES} best passages of each question", end="\n\n")
    problems = 0
    with desks_in(options.cache) as cache:
        for source in chosen:
            try:
                asked = requests(source, cache, options.embedder, options.half, options.limit)
                print(table(source.name, asked), *([choices(asked)] if options.choices else []), sep="\n", flush=True)
            except (EvidenceDeskError, ValueError) as error:
                print(f"{source.name}: ERROR, not measured: {error}\n", file=sys.stderr)
                problems += 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
