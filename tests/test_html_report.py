"""The evaluation as one HTML file: it tells the honest counts, stands alone, and shows what people wrote as text."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from builders import MOMENT, make_source, open_desk
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evidencedesk.cases import RagCase
from evidencedesk.evaluation.calibration import CalibrationReport
from evidencedesk.evaluation.html import write_html
from evidencedesk.evaluation.report import CaseResult, EvaluationReport, guarded_run
from evidencedesk.records import Flip, GateReport, RecordedAnswer, SentenceChange, StaleCitation

SOURCES = (
    make_source("You can return a bike within 30 days of delivery.", doc_id="returns-v1", heading="Returning", path="returns.md"),
    make_source("Gift cards expire three years after purchase.", doc_id="cards-v1", heading="Gift cards", path="cards.md"),
    make_source("Delivery within Dhaka takes two working days.", doc_id="delivery-v1", heading="Delivery", path="delivery.md"),
    make_source("বাইক ফেরত দিতে ত্রিশ দিন সময় আছে।", doc_id="ferot-v1", heading="ফেরত", lang="bn", path="ferot.md"),
)  # fmt: skip
CASES = (
    RagCase(id="c1", question="Can I return a bike within 30 days?", expected_doc_ids=("returns",), answerable=True, tags=("direct",)),
    RagCase(id="c2", question="When do gift cards expire?", expected_doc_ids=("cards",), answerable=True, tags=("direct",)),
    RagCase(id="c3", question="Is postage slow?", expected_doc_ids=("delivery",), answerable=True, tags=("paraphrase",)),
    RagCase(id="c4", question="বাইক ফেরত দিতে কত দিন সময় আছে?", expected_doc_ids=("ferot",), answerable=True, tags=("bangla",)),
    RagCase(id="c5", question="Do you sell electric scooters?", answerable=False, tags=("unanswerable",)),
    RagCase(id="c6", question="Who owns the shop?", answerable=False, tags=("unanswerable",)),
)  # fmt: skip
VOID = {"meta"}
HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)> & \"quoted\""


class Page(HTMLParser):
    """A parsed page: its elements, in order, with their attributes and the text in each. Refuses tags that do not pair."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self._open), data))

    def handle_comment(self, data: str) -> None:
        self.elements.append(("comment", {"text": data}))

    @property
    def text(self) -> str:
        """What a reader sees, closed details included, white space as one space."""
        seen = (data for opened, data in self.texts if "style" not in opened and "title" not in opened)
        return " ".join("".join(seen).split())

    def within(self, tag: str) -> list[str]:
        return [data for opened, data in self.texts if tag in opened]

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def evaluation() -> EvaluationReport:
    with open_desk(sources=SOURCES, embedder="toy") as desk:
        return desk.evaluate(CASES)


@pytest.fixture(scope="module")
def calibration() -> CalibrationReport:
    with open_desk(sources=SOURCES, embedder="toy") as desk:
        return desk.calibrate(CASES, store=False)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[object]:
    def written(evaluation: EvaluationReport, **reports: object) -> Page:
        path = tmp_path / "report.html"
        write_html(path, evaluation, **reports)
        return Page(path.read_text(encoding="utf-8"))

    return written


def gate(**fields: object) -> GateReport:
    facts = {
        "accepted": False,
        "run_id": 7,
        "objections": ("case c1 was right and would be wrong",),
        "flips": (),
        "changes": (),
    }
    return GateReport(**{**facts, **fields})


def repeated(evaluation: EvaluationReport, case: CaseResult, times: int) -> EvaluationReport:
    cases = tuple(replace(case, case_id=f"r{n}") for n in range(times))
    return replace(evaluation, cases=cases, guarded=guarded_run(cases))


# ---------------------------------------------------------------- what it says


