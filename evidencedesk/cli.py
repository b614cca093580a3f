"""The command line: a thin door onto Desk. It opens the file, calls one verb, prints, and sets the exit code.

What is asked for goes to stdout: words for people, or the records as JSON. Everything else (notes, the
progress bar, errors) goes to stderr.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.cells import cell_len
from typer.core import TyperGroup

from evidencedesk import __version__, connections, embeddings, retrieval, schema
from evidencedesk.desk import Desk
from evidencedesk.errors import DeskMissing, EvidenceDeskError
from evidencedesk.index import Progress
from evidencedesk.records import (
    Chunk,
    Document,
    DocumentSummary,
    Failed,
    Hit,
    Hits,
    IngestProgress,
    IngestReport,
    Mode,
    Skipped,
    Status,
    UpdateReport,
)
from evidencedesk.retrieval import Fusion

DONE, ERROR, USAGE, ABSTAINED, DONE_WITH_FAILURES, INTERRUPTED, READER_GONE = 0, 1, 2, 3, 4, 130, 141
"""Exit codes; the last two are 128 + SIGINT and 128 + SIGPIPE, as a shell reports them."""

DEFAULT_PATH = Path("desk.db")
_MOST_HITS = 1_000_000_000  # SQLite's integers end, so -k does too
_CHUNK_ID = re.compile(r":c[0-9]+$")  # no doc_id ends so: it ends with its version or its language
# A document must not steer the terminal. U+FFFD stands for control characters, save line ends and tabs.
_CONTROLS: dict[int, str | None] = dict.fromkeys([*range(32), *range(127, 160)], "\ufffd")
_CONTROLS |= {ord("\n"): "\n", ord("\t"): "\t", ord("\r"): None}


# ---------------------------------------------------------------- records as JSON


def json_value(value: object) -> Any:
    """Give a record as what `json.dumps` takes, under the same field names.

    Instants become ISO 8601 in UTC with Z, tuples lists. TypeError for an object that is no part of a record.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    # Before sequences: Hits is both, and its reason must not be lost.
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): json_value(held) for key, held in value.items()}
    if isinstance(value, Sequence):
        return [json_value(held) for held in value]
    raise TypeError(f"{type(value).__name__} is no part of a record: {value!r}")


def _print_json(value: object) -> None:
    typer.echo(json.dumps(json_value(value), ensure_ascii=False, indent=2))


# ---------------------------------------------------------------- words for people


def _printable(text: str) -> str:
    return text.translate(_CONTROLS)


def _print(text: str = "") -> None:
    typer.echo(_printable(text))


def _print_aside(text: str) -> None:
    """One line on stderr."""
    typer.echo(" ".join(_printable(text).splitlines()), err=True)


def _print_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns, as wide as they need to be: neither a terminal nor a pipe gets anything cut or folded."""
    lines = [headings, *([_printable(cell) for cell in row] for row in rows)]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for *cells, last in lines:
        padded = [cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=False)]
        _print("  ".join([*padded, last]))


def _instant(instant: datetime | None) -> str:
    """Write an instant for people: UTC, to the second; a day's first instant as the day alone."""
    if instant is None:
        return "open"
    plain = f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    return plain.removesuffix(" 00:00:00Z")


def _validity(start: datetime, end: datetime | None) -> str:
    return f"from {_instant(start)}" + ("" if end is None else f" until {_instant(end)}")


def _print_summaries(summaries: Sequence[DocumentSummary]) -> None:
    _print_table(
        ("doc_id", "version", "lang", "status", "valid from", "valid to", "chunks", "title"),
        (
            (s.doc_id, s.version, s.lang, s.status, _instant(s.valid_from), _instant(s.valid_to),
             str(s.chunk_count), s.title)
            for s in summaries
        ),
    )  # fmt: skip


_OUTCOMES = ("added", "updated", "unchanged", "superseded", "missing", "withdrawn", "skipped", "failed")


