"""Says whether a text supports a claim: named signals, each with the words it rests on, and one verdict.

How a claim becomes a verdict:

1. A sentence of the claim that stands in the evidence as it is, is supported: a quotation needs no more.
2. Any other is held against the sentence of the evidence that holds most of it, and a neighbour if
   that adds to it.
3. Each of `signals.SIGNALS` looks at one thing: amounts, codes, negation, opposites, what is free of charge,
   qualifiers, names, conditions and limits, words.
4. The gravest effect decides: one that contradicts gives `contradicted` (where most of the words agree; else the two
   speak of different things), one that lacks `unsupported`, one that cannot be decided `unchecked`, none `supported`.
5. A claim of several sentences is as good as its worst. A sentence that says nothing (`Yes.`) is passed over; where
   there is no other, and for a question, the verdict is `unchecked`: there was nothing to prove.

A claim in another language than its evidence shares no words with it: amounts, codes, denials and opposites are
compared, and the verdict is `unchecked` unless a similarity finds the sentence that it translates.

Words cannot see everything: docs/decisions/claims.md says what this check finds, and what it does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from evidencedesk.citations.comparing import Comparison, held_against
from evidencedesk.citations.reading import Reading, Sentence, read
from evidencedesk.citations.signals import ACROSS_LANGUAGES, ACROSS_LANGUAGES_UNALIGNED, SIGNALS
from evidencedesk.embeddings import Embedder, embed_in_batches
from evidencedesk.records import Signal, SignalEffect, Support, SupportVerdict
from evidencedesk.text import Span, scripts

WORDS_OK = 0.6
"""Share of key words from which words alone pass a claim."""
LONGEST_CLAIM, MOST_AMOUNTS = 1500, 30
"""Characters and amounts of a sentence beyond which it is no single claim, and is not checked."""


@dataclass(frozen=True, slots=True)
class LikenessScale:
    """What an embedder's cosines say: they mean nothing across embedders."""

    paraphrase: float
    """Two sentences of one language with this cosine say the same in other words."""
    translation: float
    """The same for two sentences of different languages."""


LIKENESS_SCALES: Mapping[str, LikenessScale] = {"e5 multilingual-e5-small": LikenessScale(0.91, 0.86)}
"""Embedder -> its scale. Chosen as docs/decisions/claims.md says."""


@dataclass(frozen=True, slots=True)
class Similarity:
    """How alike sentences are in meaning, and from where on they are alike enough."""

    cosines: Callable[[str, Sequence[str]], Sequence[float]]
    """Takes one sentence and some others; gives one cosine each."""
    scale: LikenessScale


class SupportChecker(Protocol):
    """What a desk needs of a check: its name, and one Support for each evidence, in order.

    Each evidence is judged alone: never put together with the others.
    """

    @property
    def name(self) -> str: ...
    def check(self, claim: str, evidences: Sequence[str]) -> Sequence[Support]: ...


def check_support(claim: str, evidence: str, *, similarity: Similarity | None = None) -> Support:
    """Judge whether `evidence` supports `claim`. Pure; raises nothing on any text save what `similarity` raises.

    `numbers_missing`, `share` and `words_ok` look at words and numbers of the whole evidence; verdict, reason and
    signals at everything. Spans are characters of `claim` and `evidence`.
    """
    said, held = read(claim), read(evidence)
    values = {number.value for number in held.numbers}
    missing = tuple(dict.fromkeys(claim[n.start : n.end] for n in said.numbers if n.value not in values))
    known = set(held.key_words)
    share = round(sum(word in known for word in said.key_words) / len(said.key_words), 3) if said.key_words else 1.0
    verdict, reason, signals, span = _judged(claim, said, evidence, held, similarity)
    return Support(missing, share, not missing and share >= WORDS_OK, verdict, reason, signals, span)


_Judgement = tuple[SupportVerdict, str, tuple[Signal, ...], tuple[int, int] | None]
_GRAVITY: Sequence[SupportVerdict] = ("supported", "unchecked", "unsupported", "contradicted")


def _judged(claim: str, said: Reading, evidence: str, held: Reading, similarity: Similarity | None) -> _Judgement:
    own = {_script(said), _script(held)}
    translated = len(own) == 2 and None not in own
    judged = [
        _sentence_judged(claim, sentence, evidence, held, similarity, translated)
        for sentence in said.sentences
        if sentence.amounts or sentence.codes or any(not word.light for word in sentence.words)
    ]
    if not judged:
        return "unchecked", "The claim says nothing that can be checked.", (), None
    verdict, reason, _, span = max(judged, key=lambda judgement: _GRAVITY.index(judgement[0]))
    return verdict, reason, tuple(signal for judgement in judged for signal in judgement[2]), span


def _script(reading: Reading) -> str | None:
    """Name the script that most words of a text are written in; None for a text without words."""
    letters = Counter(word[:1] for word in reading.key_words)
    written = Counter[str]()
    for letter, count in letters.items():
        for script in {"Latn"} if letter.isascii() else scripts(letter):
            written[script] += count
    return written.most_common(1)[0][0] if written else None


