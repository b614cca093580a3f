"""What the guard would let pass with other thresholds."""

from __future__ import annotations

from operator import attrgetter

from evidencedesk.evaluation.html.charts import COST, RISK, captioned, heat_map
from evidencedesk.evaluation.html.elements import Markup, data_table, details, element
from evidencedesk.evaluation.html.words import n_of_and_share
from evidencedesk.evaluation.report import EvaluationReport
from evidencedesk.records import CalibratedGuard


def sweep_section(evaluation: EvaluationReport) -> Markup:
    """Two heat maps and a table; under a calibrated guard the reason why there is none."""
    said = element("p", evaluation.separation)
    rows, values = evaluation.sweep, evaluation.values
    if not rows:
        why = "A calibrated guard judges here: its curve of risk and coverage takes the place of a sweep."
        return element("div", said, element("p", why) if isinstance(values, CalibratedGuard) else None)
    in_force = None if values is None or isinstance(values, CalibratedGuard) else (values.min_score, values.min_margin)
    framed = any((row.min_score, row.min_margin) == in_force for row in rows)
    explained = (
        "What the guard would let pass with other thresholds. Rows: the least score of the first passage; columns: its "
        "least lead over another text. " + ("The frame marks the thresholds in force." if framed else "")
    )
    has_room = len({row.min_margin for row in rows}) <= 4 and len({row.min_score for row in rows}) <= 12
    second_line = " Second line: answerable questions that pass although the first passage is of another document."
    charts = [
        captioned(
            "Unanswerable questions answered",
            f"The more colour, the worse.{second_line if has_room else ''}",
            heat_map("unanswerable", rows, in_force, RISK, attrgetter("unanswerable_answered"), has_room=has_room,
                      second_line=lambda row: f"+ {row.wrong_top.count:g} wrong"),
        ),
        captioned(
            "Answerable questions turned away",
            "The more colour, the worse.",
            heat_map("answerable", rows, in_force, COST, attrgetter("answerable_turned_away"), has_room=has_room),
        ),
    ]  # fmt: skip
    table = data_table(
        "The sweep",
        ("least score", "least lead", "unanswerable answered", "answerable turned away", "wrong top document"),
        (
            (f"{row.min_score:g}", f"{row.min_margin:g}" + (" (in force)" if (row.min_score, row.min_margin) == in_force
                                                             else ""),
             *map(n_of_and_share, (row.unanswerable_answered, row.answerable_turned_away, row.wrong_top)))
            for row in rows
        ),
    )  # fmt: skip
    return element(
        "div", said, element("p", explained), element("div", charts, class_="grid two"),
        details("The sweep as a table, with intervals", table),
    )  # fmt: skip