def _print_ingest_report(report: IngestReport) -> None:
    if report.dry_run:
        _print("dry run: nothing was written; a real run would give")
    for outcome in _OUTCOMES:
        entries = getattr(report, outcome)
        _print(f"{outcome:<14} {len(entries):>6}")
        if outcome != "unchanged":
            for entry in entries:
                _print(f"  {_entry(entry)}")
    _print(f"{'texts embedded':<14} {report.embedded:>6}")
    for note in report.notes:
        _print(f"note: {note}")
    if not any(getattr(report, outcome) for outcome in _OUTCOMES):
        _print("note: the folder holds no Markdown or text file")


def _entry(entry: str | Skipped | Failed) -> str:
    if isinstance(entry, Skipped):
        return f"{entry.path}: {entry.reason}"
    if isinstance(entry, Failed):
        place = entry.path if entry.line is None else f"{entry.path}, line {entry.line}"
        # Most messages name the place themselves.
        return entry.error if entry.error.startswith(entry.path) else f"{place}: {entry.error}"
    return entry


def _print_update_report(report: UpdateReport) -> None:
    _print(f"{report.action}: {report.doc_id} is {report.status}; texts embedded: {report.embedded}")
    for doc_id in report.superseded:
        _print(f"superseded: {doc_id}")
    for note in report.notes:
        _print(f"note: {note}")


def _print_hit(rank: int, hit: Hit) -> None:
    status = "" if hit.chunk.status == "current" else f"  ({hit.chunk.status})"
    _print(f"{rank}. {hit.label}{status}")
    cosine = "none" if hit.cosine is None else f"{hit.cosine:.4f}"
    _print(
        f"   score {hit.score:.4f}  bm25 {hit.bm25:.4f} (rank {hit.keyword_rank or '-'})"
        f"  cosine {cosine} (rank {hit.vector_rank or '-'})  {hit.chunk.location.path}"
    )
    # Flush left and whole, so that it can be quoted as it stands.
    _print(hit.chunk.text)
    _print()


def _why_nothing(hits: Hits, as_of: str | None, filters: Mapping[str, str | None]) -> str:
    when = "now" if as_of is None else f"as of {as_of}"
    given = " ".join(f"{option} {value}" for option, value in filters.items() if value is not None)
    if hits.reason == "no_terms":
        return "the question holds no word or number to search for; words such as `the` do not count"
    if hits.reason == "nothing_in_force":
        return f"no document is in force {when}; `evidencedesk documents` lists what there is"
    return f"nothing in force {when} matches the question" + (f" with {given}" if given else "")


def _print_chunk(chunk: Chunk, title: str) -> None:
    _print(retrieval.label(chunk, title))
    _print(f"{chunk.status}, version {chunk.version}, lang {chunk.lang}, {chunk.location.path}")
    _print()
    _print(chunk.text)


def _print_document(document: Document) -> None:
    _print(f"{document.title} [{document.doc_id}]")
    _print(f"{document.status}, valid {_validity(document.valid_from, document.valid_to)}")
    _print(f"version {document.version}, lang {document.lang}, family {document.family}, {document.path}")
    for key, value in document.metadata.items():
        plain = value if isinstance(value, str) else json.dumps(json_value(value), ensure_ascii=False)
        _print(f"{key}: {plain}")
    for chunk in document.chunks:
        _print()
        _print(retrieval.label(chunk, document.title))
        _print(chunk.text)


@contextmanager
def _progress_bar() -> Iterator[Progress]:
    """Show a bar on stderr where that is a terminal; what it gives is to be called after each file."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    path_column = Column(no_wrap=True, overflow="ellipsis", ratio=1)
    columns = (
        BarColumn(bar_width=20),
        TextColumn("{task.fields[counts]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[path]}", markup=False, table_column=path_column),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console, expand=True, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("ingest", total=None, counts="reading the folder", path="")

        def draw(progress: IngestProgress) -> None:
            done, total = progress.files_done, progress.files_total
            counts = f"{done}/{total} files, {progress.texts_embedded} texts embedded"
            bar.update(task, total=total, completed=done, counts=counts, path=_printable(progress.path))

        yield draw


class _Notes(logging.Handler):
    """Shows the library's warnings as notes on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        _print_aside(f"note: {record.getMessage()}")


_notes = _Notes()


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
            _print_aside("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except (EvidenceDeskError, OSError, ValueError) as error:
            _print_aside(f"error: {error}")
            raise typer.Exit(ERROR) from error


def _examples(*commands: str) -> str:
    # \b keeps the lines of a paragraph as they are.
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])


_HELP = """Search a folder of versioned documents, and get answers only from what is in force.

\b
Start with three lines:
  evidencedesk ingest corpus
  evidencedesk search "How long do I have to return a bike?"
  evidencedesk history kc-returns

The first makes desk.db from the Markdown and text files below corpus; run it again whenever they change, and
only what changed is read in. --db PATH, or the variable EVIDENCEDESK_DB, names another file.

\b
Exit codes:
  0  done, or found            3  nothing found
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


def _as_utf8(text: str | None) -> str | None:
    """Read an argument as UTF-8, which Python takes apart in a C locale; what is none becomes U+FFFD."""
    return None if text is None else os.fsencode(text).decode("utf-8", "replace")


def _date_option(text: str | None) -> str | None:
    text = _as_utf8(text)
    try:
        retrieval.instant(text)
    except ValueError as error:
        raise typer.BadParameter(str(error).removeprefix("as_of: ")) from error
    return text


def _embedder_option(name: str) -> str:
    if name != "auto":
        try:
            embeddings.resolve(name)
        except ValueError as error:
            raise typer.BadParameter(f"{name!r} is none of auto, e5, toy, openai:MODEL, none") from error
    return name


def _version_option(wanted: bool) -> None:
    if wanted:
        _print(f"evidencedesk {__version__}")
        raise typer.Exit(DONE)


_Db = Annotated[
    Path,
    typer.Option("--db", metavar="PATH", envvar="EVIDENCEDESK_DB", show_envvar=True, help="The desk's file."),
]
_EmbedderName = Annotated[
    str,
    typer.Option(
        "--embedder", metavar="auto|e5|toy|openai:MODEL|none", callback=_embedder_option,
        help="What makes vectors. auto: the file's own; for a new file e5 if installed. none: keywords only.",
    ),
]  # fmt: skip
_Json = Annotated[bool, typer.Option("--json", help="Print the records as JSON, nothing else, on stdout.")]
_Lang = Annotated[
    str | None,
    typer.Option("--lang", metavar="TAG", callback=_as_utf8, help="Only this language; en takes en-GB too."),
]


@app.callback()
def _program(
    version: Annotated[
        bool, typer.Option("--version", callback=_version_option, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    logging.getLogger("evidencedesk").addHandler(_notes)


def _open_to_read(db: Path, embedder: str = "none") -> Desk:
    return Desk.open(db, embedder=embedder, read_only=True, create=False)


def _require(path: Path, kind: str) -> None:
    # Looked at before the desk is opened, so that a mistyped path leaves no new database behind.
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such {kind}; check the path")


# ---------------------------------------------------------------- commands that write


@app.command(
    epilog=_examples(
        "evidencedesk ingest corpus",
        "evidencedesk ingest corpus --dry-run",
        "evidencedesk ingest corpus --db shop.db --embedder toy",
    )
)
def ingest(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Its .md, .markdown and .txt files.")],
    db: _Db = DEFAULT_PATH,
    embedder: _EmbedderName = "auto",
    root: Annotated[
        str | None,
        typer.Option(
            "--root", metavar="NAME", callback=_as_utf8,
            help="Remember the folder under this name, not its own; files that vanish from it are reported.",
        ),
    ] = None,
    chunk_chars: Annotated[
        int | None,
        typer.Option("--chunk-chars", metavar="N", min=40, help="Limit of a chunk, for a new file only."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report, but write and embed nothing.")] = False,
    as_json: _Json = False,
) -> None:  # fmt: skip
    """Bring in a folder, making the file if there is none.

    Each document is stored whole or not at all, and an unchanged one costs nothing. A bad file stops nothing:
    it is reported with its line, and the exit code is 4.
    """
    _require(folder, "folder")
    place = ":memory:" if dry_run and not schema.exists(db) else db
    latest: IngestProgress | None = None
    with Desk.open(place, embedder=embedder, create=not dry_run, chunk_chars=chunk_chars) as desk:
        try:
            with _progress_bar() as draw:

                def note(progress: IngestProgress) -> None:
                    nonlocal latest
                    latest = progress
                    draw(progress)

                report = desk.ingest(folder, root=root, dry_run=dry_run, progress=note)
        except KeyboardInterrupt:
            _print_aside(_interrupted(latest, dry_run=dry_run))
            raise typer.Exit(INTERRUPTED) from None
    if as_json:
        _print_json(report)
    else:
        _print_ingest_report(report)
    if report.failed:
        raise typer.Exit(DONE_WITH_FAILURES)


def _interrupted(latest: IngestProgress | None, *, dry_run: bool) -> str:
    if dry_run:
        return "interrupted: it was a dry run, nothing was written"
    again = "run the same command again to go on"
    if latest is None:
        return f"interrupted before the first file was done; {again}"
    left = latest.files_total - latest.files_done
    return f"interrupted; files done (each is stored whole): {latest.files_done}, left: {left}; {again}"


@app.command(epilog=_examples("evidencedesk update corpus/kc-returns-v3.md"))
def update(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One Markdown or text file.")],
    db: _Db = DEFAULT_PATH,
    embedder: _EmbedderName = "auto",
    as_json: _Json = False,
) -> None:
    """Store one file in a desk that is there.

    The former text of its doc_id is replaced, and older versions become superseded, in one step.
    """
    _require(file, "file")
    with Desk.open(db, embedder=embedder, create=False) as desk:
        report = desk.update_document(file)
    if as_json:
        _print_json(report)
    else:
        _print_update_report(report)


@app.command(epilog=_examples("evidencedesk promote --db shop.db"))
def promote(db: _Db = DEFAULT_PATH, as_json: _Json = False) -> None:
    """Apply what has come due since the last write.

    Scheduled documents begin, others end. Searches know it anyway; this puts the stored statuses right for
    people who read the file with SQL.
    """
    with Desk.open(db, embedder="none", create=False) as desk:
        changes = desk.promote()
    if as_json:
        _print_json(changes)
        return
    for change in changes:
        _print(f"{change.doc_id}: {change.before} -> {change.after}")
    if not changes:
        _print("nothing has come due")


@app.command(epilog=_examples("evidencedesk upgrade --db shop.db"))
def upgrade(db: _Db = DEFAULT_PATH, as_json: _Json = False) -> None:
    """Bring an older file up to this version, after setting a copy aside."""
    if not schema.exists(db):
        raise DeskMissing(path=str(db), missing="file")
    copy = schema.upgrade(db, connections.find_driver())
    if as_json:
        _print_json({"schema": schema.HEAD, "copy": copy})
    elif copy is None:
        _print(f"{db} has schema {schema.HEAD} already; nothing was written")
    else:
        _print(f"{db} has schema {schema.HEAD} now; as it was before, it is kept in {copy}")


# ---------------------------------------------------------------- commands that read


@app.command(
    epilog=_examples(
        'evidencedesk search "How long do I have to return a bike?"',
        'evidencedesk search "বাইক ফেরত" --lang bn -k 3',
        "evidencedesk search returns --as-of 2025-02-28 --json",
    )
)
def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", callback=_as_utf8, help="Any text.")],
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Most hits to show.")] = 10,
    mode: Annotated[
        Mode, typer.Option("--mode", help="keyword: exact BM25. vector: exact cosine. hybrid: both, weighed.")
    ] = "hybrid",
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="DATE", callback=_date_option,
            help="Search what was in force then: an ISO date (its last instant, UTC) or date and time.",
        ),
    ] = None,
    lang: _Lang = None,
    family: Annotated[
        str | None,
        typer.Option("--family", metavar="NAME", callback=_as_utf8, help="Only versions of this text."),
    ] = None,
    fusion: Annotated[Fusion, typer.Option("--fusion", help="How hybrid joins its two legs.")] = "weighted",
    db: _Db = DEFAULT_PATH,
    embedder: _EmbedderName = "auto",
    as_json: _Json = False,
) -> None:  # fmt: skip
    """Find the chunks in force that answer a question, best first.

    When nothing is found the reason is printed and the exit code is 3.
    """
    needed = "none" if mode == "keyword" and embedder == "auto" else embedder
    with _open_to_read(db, needed) as desk:
        most = min(k, _MOST_HITS)
        hits = desk.search(query, k=most, mode=mode, as_of=as_of, lang=lang, family=family, fusion=fusion)
    if as_json:
        _print_json(hits)
    else:
        for note in hits.notes:
            _print_aside(f"note: {note}")
        if hits.mode != mode and not hits.notes:
            _print_aside("note: this desk has no embedder; searched by keyword")
        for rank, hit in enumerate(hits, 1):
            _print_hit(rank, hit)
        if not hits:
            _print(f"nothing found: {_why_nothing(hits, as_of, {'--lang': lang, '--family': family})}")
    if not hits:
        raise typer.Exit(ABSTAINED)


@app.command(
    epilog=_examples(
        "evidencedesk show kc-returns-v2",
        "evidencedesk show kc-returns --lang bn",
        "evidencedesk show kc-returns-v3:c0",
    )
)
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="DOC_ID|FAMILY|CHUNK_ID", callback=_as_utf8, help="A family means its current document."
        ),
    ],
    lang: _Lang = None,
    db: _Db = DEFAULT_PATH,
    as_json: _Json = False,
) -> None:
    """Show a document with its chunks, or one chunk."""
    with _open_to_read(db) as desk:
        if _CHUNK_ID.search(name):
            chunk = desk.chunk(name)
            if as_json:
                _print_json(chunk)
            else:
                _print_chunk(chunk, desk.document(chunk.doc_id).title)
            return
        document = desk.document(name, lang=lang)
    if as_json:
        _print_json(document)
    else:
        _print_document(document)


@app.command(epilog=_examples("evidencedesk documents", "evidencedesk documents --status superseded --json"))
def documents(
    status: Annotated[Status | None, typer.Option("--status", help="Only documents of this status.")] = None,
    lang: _Lang = None,
    db: _Db = DEFAULT_PATH,
    as_json: _Json = False,
) -> None:
    """List the documents, by family, language and version."""
    with _open_to_read(db) as desk:
        found = desk.documents(status=status, lang=lang)
    if as_json:
        _print_json(found)
    elif found:
        _print_summaries(found)
    else:
        _print("no documents")


@app.command(epilog=_examples("evidencedesk history kc-returns", "evidencedesk history kc-returns --lang bn"))
def history(
    family: Annotated[str, typer.Argument(metavar="FAMILY", callback=_as_utf8, help="A family, or a doc_id of one.")],
    lang: _Lang = None,
    db: _Db = DEFAULT_PATH,
    as_json: _Json = False,
) -> None:
    """List the versions of a text with status and validity."""
    with _open_to_read(db) as desk:
        versions = desk.history(family, lang=lang)
    if as_json:
        _print_json(versions)
    else:
        _print_summaries(versions)


@app.command(epilog=_examples("evidencedesk stale"))
def stale(db: _Db = DEFAULT_PATH, as_json: _Json = False) -> None:
    """List every document that is not the newest of its text.

    superseded is as it should be; outdated_but_current is a fault, and `evidencedesk check` says what to do.
    """
    with _open_to_read(db) as desk:
        rows = desk.staleness()
    if as_json:
        _print_json(rows)
    elif rows:
        _print_table(("doc_id", "version", "problem"), ((s.doc_id, s.version, s.problem) for s in rows))
    else:
        _print("every document is the newest of its text")


@app.command(epilog=_examples("evidencedesk check", "evidencedesk check --db shop.db --json"))
def check(db: _Db = DEFAULT_PATH, as_json: _Json = False) -> None:
    """Look the whole file over, and say what is wrong with it.

    Is it sound, and is everything that was derived as a rebuild would give it? Writes nothing. The exit code
    is 1 when a problem was found.
    """
    with _open_to_read(db) as desk:
        report = desk.check()
    if as_json:
        _print_json(report)
    else:
        for name, fact in report.facts.items():
            _print(f"{name:<14} {fact}")
        for problem in report.problems:
            _print(f"problem: {problem.kind}: {problem.subject}: {problem.detail}; {problem.next_step}")
        _print(f"problems found: {len(report.problems)}")
    if not report.ok:
        raise typer.Exit(ERROR)