def test_the_headline_tells_every_count_as_n_of_n_with_its_interval(page, evaluation) -> None:
    text = page(evaluation).text
    guarded = evaluation.guarded
    assert f"{guarded.answered.count:g} of 6 questions answered, none wrong." in text
    for name, rate in (
        ("Answered", guarded.answered), ("Wrong", guarded.wrong), ("Errors", guarded.errors),
        ("Unanswerable answered", guarded.unanswerable_answered), ("Turned away", guarded.answerable_turned_away),
    ):  # fmt: skip
        assert f"{name}{rate.count:g} of {rate.of}" in text
    assert "Errors0 of 6of all cases0 %95 %: 0–40 %" in text


def test_it_names_what_was_asked_of_what_and_when(page, evaluation) -> None:
    text = page(evaluation).text
    for fact in (
        "2026-06-01 12:00 UTC", str(evaluation.embedder), evaluation.generation, evaluation.cases_hash[:12],
        f"evidencedesk {evaluation.code_version}", f"cosine {evaluation.values.min_score:g}", evaluation.values.source,
        "Documents in force4", f"Run{evaluation.run_id}",
    ):  # fmt: skip
        assert fact in text


def test_a_run_that_is_not_stored_and_a_desk_without_embedder_say_so(page) -> None:
    with open_desk(sources=SOURCES) as desk:
        text = page(desk.evaluate(CASES, store=False)).text
    assert "Runnot stored" in text
    assert "none: keyword search" in text
    assert "idf share 0.5" in text


def test_few_cases_bring_the_caveat_and_enough_without_an_error_do_not(page, evaluation) -> None:
    right = next(case for case in evaluation.cases if case.outcome == "right")
    few, enough = page(repeated(evaluation, right, 58)), page(repeated(evaluation, right, 59))
    assert "At most 5 % wrong cannot be promised: 0 wrong of 58" in few.text
    assert "read the intervals" in few.text
    assert "At most 5 % wrong can be promised: 0 wrong of 59" in enough.text
    assert "read the intervals" not in enough.text


def test_failed_cases_are_in_the_headline_and_come_first_and_open(page, evaluation) -> None:
    broken = replace(
        evaluation.cases[4], outcome="error", reason=None, error="EmbedderError: no vectors", candidates=None
    )
    cases = (*evaluation.cases[:4], broken, *evaluation.cases[5:])
    found = page(replace(evaluation, cases=cases, guarded=guarded_run(cases)))
    assert "1 failed." in found.text
    listed = [attributes for attributes in found.named("details") if attributes.get("class") == "case"]
    is_open = ["open" in attributes for attributes in listed]
    went_wrong = [case for case in cases if case.outcome not in ("right", "refused")]
    assert len(listed) == 6
    assert is_open == [True] * len(went_wrong) + [False] * (6 - len(went_wrong))
    summaries = "".join(found.within("summary"))
    assert summaries.index(broken.question) < min(summaries.index(c.question) for c in cases if c is not broken)
    assert "EmbedderError: no vectors" in found.text


def test_each_case_shows_what_was_found_for_it_with_scores_and_labels(page, evaluation) -> None:
    found = page(evaluation)
    for case in evaluation.cases:
        assert f"{case.case_id} · {', '.join(case.tags)} · {case.reason.replace('_', ' ')}" in found.text
        for hit in case.candidates or ():
            assert " ".join(hit.label.split()) in found.text
            assert f"fused score {hit.score:.3f} · cosine {hit.cosine:.3f} · BM25 {hit.bm25:.2f}" in found.text
    assert {"lang": "bn", "dir": "auto"} in found.named("span")


def test_recall_is_told_by_tag_and_leg_with_its_interval(page, evaluation) -> None:
    found = page(evaluation)
    assert [text for text in found.within("caption") if text.startswith("recall")] == [
        "recall@1",
        "recall@3",
        "recall@10",
    ]
    assert "paraphrase 1" in found.text
    assert "Nothing is to be found for: unanswerable." in found.text
    every = next(row for row in evaluation.retrieval if row.tag == "all" and row.mode == "hybrid")
    assert f"{every.mrr.value * 100:.1f}".removesuffix(".0") + " %" in found.text


