"""An evaluation as one HTML file that stands alone: no script, no network, readable on paper and by a screen reader.

Each chart is SVG inside the page, in the page's own colours, so that it turns dark with it; beside it stand its numbers
as a table. Charts hold numbers and our own words only, so what people wrote appears in HTML alone, and there every text
that is not `Markup` is escaped where elements are made.
"""

from __future__ import annotations

import html
import io
import math
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from evidencedesk.evaluation.calibration import CalibrationReport
from evidencedesk.evaluation.intervals import Interval, percent, promise
from evidencedesk.evaluation.metrics import Rate, Risk
from evidencedesk.evaluation.report import EVERY_TAG, GOOD, CaseResult, EvaluationReport, RetrievalRow, SweepRow
from evidencedesk.records import CalibratedGuard, GateReport, Guard, Hit, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_WRONG = 0.05
"""The rate of wrong answers that the headline holds the cases against, where no calibration names another."""
CURVE_ROWS = 40
"""Most rows of the curve's table: a curve of a thousand cases has up to a thousand points."""
BIN_SIZE = 10
"""Fewest cases in a bin of the reliability diagram, where there are enough for two: fewer say nothing about a rate."""
BINS = 10

_OUTCOMES: dict[Outcome, str] = {
    "error": "error", "wrong": "wrong", "turned_away": "turned away", "right": "right", "refused": "rightly refused",
}  # fmt: skip
"""How each is written, those that went wrong first."""
_BEGINNING = b"<!doctype html>"
_HIT_SCORES: dict[str, str] = {"hybrid": "fused score", "keyword": "BM25", "vector": "cosine"}


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
    with _matplotlib():
        page = _page(evaluation, calibration, gate)
    Path(path).write_text(page, encoding="utf-8", newline="\n")


# ---------------------------------------------------------------- elements


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


Content = str | None | Sequence["Content"]


def element(name: str, *content: Content, **attributes: str | None) -> Markup:
    """Make an element; every text in it is escaped, save Markup. An attribute of None is left out.

    `class_` stands for `class`, `aria_label` for `aria-label`.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{_joined(content)}</{name}>")


def _joined(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content if isinstance(content, Markup) else _escaped(content)
    return "".join(map(_joined, content))


_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters, which HTML does not allow, and lone surrogates, which UTF-8 cannot hold."""


def _escaped(text: str) -> str:
    return html.escape(_UNWRITABLE.sub("\ufffd", text))


def _written(text: str, name: str = "span", **attributes: str | None) -> Markup:
    """What a person wrote: its language is not known, and its direction must not turn what stands beside it."""
    return element(name, text, **{"lang": "", "dir": "auto", **attributes})


def _table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[Content]]) -> Markup:
    """A table whose first column names its rows; it scrolls by itself where it is too wide."""
    body = [
        element("tr", element("th", first, scope="row"), [element("td", cell) for cell in cells])
        for first, *cells in rows
    ]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", [element("th", heading, scope="col") for heading in headings])),
        element("tbody", body),
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _details(summary: Content, *content: Content, is_open: bool = False, class_: str | None = None) -> Markup:
    return element("details", element("summary", summary), content, open="" if is_open else None, class_=class_)


def _section(name: str, heading: str, *content: Content) -> Markup:
    return element("section", element("h2", heading, id=f"{name}-h"), content, id=name, aria_labelledby=f"{name}-h")


def _facts(facts: Iterable[tuple[str, Content]]) -> Markup:
    return element("dl", [element("div", element("dt", name), element("dd", value)) for name, value in facts])


def _badge(outcome: Outcome) -> Markup:
    return element("span", _OUTCOMES[outcome], class_=f"badge {'good' if outcome in GOOD else 'bad'}")


# ---------------------------------------------------------------- the page


def _page(evaluation: EvaluationReport, calibration: CalibrationReport | None, gate: GateReport | None) -> str:
    sections = {
        "change": ("The change", None if gate is None else _gate(gate)),
        "recall": ("What is found", _recall(evaluation)),
        "sweep": ("What the guard lets pass", _sweep(evaluation)),
        "calibration": ("Calibration", _calibration(evaluation, calibration)),
        "cases": ("Every case", _cases(evaluation)),
    }
    shown = {name: (heading, content) for name, (heading, content) in sections.items() if content is not None}
    links = [element("a", heading, href=f"#{name}") for name, (heading, _) in shown.items()]
    day = f"{_utc(evaluation.started_at):%Y-%m-%d}"
    body = element(
        "body",
        element(
            "main",
            _headline(evaluation, calibration, gate),
            element("nav", links, aria_label="Sections"),
            [_section(name, heading, content) for name, (heading, content) in shown.items()],
            element("footer", f"evidencedesk {evaluation.code_version}. Intervals are Wilson's at 95 %."),
        ),
    )
    title = element("title", f"Evaluation of {_count(len(evaluation.cases), 'case')}, {day}")
    return f'<!doctype html>\n<html lang="en"><head>{_HEAD}{title}<style>{_CSS}</style></head>{body}</html>\n'


def _headline(evaluation: EvaluationReport, calibration: CalibrationReport | None, gate: GateReport | None) -> Markup:
    guarded, cases = evaluation.guarded, len(evaluation.cases)
    wrong, answered = int(guarded.wrong.count), int(guarded.answered.count)
    limit = MAX_WRONG if calibration is None else calibration.max_wrong
    proof = promise(wrong, answered, limit)
    caveat = proof.sentence
    if not proof.given:
        caveat += f" {_count(cases, 'case')}: read the intervals, not the percentages alone."
    failed = f", {errors} failed" if (errors := int(guarded.errors.count)) else ""
    lead = f"{answered} of {_count(cases, 'question')} answered, {wrong or 'none'} wrong{failed}."
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
            element("span", _of(rate), class_="big" + (" bad" if name in bad and rate.count else "")),
            element("span", of if rate.of else f"{of}: there are none", class_="muted"),
            _bar(rate),
            element("span", "–" if rate.value is None else percent(rate.value), class_="number"),
            element("span", f"95 %: {_range(rate.interval)}", class_="number muted"),
        )
        for name, of, rate in rates
    ]
    reasons = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in guarded.reasons.items())
    run = "not stored" if evaluation.run_id is None else f"{evaluation.run_id}"
    facts: tuple[tuple[str, Content], ...] = (
        ("Asked", f"{_utc(evaluation.started_at):%Y-%m-%d %H:%M} UTC"),
        ("Run", run),
        ("Embedder", str(evaluation.embedder or "none: keyword search")),
        ("Thresholds", _described(evaluation.values)),
        ("Documents in force", f"{evaluation.documents_in_force}"),
        ("State of the file", evaluation.generation),
        ("Cases", f"{cases}, hash {evaluation.cases_hash[:12]}"),
        ("Answers by", f"{evaluation.model}, called {_count(guarded.model_calls, 'time')}"),
        ("Claims checked by", evaluation.checker),
        ("Reasons", reasons),
        ("Version", f"evidencedesk {evaluation.code_version}"),
    )
    return element(
        "header",
        element("h1", "Evaluation"), element("p", lead, class_="lead"), verdict, element("ul", tiles, class_="tiles"),
        element("p", element("strong", "What this proves. "), caveat, class_=None if proof.given else "caveat"),
        _facts(facts),
    )  # fmt: skip


