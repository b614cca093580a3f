"""Does anything but a typed error come out, whatever goes in, and does every input take time as its length does?

    python -m benchmarks.fuzz --inputs 1000000
    python -m benchmarks.fuzz --target "front matter" --only 1234    # one input again, with its traceback
    python -m benchmarks.fuzz --target reply --atheris --inputs 100000

Every target takes a text and does with it what the product does with such a text, and looks at what comes out. Inputs
are made from a seed (`benchmarks.fuzz_inputs`), each from its own number, so that any of them can be made again. A
finding is an error that the target does not document, a broken law, an input that takes longer than --seconds of
processor time, or one whose time grows faster than its length. Exit code 1 when there is any.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.fuzz_inputs import CHECKOUT, LONGEST, Inputs, samples
from evidencedesk import Desk, citations, context, results, retrieval, text
from evidencedesk.cases import load_rag_cases
from evidencedesk.chunking import DEFAULT_CHUNK_CHARS, chunk_document, holds
from evidencedesk.documents import decode, parse_document
from evidencedesk.errors import (
    BadOutput,
    CaseError,
    DocumentConflict,
    EncodingError,
    NotFound,
    SourceError,
)
from evidencedesk.llm import RecordedReplies
from evidencedesk.records import Chunk, Hit, Location, ModelRequest, SourceDocument
from evidencedesk.versions import full_doc_id, parse_instant, split_marks, version_parts, version_sort_key

SLOW = 0.2
"""Seconds of processor time: a repeated fragment that takes longer at the length LONGEST ..."""
TIMES = 4
"""... is tried at so many times that length ..."""
STEEP = 1.5
"""... and is a finding when its time grows with a higher power of the length than this."""


class Broken(Exception):
    """A law that does not hold."""


class TooLong(BaseException):
    """The input's time is up. No Exception, so that nothing catches it on its way."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is done with an input."""

    kinds: tuple[str, ...]
    """Of fragments and samples, in `fuzz_inputs`."""
    feed: Callable[[str], None]
    typed: tuple[type[Exception], ...]
    """What it may raise."""
    share: float
    """Of all inputs, before scaling."""


def require(holds_true: object, law: str) -> None:
    if not holds_true:
        raise Broken(law)


# ---------------------------------------------------------------- pure targets


def feed_front_matter(given: str) -> None:
    _require_sound(parse_document(f"---\n{given}\n---\n# Heading\n\nA body.\n", "folder/file.md"))


def feed_markdown(given: str) -> None:
    _require_sound(parse_document(given, "folder/file.md"))


def _require_sound(source: SourceDocument) -> None:
    require(source.doc_id == source.doc_id.strip() and ".." not in source.doc_id.split("/"), "a doc_id is a plain name")
    require(split_marks(source.doc_id, source.lang).version is not None, "a doc_id has its version mark")
    version_sort_key(source.version)
    json.dumps(dict(source.metadata), allow_nan=False).encode()
    if source.effective_from and source.effective_to:
        require(source.effective_from < source.effective_to, "a validity ends after it begins")
    for limit in (DEFAULT_CHUNK_CHARS, 60):
        passages = chunk_document(source, limit)
        require(passages, "a document has a passage")
        for number, passage in enumerate(passages):
            require(passage.ordinal == number, "passages are numbered from 0")
            require(passage.text.strip(), "no passage is blank")
            require(holds(source.source, passage.line_start, passage.line_end, passage.text), "its lines hold its text")


def feed_bytes(given: str) -> None:
    decode(
        given.encode("utf-16" if given.startswith("#") else "utf-8", "surrogatepass") + b"\xff" * ("|" in given), "f"
    )
    decode(given.encode("latin-1", "replace"), "f")


def feed_words(given: str) -> None:
    last = 0
    for token in text.analyse(given):
        require(0 <= token.start < token.end <= len(given) and token.term, "a token has a place and a term")
    for number in text.numbers(given):
        require(0 <= number.start < number.end <= len(given), "a number has a place")
    for span in text.sentences(given):
        require(last <= span.start < span.end <= len(given), "sentences follow one another")
        last = span.end
    require(text.normalise(text.normalise(given)) == text.normalise(given), "normalising twice is normalising once")
    text.key_words(given), text.scripts(given)