def test_the_depth_that_was_asked_is_shown_in_order_and_once(page) -> None:
    with open_desk(sources=SOURCES) as desk:
        captions = {k: page(desk.evaluate(CASES, k=k, store=False)).within("caption") for k in (2, 3)}
    assert captions[2][:3] == ["recall@1", "recall@2", "recall@3"]
    assert captions[3][:2] == ["recall@1", "recall@3"]
    assert "recall@3" not in captions[3][2:]


def test_the_sweep_is_two_heat_maps_and_a_table_with_every_number(page, evaluation) -> None:
    found = page(evaluation)
    cells = [" ".join(text.split()) for text in found.within("svg") if re.search(r"\d of \d|wrong", text)]
    assert sorted(cells) == sorted(
        label
        for row in evaluation.sweep
        for label in (
            f"{row.unanswerable_answered.count:g} of 2", f"+ {row.wrong_top.count:g} wrong",
            f"{row.answerable_turned_away.count:g} of 4",
        )
    )  # fmt: skip
    assert "The frame marks the thresholds in force." in found.text
    for row in evaluation.sweep:
        assert f'<th scope="row">{row.min_score:g}</th><td>{row.min_margin:g}' in found.source
    assert evaluation.separation in found.text


def test_a_sweep_that_has_no_room_for_numbers_leaves_them_to_its_table(page) -> None:
    grid = [(score / 20, margin / 20) for score in range(20) for margin in range(3)]
    with open_desk(sources=SOURCES) as desk:
        found = page(desk.evaluate(CASES, sweep=grid, store=False))
    assert not [text for text in found.within("svg") if " of " in text]
    assert "Second line" not in found.text
    assert found.source.count('<th scope="row">0.95</th>') == 3


# ---------------------------------------------------------------- calibration


def test_without_a_calibration_its_charts_are_left_out_and_it_says_how_to_get_them(page, evaluation) -> None:
    found = page(evaluation)
    assert "calibration=desk.calibrate(cases, store=False)" in found.text
    assert len(found.named("svg")) == 2


def test_a_calibration_brings_its_promise_both_charts_and_their_tables(page, evaluation, calibration) -> None:
    found = page(evaluation, calibration=calibration)
    assert calibration.promise in found.text
    labels = [attributes["aria-label"] for attributes in found.named("svg")]
    assert [label.split(":")[0].split(" over ")[0] for label in labels] == [
        "Heat map", "Heat map", "Curve of risk and coverage", "Reliability diagram",
    ]  # fmt: skip
    for point in calibration.curve:
        assert f"{point.threshold:.3f}{point.coverage.count:g} of {point.coverage.of}" in found.text
    assert "fitted on other cases" not in found.text
    assert "another embedder" not in found.text


def test_a_calibration_of_something_else_is_said_to_be_that(page, evaluation, calibration) -> None:
    other = replace(calibration, cases_hash="0" * 64, embedder=None)
    text = page(evaluation, calibration=other).text
    assert "It was fitted on other cases than those evaluated here." in text
    assert "It is of another embedder: none, keyword search." in text


def test_under_a_calibrated_guard_there_is_no_sweep_and_it_says_why(page) -> None:
    with open_desk(sources=SOURCES, embedder="toy") as desk:
        fitted = desk.calibrate(CASES)
        found = page(desk.evaluate(CASES, store=False), calibration=fitted)
    assert "takes the place of a sweep" in found.text
    assert len(found.named("svg")) == 2
    assert f"probability {fitted.guard.threshold:.3f}" in found.text


# ---------------------------------------------------------------- the gate


def test_a_gate_tells_its_verdict_what_flipped_and_what_the_documents_say_otherwise(page, evaluation) -> None:
    flips = (
        Flip("c2", "When do gift cards expire?", None, "right", "holds"),
        Flip("c1", "How long?", "right", "turned_away", "too far"),
    )
    changes = (
        SentenceChange("returns-v1", "returns-v2", ("Within 30 days.",), ("Within 45 days.",)),
        SentenceChange("cards-v1", "cards-v1", ("They expire.",), ()),
    )
    found = page(evaluation, gate=gate(flips=flips, changes=changes))
    assert "The change was refused." in found.text
    assert "case c1 was right and would be wrong" in found.text
    assert "right → turned away How long? c1too far" in found.text
    assert found.text.index("turned away How long?") < found.text.index("not asked → right When do gift cards expire?")
    assert found.within("del") == ["Within 30 days.", "They expire."]
    assert found.within("ins") == ["Within 45 days."]
    assert "returns-v1 → returns-v2" in found.text
    assert "cards-v1 (corrected in place)" in found.text


