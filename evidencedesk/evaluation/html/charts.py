"""Charts as SVG in the page's own colours, so that they turn dark with it. They hold numbers and our own words only."""

from __future__ import annotations

import io
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from evidencedesk.evaluation.html.elements import Content, Markup, element, escaped
from evidencedesk.evaluation.html.words import counted, n_of
from evidencedesk.evaluation.intervals import Interval, percent
from evidencedesk.evaluation.metrics import Rate, Risk
from evidencedesk.evaluation.report import SweepRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_ROWS = 40
"""Most rows of the curve's table: a curve of a thousand cases has up to a thousand points."""

INK, MUTED, LINE, RISK, COST, BAR, SURFACE = (f"#00000{n}" for n in range(1, 8))
"""Stand for colours while matplotlib draws; in the page each is a variable of its style sheet."""
_VARIABLES = {INK: "ink", MUTED: "muted", LINE: "line", RISK: "risk", COST: "cost", BAR: "bar", SURFACE: "surface"}
_WIDTH, _LEFT, _RIGHT = 360, 48, 22
"""Of every chart, and beside its axes, in units that are about a CSS pixel on a phone: its words stay readable."""
_one_at_a_time = threading.Lock()


def require_matplotlib() -> None:
    """ImportError that says what to install."""
    if find_spec("matplotlib") is None:
        problem = 'matplotlib, which draws the charts, is not installed; `pip install "evidencedesk[report]"`'
        raise ImportError(problem)


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in a style of our own, whatever the host's; one thread at a time, for matplotlib has one style for all."""
    import matplotlib.style

    style = {
        "svg.fonttype": "none", "svg.hashsalt": "evidencedesk", "font.size": 12, "text.color": INK,
        "axes.edgecolor": LINE, "axes.labelcolor": MUTED, "axes.facecolor": "none", "figure.facecolor": "none",
        "xtick.color": LINE, "ytick.color": LINE, "xtick.labelcolor": MUTED, "ytick.labelcolor": MUTED,
        "axes.spines.top": False, "axes.spines.right": False, "grid.color": LINE, "hatch.color": LINE,
    }  # fmt: skip
    with _one_at_a_time, matplotlib.style.context(["default", style]):
        yield