def feed_versions(given: str) -> None:
    base, _, lang = given.partition(" ")
    split_marks(base, lang or "en")
    if version_parts(given.strip()):
        name = full_doc_id("a", given, "en")
        require(full_doc_id(name, given, "en") == name, "a full doc_id stays as it is")


def feed_as_of(given: str) -> None:
    for end_of_day in (True, False):
        at = retrieval.instant(given, end_of_day=end_of_day)
        require(at is not None and at.tzinfo is UTC, "an instant is UTC")
        require(at == parse_instant(at.isoformat() if at else ""), "an instant reads back as itself")


def feed_markers(given: str) -> None:
    label = "Returns policy (Returning a bike, lines 11-12) [kc-returns-v3:c0]"
    passages = (given[: len(given) // 2],)
    for claims in (
        citations.split_claims(given),
        citations.split_claims(given, labels={label: "kc-returns-v3:c0", given[:9]: "x-v1:c0"}, passages=passages),
    ):
        for claim in claims:
            require(0 <= claim.span.start <= claim.span.end <= len(given), "a claim has a place")
            require("\x00" not in claim.text or "\x00" in given, "no mark of ours stays in a claim")
    require(citations.references(given), "what cannot be read is one malformed reference")


def feed_support(given: str) -> None:
    claim, _, evidence = given.partition("\n")
    found = citations.check_support(claim, evidence)
    require(0 <= found.share <= 1, "a share lies between 0 and 1")
    for start, end in [found.evidence_span or (0, 0), *(s.evidence_span or (0, 0) for s in found.signals)]:
        require(0 <= start <= end <= len(evidence), "a span lies in the evidence")
    verdict = citations.check_support(claim, claim).verdict
    require(verdict in ("supported", "unchecked"), f"a text does not object to itself: {verdict}")


def feed_handed_in(given: str) -> None:
    citations.claims_of_text(citations.read_answer(given), {}, ())


def feed_handed_in_json(given: str) -> None:
    answer = json.loads(given)
    read = citations.read_answer(answer)
    citations.claims_of_text(read, {}, ("Bikes.",))


def feed_reply(given: str) -> None:
    answer = results.parse(given, model="m")
    require(answer.abstained or any(claim.text.strip() for claim in answer.claims), "an answer says something")
    "".join(claim.text for claim in answer.claims).encode()


def feed_request(given: str) -> None:
    question, _, passage = given.partition("\n")
    chunk = Chunk(
        "kc-returns-v3:c0", "kc-returns-v3", "v3", "en", "current", passage, f"{question}\n{passage}",
        Location("a.md", question, 1, 1 + passage.count("\n")), "kc-returns",
    )  # fmt: skip
    hit = Hit(chunk, "label", 1.0, 1.0, None, 1, None)
    request = context.build_request(
        question, [hit, hit], schema=results.reply_schema(), budget_tokens=10**9, mark=lambda: "0123456789abcdef"
    )
    borders = re.findall(r"^={3,}[^\S\n]*[^\s=]", request.prompt, re.MULTILINE)
    require(len(borders) == 4, "a passage neither closes nor imitates a border")
    request.prompt.encode()


# ---------------------------------------------------------------- targets that have a file


@dataclass(slots=True)
class Model:
    """A language model that replies what it is told to."""

    reply: str = ""
    name: str = "m"

    def complete(self, request: ModelRequest) -> str:
        return self.reply


@dataclass(slots=True)
class Fixture:
    """A desk of the shipped corpus, one that is written to, and a file to read from."""

    desk: Desk
    written: Desk
    file: Path
    model: Model = field(default_factory=Model)

    def feed_cases(self, given: str) -> None:
        self.file.write_bytes(given.encode("utf-8", "surrogatepass"))
        for case in load_rag_cases(self.file):
            require(case.id.strip() and case.question.strip(), "a case has an id and a question")

    def feed_recorded_replies(self, given: str) -> None:
        self.file.write_bytes(given.encode("utf-8", "surrogatepass"))
        RecordedReplies.from_jsonl(self.file)

    def feed_query(self, given: str) -> None:
        for mode in ("hybrid", "keyword"):
            hits = self.desk.search(given, k=5, mode=mode)  # type: ignore[arg-type]
            require(bool(hits) is (hits.reason is None), "hits, or a reason")
            require(all(math.isfinite(hit.score) and hit.chunk.status == "current" for hit in hits), "sound hits")
            require([hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True), "best first")

    def feed_filters(self, given: str) -> None:
        name, _, lang = given.partition(" ")
        for hit in self.desk.search("bike", lang=lang or None, family=name):
            require(hit.chunk.family == name, "a filter filters")
        for look in (self.desk.document, self.desk.chunk, self.desk.history):
            try:
                look(given)  # type: ignore[operator]
            except NotFound as error:
                str(error)

    def feed_question(self, given: str) -> None:
        answer = self.desk.ask(given)
        require(answer.abstained or self.desk.verify(answer).ok, "an answer that was given can be verified")
        require(answer.abstained is (answer.reason != "ok") is (not answer.text), "an abstention has a reason, no text")

    def feed_model(self, given: str) -> None:
        self.model.reply = given
        answer = self.desk.ask("How long do I have to return a bike?", llm=self.model)
        require(answer.abstained or self.desk.verify(answer.text).ok, "an answer that was given can be verified")

    def feed_verify(self, given: str) -> None:
        found = self.desk.verify(given)
        require(found.ok is (found.reason == "ok"), "ok, or a reason")

    def feed_document(self, given: str) -> None:
        source = parse_document(given, "folder/file.md")
        self.written.update_document(source)
        stored = self.written.document(source.doc_id)
        require(stored.chunks and stored.metadata == dict(source.metadata), "a document is stored as it was read")
        if stored.status == "current" and (words := text.tokens(stored.chunks[0].indexed_text)):
            hits = self.written.search(words[0], mode="keyword", k=10**6)
            # A term that is looked for as it was indexed need not read as itself again: `c++` does, `1,000` is 1000.
            require(hits or not text.tokens(words[0]), "what was stored is found")


@contextmanager
def targets() -> Iterator[dict[str, Target]]:
    """Every target by name."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with (
            Desk.open(place / "desk.db", embedder="toy") as desk,
            Desk.open(place / "written.db", embedder="toy") as written,
        ):
            if failed := desk.ingest(CHECKOUT / "corpus").failed:
                raise ValueError(str(failed[0]))
            fixture = Fixture(desk, written, place / "input")
            yield {
                "front matter": Target(("front matter", "instants"), feed_front_matter, (SourceError,), 12),
                "markdown": Target(("markdown", "words"), feed_markdown, (SourceError,), 12),
                "bytes": Target(("markdown", "words"), feed_bytes, (EncodingError,), 4),
                "words": Target(("words",), feed_words, (), 12),
                "versions": Target(("names", "instants"), feed_versions, (ValueError,), 6),
                "as_of": Target(("instants",), feed_as_of, (ValueError,), 10),
                "markers": Target(("markers", "words"), feed_markers, (), 12),
                "support": Target(("words",), feed_support, (), 10),
                "handed in": Target(("markers",), feed_handed_in, (ValueError,), 4),
                "handed in, json": Target(("json",), feed_handed_in_json, (ValueError, TypeError), 4),
                "reply": Target(("json",), feed_reply, (BadOutput,), 12),
                "request": Target(("words", "markers"), feed_request, (ValueError,), 2),
                "cases": Target(("json",), fixture.feed_cases, (CaseError,), 6),
                "recorded replies": Target(("json",), fixture.feed_recorded_replies, (ValueError,), 4),
                "query": Target(("words", "names"), fixture.feed_query, (), 3),
                "filters": Target(("names",), fixture.feed_filters, (), 2),
                "question": Target(("words",), fixture.feed_question, (ValueError,), 1.5),
                "model": Target(("json", "markers"), fixture.feed_model, (), 2),
                "verify": Target(("markers", "words"), fixture.feed_verify, (ValueError,), 2),
                "document": Target(
                    ("markdown", "front matter"), fixture.feed_document, (SourceError, DocumentConflict), 1
                ),
            }  # fmt: skip
            report = written.check()
            if not report.ok:
                raise Broken(f"after all documents: {report.problems[:3]}")


# ---------------------------------------------------------------- running


@dataclass(frozen=True, slots=True)
class Finding:
    target: str
    number: int | None
    """None: of the search for growth."""
    what: str
    given: str


@dataclass(slots=True)
class Tally:
    """What became of a target's inputs."""

    inputs: int = 0
    typed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest_seconds: float = 0.0
    slowest_chars: int = 0
    findings: list[Finding] = field(default_factory=list)


def outcome(target: Target, given: str, seconds: float) -> tuple[BaseException | None, float]:
    """What an input raises, if anything, and its processor time."""
    error: BaseException | None = None
    signal.setitimer(signal.ITIMER_PROF, seconds)
    started = time.process_time()
    try:
        target.feed(given)
    except (Exception, TooLong) as raised:  # noqa: BLE001 - what comes is what is looked for
        error = raised
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return error, time.process_time() - started


def _stop(*_: object) -> None:
    raise TooLong


def is_finding(target: Target, error: BaseException | None) -> bool:
    return error is not None and not isinstance(error, target.typed)


def described(error: BaseException) -> str:
    """Type, sentence and place of an error: two findings with the same are one fault."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "evidencedesk" in frame.filename] or frames
    where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}: {str(error)[:200]} ({where})"


def shortened(target: Target, given: str, seconds: float) -> str:
    """A shorter input that ends in the same error at the same place."""
    error, _ = outcome(target, given, seconds)
    if error is None or isinstance(error, TooLong):
        return given
    sign = (type(error), described(error).rpartition("(")[2])
    size = len(given) // 2
    until = time.monotonic() + 20
    while size and time.monotonic() < until:
        for start in range(0, len(given), size):
            shorter = given[:start] + given[start + size :]
            found, _ = outcome(target, shorter, seconds)
            if is_finding(target, found) and found and (type(found), described(found).rpartition("(")[2]) == sign:
                given = shorter
                break
        else:
            size //= 2
    return given


def run(name: str, target: Target, inputs: Inputs, numbers: range, seed: int, seconds: float) -> Tally:
    tally, seen = Tally(), set[str]()
    for number in numbers:
        given = inputs.text(Random(f"{seed}/{name}/{number}"))
        error, took = outcome(target, given, seconds)
        tally.inputs += 1
        tally.seconds += took
        if took > tally.slowest_seconds:
            tally.slowest_seconds, tally.slowest_chars = took, len(given)
        if error is None:
            continue
        if not is_finding(target, error):
            tally.typed[type(error).__name__] += 1
            continue
        what = f"takes more than {seconds:g} s" if isinstance(error, TooLong) else described(error)
        if what.rpartition("(")[2] not in seen:
            seen.add(what.rpartition("(")[2])
            tally.findings.append(Finding(name, number, what, shortened(target, given, seconds)))
    return tally


def growth(name: str, target: Target, inputs: Inputs, count: int, seed: int, seconds: float) -> Tally:
    """Repeated fragments at two lengths: does the time grow faster than the length?"""
    tally, random = Tally(), Random(f"{seed}/{name}/growth")
    for _ in range(count):
        pumped = inputs.pumped(random)
        long = pumped.text(LONGEST)
        error, took = outcome(target, long, seconds)
        tally.inputs += 1
        tally.seconds += took
        if took > tally.slowest_seconds:
            tally.slowest_seconds, tally.slowest_chars = took, len(long)
        if is_finding(target, error) and error is not None:
            what = f"takes more than {seconds:g} s" if isinstance(error, TooLong) else described(error)
            tally.findings.append(Finding(name, None, what, repr(pumped)))
        elif took > SLOW:
            # Some readings are cached: each time another text.
            least, most = (
                min(outcome(target, pumped.text(length) + "x" * n, TIMES**2 * seconds)[1] for n in (1, 2, 3))
                for length in (LONGEST, TIMES * LONGEST)
            )
            power = math.log(most / max(least, 1e-4)) / math.log(TIMES)
            if power > STEEP:
                what = f"{least:.2f} s for {LONGEST} characters, {most:.2f} s for {TIMES} times as many: {power:.1f}"
                tally.findings.append(Finding(name, None, what, repr(pumped)))
    return tally


def report(tallies: Mapping[str, tuple[Tally, Tally]]) -> str:
    rows = [f"{'target':<18}{'inputs':>9}{'typed errors':>14}{'mean ms':>9}{'slowest ms':>12}{'(chars)':>9}"
            f"{'grown':>7}{'slowest ms':>12}{'findings':>10}"]  # fmt: skip
    for name, (tally, grown) in tallies.items():
        mean = tally.seconds / max(1, tally.inputs)
        rows.append(
            f"{name:<18}{tally.inputs:>9}{sum(tally.typed.values()):>14}{1000 * mean:>9.2f}"
            f"{1000 * tally.slowest_seconds:>12.0f}{tally.slowest_chars:>9}{grown.inputs:>7}"
            f"{1000 * grown.slowest_seconds:>12.0f}{len(tally.findings) + len(grown.findings):>10}"
        )
    every = sum(tally.inputs + grown.inputs for tally, grown in tallies.values())
    found = [finding for pair in tallies.values() for tally in pair for finding in tally.findings]
    rows.append(f"{every} inputs, {len(found)} findings")
    rows += [
        f"\n{finding.target}, {'growth' if finding.number is None else f'input {finding.number}'}: {finding.what}\n"
        f"  {finding.given[:1500]!r}"
        for finding in found
    ]
    return "\n".join(rows)


# ---------------------------------------------------------------- atheris


def guided(target: Target, inputs: int, seconds: float) -> None:
    """Let atheris choose the inputs by what they reach; ends the process, with its own report of a crash."""
    import atheris  # type: ignore[import-not-found]

    def one(data: bytes) -> None:
        given = data.decode("utf-8", "surrogateescape")
        error, _ = outcome(target, given, seconds)
        if is_finding(target, error) and error is not None:
            raise error

    atheris.instrument_all()
    atheris.Setup([sys.argv[0], f"-atheris_runs={inputs}", "-max_len=4096", "-print_final_stats=1"], one)
    atheris.Fuzz()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="of all targets together")
    parser.add_argument("--growth", type=int, default=300, help="repeated fragments a target (default: 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="processor time that an input may take")
    parser.add_argument("--target", action="append", help="only this one; may be given several times")
    parser.add_argument("--only", type=int, help="one input by its number, with the traceback")
    parser.add_argument("--atheris", action="store_true", help="let atheris make the inputs of one target")
    parser.add_argument("--json", type=Path, help="write the findings there")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGPROF, _stop)
    with targets() as every:
        names = options.target or list(every)
        if unknown := [name for name in names if name not in every]:
            parser.error(f"there is no target {unknown[0]}; choose from {', '.join(every)}")
        if options.atheris:
            guided(every[names[0]], options.inputs, options.seconds)
            return 0
        inputs = {name: Inputs(every[name].kinds, samples()) for name in names}
        if options.only is not None:
            given = inputs[names[0]].text(Random(f"{options.seed}/{names[0]}/{options.only}"))
            print(ascii(given))
            every[names[0]].feed(given)
            return 0
        share = sum(every[name].share for name in names)
        tallies: dict[str, tuple[Tally, Tally]] = {}
        print(f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, seed {options.seed}", flush=True)
        for name in names:
            target, count = every[name], math.ceil(options.inputs * every[name].share / share)
            tally = run(name, target, inputs[name], range(count), options.seed, options.seconds)
            grown = growth(name, target, inputs[name], options.growth, options.seed, options.seconds)
            tallies[name] = (tally, grown)
            print(f"  {name}: {tally.inputs + grown.inputs} inputs, {len(tally.findings + grown.findings)} findings",
                  file=sys.stderr, flush=True)  # fmt: skip
    shown = report(tallies)
    print(shown.encode("utf-8", "backslashreplace").decode())
    findings: list[dict[str, Any]] = [
        {"target": f.target, "number": f.number, "what": f.what, "given": f.given}
        for pair in tallies.values() for tally in pair for f in tally.findings
    ]  # fmt: skip
    if options.json is not None:
        options.json.write_text(json.dumps(findings, indent=1), encoding="utf-8")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