def stale_answer(text: str = "Within 30 days.", **given: object) -> RecordedAnswer:
    citation = StaleCitation("returns-v1:c0", "returns-v1", "returns-v2", "superseded", text, True)
    facts = {"answer_id": 3, "question": "How long?", "text": text, "detail": "", "stale": (citation,), **given}
    return RecordedAnswer(
        asked_at=MOMENT, as_of=None, abstained=False, reason="ok", model="quoting", citations=(), **facts
    )


def test_a_gate_names_the_recorded_answers_that_its_change_takes_the_ground_from(page, evaluation) -> None:
    text = page(evaluation, gate=gate(), gone_stale=[stale_answer()]).text
    assert "Recorded answers that go staleHow long? answer 3" in text
    assert "returns-v1:c0 superseded; now returns-v2; the cited sentence changedWithin 30 days." in text
    assert "Recorded answers" not in page(evaluation, gate=gate()).text


def test_a_gate_without_a_calibration_does_not_ask_for_one(page, evaluation, calibration) -> None:
    ids = [
        {section["id"] for section in page(evaluation, gate=gate(), calibration=fitted).named("section")}
        for fitted in (None, calibration)
    ]
    assert ids[1] - ids[0] == {"calibration"}


def test_a_gate_that_nothing_flipped_says_so_and_without_one_there_is_no_section(page, evaluation) -> None:
    held = page(evaluation, gate=gate(accepted=True, objections=()))
    assert "The change holds." in held.text
    assert "Every case came out as before." in held.text
    assert {"id": "change", "aria-labelledby": "change-h"} not in page(evaluation).named("section")


# ---------------------------------------------------------------- it is text, and it stands alone


def hostile(evaluation: EvaluationReport, text: str) -> tuple[EvaluationReport, GateReport]:
    """A report in which a text stands wherever people, files or models write one."""

    def spoilt(case: CaseResult) -> CaseResult:
        hits = case.candidates
        chunks = [replace(hit.chunk, doc_id=text, lang=text) for hit in hits]
        return replace(
            case, case_id=text, question=text, tags=(text,), expected=(text,), detail=text, cited=(text,), as_of=text,
            candidates=replace(hits, hits=tuple(
                replace(hit, chunk=chunk, label=text) for hit, chunk in zip(hits, chunks, strict=True))),
        )  # fmt: skip

    rows = tuple(replace(row, tag=text) for row in evaluation.retrieval[:3])
    values = replace(evaluation.values, source=text)
    report = replace(
        evaluation, cases=tuple(spoilt(case) for case in evaluation.cases if case.candidates), retrieval=rows, values=values,
        embedder=replace(evaluation.embedder, name=text), generation=text, model=text, checker=text, code_version=text,
        separation=text, sweep=(),
    )  # fmt: skip
    change = SentenceChange(text, text + "2", (text,), (text,))
    return report, gate(objections=(text,), flips=(Flip(text, text, "right", "wrong", text),), changes=(change,))


def shape(found: Page) -> list[tuple[str, frozenset[str]]]:
    return [(name, frozenset(attributes)) for name, attributes in found.elements]


def test_a_question_that_holds_a_script_is_shown_as_text_and_never_runs(page, evaluation) -> None:
    report, refused = hostile(evaluation, HOSTILE)
    found = page(report, gate=refused, gone_stale=[stale_answer(HOSTILE, question=HOSTILE)])
    assert not found.named("script")
    assert not found.named("img")
    assert found.within("del") == [HOSTILE]
    assert found.text.count(HOSTILE) > 20


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1).filter(str.strip))
def test_whatever_is_written_changes_no_element_and_is_read_back(page, evaluation, text) -> None:
    """Control characters and lone surrogates, which HTML and UTF-8 cannot hold, are shown as U+FFFD."""
    found, plain = (page(report, gate=refused) for report, refused in (hostile(evaluation, t) for t in (text, "x")))
    assert shape(found) == shape(plain)
    writable = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)
    assert "".join(found.within("del")).replace("\n", "\r") == writable.replace("\r\n", "\r").replace("\n", "\r")


