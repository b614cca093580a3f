"""Answers as others hand them in (a text, JSON of any system, an Answer of ours) -> claims with the ids they cite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evidencedesk.citations.markers import Reference, references, split_claims
from evidencedesk.records import Answer, Citation, ModelClaim

_TEXT_KEYS = ("text", "answer")
_SOURCE_KEYS = ("sources", "citations", "cited")
_ID_KEYS = ("chunk_id", "id", "cited", "source")


@dataclass(frozen=True, slots=True)
class HandedIn:
    """An answer, read."""

    claims: tuple[ModelClaim, ...]
    """With chunk ids for whatever leads to one; one claim for a text whose marks are still in it."""
    sources: tuple[str, ...] | None
    """The chunk ids that it says it was made from; None: it does not say, so whatever it cites counts."""
    cited: tuple[str, ...]
    """Every chunk id that it cites, each once."""
    marked: bool = False
    """Whether the claims' texts hold marks; `claims_of_text` reads them once the cited texts are known."""
    abstained: bool = False
    """Whether it says itself that it is no answer."""


def read_answer(answer: Answer | str | Mapping[str, Any]) -> HandedIn:
    """Read an answer. TypeError or ValueError says what is missing; what it cites is not looked up here.

    A mapping has `claims`, each with `text` and `sources`; or `text` (or `answer`), whose marks cite chunk ids, or
    numbers of its `sources`. `citations` stands for `sources`. A source is a chunk id, or a mapping that holds one
    under `chunk_id`, `id`, `cited` or `source`, or a whole chunk under `chunk`. An Answer of ours, as a record or as
    its JSON, was made from its `hits`, and its text is what counts where it says something else than its claims.
    """
    if isinstance(answer, Answer):
        if answer.abstained:
            return HandedIn((), None, (), abstained=True)
        ours = tuple(ModelClaim(claim.text, tuple(map(_id_of_citation, claim.citations))) for claim in answer.claims)
        return _of_claims(ours, tuple(hit.chunk.id for hit in answer.hits), answer.text)
    if isinstance(answer, str):
        return _of_text(answer, None)
    if not isinstance(answer, Mapping):
        raise TypeError(f"an answer must be an Answer, a text or a mapping, not {type(answer).__name__}")
    if answer.get("abstained") is True:
        return HandedIn((), None, (), abstained=True)
    if isinstance(answer.get("claims"), Sequence) and not isinstance(answer["claims"], str):
        listed = _hits(answer)
        if listed is None:
            listed = _sources({"sources": answer.get("sources")}, "the answer")
        claims = tuple(_claim(number, given) for number, given in enumerate(answer["claims"], 1))
        shown = answer.get("text")
        return _of_claims(claims, listed, shown if isinstance(shown, str) else None)
    text = next((answer[key] for key in _TEXT_KEYS if isinstance(answer.get(key), str)), None)
    if text is None:
        keys = ", ".join(map(str, answer)) or "no keys"
        raise ValueError(f"an answer needs text (or answer), or claims; this one has {keys}")
    return _of_text(text, _sources(answer, "the answer"))


def claims_of_text(handed_in: HandedIn, labels: Mapping[str, str], passages: Collection[str]) -> tuple[ModelClaim, ...]:
    """The claims, sentence by sentence, with the ids that they cite.

    `labels` (to chunk ids) and `passages` are those of the cited texts: a label is a mark, and a mark that a passage
    holds word for word is a quotation of the document's own.
    """
    if not handed_in.marked:
        return handed_in.claims
    sources = handed_in.sources or ()
    return tuple(
        ModelClaim(claim.text, tuple(_named(reference, sources) for reference in claim.references))
        for whole in handed_in.claims
        for claim in split_claims(whole.text, labels=labels, passages=passages)
    )


def _of_claims(claims: tuple[ModelClaim, ...], sources: tuple[str, ...] | None, shown: str | None = None) -> HandedIn:
    """`shown`: the text that a reader sees; where it says something else than the claims, it is what is checked."""
    if not claims:
        raise ValueError("the answer has no claims; there is nothing to check")
    if shown is not None and _words_of(shown) != "".join(_words_of(claim.text) for claim in claims):
        return _of_text(shown, sources)
    named = sources or ()
    resolved = tuple(
        ModelClaim(claim.text, tuple(_named(r, named) for cited in claim.cited for r in references(cited)))
        for claim in claims
    )
    return HandedIn(resolved, sources, tuple(dict.fromkeys(cited for claim in resolved for cited in claim.cited)))


def _of_text(text: str, sources: tuple[str, ...] | None) -> HandedIn:
    marked = split_claims(text)
    if not any(claim.text for claim in marked):
        raise ValueError("the answer holds no text; there is nothing to check")
    cited = (_named(reference, sources or ()) for claim in marked for reference in claim.references)
    return HandedIn((ModelClaim(text, ()),), sources, tuple(dict.fromkeys(cited)), marked=True)


def _named(reference: Reference, sources: Sequence[str]) -> str:
    """The chunk id behind a number of the answer's own list of sources; anything else as it was written."""
    number = reference.number
    if number is not None and 1 <= number <= len(sources):
        return sources[number - 1]
    return reference.chunk_id or reference.written


def _hits(answer: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The ids of the `hits` in the JSON of an Answer of ours."""
    hits = answer.get("hits")
    listed = hits.get("hits") if isinstance(hits, Mapping) else None
    return _sources({"sources": listed}, "the answer's hits") if isinstance(listed, Sequence) else None


def _claim(number: int, given: object) -> ModelClaim:
    if not isinstance(given, Mapping) or not isinstance(given.get("text"), str):
        raise ValueError(f"claim {number} needs a text")
    return ModelClaim(given["text"], _sources(given, f"claim {number}") or ())


def _sources(given: Mapping[str, Any], subject: str) -> tuple[str, ...] | None:
    listed = next((given[key] for key in _SOURCE_KEYS if given.get(key) is not None), None)
    if listed is None:
        return None
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise ValueError(f"the sources of {subject} must be a list of chunk ids, not {listed!r}")
    return tuple(_id_of(source, subject) for source in listed)


def _id_of(source: object, subject: str) -> str:
    if isinstance(source, Mapping):
        chunk = source.get("chunk")
        held = chunk if isinstance(chunk, Mapping) else source
        source = next((held[key] for key in _ID_KEYS if isinstance(held.get(key), str)), source)
    if not isinstance(source, str):
        raise ValueError(f"a source of {subject} must be a chunk id, or hold one as chunk_id, not {source!r}")
    found = references(source)
    return found[0].chunk_id or source if len(found) == 1 else source


def _id_of_citation(citation: Citation) -> str:
    return citation.chunk.id if citation.chunk is not None else citation.cited


def _words_of(text: str) -> str:
    """What a text says without its marks and spaces."""
    return "".join("".join(claim.text for claim in split_claims(text)).split())
