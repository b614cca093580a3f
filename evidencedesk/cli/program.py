"""The program: options, commands, exit codes.

A command takes what it calls from the package when it runs, so that help and usage errors load no library.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import evidencedesk
from evidencedesk.cli.printing import (
    NOTES,
    print_aside,
    print_changes,
    print_chunk,
    print_document,
    print_hit,
    print_ingest_report,
    print_json,
    print_summaries,
    print_table,
    print_text,
    print_update_report,
    progress_bar,
    why_nothing,
)
from evidencedesk.errors import EvidenceDeskError
from evidencedesk.records import PRUNE_LIMIT, Fusion, IngestProgress, Mode, Status

if TYPE_CHECKING:
    from evidencedesk.evaluation.gate import Gate

DONE, ERROR, USAGE, ABSTAINED, DONE_WITH_FAILURES, INTERRUPTED, READER_GONE = 0, 1, 2, 3, 4, 130, 141
"""Exit codes; the last two are 128 + SIGINT and 128 + SIGPIPE, as a shell reports them."""

DEFAULT_PATH = Path("desk.db")
_CHUNK_ID = re.compile(r":c[0-9]+$")  # no doc_id ends so: it ends with its version or its language


# ---------------------------------------------------------------- the program


class _Commands(TyperGroup):
    """Every command ends here when it fails: one line on stderr and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever read us (`| head`) has seen enough; the last flush at exit must not complain either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(READER_GONE) from None
        except KeyboardInterrupt:
            print_aside("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except (EvidenceDeskError, OSError, ValueError, ImportError) as error:
            print_aside(f"error: {error}")
            raise typer.Exit(ERROR) from error


def examples(*commands: str) -> str:
    """The last paragraph of a command's help."""
    # \b keeps the lines of a paragraph as they are.
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


_HELP = """Search a folder of versioned documents, and get answers only from what is in force.

\b
Start with three lines:
  evidencedesk ingest corpus
  evidencedesk ask "How long do I have to return a bike?"
  evidencedesk history kc-returns

The first makes desk.db from the Markdown and text files below corpus; run it again whenever they change, and
only what changed is read in. --db PATH, or the variable EVIDENCEDESK_DB, names another file.

\b
Exit codes:
  0  done, found or answered   3  nothing found, no answer, not verified, or refused by a gate
  1  error, or check failed    4  done, but some files failed
  2  wrong usage               130  interrupted
"""

app = typer.Typer(
    cls=_Commands,
    help=_HELP,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the program on the process's arguments; always ends in SystemExit."""
    for stream in (sys.stdout, sys.stderr):
        # Whatever the locale: documents are UTF-8, and so is what we print of them.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    app(prog_name="evidencedesk")


# ---------------------------------------------------------------- options


def as_utf8(text: str | None) -> str | None:
    """Read an argument as UTF-8, which Python takes apart in a C locale; what is none becomes U+FFFD."""
    return None if text is None else os.fsencode(text).decode("utf-8", "replace")


def date_option(text: str | None) -> str | None:
    """Refuse what is no date or instant as a usage error."""
    text = as_utf8(text)
    if text is not None:
        from evidencedesk import retrieval

        try:
            retrieval.instant(text)
        except ValueError as error:
            raise typer.BadParameter(str(error).removeprefix("as_of: ")) from error
    return text


def embedder_option(name: str) -> str:
    """Refuse a name that is no embedder as a usage error."""
    if name != "auto":
        from evidencedesk import embeddings

        try:
            embeddings.resolve(name)
        except ValueError as error:
            raise typer.BadParameter(f"{name!r} is none of auto, e5, toy, openai:MODEL, none") from error
    return name


def html_option(file: Path | None) -> Path | None:
    """Look whether a report can be written there before anything is asked."""
    if file is not None:
        from evidencedesk.evaluation.html import require_writable

        require_writable(file)
    return file


def limits(option: str, given: list[str] | None) -> dict[str, float]:
    """Read `recall@3=0.9` options; a usage error names what is wrong."""
    if not given:
        return {}
    from evidencedesk.evaluation.report import require_limits

    found: dict[str, float] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError as error:
            raise typer.BadParameter(f"{option} {text!r}: write it as recall@3=0.9 or wrong=0") from error
        try:
            require_limits(*((found, {}) if option == "--fail-under" else ({}, found)))
        except ValueError as error:
            raise typer.BadParameter(f"{option} {text!r}: {error}") from error
    return found


def _version_option(wanted: bool) -> None:
    if wanted:
        print_text(f"evidencedesk {evidencedesk.__version__}")
        raise typer.Exit(DONE)


Db = Annotated[
    Path,
    typer.Option("--db", metavar="PATH", envvar="EVIDENCEDESK_DB", show_envvar=True, help="The desk's file."),
]
EmbedderName = Annotated[
    str,
    typer.Option(
        "--embedder", metavar="auto|e5|toy|openai:MODEL|none", callback=embedder_option,
        help="What makes vectors. auto: the file's own; for a new file e5 if installed. none: keywords only.",
    ),
]  # fmt: skip
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under", metavar="METRIC=VALUE",
        help="The least that a figure may be, such as recall@3=0.9. Shares: recall@1, recall@3, recall@k, mrr, ndcg@k, "
        "answered. Counts: wrong, errors, unanswerable_answered, turned_away.",
    ),
]  # fmt: skip
FailOver = Annotated[
    list[str] | None,
    typer.Option("--fail-over", metavar="METRIC=VALUE", help="The most that a figure may be, such as wrong=0."),
]
GateFile = Annotated[
    Path | None,
    typer.Option(
        "--gate", metavar="CASES",
        help="Commit only if no case comes out worse than before (with --fail-under or --fail-over: if those hold, "
        "whatever else); else undo it and exit with 3. Vectors of new texts stay in the file.",
    ),
]  # fmt: skip
HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", callback=html_option, help="Write what was found as one HTML file (extra report)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the records as JSON, nothing else, on stdout.")]
_Lang = Annotated[
    str | None,
    typer.Option("--lang", metavar="TAG", callback=as_utf8, help="Only this language; en takes en-GB too."),
]


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version_option, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    logging.getLogger("evidencedesk").addHandler(NOTES)


def _open_to_read(db: Path, embedder: str = "none") -> evidencedesk.Desk:
    return evidencedesk.Desk.open(db, embedder=embedder, read_only=True, create=False)


def _require(path: Path, kind: str) -> None:
    # Looked at before the desk is opened, so that a mistyped path leaves no new database behind.
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such {kind}; check the path")


# ---------------------------------------------------------------- commands that write


@app.command(
    epilog=examples(
        "evidencedesk ingest corpus",
        "evidencedesk ingest corpus --dry-run",
        "evidencedesk ingest corpus --prune",
        "evidencedesk ingest corpus --gate data/rag_cases.jsonl --html gate.html",
        "evidencedesk ingest corpus --db shop.db --embedder toy",
    )
)
def ingest(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Its .md, .markdown and .txt files.")],
    db: Db = DEFAULT_PATH,
    embedder: EmbedderName = "auto",
    root: Annotated[
        str | None,
        typer.Option(
            "--root", metavar="NAME", callback=as_utf8,
            help="Remember the folder under this name, not its own; files that vanish from it are reported.",
        ),
    ] = None,
    chunk_chars: Annotated[
        int | None,
        typer.Option("--chunk-chars", metavar="N", min=40, help="Limit of a chunk, for a new file only."),
    ] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Withdraw documents whose files are gone; they return with their files.")
    ] = False,
    prune_limit: Annotated[
        float, typer.Option("--prune-limit", min=0, max=1, help="Refuse to prune more than this share of them.")
    ] = PRUNE_LIMIT,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report, but write nothing; embed nothing either, save with --gate.")
    ] = False,
    gate: GateFile = None,
    fail_under: FailUnder = None,
    fail_over: FailOver = None,
    html: HtmlFile = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Bring in a folder, making the file if there is none.

    Each document is stored whole or not at all, and an unchanged one costs nothing. A bad file stops nothing:
    it is reported with its line, and the exit code is 4.
    """
    _require(folder, "folder")
    from evidencedesk import schema

    asked = _gate(gate, fail_under, fail_over, html)
    place = ":memory:" if dry_run and not schema.exists(db) else db
    latest: IngestProgress | None = None
    with evidencedesk.Desk.open(place, embedder=embedder, create=not dry_run, chunk_chars=chunk_chars) as desk:
        try:
            with progress_bar() as draw:

                def note(progress: IngestProgress) -> None:
                    nonlocal latest
                    latest = progress
                    draw(progress)

                report = desk.ingest(
                    folder, root=root, prune=prune, prune_limit=prune_limit, dry_run=dry_run, gate=asked, progress=note
                )
        except KeyboardInterrupt:
            print_aside(_interrupted(latest, dry_run=dry_run))
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(report)
    else:
        print_ingest_report(report)
    if report.gate is not None and not report.gate.accepted:
        raise typer.Exit(ABSTAINED)
    if report.failed:
        raise typer.Exit(DONE_WITH_FAILURES)


def _gate(
    cases: Path | None, fail_under: list[str] | None, fail_over: list[str] | None, html: Path | None
) -> Gate | None:
    if cases is None:
        if fail_under or fail_over or html is not None:
            raise typer.BadParameter("--fail-under, --fail-over and --html go with --gate CASES")
        return None
    from evidencedesk.evaluation.gate import Gate

    _require(cases, "file")
    return Gate(cases, limits("--fail-under", fail_under), limits("--fail-over", fail_over), html)


def _interrupted(latest: IngestProgress | None, *, dry_run: bool) -> str:
    if dry_run:
        return "interrupted: it was a dry run, nothing was written"
    again = "run the same command again to go on"
    if latest is None:
        return f"interrupted before the first file was done; {again}"
    left = latest.files_total - latest.files_done
    return f"interrupted; files done (each is stored whole): {latest.files_done}, left: {left}; {again}"


@app.command(epilog=examples("evidencedesk update corpus/kc-returns-v3.md"))
def update(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One Markdown or text file.")],
    gate: GateFile = None,
    fail_under: FailUnder = None,
    fail_over: FailOver = None,
    html: HtmlFile = None,
    db: Db = DEFAULT_PATH,
    embedder: EmbedderName = "auto",
    as_json: Json = False,
) -> None:
    """Store one file in a desk that is there.

    The former text of its doc_id is replaced, and older versions become superseded, in one step.
    """
    _require(file, "file")
    asked = _gate(gate, fail_under, fail_over, html)
    with evidencedesk.Desk.open(db, embedder=embedder, create=False) as desk:
        report = desk.update_document(file, gate=asked)
    if as_json:
        print_json(report)
    else:
        print_update_report(report)
    if report.gate is not None and not report.gate.accepted:
        raise typer.Exit(ABSTAINED)


@app.command(epilog=examples("evidencedesk promote --db shop.db"))
def promote(db: Db = DEFAULT_PATH, as_json: Json = False) -> None:
    """Apply what has come due since the last write.

    Scheduled documents begin, others end. Searches know it anyway; this puts the stored statuses right for
    people who read the file with SQL.
    """
    with evidencedesk.Desk.open(db, embedder="none", create=False) as desk:
        changes = desk.promote()
    if as_json:
        print_json(changes)
    else:
        print_changes(changes, "nothing has come due")


# ---------------------------------------------------------------- commands that read


@app.command(
    epilog=examples(
        'evidencedesk search "How long do I have to return a bike?"',
        'evidencedesk search "বাইক ফেরত" --lang bn -k 3',
        "evidencedesk search returns --as-of 2025-02-28 --json",
    )
)
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", callback=as_utf8, help="Any text.")],
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Most hits to show.")] = 10,
    mode: Annotated[
        Mode, typer.Option("--mode", help="keyword: exact BM25. vector: exact cosine. hybrid: both, weighed.")
    ] = "hybrid",
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="DATE", callback=date_option,
            help="Search what was in force then: an ISO date (its last instant, UTC) or date and time.",
        ),
    ] = None,
    lang: _Lang = None,
    family: Annotated[
        str | None,
        typer.Option("--family", metavar="NAME", callback=as_utf8, help="Only versions of this text."),
    ] = None,
    fusion: Annotated[Fusion, typer.Option("--fusion", help="How hybrid joins its two legs.")] = "weighted",
    db: Db = DEFAULT_PATH,
    embedder: EmbedderName = "auto",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Find the chunks in force that answer a question, best first.

    When nothing is found the reason is printed and the exit code is 3.
    """
    needed = "none" if mode == "keyword" and embedder == "auto" else embedder
    with _open_to_read(db, needed) as desk:
        hits = desk.search(query, k=k, mode=mode, as_of=as_of, lang=lang, family=family, fusion=fusion)
    if as_json:
        print_json(hits)
    else:
        for note in hits.notes:
            print_aside(f"note: {note}")
        for rank, hit in enumerate(hits, 1):
            print_hit(rank, hit)
        if not hits:
            print_text(f"nothing found: {why_nothing(hits, as_of, {'--lang': lang, '--family': family})}")
    if not hits:
        raise typer.Exit(ABSTAINED)


