"""The commands that answer, check answers, and remember them."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import evidencedesk
from evidencedesk import strict_json
from evidencedesk.cli.printing import (
    print_answer,
    print_aside,
    print_claims,
    print_explanation,
    print_json,
    print_recorded,
    print_text,
)
from evidencedesk.cli.program import (
    ABSTAINED,
    DEFAULT_PATH,
    Db,
    EmbedderName,
    Json,
    app,
    as_utf8,
    date_option,
    examples,
)
from evidencedesk.errors import ModelUnavailable

if TYPE_CHECKING:
    from evidencedesk.llm import LLMClient


def llm_option(name: str) -> str:
    """Refuse a name that is no model as a usage error."""
    kind, _, model = name.partition(":")
    if name != "none" and (kind != "openai" or not model.strip()):
        raise typer.BadParameter(f"{name!r} is neither none nor openai:MODEL")
    return name


def llm_client(name: str, base_url: str | None) -> LLMClient | None:
    """What answers; None quotes."""
    if name == "none":
        return None
    if find_spec("openai") is None:
        # Said at once: a question that is turned away calls no model, and would hide it.
        problem = 'the package openai is not installed; `pip install "evidencedesk[openai]"`'
        raise ModelUnavailable(model=name, problem=problem)
    return evidencedesk.OpenAIClient(name.partition(":")[2], base_url=base_url)


_AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of", metavar="DATE", callback=date_option,
        help="From what was in force then: an ISO date (its last instant, UTC) or date and time.",
    ),
]  # fmt: skip


@app.command(
    epilog=examples(
        'evidencedesk ask "How long do I have to return a bike?"',
        'evidencedesk ask "বাইক ফেরত দিতে কত দিন সময় পাব?" --explain',
        'evidencedesk ask "Is the battery covered?" --llm openai:gpt-4o-mini --record',
        'evidencedesk ask "Is the battery covered?" --llm openai:qwen3 --base-url http://localhost:11434/v1',
    )
)
def ask(
    question: Annotated[str, typer.Argument(metavar="QUESTION", callback=as_utf8, help="In any language.")],
    llm: Annotated[
        str,
        typer.Option(
            "--llm", metavar="none|openai:MODEL", callback=llm_option,
            help="What answers. none: the best sentences, quoted. OPENAI_API_KEY is the key.",
        ),
    ] = "none",
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", metavar="URL", envvar="OPENAI_BASE_URL", show_envvar=True,
            help="Where the model is served: Ollama, vLLM, llama.cpp.",
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Keep it in the file; `answers --stale` names it when its text changes.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say which stage decided, the scores and the thresholds.")
    ] = False,
    as_of: _AsOf = None,
    db: Db = DEFAULT_PATH,
    embedder: EmbedderName = "auto",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Answer a question, with checked citations, or say why not.

    Only text in force is evidence, and every sentence of the answer is held against what it cites. When retrieval is
    weak, or two documents compete, or a sentence is not supported, the reason is printed and the exit code is 3.
    """
    with evidencedesk.Desk.open(db, embedder=embedder, read_only=not record, create=False) as desk:
        answer = desk.ask(question, llm=llm_client(llm, base_url), record=record, as_of=as_of)
    if as_json:
        print_json(answer)
    else:
        for note in answer.hits.notes:
            print_aside(f"note: {note}")
        print_answer(answer)
        if explain:
            print_explanation(answer)
    if answer.abstained:
        raise typer.Exit(ABSTAINED)


@app.command(epilog=examples("evidencedesk verify answer.json", "evidencedesk ask ... --json | evidencedesk verify -"))
def verify(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", callback=as_utf8, help="JSON, or a text with chunk ids in brackets.")
    ],
    as_of: _AsOf = None,
    db: Db = DEFAULT_PATH,
    embedder: EmbedderName = "auto",
    as_json: Json = False,
) -> None:
    """Check any answer with citations against what is in force.

    Takes what `ask --json` prints; a text such as "Gift cards expire after three years [kc-giftcards-v1:c0]."; or
    JSON of another system: {"text": "... [1]", "sources": ["kc-giftcards-v1:c0"]}. The exit code is 3 when a
    citation does not resolve or a sentence is not supported.
    """
    answer = _read_answer(file)
    with evidencedesk.Desk.open(db, embedder=embedder, read_only=True, create=False) as desk:
        verification = desk.verify(answer, as_of=as_of)
    if as_json:
        print_json(verification)
    else:
        print_claims(verification.claims)
        print_text(f"{'verified' if verification.ok else verification.reason}: {verification.detail}")
    if not verification.ok:
        raise typer.Exit(ABSTAINED)


def _read_answer(file: str) -> str | dict[str, Any]:
    try:
        raw = (sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not UTF-8 at byte {error.start}; save it as UTF-8") from error
    if not raw.strip():
        raise ValueError(f"{file}: it is empty")
    if not raw.lstrip().startswith("{"):
        return raw
    try:
        found = strict_json.loads(raw)
    except ValueError as error:
        raise ValueError(f"{file}: it begins like JSON, but is none: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{file}: an answer is a JSON object")
    return found


@app.command(epilog=examples("evidencedesk answers", "evidencedesk answers --stale --json"))
def answers(
    stale: Annotated[
        bool, typer.Option("--stale", help="Only those whose cited text is no longer in force, and what is instead.")
    ] = False,
    limit: Annotated[int | None, typer.Option("-n", metavar="N", min=1, help="Most answers to list.")] = None,
    db: Db = DEFAULT_PATH,
    as_json: Json = False,
) -> None:
    """List the recorded answers, newest first.

    An answer goes stale when a text that it cites is superseded, corrected or withdrawn.
    """
    with evidencedesk.Desk.open(db, embedder="none", read_only=True, create=False) as desk:
        found = desk.answers(stale=stale, limit=limit)
    if as_json:
        print_json(found)
    elif found:
        for answer in found:
            print_recorded(answer)
    else:
        print_text("no recorded answer is stale" if stale else "no answer is recorded; `ask --record` records one")


def _before_option(text: str | None) -> str | None:
    text = as_utf8(text)
    if text is not None:
        from evidencedesk import retrieval

        try:
            retrieval.instant(text, parameter="before")
        except ValueError as error:
            raise typer.BadParameter(str(error).removeprefix("before: ")) from error
    return text


@app.command(epilog=examples("evidencedesk forget --before 2025-01-01", "evidencedesk forget 12 13"))
def forget(
    answer_ids: Annotated[
        list[int] | None, typer.Argument(metavar="[NUMBER]...", help="As `answers` lists them.")
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="DATE", callback=_before_option, help="Those asked before it.")
    ] = None,
    db: Db = DEFAULT_PATH,
    as_json: Json = False,
) -> None:
    """Delete recorded answers, by number or by age."""
    if not answer_ids and before is None:
        raise typer.BadParameter("give numbers of answers, or --before DATE")
    with evidencedesk.Desk.open(db, embedder="none", create=False) as desk:
        count = desk.forget(answer_ids or (), before=before)
    if as_json:
        print_json({"forgotten": count})
    else:
        print_text(f"answers forgotten: {count}")
