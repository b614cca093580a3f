"""An evaluation as one HTML file that stands alone: no script, no network, readable on paper and by a screen reader.

Each chart is SVG inside the page (`charts`), and beside it stand its numbers as a table. What people wrote appears in
HTML alone, and becomes it in `elements`, where every text is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evidencedesk.evaluation.calibration import CalibrationReport
from evidencedesk.evaluation.html.charts import drawing, require_matplotlib
from evidencedesk.evaluation.html.page import page
from evidencedesk.evaluation.report import EvaluationReport
from evidencedesk.records import GateReport, RecordedAnswer

__all__ = ["require_writable", "write_html"]

_BEGINNING = b"<!doctype html>"


def require_writable(path: str | Path) -> None:
    """Look whether a report can be written there, before what it tells is asked.

    FileNotFoundError without the folder; FileExistsError for a file that is no report: only that is replaced.
    ImportError when matplotlib, the extra `report`, is missing.
    """
    require_matplotlib()
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
    gone_stale: Sequence[RecordedAnswer] = (),
) -> None:
    """Write an evaluation, and what a calibration and a gate found, as one HTML file. Replaces an HTML file at `path`.

    `gone_stale`: the recorded answers that the gate's change takes the ground from. Reads nothing but its arguments.
    The file holds the questions and the labels of what was found for them, so share it as you would share those.
    Drawing sets matplotlib's global style for its duration and then puts it back. Raises what `require_writable` does,
    and OSError.
    """
    require_writable(path)
    with drawing():
        written = page(evaluation, calibration, gate, gone_stale)
    Path(path).write_text(written, encoding="utf-8", newline="\n")