def _recall(evaluation: EvaluationReport) -> Markup:
    k, rows = evaluation.k, evaluation.retrieval
    tags = list(dict.fromkeys(row.tag for row in rows if row.recall_at_1.of))
    nothing = [tag for tag in dict.fromkeys(row.tag for row in rows) if tag not in tags]

    def card(title: str, rate_of: Callable[[RetrievalRow], Rate]) -> Markup:
        groups = []
        for tag in tags:
            tagged = [row for row in rows if row.tag == tag]
            name = "All questions" if tag == EVERY_TAG else tag
            heading = element("th", _written(name), element("span", f" {rate_of(tagged[0]).of}", class_="muted"),
                              colspan="4", scope="rowgroup")  # fmt: skip
            lines = [
                element(
                    "tr", element("th", row.mode, scope="row"), element("td", _bar(rate_of(row))),
                    element("td", _of(rate_of(row)), class_="number"),
                    element("td", _range(rate_of(row).interval), class_="number muted"),
                )
                for row in tagged
            ]  # fmt: skip
            groups.append(element("tbody", element("tr", heading), lines))
        headings = [element("th", text, scope="col") for text in ("leg", "share", "found", "95 %")]
        table = element("table", element("caption", title), element("thead", element("tr", headings)), groups)
        return element("div", table, class_="card recall")

    depths = {1: "recall_at_1", 3: "recall_at_3", k: "recall_at_k"}
    cards = [card(f"recall@{depth}", attrgetter(field)) for depth, field in sorted(depths.items())]
    full = _table(
        "Every figure", ("tag", "leg", "recall@1", "recall@3", f"recall@{k}", "MRR", f"nDCG@{k}"),
        (
            (_written(row.tag), row.mode, *(_share_and_interval(rate) for rate in (
                row.recall_at_1, row.recall_at_3, row.recall_at_k, row.mrr, row.ndcg_at_k)))
            for row in rows
        ),
    )  # fmt: skip
    left_out = element("p", "Nothing is to be found for: ", _written(", ".join(nothing)), ".") if nothing else None
    explained = (
        "Share of the expected documents among the first 1, 3 and k that each leg ranks, by tag. The bar is the share, "
        "the line over it its interval."
    )
    return element(
        "div", element("p", explained), element("div", cards, class_="grid three"), left_out,
        _details("MRR and nDCG, and all figures as one table", full),
    )  # fmt: skip


def _sweep(evaluation: EvaluationReport) -> Markup:
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
        _figure(
            "Unanswerable questions answered",
            f"The more colour, the worse.{second_line if has_room else ''}",
            _heat_map("unanswerable", rows, in_force, RISK, attrgetter("unanswerable_answered"), has_room=has_room,
                      second_line=lambda row: f"+ {row.wrong_top.count:g} wrong"),
        ),
        _figure(
            "Answerable questions turned away",
            "The more colour, the worse.",
            _heat_map("answerable", rows, in_force, COST, attrgetter("answerable_turned_away"), has_room=has_room),
        ),
    ]  # fmt: skip
    table = _table(
        "The sweep",
        ("least score", "least lead", "unanswerable answered", "answerable turned away", "wrong top document"),
        (
            (f"{row.min_score:g}", f"{row.min_margin:g}" + (" (in force)" if (row.min_score, row.min_margin) == in_force
                                                             else ""),
             *map(_figures, (row.unanswerable_answered, row.answerable_turned_away, row.wrong_top)))
            for row in rows
        ),
    )  # fmt: skip
    return element(
        "div", said, element("p", explained), element("div", charts, class_="grid two"),
        _details("The sweep as a table, with intervals", table),
    )  # fmt: skip


