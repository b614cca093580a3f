"""What the benchmarks share: sets of questions and what is right for them, the command line, figures and tables."""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NoReturn

from evidencedesk import Desk, DocumentSummary, __version__, strict_json
from evidencedesk.chunking import CHUNKER_VERSION, DEFAULT_CHUNK_CHARS
from evidencedesk.embeddings import resolve
from evidencedesk.evaluation.intervals import wilson
from evidencedesk.text import TEXT_VERSION

CHECKOUT = Path(__file__).resolve().parents[1]
CROSS_LANGUAGE = CHECKOUT / "benchmarks" / "data" / "cross_language.jsonl"
ENGLISH_TWINS = ("kc-returns-v2.md", "kc-returns-v3.md", "kc-shipping-v1.md")
"""The files of the demo corpus that say in English what its Bangla documents say."""

Kind = Literal["answerable", "unanswerable", "adversarial"]


# ---------------------------------------------------------------- sets of questions


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Where questions and documents are. Files that are left out take the cases' `lang` with them."""

    name: str
    cases: Path
    corpus: Path
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A question and what would be right; without `versions` any version is. `as_of`: ISO date, None is now.

    `lang`: only documents in this language are searched.
    """

    id: str
    question: str
    answerable: bool = True
    expected: tuple[str, ...] = ()
    also_acceptable: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    as_of: str | None = None
    lang: str | None = None
    tags: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """An adversarial question is unanswerable and looks answerable."""
        if self.answerable:
            return "answerable"
        return "adversarial" if "adversarial" in self.tags else "unanswerable"


def question_set(name: str, data: Path) -> QuestionSet:
    if name == "cross_language":
        return QuestionSet(name, CROSS_LANGUAGE, CHECKOUT / "corpus")
    if name == "cross_language_alone":
        return QuestionSet(name, CROSS_LANGUAGE, CHECKOUT / "corpus", ENGLISH_TWINS)
    return QuestionSet(name, data / name / "cases.jsonl", data / name / "corpus")


def read_cases(path: Path) -> list[Case]:
    """The cases of a set. ValueError names the line that is none."""
    cases = []
    for number, line in strict_json.lines(path.read_text(encoding="utf-8")):
        try:
            row = strict_json.loads(line)
            case = Case(
                row["id"],
                row["question"],
                row["answerable"],
                tuple(row["expected_doc_ids"]),
                tuple(row.get("also_acceptable_doc_ids", ())),
                tuple(row.get("expected_versions", ())),
                tuple(row["must_cite"]),
                row.get("as_of"),
                row.get("lang"),
                tuple(row.get("tags", ())),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path.name}, line {number}: {error!r}") from error
        cases.append(case)
    return cases


def is_chosen_on(case_id: str) -> bool:
    """Whether it is in the half that settings are chosen on: the SHA-1 of the id is even."""
    return hashlib.sha1(case_id.encode(), usedforsecurity=False).digest()[-1] % 2 == 0


def squashed(text: str) -> str:
    return " ".join(text.split()).casefold()


def is_right_document(case: Case, document: DocumentSummary) -> bool:
    names = {document.doc_id, document.family}
    if not names.isdisjoint(case.also_acceptable):
        return True  # the expected version is one of the expected family and says nothing about this one
    return not names.isdisjoint(case.expected) and (not case.versions or document.version in case.versions)


def is_right_passage(case: Case, document: DocumentSummary, text: str) -> bool:
    return is_right_document(case, document) and any(squashed(phrase) in squashed(text) for phrase in case.phrases)


def desk_path(cache: Path, name: str, embedder: str, corpus: Path) -> Path:
    """Where the desk of just these files, read, cut and embedded in just this way, is kept."""
    made_by = f"{TEXT_VERSION} {CHUNKER_VERSION} {DEFAULT_CHUNK_CHARS} {getattr(resolve(embedder), 'fingerprint', '')}"
    digest = hashlib.blake2b(made_by.encode(), digest_size=6)
    for file in sorted(path for path in corpus.rglob("*") if path.is_file()):
        digest.update(f"\0{file.relative_to(corpus).as_posix()}\0".encode() + file.read_bytes())
    return cache / f"{name}-{embedder}-{digest.hexdigest()}.db"


def opened(source: QuestionSet, embedder: str, cache: Path) -> Desk:
    """The desk of a set, from the cache or new. ValueError for a file that cannot be brought in."""
    desk = Desk.open(desk_path(cache, source.name, embedder, source.corpus), embedder=embedder)
    report = desk.ingest(source.corpus, root=source.name)
    if report.failed:
        desk.close()
        raise ValueError(f"{report.failed[0].path}: {report.failed[0].error}")
    return desk


# ---------------------------------------------------------------- the command line


def command(module: str, description: str | None) -> argparse.ArgumentParser:
    beside = CHECKOUT.parent / "shared" / "evaldata"
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=description)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("EVIDENCEDESK_EVALDATA") or beside))
    return parser


def add_question_sets(parser: argparse.ArgumentParser, default: Sequence[str]) -> None:
    parser.add_argument("--sets", nargs="+", default=default, help=f"default: {' '.join(default)}")
    parser.add_argument("--limit", type=int, help="take only this many cases of each set")
    parser.add_argument("--cache", type=Path, help="keep the desks in this folder, so that the next run embeds nothing")


def chosen_sets(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[QuestionSet]:
    """The sets that are asked for; ends the program with exit code 2 where one is not there."""
    if options.limit is not None and options.limit < 1:
        parser.error("--limit must be at least 1")
    sets = [question_set(name, options.data) for name in options.sets]
    if absent := [source.name for source in sets if not source.cases.is_file()]:
        no_data(parser, f"{options.data} has no {', '.join(absent)}", "the sets")
    return sets


def no_data(parser: argparse.ArgumentParser, why: str, what: str) -> NoReturn:
    """Ends the program with exit code 2."""
    parser.error(
        f"no data to measure on: {why}; name the folder that holds {what} with --data or EVIDENCEDESK_EVALDATA"
    )


@contextmanager
def desks_in(cache: Path | None) -> Iterator[Path]:
    """The folder of the desks; without a cache it is removed at the end."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = cache or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


def circumstances() -> str:
    """What belongs beside figures: the day, the versions, the machine."""
    facts = f"{datetime.now(UTC):%Y-%m-%d}, evidencedesk {__version__}, Python {platform.python_version()}"
    return f"{facts}, {platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"


# ---------------------------------------------------------------- figures and tables


def rate(successes: int, total: int) -> str:
    """n of N, the share and its Wilson interval. ValueError when it is no proportion."""
    low, high = wilson(successes, total)
    return f"{successes} of {total}  {successes / total:.3f} [{low:.3f}, {high:.3f}]"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns, the first row being the headings."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  " + "   ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