def test_the_page_fetches_nothing_and_runs_nothing(page, evaluation, calibration) -> None:
    found = page(evaluation, calibration=calibration, gate=gate())
    assert not {"script", "link", "img", "iframe", "object", "image"} & {name for name, _ in found.elements}
    assert "default-src 'none'; style-src 'unsafe-inline'" in [meta.get("content") for meta in found.named("meta")]
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset")]
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    style = "".join(found.within("style"))
    assert "@import" not in style
    assert "url(" not in style


def test_every_id_is_there_once_and_every_reference_leads_to_one(page, evaluation, calibration) -> None:
    found = page(evaluation, calibration=calibration, gate=gate())
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    referred = set(re.findall(r'(?:href="#|url\(#|aria-labelledby=")([^")]+)', found.source))
    assert referred <= set(ids)


def test_one_report_gives_the_same_bytes_whatever_the_hosts_style_and_leaves_that_as_it_was(
    tmp_path, evaluation
) -> None:
    import matplotlib as mpl

    write_html(tmp_path / "a.html", evaluation)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        before = dict(mpl.rcParams)
        write_html(tmp_path / "b.html", evaluation)
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_without_matplotlib_it_says_what_to_install_and_a_former_report_stays(
    tmp_path, monkeypatch, evaluation
) -> None:
    (tmp_path / "report.html").write_text("<!DOCTYPE html>former", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.style", raising=False)
    with pytest.raises(ImportError, match=re.escape('pip install "evidencedesk[report]"')):
        write_html(tmp_path / "report.html", evaluation)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == "<!DOCTYPE html>former"


def test_matplotlib_is_imported_at_use_alone() -> None:
    code = "import sys, evidencedesk.evaluation.html; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ---------------------------------------------------------------- it can be read


def test_charts_have_only_colours_of_the_page_a_text_and_a_table_beside_them(page, evaluation, calibration) -> None:
    found = page(evaluation, calibration=calibration)
    charts = re.findall(r"<svg.*?</svg>", found.source, re.DOTALL)
    assert len(charts) == 4
    for chart in charts:
        assert set(re.findall(r"(?:fill|stroke|color): ?([^;\"(]+)", chart)) == {"none", "var"}
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in found.named("svg"))
    assert {"The sweep", "Risk and coverage", "Reliability"} <= set(found.within("caption"))


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`: WCAG 2.2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_enough_in_both_schemes(page, evaluation, scheme) -> None:
    """WCAG 2.2, 1.4.3 (4.5 for text, also over the strongest colour of a heat map) and 1.4.11 (3 for bars)."""
    style = "".join(page(evaluation).within("style"))
    blocks = re.findall(r":root \{([^}]*--ink[^}]*)\}", style)
    assert len(blocks) == 2
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", blocks[scheme == "dark"]))
    for text in ("ink", "muted", "good", "bad", "warn", "accent"):
        for ground in ("page", "surface"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for ground in ("risk", "cost"):
        assert contrast(colours["ink"], colours[ground]) >= 4.5, ground
    for beside in ("surface", "track", "ink"):
        assert contrast(colours["bar"], colours[beside]) >= 3, beside


def test_it_is_made_for_paper_the_dark_and_a_phone(page, evaluation) -> None:
    found = page(evaluation)
    style = "".join(found.within("style"))
    assert "@media print" in style
    assert "@media screen and (prefers-color-scheme: dark)" in style  # paper stays light
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in found.named("meta")
    assert found.named("html") == [{"lang": "en"}]
    assert {"lang": "", "dir": "auto", "class": "question"} in found.named("span")