@app.command(
    epilog=examples(
        "evidencedesk show kc-returns-v2",
        "evidencedesk show kc-returns --lang bn",
        "evidencedesk show kc-returns-v3:c0",
    )
)
def show(
    name: Annotated[
        str,
        typer.Argument(metavar="DOC_ID|FAMILY|CHUNK_ID", callback=as_utf8, help="A family means its current document."),
    ],
    lang: _Lang = None,
    db: Db = DEFAULT_PATH,
    as_json: Json = False,
) -> None:
    """Show a document with its chunks, or one chunk."""
    with _open_to_read(db) as desk:
        if _CHUNK_ID.search(name):
            chunk = desk.chunk(name)
            if as_json:
                print_json(chunk)
            else:
                print_chunk(chunk, desk.document(chunk.doc_id).title)
            return
        document = desk.document(name, lang=lang)
    if as_json:
        print_json(document)
    else:
        print_document(document)


@app.command(epilog=examples("evidencedesk documents", "evidencedesk documents --status superseded --json"))
def documents(
    status: Annotated[Status | None, typer.Option("--status", help="Only documents of this status.")] = None,
    lang: _Lang = None,
    db: Db = DEFAULT_PATH,
    as_json: Json = False,
) -> None:
    """List the documents, by family, language and version."""
    with _open_to_read(db) as desk:
        found = desk.documents(status=status, lang=lang)
    if as_json:
        print_json(found)
    elif found:
        print_summaries(found)
    else:
        print_text("no documents")