def _sentence_judged(
    claim: str,
    sentence: Sentence,
    evidence: str,
    held: Reading,
    similarity: Similarity | None,
    translated: bool,
) -> _Judgement:
    written = claim[slice(*sentence.span)]
    if written.rstrip("\"'”’)]* ").endswith(("?", "？", "؟")):
        return "unchecked", "A question claims nothing.", (), None
    if quoted := held.quoted(written):
        span = _offsets(quoted)
        signal = Signal("verbatim", "supports", "The evidence says it word for word.", _offsets(sentence.span), span)
        return "supported", _says_so(evidence, span), (signal,), span
    if len(written) > LONGEST_CLAIM or len(sentence.amounts) > MOST_AMOUNTS:
        return "unchecked", "The sentence is too long to be one claim.", (), None
    if not held.sentences:
        return "unsupported", "The evidence is empty.", (), None
    comparison = held_against(claim, sentence, evidence, held.sentences)
    if translated:
        comparison, signals = _translation_signals(comparison, similarity)
    else:
        signals = [signal for find in SIGNALS for signal in find(comparison)]
        if similarity and {signal.name for signal in signals if signal.effect != "supports"} == {"key_words"}:
            _, alike = _most_alike(comparison, similarity.cosines, similarity.scale.paraphrase)
            if alike.effect == "supports":
                signals = [signal for signal in signals if signal.name != "key_words"] + [alike]
    verdict, reason = _verdict(comparison, signals)
    return verdict, reason, tuple(signals), _offsets(comparison.aligned[0].span) if comparison.aligned else None


def _translation_signals(comparison: Comparison, similarity: Similarity | None) -> tuple[Comparison, list[Signal]]:
    """Compare across languages, against the sentence that is most alike where there is a similarity to find it."""
    finders = ACROSS_LANGUAGES if similarity else ACROSS_LANGUAGES_UNALIGNED
    alike = Signal("similarity", "unchecked", "Claim and evidence are in two languages, and nothing here reads both.")
    if similarity:
        best, alike = _most_alike(comparison, similarity.cosines, similarity.scale.translation)
        comparison = replace(comparison, aligned=(best,), missing=())
    return comparison, [*(signal for find in finders for signal in find(comparison)), alike]


def _most_alike(
    comparison: Comparison, cosines: Callable[[str, Sequence[str]], Sequence[float]], enough: float
) -> tuple[Sentence, Signal]:
    """Find the sentence of the evidence that is most alike, and whether it is alike enough to say the same."""
    texts = [comparison.evidence_text[slice(*sentence.span)] for sentence in comparison.evidence]
    found = cosines(comparison.claim_text[slice(*comparison.claim.span)], texts)
    at = max(range(len(texts)), key=lambda at: (found[at], -at))
    effect: SignalEffect = "supports" if found[at] >= enough else "unchecked"
    detail = f"The likest sentence of the evidence has cosine {found[at]:.3f}; from {enough} on it says the same."
    best = comparison.evidence[at]
    return best, Signal("similarity", effect, detail, _offsets(comparison.claim.span), _offsets(best.span))


def _offsets(span: Span) -> tuple[int, int]:
    return span.start, span.end


def _verdict(comparison: Comparison, signals: Sequence[Signal]) -> tuple[SupportVerdict, str]:
    first = {signal.effect: signal.detail for signal in reversed(signals)}
    if "contradicts" in first and comparison.share >= WORDS_OK:
        return "contradicted", first["contradicts"]
    if "lacks" in first or "contradicts" in first:
        return "unsupported", first.get("lacks") or first["contradicts"]
    if "unchecked" in first:
        return "unchecked", first["unchecked"]
    return "supported", _says_so(comparison.evidence_text, _offsets(comparison.aligned[0].span))


def _says_so(evidence: str, span: tuple[int, int]) -> str:
    return f'The evidence says so: "{_shortened(evidence[slice(*span)])}"'


def _shortened(sentence: str) -> str:
    words = " ".join(sentence.split())
    return words if len(words) <= 120 else words[:119].rsplit(" ", 1)[0] + " …"


class RuleChecker:
    """The built-in check: `check_support`, with an embedder's sense of likeness where one is given.

    An embedder is used when the scale of its cosines is known: `scale`, or the built-in one of its name (e5's).
    Without, the rules judge alone. `check` embeds only where likeness could change a verdict, the sentences of the
    claim and of those evidences in one batch; an embedder that fails raises its EmbedderError.
    """

    name = "rules"

    def __init__(self, embedder: Embedder | None = None, *, scale: LikenessScale | None = None) -> None:
        known = LIKENESS_SCALES.get(embedder.name) if embedder is not None else None
        self._scale = scale or known
        self._embedder = embedder

    def check(self, claim: str, evidences: Sequence[str]) -> Sequence[Support]:
        found = [check_support(claim, evidence) for evidence in evidences]
        if self._embedder is None or self._scale is None:
            return found
        doubtful = {evidence for evidence, support in zip(evidences, found, strict=True) if _could_be_alike(support)}
        if not doubtful:
            return found
        similarity = self._similarity(self._embedder, self._scale, (claim, *sorted(doubtful)))
        return [
            check_support(claim, evidence, similarity=similarity) if evidence in doubtful else support
            for evidence, support in zip(evidences, found, strict=True)
        ]

    @staticmethod
    def _similarity(embedder: Embedder, scale: LikenessScale, texts: Sequence[str]) -> Similarity:
        sentences = dict.fromkeys(text[slice(*sentence.span)] for text in texts for sentence in read(text).sentences)
        rows = {text: row for row, text in enumerate(text for text in sentences if any(map(str.isalnum, text)))}
        vectors = embed_in_batches(embedder, list(rows), [f'the sentence "{text[:60]}"' for text in rows])

        def cosines(sentence: str, others: Sequence[str]) -> list[float]:
            own = vectors[rows[sentence]]
            return [float(own @ vectors[rows[other]]) if other in rows else 0.0 for other in others]

        return Similarity(cosines, scale)


def _could_be_alike(support: Support) -> bool:
    """Tell whether words are all that is missing: the only thing that likeness makes up for."""
    lacking = {signal.name for signal in support.signals if signal.effect != "supports"}
    return bool(lacking) and lacking <= {"key_words", "similarity"}