def _calibration(evaluation: EvaluationReport, calibration: CalibrationReport | None) -> Markup:
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
        ("Pass, of all cases", _figures(calibration.answered)),
        ("Wrong, of those that pass", _figures(calibration.wrong)),
        ("Answerable turned away", _figures(calibration.turned_away)),
        ("AUROC", _number(calibration.auroc)),
        ("Area under risk and coverage", f"{_number(calibration.aurc)} (lower is better)"),
    )
    chosen = [point for point in calibration.curve if point.threshold >= guard.threshold][-1:]
    bins = reliability(calibration.scores)
    charts = [
        _figure(
            "Risk and coverage",
            "How many of the answers are wrong when so many questions are answered. The ring is the threshold taken, "
            "the broken line the most that may be wrong, the band the interval.",
            _risk_coverage(calibration.curve, chosen, calibration.max_wrong),
            _curve_table(calibration.curve),
        ),
        _figure(
            "Reliability",
            "Whether the guard's probabilities hold: in each group of cases, the mean of what it said and the share "
            "that was right, with its interval. On the broken line they agree.",
            _reliability_diagram(bins),
            _details("The groups as a table", _table(
                "Reliability", ("mean probability", "right"),
                ((f"{said:.3f}", _figures(rate)) for said, rate in bins))),
        ),
    ]  # fmt: skip
    signals = _table(
        "The signals", ("signal", "weight", "mean", "deviation", "AUROC alone"),
        (
            (name.replace("_", " "), f"{weight:.2f}", f"{mean:.3f}", f"{deviation:.3f}",
             _number(calibration.auroc_of.get(name)))
            for name, weight, mean, deviation in zip(
                guard.signals, guard.weights, guard.means, guard.deviations, strict=True)
        ),
    )  # fmt: skip
    return element(
        "div",
        element("p", calibration.promise, class_=None if calibration.promised else "caveat"),
        [element("p", text, class_="caveat") for text in others],
        _facts(facts),
        element("p", "Every figure is of cases that the model judging them had not seen.", class_="muted"),
        element("div", charts, class_="grid two"), _details("What the guard weighs", signals),
    )  # fmt: skip


def _gate(gate: GateReport) -> Markup:
    run = None if gate.run_id is None else element("p", f"The gate's run is number {gate.run_id} in the file.")
    objections = (
        [element("h3", "Why it was refused"), element("ul", [_written(text, "li") for text in gate.objections])]
        if gate.objections else None
    )  # fmt: skip
    order = list(_OUTCOMES)
    flips = sorted(gate.flips, key=lambda flip: order.index(flip.after))
    flipped: Content = element("p", "Every case came out as before.")
    if flips:
        listed = [
            element(
                "li",
                "not asked" if flip.before is None else _badge(flip.before), " → ", _badge(flip.after), " ",
                _written(flip.question, class_="question"), " ", _written(flip.case_id, class_="muted"),
                _written(flip.detail, "p"), class_="card",
            )
            for flip in flips
        ]  # fmt: skip
        flipped = [element("h3", "Cases that came out otherwise"), element("ul", listed, class_="plain")]
    changes = [
        element(
            "div",
            element("h4", _written(change.old_doc_id), [" → ", _written(change.new_doc_id)]
                    if change.new_doc_id != change.old_doc_id else " (corrected in place)"),
            element("ul", [element("li", _written(text, "del")) for text in change.removed],
                    [element("li", _written(text, "ins")) for text in change.added], class_="diff"),
            class_="card",
        )
        for change in gate.changes
    ]  # fmt: skip
    diff = [element("h3", "What the documents say otherwise"), changes] if changes else None
    return element("div", run, objections, flipped, diff)


def _cases(evaluation: EvaluationReport) -> Markup:
    order = list(_OUTCOMES)
    cases = sorted(evaluation.cases, key=lambda case: order.index(case.outcome))
    failed = [case for case in cases if case.outcome not in GOOD]
    counts = Counter(case.outcome for case in cases)
    summary = ", ".join(f"{_OUTCOMES[outcome]} {counts[outcome]}" for outcome in order if counts[outcome])
    return element(
        "div",
        element("p", f"{summary}. Those that went wrong come first, and open."),
        [_case(case, is_open=True) for case in failed],
        [_case(case, is_open=False) for case in cases if case.outcome in GOOD],
    )