@app.command(epilog=examples("evidencedesk history kc-returns", "evidencedesk history kc-returns --lang bn"))
def history(
    family: Annotated[str, typer.Argument(metavar="FAMILY", callback=as_utf8, help="A family, or a doc_id of one.")],
    lang: _Lang = None,
    db: Db = DEFAULT_PATH,
    as_json: Json = False,
) -> None:
    """List the versions of a text with status and validity."""
    with _open_to_read(db) as desk:
        versions = desk.history(family, lang=lang)
    if as_json:
        print_json(versions)
    else:
        print_summaries(versions)


@app.command(epilog=examples("evidencedesk stale"))
def stale(db: Db = DEFAULT_PATH, as_json: Json = False) -> None:
    """List every document that is not the newest of its text.

    superseded is as it should be; outdated_but_current is a fault, and `evidencedesk check` says what to do.
    """
    with _open_to_read(db) as desk:
        rows = desk.staleness()
    if as_json:
        print_json(rows)
    elif rows:
        print_table(("doc_id", "version", "problem"), ((s.doc_id, s.version, s.problem) for s in rows))
    else:
        print_text("every document is the newest of its text")


@app.command(
    epilog=examples("evidencedesk check", "evidencedesk check --fix", "evidencedesk check --db shop.db --json")
)
def check(
    db: Db = DEFAULT_PATH,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Also embed every text again and compare: as slow as the first ingest.")
    ] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Make anew what is derived, where that mends all that was found.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Look the whole file over, and say what is wrong with it.

    Is it sound, and is everything that was derived as a rebuild would give it? Writes nothing, unless you say --fix:
    that does what `compact` does, and only if no problem asks for a backup or for vectors. The exit code is 1 when a
    problem was found, and stays.
    """
    from evidencedesk import inspection

    with evidencedesk.Desk.open(db, embedder="auto" if vectors else "none", read_only=not fix, create=False) as desk:
        report = desk.check(vectors=vectors)
        if fix and not report.ok:
            if inspection.can_be_made_anew(report):
                desk.compact()
                report = desk.check(vectors=vectors)
            else:
                print_aside("nothing was fixed: not all of it can be made anew; take the steps that are named first")
    if as_json:
        print_json(report)
    else:
        for name, fact in report.facts.items():
            print_text(f"{name:<14} {fact}")
        for problem in report.problems:
            print_text(f"problem: {problem.kind}: {problem.subject}: {problem.detail}; {problem.next_step}")
        print_text(f"problems found: {len(report.problems)}")
    if not report.ok:
        raise typer.Exit(ERROR)


@app.command(epilog=examples("evidencedesk overlap corpus", "evidencedesk overlap corpus --size 200"))
def overlap(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Its .md, .markdown and .txt files.")],
    size: Annotated[int, typer.Option("--size", min=1, help="Characters of a window.")] = 120,
    as_json: Json = False,
) -> None:
    """Show what fixed windows with an overlap do to a folder's sections; needs no desk.

    For overlaps of 0, a third and two thirds of the window: chunks, share of repeated text, sentences left whole.
    """
    _require(folder, "folder")
    rows = evidencedesk.overlap_study(evidencedesk.load_documents(folder), size, (0, size // 3, size * 2 // 3))
    if as_json:
        print_json(rows)
    else:
        shown = (
            (
                str(row.overlap),
                str(row.chunks),
                f"{row.repeated_share:.0%}",
                f"{row.whole_sentences} of {row.sentences}",
            )
            for row in rows
        )
        print_table(("overlap", "chunks", "repeated", "whole sentences"), shown)
