"""Follows what a claim cites to the passages that were given, and puts the verdicts together.

The package's docstring says how a claim becomes a verdict. It depends on ids and texts alone, so a document that talks
a model into something gains nothing by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from evidencedesk.citations.markers import Reference, references, split_claims
from evidencedesk.citations.support import RuleChecker, SupportChecker
from evidencedesk.errors import CheckerError, EvidenceDeskError, ModelError
from evidencedesk.records import (
    AnswerReason,
    Chunk,
    Citation,
    CitationReport,
    CitationVerdict,
    Claim,
    ModelAnswer,
    Support,
    SupportVerdict,
)

_GRAVITY: tuple[SupportVerdict, ...] = ("supported", "unchecked", "unsupported", "contradicted")
_DECIDES: tuple[SupportVerdict, ...] = ("contradicted", "supported", "unsupported", "unchecked")
_HYPHENS = str.maketrans("\u2010\u2011", "--")
_LONGEST_QUOTE = 160  # characters of a claim in a reason


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk as the file has it now."""

    chunk: Chunk
    label: str
    in_force: bool
    """Whether its document is in force at the instant that the question is about."""


Lookup = Callable[[str], Found | None]
"""Gives the chunk of an id, of any version; None when the file has none. What it raises reaches the caller."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why an answer cannot be given: its worst claim."""

    reason: AnswerReason
    """`unknown_citation` or `unsupported_claim`."""
    claim: Claim
    detail: str
    """One sentence: which claim, and the id, number or word that it fails by."""


def check_citations(
    claim: str,
    cited: Sequence[str | int],
    kept: Sequence[Chunk],
    lookup: Lookup,
    *,
    checker: SupportChecker | None = None,
) -> CitationReport:
    """Check one claim against what it cites: numbers of `kept`, from 1, or chunk ids; marks in its text count as well.

    A claim of several sentences is as good as its worst, and the report is that sentence's. Without a checker the rules
    of `check_support` judge. CheckerError when a host's checker fails. Writes nothing.
    """
    judged = _check_claim(claim, cited, _Given(kept, lookup), checker or RuleChecker())
    sentence, support = max(judged, key=lambda one: _GRAVITY.index(one[0].verdict))

    def having(verdict: CitationVerdict) -> tuple[str, ...]:
        return tuple(citation.cited for citation in sentence.citations if citation.verdict == verdict)

    return CitationReport(
        having("outside"), having("superseded"), having("invented"), having("malformed"), support, sentence.citations
    )


def check_claims(
    answer: ModelAnswer,
    kept: Sequence[Chunk],
    lookup: Lookup,
    *,
    checker: SupportChecker | None = None,
    numbered: bool = True,
) -> tuple[Claim, ...]:
    """Check a model's answer: one Claim for each sentence, in order, with the citations of the claim that it stands in.

    `kept` are the chunks that the model was given, in the order of their numbers; with `numbered` False they have none,
    and a number that is cited is malformed. CheckerError when a host's checker fails. Writes nothing.
    """
    given, judge = _Given(kept, lookup, numbered=numbered), checker or RuleChecker()
    return tuple(
        sentence for claim in answer.claims for sentence, _ in _check_claim(claim.text, claim.cited, given, judge)
    )


def worst(claims: Sequence[Claim]) -> Objection | None:
    """Give what speaks against an answer; None when every claim stands.

    First a citation that does not resolve, then a claim that is not supported, a contradicted one before others.
    ValueError without claims: an answer that says nothing is none.
    """
    if not claims:
        raise ValueError("an answer without claims cannot be judged")
    for claim in claims:
        for citation in claim.citations:
            if citation.verdict != "retrieved":
                return Objection("unknown_citation", claim, f"{_quoted(claim)}: {_fault(citation)}")
    gravest = max(claims, key=lambda claim: _GRAVITY.index(claim.verdict))
    if gravest.verdict == "supported":
        return None
    ids = ", ".join(citation.chunk.id for citation in gravest.citations if citation.chunk)
    cited = f" citing {ids}" if ids else ""
    return Objection("unsupported_claim", gravest, f"{_quoted(gravest)}{cited} is {gravest.verdict}: {gravest.reason}")


def _quoted(claim: Claim) -> str:
    text = " ".join(claim.text.split())
    return f"The claim “{text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + '…'}”"


def _fault(citation: Citation) -> str:
    cited = repr(citation.cited[:_LONGEST_QUOTE])
    match citation.verdict:
        case "outside":
            return f"it cites {cited}, which is in force but is no passage that was given."
        case "superseded":
            return f"it cites {cited}, which is not in force."
        case "invented":
            return f"it cites {cited}, which does not exist."
        case _:
            return f"it cites {cited}, which is neither the number of a passage nor the id of a chunk."


# ---------------------------------------------------------------- where a citation leads


