"""The page: its headline, with what the cases prove, and the sections in their order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from evidencedesk import guard
from evidencedesk.evaluation.calibration import CalibrationReport
from evidencedesk.evaluation.html.calibration import calibration_section
from evidencedesk.evaluation.html.cases import cases_section
from evidencedesk.evaluation.html.elements import Content, Markup, element, fact_list, section
from evidencedesk.evaluation.html.gate import gate_section
from evidencedesk.evaluation.html.recall import recall_section
from evidencedesk.evaluation.html.style import CSS, HEAD
from evidencedesk.evaluation.html.sweep import sweep_section
from evidencedesk.evaluation.html.words import bar, bounds, counted, n_of
from evidencedesk.evaluation.intervals import percent, promise
from evidencedesk.evaluation.report import EvaluationReport
from evidencedesk.records import GateReport, RecordedAnswer

MAX_WRONG = 0.05
"""The rate of wrong answers that the headline holds the cases against, where no calibration names another."""


def page(
    evaluation: EvaluationReport,
    calibration: CalibrationReport | None,
    gate: GateReport | None,
    gone_stale: Sequence[RecordedAnswer],
) -> str:
    """All of an HTML file."""
    sections = []
    if gate is not None:
        sections.append(("change", "The change", gate_section(gate, gone_stale)))
    sections.append(("recall", "What is found", recall_section(evaluation)))
    sections.append(("sweep", "What the guard lets pass", sweep_section(evaluation)))
    if gate is None or calibration is not None:
        sections.append(("calibration", "Calibration", calibration_section(evaluation, calibration)))
    sections.append(("cases", "Every case", cases_section(evaluation)))
    links = [element("a", heading, href=f"#{name}") for name, heading, _ in sections]
    body = element(
        "body",
        element(
            "main",
            _headline(evaluation, calibration, gate),
            element("nav", links, aria_label="Sections"),
            [section(name, heading, content) for name, heading, content in sections],
            element("footer", f"evidencedesk {evaluation.code_version}. Intervals are Wilson's at 95 %."),
        ),
    )
    title = element(
        "title", f"Evaluation of {counted(len(evaluation.cases), 'case')}, {_utc(evaluation.started_at):%Y-%m-%d}"
    )
    return f'<!doctype html>\n<html lang="en"><head>{HEAD}{title}<style>{CSS}</style></head>{body}</html>\n'


def _headline(evaluation: EvaluationReport, calibration: CalibrationReport | None, gate: GateReport | None) -> Markup:
    guarded, cases = evaluation.guarded, len(evaluation.cases)
    wrong, answered = int(guarded.wrong.count), int(guarded.answered.count)
    limit = MAX_WRONG if calibration is None else calibration.max_wrong
    proof = promise(wrong, answered, limit)
    caveat = proof.sentence
    if not proof.given:
        caveat += f" {counted(cases, 'case')}: read the intervals, not the percentages alone."
    failed = f", {errors} failed" if (errors := int(guarded.errors.count)) else ""
    lead = f"{answered} of {counted(cases, 'question')} answered, {wrong or 'none'} wrong{failed}."
    verdict = None
    if gate is not None:
        text = "The change holds." if gate.accepted else "The change was refused."
        verdict = element("p", text, class_=f"verdict {'good' if gate.accepted else 'bad'}")
    rates = (
        ("Answered", "of all cases", guarded.answered),
        ("Wrong", "of all cases", guarded.wrong),
        ("Unanswerable answered", "of the unanswerable", guarded.unanswerable_answered),
        ("Turned away", "of the answerable", guarded.answerable_turned_away),
        ("Errors", "of all cases", guarded.errors),
    )
    bad = {"Wrong", "Unanswerable answered", "Errors"}
    tiles = [
        element(
            "li",
            element("span", name, class_="name"),
            element("span", n_of(rate), class_="big" + (" bad" if name in bad and rate.count else "")),
            element("span", of if rate.of else f"{of}: there are none", class_="muted"),
            bar(rate),
            element("span", "–" if rate.value is None else percent(rate.value), class_="number"),
            element("span", f"95 %: {bounds(rate.interval)}", class_="number muted"),
        )
        for name, of, rate in rates
    ]
    reasons = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in guarded.reasons.items())
    run = "not stored" if evaluation.run_id is None else f"{evaluation.run_id}"
    facts: tuple[tuple[str, Content], ...] = (
        ("Asked", f"{_utc(evaluation.started_at):%Y-%m-%d %H:%M} UTC"),
        ("Run", run),
        ("Embedder", str(evaluation.embedder or "none: keyword search")),
        ("Thresholds", guard.describe(evaluation.values)),
        ("Documents in force", f"{evaluation.documents_in_force}"),
        ("State of the file", evaluation.generation),
        ("Cases", f"{cases}, hash {evaluation.cases_hash[:12]}"),
        ("Answers by", f"{evaluation.model}, called {counted(guarded.model_calls, 'time')}"),
        ("Claims checked by", evaluation.checker),
        ("Reasons", reasons),
        ("Version", f"evidencedesk {evaluation.code_version}"),
    )
    return element(
        "header",
        element("h1", "Evaluation"), element("p", lead, class_="lead"), verdict, element("ul", tiles, class_="tiles"),
        element("p", element("strong", "What this proves. "), caveat, class_=None if proof.given else "caveat"),
        fact_list(facts),
    )  # fmt: skip


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment
