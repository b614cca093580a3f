"""An evaluation as one HTML file that stands alone: no script, no network, readable on paper and by a screen reader.

Each chart is SVG inside the page (`charts`), and beside it stand its numbers as a table. What people wrote appears in
HTML alone, and becomes it in `elements`, where every text is escaped.
"""

from __future__ import annotations

from pathlib import Path

from evidencedesk.evaluation.calibration import CalibrationReport
from evidencedesk.evaluation.html.charts import drawing
from evidencedesk.evaluation.html.page import page
from evidencedesk.evaluation.report import EvaluationReport
from evidencedesk.records import GateReport

__all__ = ["require_place", "write_html"]

_BEGINNING = b"<!doctype html>"


def require_place(path: str | Path) -> None:
    """FileNotFoundError without the folder; FileExistsError for a file that is no report: only that is replaced."""
    place = Path(path)
    if not place.parent.is_dir():
        raise FileNotFoundError(f"{place}: there is no folder {place.parent}")
    if place.is_dir():
        raise FileExistsError(f"{place} is a folder; name a file for the report")
    if place.exists():
        with place.open("rb") as file:
            if file.read(len(_BEGINNING)).lower() != _BEGINNING:
                raise FileExistsError(f"{place} is there already and is no report; name another file")


def write_html(
    path: str | Path,
    evaluation: EvaluationReport,
    *,
    calibration: CalibrationReport | None = None,
    gate: GateReport | None = None,
) -> None:
    """Write an evaluation, and what a calibration and a gate found, as one HTML file. Replaces an HTML file at `path`.

    Reads nothing but its arguments. The file holds the questions and the labels of what was found for them, so share it
    as you would share those. Drawing sets matplotlib's global style for its duration and then puts it back. ImportError
    when matplotlib, the extra `report`, is missing; OSError when the file cannot be written, or is no HTML file.
    """
    require_place(path)
    with drawing():
        written = page(evaluation, calibration, gate)
    Path(path).write_text(written, encoding="utf-8", newline="\n")