class _Given:
    """The passages of one request, and what the file says of them now."""

    def __init__(self, kept: Sequence[Chunk], lookup: Lookup, *, numbered: bool = True) -> None:
        self.kept = kept
        self._numbered = numbered
        self._lookup = lookup
        self._now = {chunk.id: lookup(chunk.id) for chunk in kept}
        self._by_id = {chunk.id: chunk for chunk in kept}
        self.labels: Mapping[str, str] = {found.label: name for name, found in self._now.items() if found}

    def resolve(self, reference: Reference) -> Citation:
        """Give the citation with its verdict, not yet held against any claim."""
        number, written = reference.number, reference.written
        if number is not None and not self._numbered:
            return Citation(written, "malformed")
        if number is not None:
            is_given = 1 <= number <= len(self.kept)
            return self._passage(written, self.kept[number - 1]) if is_given else Citation(written, "invented")
        if reference.chunk_id is None:
            return Citation(written, "malformed")
        # Models like to write the hyphens of an id as ones that do not break.
        for name in dict.fromkeys((reference.chunk_id, reference.chunk_id.translate(_HYPHENS))):
            if name in self._by_id:
                return self._passage(written, self._by_id[name])
            if found := self._lookup(name):
                return Citation(written, "outside" if found.in_force else "superseded", found.chunk, found.label)
        return Citation(written, "invented")

    def _passage(self, written: str, chunk: Chunk) -> Citation:
        """A passage counts while the file still has it, in force and with the text that the model read."""
        now = self._now[chunk.id]
        stands = now is not None and now.in_force and now.chunk.text == chunk.text
        return Citation(written, "retrieved" if stands else "superseded", chunk, now.label if now else "")


def _resolved(found: Sequence[Reference], given: _Given) -> tuple[Citation, ...]:
    """Resolve references, each chunk once, however often and by whichever name it is cited."""
    citations: dict[tuple[str, str], Citation] = {}
    for reference in dict.fromkeys(found):
        citation = given.resolve(reference)
        citations.setdefault((citation.verdict, citation.chunk.id if citation.chunk else citation.cited), citation)
    return tuple(citations.values())


# ---------------------------------------------------------------- whether what it cites bears the claim


def _check_claim(
    text: str, cited: Sequence[str | int], given: _Given, checker: SupportChecker
) -> list[tuple[Claim, Support | None]]:
    marked = split_claims(text, labels=given.labels, passages=[chunk.text for chunk in given.kept])
    listed = [reference for source in cited for reference in references(source)]
    citations = _resolved([*listed, *(reference for claim in marked for reference in claim.references)], given)
    sentences = [claim.text for claim in marked if claim.text]
    if not sentences:
        return [(Claim(text, citations, "unsupported", "It says nothing."), None)]
    return [_judged(sentence, citations, checker) for sentence in sentences]


def _judged(sentence: str, citations: tuple[Citation, ...], checker: SupportChecker) -> tuple[Claim, Support | None]:
    evidence = {n: _evidence(one.chunk) for n, one in enumerate(citations) if one.verdict == "retrieved" and one.chunk}
    if not evidence:
        reason = "None of what it cites is a passage that was given." if citations else "It cites nothing."
        return Claim(sentence, citations, "unsupported", reason), None
    supports = dict(zip(evidence, _supports(checker, sentence, list(evidence.values())), strict=True))
    held = [
        replace(one, support=supports[n], quote=evidence[n][slice(*(supports[n].evidence_span or (0, 0)))])
        if n in supports
        else one
        for n, one in enumerate(citations)
    ]
    # Of equal verdicts, the one with most of the claim's words explains best.
    decisive = min(supports.values(), key=lambda support: (_DECIDES.index(support.verdict), -support.share))
    return Claim(sentence, tuple(held), decisive.verdict, decisive.reason), decisive


def _evidence(chunk: Chunk) -> str:
    """Give what a claim is held against: the chunk's text as it stands in the file, without title and heading.

    The one place to change that; a quote is cut from this text.
    """
    return chunk.text


def _supports(checker: SupportChecker, claim: str, evidences: Sequence[str]) -> list[Support]:
    """Ask the checker; CheckerError for what a host's raises, and for anything but one usable Support an evidence."""
    try:
        supports = list(checker.check(claim, evidences))
    except ModelError as error:
        raise CheckerError(checker=checker.name, problem=str(error)) from error
    except EvidenceDeskError:
        raise
    except Exception as error:  # a host's code may raise anything
        raise CheckerError(checker=checker.name, problem=f"{type(error).__name__}: {error}") from error
    if len(supports) != len(evidences):
        raise CheckerError(checker=checker.name, problem=f"it gave {len(supports)} verdicts for {len(evidences)} texts")
    for support, evidence in zip(supports, evidences, strict=True):
        if not _is_usable(support, evidence):
            raise CheckerError(checker=checker.name, problem=f"it gave something else than a verdict: {support!r}")
    return supports


def _is_usable(support: object, evidence: str) -> bool:
    verdict, span = getattr(support, "verdict", None), getattr(support, "evidence_span", None)
    texts = (getattr(support, "reason", None), verdict)
    if not isinstance(support, Support) or not all(isinstance(text, str) for text in texts):
        return False
    if verdict not in get_args(SupportVerdict) or not isinstance(getattr(support, "share", None), int | float):
        return False
    if span is None:
        return True
    places = isinstance(span, tuple) and len(span) == 2 and all(isinstance(place, int) for place in span)
    return places and 0 <= span[0] <= span[1] <= len(evidence)
