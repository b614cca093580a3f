"""Is a claim supported by its evidence? Real claims, both answers known: what words alone say, and what the check says.

`python -m benchmarks.claims`; README.md beside this file says what is measured.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.common import circumstances, command, is_chosen_on, no_data, rate
from evidencedesk import Desk, strict_json
from evidencedesk.citations.comparing import held_against
from evidencedesk.citations.reading import read
from evidencedesk.citations.signals.words import lost_words, spare_words
from evidencedesk.citations.support import RuleChecker, check_support
from evidencedesk.embeddings import E5Embedder, Vectors
from evidencedesk.evaluation.attacks import CONTROLS, make_attacks
from evidencedesk.records import Support

SETS = ("policy", "bangla", "fever", "wice", "begin")
HALVES = ("choosing", "reported")
RESAMPLES = 1000
SPARE_RATES = (0.3, 0.45, 0.55, 0.6, 0.7, 0.8)
ATTACKED = ("ver_policies", "en_squad2")


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim, the texts it is to be judged by, and whether they support it."""

    id: str
    claim: str
    evidence: tuple[str, ...]
    supported: bool
    kind: str = ""

    @property
    def half(self) -> str:
        return "choosing" if is_chosen_on(self.id) else "reported"


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim and what came out for it."""

    claim: LabelledClaim
    accepted: bool
    support: Support


Way = Callable[[LabelledClaim], tuple[bool, Support]]


class RememberingEmbedder(E5Embedder):
    """e5 that embeds no text twice in one run."""

    def __init__(self) -> None:
        self._known: dict[str, Vectors] = {}

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        unknown = [text for text in dict.fromkeys(texts) if text not in self._known]
        if unknown:
            self._known.update(zip(unknown, super().embed_documents(unknown), strict=True))
        return np.stack([self._known[text] for text in texts])


def read_claims(path: Path) -> list[LabelledClaim]:
    """ValueError names the file and line that is no labelled claim."""
    found = []
    for number, line in strict_json.lines(path.read_text(encoding="utf-8")):
        try:
            row = strict_json.loads(line)
            evidence = tuple(row["evidence"])
            found.append(LabelledClaim(row["id"], row["claim"], evidence, bool(row["supported"]), row.get("kind", "")))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name}, line {number}: {error!r}") from error
    return found


def by_words(claim: LabelledClaim) -> tuple[bool, Support]:
    support = check_support(claim.claim, "\n".join(claim.evidence))
    return support.words_ok, support


def by_check(claim: LabelledClaim, checker: RuleChecker) -> tuple[bool, Support]:
    (support,) = checker.check(claim.claim, ["\n".join(claim.evidence)])
    return support.ok, support


def by_each_alone(claim: LabelledClaim, checker: RuleChecker) -> tuple[bool, Support]:
    """Judge by each text alone; one that supports the claim is enough. The support is that one's, else the first's."""
    found = checker.check(claim.claim, claim.evidence)
    best = next((support for support in found if support.ok), found[0])
    return best.ok, best


def balanced_accuracy(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Mean of the share of supported claims accepted and of unsupported ones refused; pairs are (accepted, supported).

    ValueError without a claim of each kind: then there is nothing to balance.
    """
    of_supported = [accepted for accepted, supported in pairs if supported]
    of_others = [not accepted for accepted, supported in pairs if not supported]
    if not of_supported or not of_others:
        raise ValueError("balanced accuracy needs supported and unsupported claims")
    return (sum(of_supported) / len(of_supported) + sum(of_others) / len(of_others)) / 2


def bootstrap(pairs: Sequence[tuple[bool, bool]], resamples: int = RESAMPLES) -> tuple[float, float]:
    """95 % percentile interval of the balanced accuracy, claims drawn within supported and unsupported, seeded."""
    chance = random.Random(7)
    groups = [[pair for pair in pairs if pair[1] == supported] for supported in (True, False)]
    drawn = (
        balanced_accuracy([pair for group in groups for pair in chance.choices(group, k=len(group))])
        for _ in range(resamples)
    )
    ordered = sorted(drawn)
    return ordered[int(0.025 * resamples)], ordered[int(0.975 * resamples)]


def judge(claims: Sequence[LabelledClaim], way: Way) -> tuple[list[Judged], float]:
    """Judge every claim, each evidence read anew; give the median milliseconds of one as well."""
    judged, milliseconds = [], []
    for claim in claims:
        read.cache_clear()
        begun = perf_counter()
        accepted, support = way(claim)
        milliseconds.append(1000 * (perf_counter() - begun))
        judged.append(Judged(claim, accepted, support))
    return judged, median(milliseconds)


def described(judged: Sequence[Judged]) -> str:
    pairs = [(one.accepted, one.claim.supported) for one in judged]
    right = sum(accepted and supported for accepted, supported in pairs)
    accepted, supported = sum(a for a, _ in pairs), sum(s for _, s in pairs)
    try:
        balanced = f"{balanced_accuracy(pairs):.3f} [{'{:.3f}, {:.3f}'.format(*bootstrap(pairs))}]"
    except ValueError:
        balanced = "not applicable"
    precision = rate(right, accepted) if accepted else "not applicable"
    recall = rate(right, supported) if supported else "not applicable"
    return f"balanced accuracy {balanced}   precision {precision}   recall {recall}"


