"""The commands that say how far answers can be trusted: cases, evaluation, calibration, attacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

import evidencedesk
from evidencedesk.cli.asking import llm_client, llm_option
from evidencedesk.cli.printing import (
    print_aside,
    print_attacks,
    print_calibration,
    print_evaluation,
    print_flips,
    print_json,
    print_text,
)
from evidencedesk.cli.program import (
    ABSTAINED,
    DEFAULT_PATH,
    DONE_WITH_FAILURES,
    Db,
    EmbedderName,
    FailOver,
    FailUnder,
    HtmlFile,
    Json,
    app,
    examples,
    limits,
)
from evidencedesk.records import Mode

CasesFile = Annotated[
    Path, typer.Argument(metavar="CASES", help="JSONL: one question with what would be right a line.")
]

cases_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Start a file of cases, and look it over.",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
app.add_typer(cases_app, name="cases")

_TEMPLATE = (
    {"id": "c01", "question": "How long do I have to return a bike?", "expected_doc_ids": ["kc-returns"],
     "answerable": True, "must_cite": True, "tags": ["direct"]},
    {"id": "c02", "question": "Do you sell electric scooters?", "expected_doc_ids": [],
     "answerable": False, "must_cite": False, "tags": ["unanswerable"]},
)  # fmt: skip


@cases_app.command("new", epilog=examples("evidencedesk cases new cases.jsonl"))
def new_cases(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; one that is there is never replaced.")],
) -> None:
    """Write two example cases to start from: a question to answer, and one not to."""
    try:
        lines = file.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise typer.BadParameter(f"{file} is there already, and is never replaced; name a new file") from error
    with lines:
        lines.writelines(json.dumps(case, ensure_ascii=False) + "\n" for case in _TEMPLATE)
    print_text(f"{file} holds two examples; put questions that people really ask in their place")


@cases_app.command("check", epilog=examples("evidencedesk cases check data/rag_cases.jsonl"))
def check_cases(file: CasesFile, db: Db = DEFAULT_PATH, as_json: Json = False) -> None:
    """Look a file of cases over: every fault, with its line. Documents are looked up in the desk."""
    from evidencedesk.cases import known_names, load_rag_cases

    with evidencedesk.Desk.open(db, embedder="none", read_only=True, create=False) as desk:
        cases = load_rag_cases(file, known_names(desk.documents()))
    answerable = sum(case.answerable for case in cases)
    if as_json:
        print_json({"cases": len(cases), "answerable": answerable})
    else:
        print_text(f"cases {len(cases)}, to answer {answerable}, not to {len(cases) - answerable}; no fault")


@app.command(
    "eval",
    epilog=examples(
        "evidencedesk eval data/rag_cases.jsonl",
        "evidencedesk eval data/rag_cases.jsonl --fail-under recall@3=0.9 --fail-over wrong=0",
    ),
)
def evaluate(
    cases: CasesFile,
    llm: Annotated[
        str, typer.Option("--llm", metavar="none|openai:MODEL", callback=llm_option, help="What answers.")
    ] = "none",
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", envvar="OPENAI_BASE_URL", help="Where it is served.")
    ] = None,
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="Depth of the rankings.")] = 10,
    mode: Annotated[Mode, typer.Option("--mode", help="How the guard's candidates are searched.")] = "hybrid",
    compare: Annotated[
        int | None, typer.Option("--compare", metavar="RUN", help="Say which cases came out otherwise in that run.")
    ] = None,
    fail_under: FailUnder = None,
    fail_over: FailOver = None,
    html: HtmlFile = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Keep no run in the file, and only read it.")] = False,
    db: Db = DEFAULT_PATH,
    embedder: EmbedderName = "auto",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Ask every case: what is found, what the guard lets pass, what is answered right.

    Right is an answer whose cited texts are all of expected documents and support what it says; its words are not
    compared with anything. Rankings in --fail-under and --fail-over are those of hybrid search, where there is one.
    The run is kept in the file (view case_history). Exit codes: 4 when a case failed, 3 when a figure breaks a floor
    or ceiling that was given.
    """
    from evidencedesk.evaluation.report import flips, objections

    floors, ceilings = limits("--fail-under", fail_under), limits("--fail-over", fail_over)
    with evidencedesk.Desk.open(db, embedder=embedder, read_only=no_store, create=False) as desk:
        before = desk.outcomes(compare) if compare is not None else None
        report = desk.evaluate(cases, llm=llm_client(llm, base_url), k=k, mode=mode, store=not no_store)
    flipped = None if before is None else flips(report.cases, before)
    if html is not None:
        from evidencedesk.evaluation.html import write_html

        write_html(html, report)
    broken = objections(report.metrics(), floors, ceilings)
    if as_json:
        print_json({"report": report, "flips": flipped, "objections": broken})
    else:
        print_evaluation(report)
        if flipped is not None:
            print_flips(flipped, f"every case came out as in run {compare}")
            if gone := sorted((before or {}).keys() - {case.case_id for case in report.cases}):
                print_text(f"asked in run {compare} and not now: {', '.join(gone)}")
        for objection in broken:
            print_text(f"failed: {objection}")
    if not report.ok:
        raise typer.Exit(DONE_WITH_FAILURES)
    if broken:
        raise typer.Exit(ABSTAINED)