def _case(case: CaseResult, *, is_open: bool) -> Markup:
    reason = "failed" if case.reason is None else case.reason.replace("_", " ")
    summary = [
        _badge(case.outcome), " ", _written(case.question, class_="question"), " ",
        element("span", _written(case.case_id), " · ", _written(", ".join(case.tags) or "no tag"), f" · {reason}",
                class_="muted"),
    ]  # fmt: skip
    expected = ", ".join(case.expected) if case.answerable else "no answer: the documents do not say"
    ranks = ", ".join(f"{mode} {_rank(case, ranked)}" for mode, ranked in case.ranked.items())
    facts: list[tuple[str, Content]] = [
        ("Expected", _written(expected)),
        ("Cited", _written(", ".join(case.cited) or "nothing")),
    ]
    if case.as_of:
        facts.append(("Asked as of", case.as_of))
    if case.answerable and ranks:
        facts.append(("Rank of the expected", ranks))
    why = _written(case.error or case.detail, "p")
    hits: Content = element("p", "No passage was found.", class_="muted")
    if case.candidates:
        score = _HIT_SCORES[case.candidates.mode]
        hits = element("ol", [_hit(hit, case, score) for hit in case.candidates], class_="hits")
    return _details(summary, why, _facts(facts), hits, is_open=is_open, class_="case")


def _hit(hit: Hit, case: CaseResult, score: str) -> Markup:
    is_expected = hit.chunk.doc_id in case.expected or hit.chunk.family in case.expected
    parts = [f"{score} {hit.score:.3f}"]
    if hit.rerank is not None:
        parts.append(f"reranked {hit.rerank:.3f}")
    if hit.cosine is not None and score != "cosine":
        parts.append(f"cosine {hit.cosine:.3f}")
    if score != "BM25":
        parts.append(f"BM25 {hit.bm25:.2f}")
    parts.append(f"idf share {hit.idf_share:.2f}")
    ranks = (("keyword", hit.keyword_rank), ("vector", hit.vector_rank))
    parts += [f"{leg} rank {rank}" for leg, rank in ranks if rank]
    mark = element("span", "expected", class_="badge good") if is_expected else None
    label = _written(hit.label, lang=hit.chunk.lang)
    return element("li", label, " ", mark, element("div", " · ".join(parts), class_="muted"))


# ---------------------------------------------------------------- figures as words


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _of(rate: Rate) -> str:
    return f"{rate.count:.2f}".rstrip("0").rstrip(".") + f" of {rate.of}" if rate.of else "–"


def _range(interval: Interval | None) -> str:
    """In whole per cent, rounded outwards: never narrower than it is."""
    if interval is None:
        return "–"
    return f"{math.floor(interval.low * 100)}–{math.ceil(interval.high * 100)} %"


def _share_and_interval(rate: Rate) -> str:
    return "not applicable" if rate.value is None else f"{percent(rate.value)} (95 %: {_range(rate.interval)})"


def _figures(rate: Rate) -> str:
    return "not applicable" if rate.value is None else f"{_of(rate)}, {_share_and_interval(rate)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment


def _rank(case: CaseResult, ranked: Sequence[str]) -> str:
    return next((f"{rank}" for rank, name in enumerate(ranked, 1) if name in case.expected), "not found")


def _described(judge: Guard | None) -> str:
    if judge is None:
        return "none: calibrate"
    if isinstance(judge, CalibratedGuard):
        return f"probability {judge.threshold:.3f} (calibrated: {judge.source})"
    lowered = f", less {judge.missing_weight:g} for all words missing" if judge.missing_weight else ""
    measure = judge.measure.replace("_", " ")
    return f"{measure} {judge.min_score:g}{lowered}; lead {judge.min_margin:g} ({judge.source})"


def _bar(rate: Rate) -> Markup:
    """A bar with its interval; for the eye only, the numbers stand beside it."""
    if rate.value is None or rate.interval is None:
        return Markup("")
    low, high = rate.interval
    style = f"--value:{rate.value:.2%};--low:{low:.2%};--width:{high - low:.2%}"
    return element("span", element("i"), element("b"), class_="bar", style=style, aria_hidden="true")


# ---------------------------------------------------------------- charts

INK, MUTED, LINE, RISK, COST, BAR, SURFACE = (f"#00000{n}" for n in range(1, 8))
"""Stand for colours while matplotlib draws; in the page each is a variable of its style sheet."""
_VARIABLES = {INK: "ink", MUTED: "muted", LINE: "line", RISK: "risk", COST: "cost", BAR: "bar", SURFACE: "surface"}
_WIDTH, _LEFT, _RIGHT = 360, 48, 22
"""Of every chart, and beside its axes, in units that are about a CSS pixel on a phone: its words stay readable."""
_drawing = threading.Lock()