def without(judged: Sequence[Judged], name: str) -> float:
    """Give the balanced accuracy if one signal did not exist. The verdict needs no other signal against the claim."""
    pairs = []
    for one in judged:
        against = {signal.name for signal in one.support.signals if signal.effect != "supports"}
        accepted = one.accepted or (bool(against) and against == {name})
        pairs.append((accepted, one.claim.supported))
    return balanced_accuracy(pairs)


def ablation(judged: Sequence[Judged]) -> str:
    names = sorted({signal.name for one in judged for signal in one.support.signals if signal.effect != "supports"})
    whole = balanced_accuracy([(one.accepted, one.claim.supported) for one in judged])
    return "   ".join(f"{name} {without(judged, name) - whole:+.3f}" for name in names)


def accepts(claim: LabelledClaim, rate: float) -> bool:
    """Tell whether the check would accept a claim if it spared so many words (see `spare_words`)."""
    evidence = "\n".join(claim.evidence)
    support = check_support(claim.claim, evidence)
    others = [signal.effect for signal in support.signals if signal.name != "key_words"]
    if not support.signals or any(effect != "supports" for effect in others):
        return False
    held = read(evidence)
    return all(
        lost_words(comparison) <= spare_words(len(comparison.words), rate)
        for sentence in read(claim.claim).sentences
        if not held.quoted(claim.claim[slice(*sentence.span)])
        if (comparison := held_against(claim.claim, sentence, evidence, held.sentences)).words
    )


def attack_claims(folder: Path) -> list[LabelledClaim]:
    """Altered and misplaced sentences of a corpus: none is supported."""
    with Desk.open(":memory:", embedder="none") as desk:
        desk.ingest(folder)
        documents = [desk.document(summary.doc_id) for summary in desk.documents()]
    attacks = make_attacks(documents, per_kind=600)
    return [LabelledClaim(a.chunk_id, a.claim, (a.evidence,), False, a.kind) for a in attacks if a.kind not in CONTROLS]


def spare_curve(sets: Mapping[str, Sequence[LabelledClaim]], attacks: Sequence[LabelledClaim]) -> str:
    """Give one line for each of SPARE_RATES: what sparing more words gains, and what it lets pass."""
    lines = []
    for spared in SPARE_RATES:
        parts = [f"{spared:.2f}"]
        for name, claims in sets.items():
            pairs = [(accepts(claim, spared), claim.supported) for claim in claims]
            accepted, right = sum(a for a, _ in pairs), sum(a and s for a, s in pairs)
            parts.append(f"{name} {balanced_accuracy(pairs):.3f}, {right} of {accepted}")
        parts.append(f"attacks passed {sum(accepts(attack, spared) for attack in attacks)} of {len(attacks)}")
        lines.append("   ".join(parts))
    return "\n".join(lines)


def errors(judged: Sequence[Judged], count: int) -> str:
    wrong = [one for one in judged if one.accepted != one.claim.supported][:count]
    return "\n".join(
        f"    {'accepted' if one.accepted else 'refused'} {one.claim.id} ({one.claim.kind}): {one.claim.claim}\n"
        f"      evidence: {' / '.join(one.claim.evidence)[:400]}\n"
        f"      {one.support.verdict}: {one.support.reason}"
        for one in wrong
    )


def ways_of(name: str, with_e5: bool) -> Mapping[str, Way]:
    rules = RuleChecker()
    ways: dict[str, Way] = {"words alone": by_words, "check": partial(by_check, checker=rules)}
    if name == "wice":
        ways["check, each text alone"] = partial(by_each_alone, checker=rules)
    if with_e5:
        ways["check with e5"] = partial(by_check, checker=RuleChecker(RememberingEmbedder()))
    return ways


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0; 2 when the data is not there, is wrong, or an option is."""
    parser = command("claims", __doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--halves", nargs="+", default=HALVES, choices=HALVES)
    parser.add_argument("--no-e5", action="store_true", help="leave out the check with e5, which takes minutes")
    parser.add_argument("--ablation", action="store_true", help="what each signal adds, for the check without e5")
    parser.add_argument("--spare-words", action="store_true", help="only: what sparing more words would gain and cost")
    parser.add_argument("--errors", type=int, default=0, metavar="N", help="print the first N errors of the check")
    options = parser.parse_args(arguments)
    try:
        sets = {name: read_claims(options.data / "claims" / f"{name}.jsonl") for name in options.sets}
    except FileNotFoundError as error:
        no_data(parser, f"{error.filename} is not there", "claims/")
    except ValueError as error:
        parser.error(str(error))
    print(circumstances())
    if options.spare_words:
        halves = {name: [claim for claim in claims if claim.half == HALVES[0]] for name, claims in sets.items()}
        corpora = [options.data / name / "corpus" for name in ATTACKED]
        print(
            spare_curve(halves, [attack for folder in corpora if folder.is_dir() for attack in attack_claims(folder)])
        )
        return 0
    for name, claims in sets.items():
        for half in options.halves:
            chosen = [claim for claim in claims if claim.half == half]
            print(f"\n{name}, {half} half: {len(chosen)} claims, {sum(claim.supported for claim in chosen)} supported")
            for label, way in ways_of(name, not options.no_e5).items() if chosen else ():
                judged, milliseconds = judge(chosen, way)
                print(f"  {label:<24} {described(judged)}   {milliseconds:.1f} ms", flush=True)
                if label == "check" and options.ablation:
                    print(f"    without: {ablation(judged)}")
                if label == "check" and options.errors:
                    print(errors(judged, options.errors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
