"""The commands that a file needs over the years."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import evidencedesk
from evidencedesk.cli.printing import counting_bar, print_changes, print_json, print_text
from evidencedesk.cli.program import DEFAULT_PATH, Db, Json, app, as_utf8, embedder_option, examples


@app.command(epilog=examples('evidencedesk withdraw kc-tradein-v1 --reason "the offer has ended"'))
def withdraw(
    doc_id: Annotated[str, typer.Argument(metavar="DOC_ID", callback=as_utf8, help="The document, with its version.")],
    reason: Annotated[str, typer.Option("--reason", callback=as_utf8, help="Why; kept in the file.")],
    db: Db = DEFAULT_PATH,
    as_json: Json = False,
) -> None:
    """Take a document out of force from now on.

    Nothing older of its line comes back to life; searches as of a day before still find it.
    """
    with evidencedesk.Desk.open(db, embedder="none", create=False) as desk:
        changes = desk.withdraw(doc_id, reason=reason)
    if as_json:
        print_json(changes)
    else:
        print_changes(changes, f"{doc_id} was withdrawn before; nothing changed")


@app.command(epilog=examples("evidencedesk reembed toy", "evidencedesk reembed openai:nomic-embed-text --db shop.db"))
def reembed(
    embedder: Annotated[
        str,
        typer.Argument(
            metavar="e5|toy|openai:MODEL|none", callback=embedder_option, help="What makes vectors from now on."
        ),
    ],
    db: Db = DEFAULT_PATH,
    as_json: Json = False,
) -> None:
    """Give the file another embedder.

    The former one answers until every text has its new vector. Interrupted, run it again: it goes on where it was.
    """
    with evidencedesk.Desk.open(db, embedder="none", create=False) as desk, counting_bar("texts") as draw:
        report = desk.reembed(embedder, progress=draw)
    if as_json:
        print_json(report)
    else:
        print_text(f"{db} has the vectors of {report.embedder or 'no embedder'} now, before: {report.former or 'none'}")
        print_text(f"texts {report.texts}, embedded now {report.embedded}")


@app.command(epilog=examples("evidencedesk backup shop-2026-06-01.db --db shop.db"))
def backup(
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new file; one that is there is never replaced.")],
    db: Db = DEFAULT_PATH,
) -> None:
    """Write a copy of the file, while others read and write."""
    with evidencedesk.Desk.open(db, embedder="none", read_only=True, create=False) as desk:
        desk.backup(target)
    print_text(f"{target} holds {db} as it is now; to restore it, put it into place")


@app.command(epilog=examples("evidencedesk upgrade --db shop.db"))
def upgrade(db: Db = DEFAULT_PATH, as_json: Json = False) -> None:
    """Bring an older file up to date; sets a copy aside."""
    from evidencedesk import schema

    copy = evidencedesk.Desk.upgrade(db)
    if as_json:
        print_json({"schema": schema.HEAD, "copy": copy})
    elif copy is None:
        print_text(f"{db} has schema {schema.HEAD} already; nothing was written")
    else:
        print_text(f"{db} has schema {schema.HEAD} now; as it was before, it is kept in {copy}")


@app.command(epilog=examples("evidencedesk compact --db shop.db"))
def compact(db: Db = DEFAULT_PATH) -> None:
    """Make anew what is derived, and free unused space.

    What `check` finds wrong with statuses, statistics or views is mended by it. Needs room for a second file.
    """
    with evidencedesk.Desk.open(db, embedder="none", create=False) as desk:
        desk.compact()
    print_text(f"{db} is compacted")
