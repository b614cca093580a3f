"""What a gate found of a change."""

from __future__ import annotations

from collections.abc import Sequence

from evidencedesk.evaluation.html.elements import Content, Markup, element, written
from evidencedesk.evaluation.html.words import OUTCOMES, badge
from evidencedesk.records import GateReport, RecordedAnswer, StaleCitation


def gate_section(gate: GateReport, gone_stale: Sequence[RecordedAnswer]) -> Markup:
    """Why it was refused, the cases that flipped, what the documents say otherwise, and the answers that go stale."""
    run = None if gate.run_id is None else element("p", f"The gate's run is number {gate.run_id} in the file.")
    objections = (
        [element("h3", "Why it was refused"), element("ul", [written(text, "li") for text in gate.objections])]
        if gate.objections else None
    )  # fmt: skip
    order = list(OUTCOMES)
    flips = sorted(gate.flips, key=lambda flip: order.index(flip.after))
    flipped: Content = element("p", "Every case came out as before.")
    if flips:
        listed = [
            element(
                "li",
                "not asked" if flip.before is None else badge(flip.before), " → ", badge(flip.after), " ",
                written(flip.question, class_="question"), " ", written(flip.case_id, class_="muted"),
                written(flip.detail, "p"), class_="card",
            )
            for flip in flips
        ]  # fmt: skip
        flipped = [element("h3", "Cases that came out otherwise"), element("ul", listed, class_="plain")]
    changes = [
        element(
            "div",
            element("h4", written(change.old_doc_id), [" → ", written(change.new_doc_id)]
                    if change.new_doc_id != change.old_doc_id else " (corrected in place)"),
            element("ul", [element("li", written(text, "del")) for text in change.removed],
                    [element("li", written(text, "ins")) for text in change.added], class_="diff"),
            class_="card",
        )
        for change in gate.changes
    ]  # fmt: skip
    diff = [element("h3", "What the documents say otherwise"), changes] if changes else None
    return element("div", run, objections, flipped, diff, _stale(gone_stale))


def _stale(answers: Sequence[RecordedAnswer]) -> Content:
    if not answers:
        return None
    listed = [
        element(
            "li",
            written(answer.question, class_="question"),
            element("span", f" answer {answer.answer_id}", class_="muted"),
            element("ul", [element("li", _citation(citation)) for citation in answer.stale]),
            class_="card",
        )
        for answer in answers
    ]
    return [element("h3", "Recorded answers that go stale"), element("ul", listed, class_="plain")]


def _citation(citation: StaleCitation) -> Content:
    return [written(f"{citation}"), written(citation.cited_sentence, "p") if citation.cited_sentence else None]