def _axes(height: float, title: str) -> tuple[Figure, Axes]:
    """An empty chart of that height, the name of what goes upwards above it; all measures in its units."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH / 72, height / 72))
    below, above, width = 42, 32, _WIDTH - _LEFT - _RIGHT
    axes = figure.add_axes((_LEFT / _WIDTH, below / height, width / _WIDTH, (height - below - above) / height))
    axes.set_title(title, loc="left", x=-_LEFT / width, pad=12, fontsize=12, color=MUTED)
    axes.tick_params(length=0, pad=6)
    return figure, axes


def _svg(figure: Figure, name: str, description: str) -> Markup:
    """The chart as an element of the page: ids of its own, colours by variable, no measure but its proportions."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    text = re.sub(r"font-family: [^;\"]*; ?|font: (?=\d)", lambda found: "font: " if "font:" in found[0] else "", text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    box = re.search(r'viewBox="[^"]*"', text)
    opening = f'<svg {box[0] if box else ""} role="img" aria-label="{escaped(description)}" ' + (
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return Markup(opening + text[text.index(">") + 1 :].strip())


def captioned(title: str, caption: str, chart: Markup, *more: Content) -> Markup:
    """A chart under its title and caption, with what belongs below it."""
    return element(
        "figure", element("figcaption", element("strong", title), " ", element("span", caption)), chart, more,
        class_="card",
    )  # fmt: skip


def heat_map(
    name: str,
    rows: Sequence[SweepRow],
    in_force: tuple[float, float] | None,
    colour: str,
    rate_of: Callable[[SweepRow], Rate],
    *,
    has_room: bool,
    second_line: Callable[[SweepRow], str] | None = None,
) -> Markup:
    """One cell for each pair of thresholds that was tried, with its numbers where there is room for them."""
    from matplotlib.patches import Rectangle

    scores, margins = sorted({row.min_score for row in rows}), sorted({row.min_margin for row in rows})
    figure, axes = _axes(74 + len(scores) * (38 if has_room else 16), "least score")
    axes.set_xlim(0, len(margins))
    axes.set_ylim(0, len(scores))
    frame = None
    for row in rows:
        x, y, rate = margins.index(row.min_margin), scores.index(row.min_score), rate_of(row)
        axes.add_patch(Rectangle((x, y), 1, 1, facecolor=(colour, rate.value or 0.0), edgecolor=LINE, linewidth=0.8))
        if (row.min_score, row.min_margin) == in_force:
            frame = Rectangle((x, y), 1, 1, fill=False, edgecolor=INK, linewidth=2.5, zorder=5, clip_on=False)
        if has_room:
            middle = y + (0.5 if second_line is None else 0.68)
            axes.text(x + 0.5, middle, n_of(rate), ha="center", va="center_baseline", fontsize=13, fontweight="bold")
            if second_line is not None:
                axes.text(x + 0.5, y + 0.27, second_line(row), ha="center", va="center_baseline", fontsize=11.5)
    if frame is not None:
        axes.add_patch(frame)
    _name_ticks(axes.set_xticks, margins, 5)
    _name_ticks(axes.set_yticks, scores, 12)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel("least lead")
    worst = max((rate_of(row) for row in rows), key=lambda rate: rate.value or 0.0)
    best = min((rate_of(row) for row in rows), key=lambda rate: rate.value or 0.0)
    return _svg(
        figure,
        name,
        f"Heat map over {len(rows)} pairs of thresholds: from {n_of(best)} to {n_of(worst)}. "
        "The table of the sweep has every number.",
    )


def _name_ticks(set_ticks: Callable[[list[float], list[str]], object], values: Sequence[float], most: int) -> None:
    """Name the middle of each cell, or of every so many where there are more than fit."""
    step = math.ceil(len(values) / most)
    set_ticks([at + 0.5 for at in range(0, len(values), step)], [f"{value:.3g}" for value in values[::step]])


def _percent_axes(axes: Axes, x_label: str) -> None:
    from matplotlib.ticker import MaxNLocator, PercentFormatter

    axes.grid(visible=True, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axes.set_xlabel(x_label)


def risk_coverage_curve(curve: Sequence[Risk], chosen: Sequence[Risk], max_wrong: float) -> Markup:
    """How many answers are wrong at each share answered, with intervals; a ring at the points `chosen`."""
    figure, axes = _axes(260, "wrong, of the answered")
    coverage = [point.coverage.value or 0.0 for point in curve]
    risk = [point.risk.value or 0.0 for point in curve]
    bounds = [point.risk.interval or Interval(0, 1) for point in curve]
    axes.fill_between(coverage, [b.low for b in bounds], [b.high for b in bounds], color=RISK, alpha=0.2, linewidth=0)
    marker = "o" if len(curve) <= CURVE_ROWS else None
    axes.plot(coverage, risk, color=INK, linewidth=1.6, marker=marker, markersize=3.5, clip_on=False)
    axes.axhline(max_wrong, color=MUTED, linewidth=1.2, linestyle=(0, (5, 3)))
    for point in chosen:
        at = (point.coverage.value or 0.0, point.risk.value or 0.0)
        axes.plot(*at, color=INK, marker="o", markersize=11, markerfacecolor="none", markeredgewidth=2,
                  clip_on=False, zorder=5)  # fmt: skip
    axes.set_xlim(0, 1)
    # Where few are answered the band is wide; what is read is at the right, and at the threshold taken.
    seen = [1.3 * (point.risk.interval or Interval(0, 1)).high for point in (*chosen, *curve[-1:])]
    axes.set_ylim(0, min(1.0, max([0.2, 1.5 * max_wrong, *(1.1 * share for share in risk), *seen])))
    _percent_axes(axes, "answered")
    found = "; ".join(f"at the threshold taken {n_of(p.coverage)} are answered, {n_of(p.risk)} wrong" for p in chosen)
    return _svg(figure, "risk", f"Curve of risk and coverage over {counted(len(curve), 'threshold')}; {found}.")


def reliability_diagram(groups: Sequence[tuple[float, Rate]]) -> Markup:
    """Of each group the mean of the probabilities that were said, and how many were right."""
    figure, axes = _axes(260, "right, in fact")
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1.2, linestyle=(0, (5, 3)))
    for said, rate in groups:
        low, high = rate.interval or Interval(0, 1)
        axes.plot([said, said], [low, high], color=BAR, linewidth=2.5, solid_capstyle="butt")
        axes.plot(said, rate.value or 0.0, marker="o", markersize=7, color=INK, markeredgecolor=SURFACE, clip_on=False,
                  zorder=5)  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    _percent_axes(axes, "probability, as the guard says")
    said_and_right = "; ".join(f"said {percent(said)}, right {n_of(rate)}" for said, rate in groups)
    return _svg(figure, "reliability", f"Reliability diagram: {said_and_right}.")
