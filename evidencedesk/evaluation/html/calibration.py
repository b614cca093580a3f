"""What a calibration promises, and how far its probabilities hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evidencedesk.evaluation.calibration import CalibrationReport
from evidencedesk.evaluation.html.charts import CURVE_ROWS, captioned, reliability_diagram, risk_coverage_curve
from evidencedesk.evaluation.html.elements import Content, Markup, data_table, details, element, fact_list
from evidencedesk.evaluation.html.words import n_of, n_of_and_share, three_digits
from evidencedesk.evaluation.metrics import Risk, reliability
from evidencedesk.evaluation.report import EvaluationReport


def calibration_section(evaluation: EvaluationReport, calibration: CalibrationReport | None) -> Markup:
    """Its promise, its charts and their tables; without one, how to get it."""
    if calibration is None:
        how = element("code", "write_html(path, evaluation, calibration=desk.calibrate(cases, store=False))")
        return element(
            "p", "No calibration was given, so there is no curve of risk and coverage and no reliability diagram. "
            "They are drawn by ", how, ".",
        )  # fmt: skip
    guard = calibration.guard
    others = []
    if calibration.cases_hash != evaluation.cases_hash:
        others.append("It was fitted on other cases than those evaluated here.")
    if calibration.embedder != evaluation.embedder:
        others.append(f"It is of another embedder: {calibration.embedder or 'none, keyword search'}.")
    facts: tuple[tuple[str, Content], ...] = (
        ("Answered from a probability of", f"{guard.threshold:.3f}"),
        ("Pass, of all cases", n_of_and_share(calibration.answered)),
        ("Wrong, of those that pass", n_of_and_share(calibration.wrong)),
        ("Answerable turned away", n_of_and_share(calibration.turned_away)),
        ("AUROC", three_digits(calibration.auroc)),
        ("Area under risk and coverage", f"{three_digits(calibration.aurc)} (lower is better)"),
    )
    chosen = [point for point in calibration.curve if point.threshold >= guard.threshold][-1:]
    groups = reliability(calibration.scores)
    charts = [
        captioned(
            "Risk and coverage",
            "How many of the answers are wrong when so many questions are answered. The ring is the threshold taken, "
            "the broken line the most that may be wrong, the band the interval.",
            risk_coverage_curve(calibration.curve, chosen, calibration.max_wrong),
            _curve_table(calibration.curve),
        ),
        captioned(
            "Reliability",
            "Whether the guard's probabilities hold: in each group of cases, the mean of what it said and the share "
            "that was right, with its interval. On the broken line they agree.",
            reliability_diagram(groups),
            details("The groups as a table", data_table(
                "Reliability", ("mean probability", "right"),
                ((f"{said:.3f}", n_of_and_share(rate)) for said, rate in groups))),
        ),
    ]  # fmt: skip
    signals = data_table(
        "The signals", ("signal", "weight", "mean", "deviation", "AUROC alone"),
        (
            (name.replace("_", " "), f"{weight:.2f}", f"{mean:.3f}", f"{deviation:.3f}",
             three_digits(calibration.auroc_of.get(name)))
            for name, weight, mean, deviation in zip(
                guard.signals, guard.weights, guard.means, guard.deviations, strict=True)
        ),
    )  # fmt: skip
    return element(
        "div",
        element("p", calibration.promise, class_=None if calibration.promised else "caveat"),
        [element("p", text, class_="caveat") for text in others],
        fact_list(facts),
        element("p", "Every figure is of cases that the model judging them had not seen.", class_="muted"),
        element("div", charts, class_="grid two"), details("What the guard weighs", signals),
    )  # fmt: skip


def _curve_table(curve: Sequence[Risk]) -> Markup:
    step = math.ceil(len(curve) / CURVE_ROWS) or 1
    thinned = "" if step == 1 else f", one threshold of {step}"
    # From its end, so that the last point, where everything is answered, is always there.
    shown = curve[::-1][::step][::-1]
    return details(f"The curve as a table{thinned}", data_table(
        "Risk and coverage", ("threshold", "answered", "wrong, of the answered"),
        ((f"{point.threshold:.3f}", n_of(point.coverage), n_of_and_share(point.risk)) for point in shown),
    ))  # fmt: skip