@contextmanager
def _matplotlib() -> Iterator[None]:
    """Draw in a style of our own, whatever the host's; one thread at a time, for matplotlib has one style for all."""
    try:
        import matplotlib.style
    except ImportError as error:
        problem = 'matplotlib, which draws the charts, is not installed; `pip install "evidencedesk[report]"`'
        raise ImportError(problem) from error
    style = {
        "svg.fonttype": "none", "svg.hashsalt": "evidencedesk", "font.size": 12, "text.color": INK,
        "axes.edgecolor": LINE, "axes.labelcolor": MUTED, "axes.facecolor": "none", "figure.facecolor": "none",
        "xtick.color": LINE, "ytick.color": LINE, "xtick.labelcolor": MUTED, "ytick.labelcolor": MUTED,
        "axes.spines.top": False, "axes.spines.right": False, "grid.color": LINE, "hatch.color": LINE,
    }  # fmt: skip
    with _drawing, matplotlib.style.context(["default", style]):
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
    opening = f'<svg {box[0] if box else ""} role="img" aria-label="{_escaped(description)}" ' + (
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return Markup(opening + text[text.index(">") + 1 :].strip())


def _figure(title: str, caption: str, chart: Markup, *more: Content) -> Markup:
    return element(
        "figure", element("figcaption", element("strong", title), " ", element("span", caption)), chart, more,
        class_="card",
    )  # fmt: skip


def _heat_map(
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
            axes.text(x + 0.5, middle, _of(rate), ha="center", va="center_baseline", fontsize=13, fontweight="bold")
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
        figure, name, f"Heat map over {len(rows)} pairs of thresholds: from {_of(best)} to {_of(worst)}. The table of "
        "the sweep has every number.",
    )  # fmt: skip


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


def _risk_coverage(curve: Sequence[Risk], chosen: Sequence[Risk], max_wrong: float) -> Markup:
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
    found = "; ".join(f"at the threshold taken {_of(p.coverage)} are answered, {_of(p.risk)} wrong" for p in chosen)
    return _svg(figure, "risk", f"Curve of risk and coverage over {_count(len(curve), 'threshold')}; {found}.")


def _curve_table(curve: Sequence[Risk]) -> Markup:
    step = math.ceil(len(curve) / CURVE_ROWS) or 1
    thinned = "" if step == 1 else f", one threshold of {step}"
    return _details(f"The curve as a table{thinned}", _table(
        "Risk and coverage", ("threshold", "answered", "wrong, of the answered"),
        ((f"{point.threshold:.3f}", _of(point.coverage), _figures(point.risk)) for point in curve[::-1][::step][::-1]),
    ))  # fmt: skip


def reliability(scores: Sequence[tuple[float, bool]]) -> list[tuple[float, Rate]]:
    """Group (probability, right) of each case by rising probability: the mean probability, and how many were right.

    Groups of equal size, as far as equal probabilities, which stay together, allow: at most `BINS`, of at least
    `BIN_SIZE` cases, but two where there are fewer. Source: the reliability diagram of A. Niculescu-Mizil, R. Caruana,
    Predicting good probabilities with supervised learning, ICML 2005, with bins of equal count.
    """
    ordered = sorted(scores)
    bins = max(min(2, len(ordered)), min(BINS, len(ordered) // BIN_SIZE))
    groups: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    first_place: dict[float, int] = {}
    for place, (score, right) in enumerate(ordered):
        at = first_place.setdefault(score, place) * bins // len(ordered)
        groups[at].append((score, right))
    return [
        (math.fsum(score for score, _ in group) / len(group), Rate(sum(right for _, right in group), len(group)))
        for group in groups
        if group
    ]


def _reliability_diagram(bins: Sequence[tuple[float, Rate]]) -> Markup:
    figure, axes = _axes(260, "right, in fact")
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=1.2, linestyle=(0, (5, 3)))
    for said, rate in bins:
        low, high = rate.interval or Interval(0, 1)
        axes.plot([said, said], [low, high], color=BAR, linewidth=2.5, solid_capstyle="butt")
        axes.plot(said, rate.value or 0.0, marker="o", markersize=7, color=INK, markeredgecolor=SURFACE, clip_on=False,
                  zorder=5)  # fmt: skip
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    _percent_axes(axes, "probability, as the guard says")
    groups = "; ".join(f"said {percent(mean)}, right {_of(rate)}" for mean, rate in bins)
    return _svg(figure, "reliability", f"Reliability diagram: {groups}.")


# ---------------------------------------------------------------- the style sheet

_HEAD = (
    '<meta charset="utf-8">'
    # Nothing is fetched and nothing runs, even if a text slipped through unescaped.
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark">'
)
_CSS = """
:root { --page: #f5f6f8; --surface: #ffffff; --ink: #1a1f26; --muted: #545d69; --line: #d3d8df; --good: #17693a;
  --bad: #a8261d; --warn: #7a4a00; --accent: #1d5aa6;
  --risk: #e08a66; --cost: #74a5dd; --bar: #4a7fc1; --track: #e6e9ee; }
@media screen and (prefers-color-scheme: dark) {
  :root { --page: #11141a; --surface: #1a1f27; --ink: #e8ebef; --muted: #a7b0bb; --line: #3a424d; --good: #74d29b;
    --bad: #ff968c; --warn: #f0b762; --accent: #92bcf7;
    --risk: #9c4528; --cost: #2d639f; --bar: #5788c4; --track: #2c333d; }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans Bengali", "Nirmala UI",
    "Kohinoor Bangla", "Bangla Sangam MN", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 32px 24px 64px; }
h1, h2, h3, h4 { line-height: 1.25; margin: 0; text-wrap: balance; }
h1 { font-size: 1rem; color: var(--muted); font-weight: 600; }
h2 { font-size: 1.5rem; margin: 56px 0 12px; padding-top: 16px; border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 24px 0 8px; }
h4 { font-size: 1rem; }
p { margin: 8px 0; max-width: 75ch; }
a { color: var(--accent); }
code { font-family: ui-monospace, "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9em; }
.lead { font-size: clamp(1.6rem, 5vw, 2.4rem); line-height: 1.2; font-weight: 700; margin: 4px 0 16px;
  text-wrap: balance; }
.muted { color: var(--muted); }
.good { color: var(--good); }
.bad { color: var(--bad); }
.verdict { font-size: 1.15rem; font-weight: 700; }
.caveat { border-left: 4px solid var(--warn); padding: 4px 0 4px 12px; }
.caveat strong { color: var(--warn); }
.tiles { list-style: none; margin: 16px 0; padding: 0; display: grid; gap: 12px;
  grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); }
.tiles li { display: flex; flex-direction: column; gap: 2px; font-size: .875em; }
.tiles li, .card { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 14px; }
.tiles .name { font-weight: 600; min-height: 2.5em; line-height: 1.25; }
.tiles .bar { margin: auto 0 6px; } .tiles .muted { padding-bottom: 6px; }
.tiles .big { font-size: 1.6rem; font-weight: 700; line-height: 1.2; font-variant-numeric: tabular-nums; }
.bar { display: block; position: relative; height: 12px; margin: 6px 0; background: var(--track); border-radius: 2px;
  overflow: hidden; }
.bar i { position: absolute; inset: 0 auto 0 0; width: var(--value); background: var(--bar); }
.bar b { position: absolute; top: 5px; height: 2px; left: var(--low); width: var(--width); background: var(--ink); }
dl { margin: 16px 0; display: grid; gap: 8px 24px;
  grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); }
dt { color: var(--muted); font-size: .875em; }
dd { margin: 0; }
nav { display: flex; flex-wrap: wrap; gap: 4px 20px; margin-top: 20px; }
nav a { padding: 4px 0; }
.grid { display: grid; gap: 16px; margin: 16px 0; }
.plain { list-style: none; padding: 0; margin: 8px 0; }
.three { grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); }
.two { grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }
figure { margin: 0; display: flex; flex-direction: column; }
.card + .card { margin-top: 16px; } .grid > .card { margin-top: 0; }
figcaption strong { display: block; }
figcaption span { color: var(--muted); font-size: .875em; }
svg { display: block; width: 100%; max-width: 520px; height: auto; margin: auto auto 0; padding-top: 12px;
  font-family: inherit; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
table { border-collapse: collapse; width: 100%; font-size: .875em; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: 6px; }
th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0; font-weight: 400; }
thead th { color: var(--muted); }
.scroll { overflow-x: auto; margin: 8px 0; }
.scroll th, .scroll td { border-top: 1px solid var(--line); white-space: nowrap; overflow-wrap: normal; }
.scroll thead th { border-top: 0; }
.recall table { table-layout: fixed; }
.recall caption { font-size: 1.15em; }
.recall th, .recall td { padding: 1px 8px 1px 0; vertical-align: middle; }
.recall thead th:nth-child(1) { width: 5.2em; } .recall thead th:nth-child(3) { width: 5.4em; }
.recall thead th:nth-child(4) { width: 6em; }
.recall tbody th[scope=rowgroup] { padding-top: 10px; font-weight: 600; }
.recall tbody th[scope=row] { color: var(--muted); }
.number { white-space: nowrap; }
details { margin: 8px 0; }
summary { cursor: pointer; padding: 4px 0; }
summary:focus-visible, a:focus-visible, .scroll:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.case { background: var(--surface); border: 1px solid var(--line); border-radius: 8px; padding: 8px 14px; }
.question { font-weight: 600; }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 4px; padding: 0 6px; font-size: .8rem;
  font-weight: 600; white-space: nowrap; line-height: 1.4; }
.hits { padding-left: 1.4em; margin: 8px 0; }
.hits li { margin: 6px 0; }
.hits .muted { font-size: .875em; }
.diff { list-style: none; margin: 8px 0 0; padding: 0; }
.diff li { padding: 2px 0 2px 1.4em; position: relative; }
.diff li::before { position: absolute; left: 0; font-weight: 700; }
.diff li:has(del)::before { content: "−" / "removed: "; color: var(--bad); }
.diff li:has(ins)::before { content: "+" / "added: "; color: var(--good); }
del { color: var(--bad); } ins { color: var(--good); text-decoration: none; }
footer { margin-top: 48px; color: var(--muted); font-size: .875em; }
@media screen and (max-width: 480px) {
  main { padding: 20px 16px 40px; }
  figure.card { padding: 12px 8px; } figcaption, figure details { padding: 0 4px; }
  .tiles { grid-template-columns: 1fr 1fr; }
  .tiles li:first-child { grid-column: 1 / -1; } .tiles .name { min-height: 0; }
}
@media print {
  @page { margin: 14mm; }
  html { color-scheme: light; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  :root { --page: #ffffff; }
  body { font-size: 10pt; }
  .lead { font-size: 20pt; }
  main { max-width: none; padding: 0 1px; }
  nav { display: none; }
  h2 { margin-top: 24px; padding-top: 12px; }
  h2, h3, h4, figcaption, summary { break-after: avoid; }
  .card, .case, .tiles li, dl > div, tr { break-inside: avoid; }
  .tiles { grid-template-columns: repeat(5, 1fr); gap: 8px; } .tiles li { padding: 8px; font-size: 8.5pt; }
  dl { grid-template-columns: repeat(3, 1fr); margin: 8px 0; }
  .two { grid-template-columns: repeat(2, 1fr); }
  .three { grid-template-columns: repeat(3, 1fr); gap: 8px; } .recall { padding: 8px; }
  .recall table { font-size: 7.5pt; } .recall th, .recall td { padding-right: 4px; }
  .scroll { overflow: visible; } .scroll td, .scroll th { white-space: normal; }
}
"""