@app.command(epilog=examples("evidencedesk calibrate data/rag_cases.jsonl", "evidencedesk calibrate --reset"))
def calibrate(
    cases: Annotated[Path | None, typer.Argument(metavar="CASES", help="JSONL, as for eval.")] = None,
    max_wrong: Annotated[
        float, typer.Option("--max-wrong", metavar="SHARE", help="Of what passes, the most that may be wrong.")
    ] = 0.05,
    confidence: Annotated[float, typer.Option("--confidence", metavar="SHARE", help="Of that promise.")] = 0.95,
    strict: Annotated[
        bool, typer.Option("--strict", help="Hold the confidence for the choice of the threshold too.")
    ] = False,
    html: HtmlFile = None,
    reset: Annotated[bool, typer.Option("--reset", help="Forget it: the built-in thresholds judge again.")] = False,
    db: Db = DEFAULT_PATH,
    embedder: EmbedderName = "auto",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Fit the guard on your own cases, and say what they can promise.

    What is kept in the file judges from then on, for this embedder. Too few cases promise nothing, and it says so.
    """
    if reset == (cases is not None):
        raise typer.BadParameter("give CASES, or --reset")
    if not 0 < max_wrong < 1 or not 0 < confidence < 1:
        raise typer.BadParameter("--max-wrong and --confidence must lie between 0 and 1, both left out")
    with evidencedesk.Desk.open(db, embedder="none" if reset else embedder, create=False) as desk:
        if cases is None:
            count = desk.uncalibrate()
            print_text(f"calibrations forgotten: {count}; the built-in thresholds judge")
            return
        report = desk.calibrate(cases, max_wrong=max_wrong, confidence=confidence, strict=strict)
        # What the new guard makes of the cases, beside what it was fitted on.
        evaluation = desk.evaluate(cases, store=False) if html is not None else None
    if html is not None and evaluation is not None:
        from evidencedesk.evaluation.html import write_html

        write_html(html, evaluation, calibration=report)
    if as_json:
        print_json(report)
    else:
        print_calibration(report)


@app.command(epilog=examples("evidencedesk attack", "evidencedesk attack --per-kind 50 --json"))
def attack(
    per_kind: Annotated[int, typer.Option("--per-kind", metavar="N", min=1, help="Most attacks of a kind.")] = 200,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Another number, other attacks.")] = 0,
    db: Db = DEFAULT_PATH,
    embedder: EmbedderName = "auto",
    as_json: Json = False,
) -> None:
    """Attack the checks with altered sentences of your own documents, and questions that nothing answers.

    Kinds: number (another one), negation (not where there was none), subject (another thing in its place), outdated (a
    sentence of a superseded version), elsewhere (another document's sentence); verbatim and reworded ones are true.
    Needs no labels. Says what share of each kind is blocked, and shows what came through.
    """
    with evidencedesk.Desk.open(db, embedder=embedder, read_only=True, create=False) as desk:
        report = desk.attack(per_kind=per_kind, seed=seed)
    if as_json:
        print_json(report)
    else:
        print_attacks(report)
    if report.claims.failed:
        print_aside(f"error: the check failed on {len(report.claims.failed)} claims")
        raise typer.Exit(DONE_WITH_FAILURES)
