"""The gate: a change is committed only if the cases hold of what it makes true."""

from __future__ import annotations

import html
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builders import Clock, make_source, open_desk, write_source

from evidencedesk import CallableEmbedder, Desk, RagCase, ToyEmbedder, counting
from evidencedesk.errors import CaseError, DeskFull, DocumentConflict
from evidencedesk.evaluation.gate import Gate
from evidencedesk.records import SentenceChange

CHECKOUT = Path(__file__).resolve().parent.parent
RETURNS = "You can return a new bike within 30 days of delivery."
QUESTION = "Within how many days can you return a new bike?"
CASES = (
    RagCase(id="returns", question=QUESTION, expected_doc_ids=("shop",), answerable=True, must_cite=True),
    RagCase(id="moon", question="Who walked on the moon first?", answerable=False),
)


def rule(text: str = RETURNS, **front: object) -> object:
    return make_source(text, **{"doc_id": "shop-v1", "heading": "Returns", **front})


def found(desk: Desk) -> list[str]:
    return [summary.doc_id for summary in desk.documents(status="current")]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    with open_desk(tmp_path / "desk.db", [rule()], embedder="toy") as opened:
        yield opened


def test_a_good_update_goes_in(desk: Desk) -> None:
    report = desk.update_document(rule(RETURNS.replace("30", "45"), doc_id="shop-v2", version="v2"), gate=Gate(CASES))
    assert report.gate is not None
    assert (report.gate.accepted, report.gate.objections, report.gate.flips) == (True, (), ())
    assert (report.action, report.superseded, report.embedded, found(desk)) == ("added", ("shop-v1",), 1, ["shop-v2"])
    assert report.gate.changes == (SentenceChange("shop-v1", "shop-v2", (RETURNS,), (RETURNS.replace("30", "45"),)),)
    assert desk.check().ok


def test_an_update_that_drops_its_answer_is_refused_and_nothing_of_it_stays(desk: Desk) -> None:
    desk.ask(QUESTION, record=True)
    report = desk.update_document(rule("We sell helmets.", doc_id="shop-v2", version="v2"), gate=Gate(CASES))
    assert report.gate is not None
    assert report.gate.accepted is False
    (objection,) = report.gate.objections
    assert objection.startswith("case returns was right and would be turned_away: ")
    ((flip),) = report.gate.flips
    assert (flip.case_id, flip.before, flip.after) == ("returns", "right", "turned_away")
    assert (report.superseded, report.stale_answers) == (("shop-v1",), 1), "what would have been"
    assert (found(desk), desk.answers(stale=True)) == (["shop-v1"], [])
    assert desk.ask(QUESTION).reason == "ok"
    assert desk.check().ok


def test_a_correction_in_place_is_undone_too_and_shown_sentence_by_sentence(desk: Desk) -> None:
    report = desk.update_document(rule("We sell helmets."), gate=Gate(CASES))
    assert report.gate is not None
    assert report.gate.accepted is False
    assert report.gate.changes == (SentenceChange("shop-v1", "shop-v1", (RETURNS,), ("We sell helmets.",)),)
    assert desk.chunk("shop-v1:c0").text == RETURNS


@pytest.mark.parametrize(
    ("options", "accepted", "word"),
    [
        ({"fail_under": {"recall@1": 1.0}, "fail_over": {"wrong": 0}}, True, ""),
        ({"fail_under": {"answered": 0.9}}, False, "answered is 0.5, below 0.9"),
        ({"fail_over": {"turned_away": 0}}, True, ""),
    ],
)
def test_floors_and_ceilings_decide_where_they_are_stated(desk: Desk, options: dict, accepted: bool, word: str) -> None:
    report = desk.update_document(rule(doc_id="shop-v2", version="v2"), gate=Gate(CASES, **options))
    assert report.gate is not None
    assert report.gate.accepted is accepted
    assert word in "".join(report.gate.objections)


def test_with_stated_floors_a_case_may_flip(desk: Desk) -> None:
    gate = Gate(CASES, fail_over={"wrong": 0})
    report = desk.update_document(rule("We sell helmets.", doc_id="shop-v2", version="v2"), gate=gate)
    assert report.gate is not None
    assert (report.gate.accepted, len(report.gate.flips)) == (True, 1)


def test_the_report_of_a_gate_holds_the_document_diff_the_flips_and_the_answers_gone_stale(
    desk: Desk, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    desk.ask(QUESTION, record=True)
    place = tmp_path / "gate.html"
    changed = rule(RETURNS.replace("30", "45"), doc_id="shop-v2", version="v2")
    for document, verdict in ((rule("We sell helmets."), "The change was refused."), (changed, "The change holds.")):
        report = desk.update_document(document, gate=Gate(CASES, html=place))
        page = place.read_text(encoding="utf-8")
        assert report.notes == ()
        assert verdict in page
        assert f"The gate's run is number {report.gate.run_id}" in html.unescape(page)
        assert f'<del lang="" dir="auto">{RETURNS}</del>' in page
        assert "Recorded answers that go stale" in page
        assert "shop-v1:c0" in page
    desk.update_document(rule("Cards.", doc_id="cards-v1"), gate=Gate(CASES, html=place))
    assert "Recorded answers" not in place.read_text(encoding="utf-8"), "it was stale before"


def test_a_dry_run_and_a_refused_ingest_have_their_report_and_leave_nothing_else(desk: Desk, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder, place = tmp_path / "texts", tmp_path / "gate.html"
    write_source(folder, "shop.md", "We sell helmets.", doc_id="shop-v2", version="v2", title="Shop")
    for dry_run in (True, False):
        report = desk.ingest(folder, gate=Gate(CASES, html=place), dry_run=dry_run)
        assert report.gate.accepted is False
        assert "The change was refused." in place.read_text(encoding="utf-8")
        place.unlink()
    assert found(desk) == ["shop-v1"]


def test_a_report_that_cannot_be_written_stops_the_change_before_it_begins(desk: Desk, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        desk.update_document(rule(doc_id="shop-v2", version="v2"), gate=Gate(CASES, html=tmp_path / "no" / "gate.html"))
    assert found(desk) == ["shop-v1"]


def test_a_report_that_fails_at_last_is_a_note_and_does_not_hide_what_became_of_the_change(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evidencedesk.evaluation.gate.write_html", full)
    report = desk.update_document(
        rule(RETURNS.replace("30", "45"), doc_id="shop-v2", version="v2"), gate=Gate(CASES, html=tmp_path / "g.html")
    )
    assert (report.gate.accepted, found(desk)) == (True, ["shop-v2"])
    assert report.notes == ("the HTML report was not written: [Errno 28] No space left on device",)


def test_a_metric_that_there_is_not_is_named_before_anything_is_embedded(desk: Desk) -> None:
    with pytest.raises(ValueError, match=r"there is no metric 'recal@1'; there are recall@1"):
        desk.update_document(rule("Other.", doc_id="shop-v2", version="v2"), gate=Gate(CASES, {"recal@1": 1}))
    assert found(desk) == ["shop-v1"]


def test_a_limit_that_could_never_break_is_refused(desk: Desk) -> None:
    with pytest.raises(ValueError, match="the limit of recall@1 must be a finite number"):
        desk.update_document(rule("Other."), gate=Gate(CASES, {"recall@1": float("nan")}))


def test_a_case_that_expects_what_is_not_there_guards_nothing_and_refuses(desk: Desk) -> None:
    case = RagCase(id="typo", question=QUESTION, expected_doc_ids=("shpo",), answerable=True)
    report = desk.update_document(rule("Other.", doc_id="shop-v2", version="v2"), gate=Gate([case]))
    assert report.gate is not None
    assert report.gate.objections[0] == "case typo expects shpo, and there is no such document or family"
    assert found(desk) == ["shop-v1"]


def test_a_case_that_fails_refuses_the_change(tmp_path: Path) -> None:
    toy = ToyEmbedder()

    def embed(texts: list[str]) -> object:
        if any("moon" in text for text in texts):
            raise RuntimeError("no such word")
        return toy.embed_documents(texts)

    embedder = CallableEmbedder(embed, name="mine", dimension=toy.dimension)
    with open_desk(tmp_path / "desk.db", [rule()], embedder=embedder) as desk:
        report = desk.update_document(rule(doc_id="shop-v2", version="v2"), gate=Gate(CASES, fail_over={"wrong": 5}))
        assert report.gate is not None
        assert report.gate.accepted is False
        assert any("case moon failed" in objection for objection in report.gate.objections)


def test_a_folder_is_one_transaction_and_a_bad_file_stops_nothing(desk: Desk, tmp_path: Path) -> None:
    write_source(tmp_path / "docs", "new.md", RETURNS.replace("30", "45"), doc_id="shop-v2", version="v2")
    write_source(tmp_path / "docs", "more.md", "Helmets are sold.", doc_id="more-v1")
    (tmp_path / "docs" / "bad.md").write_bytes(b"\xff\xfe\xfd")
    report = desk.ingest(tmp_path / "docs", gate=Gate(CASES))
    assert report.gate is not None
    assert (report.gate.accepted, report.added, len(report.failed)) == (True, ("more-v1", "shop-v2"), 1)
    assert (report.embedded, found(desk)) == (2, ["more-v1", "shop-v2"])
    write_source(tmp_path / "docs", "newest.md", "We sell helmets.", doc_id="shop-v3", version="v3")
    write_source(tmp_path / "docs", "other.md", "Bells are sold.", doc_id="other-v1")
    refused = desk.ingest(tmp_path / "docs", gate=Gate(CASES))
    assert refused.gate is not None
    assert (refused.gate.accepted, refused.added) == (False, ("shop-v3", "other-v1"))
    assert found(desk) == ["more-v1", "shop-v2"], "the harmless file of the run is undone too"
    assert desk.check().ok


def test_a_dry_run_says_the_same_and_always_rolls_back(desk: Desk, tmp_path: Path) -> None:
    write_source(tmp_path / "docs", "new.md", RETURNS.replace("30", "45"), doc_id="shop-v2", version="v2")
    rehearsed = desk.ingest(tmp_path / "docs", gate=Gate(CASES), dry_run=True)
    assert rehearsed.gate is not None
    assert (rehearsed.gate.accepted, rehearsed.dry_run, rehearsed.added) == (True, True, ("shop-v2",))
    assert (found(desk), rehearsed.gate.run_id) == (["shop-v1"], None)
    assert rehearsed.gate.changes != ()


def test_what_was_embedded_for_a_refused_change_is_not_embedded_again(tmp_path: Path) -> None:
    embedder = counting(ToyEmbedder())
    with open_desk(tmp_path / "desk.db", [rule()], embedder=embedder) as desk:
        bad = rule("We sell helmets.", doc_id="shop-v2", version="v2")
        assert desk.update_document(bad, gate=Gate(CASES)).embedded == 1
        assert desk.update_document(bad, gate=Gate(CASES)).embedded == 0
        assert desk.update_document(bad).embedded == 0


def test_the_run_is_kept_whether_the_change_was_or_not(desk: Desk) -> None:
    accepted = desk.update_document(rule(doc_id="shop-v2", version="v2"), gate=Gate(CASES))
    refused = desk.update_document(rule("Helmets.", doc_id="shop-v3", version="v3"), gate=Gate(CASES))
    assert accepted.gate is not None
    assert refused.gate is not None
    assert (accepted.gate.run_id, refused.gate.run_id) == (1, 2)
    with desk.store.read() as snapshot:
        rows = snapshot.connection.exec_driver_sql(
            "SELECT run_id, kind, accepted, outcome, outcome_before FROM case_history WHERE case_id = 'returns'"
        ).fetchall()
    assert [tuple(row) for row in rows] == [(1, "gate", 1, "right", None), (2, "gate", 0, "turned_away", "right")]


def test_readers_see_the_former_state_until_it_commits(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    path = tmp_path / "desk.db"

    class Watching(Clock):
        """Looks at the file from another connection whenever a transaction asks for the time."""

        def __call__(self):
            if path.exists() and watching:
                with Desk.open(path, embedder="none", read_only=True) as reader:
                    seen.append(found(reader))
            return self.now

    watching = False
    with open_desk(path, [rule()], embedder="toy", clock=Watching()) as desk:
        watching = True
        assert desk.update_document(rule(doc_id="shop-v2", version="v2"), gate=Gate(CASES)).gate.accepted
        watching = False
        assert found(desk) == ["shop-v2"]
    assert len(seen) > 5
    assert set(map(tuple, seen[:-1])) == {("shop-v1",)}


def test_an_accepted_change_and_its_run_are_stored_together_or_not_at_all(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a caller could hear of a failure to store the run, and not that the change went in."""

    def fails(*_: object, **__: object) -> None:
        raise DeskFull(path="desk.db", stage="storing an evaluation")

    monkeypatch.setattr("evidencedesk.evaluation.gate.remember", fails)
    with pytest.raises(DeskFull):
        desk.update_document(rule(doc_id="shop-v2", version="v2"), gate=Gate(CASES))
    assert found(desk) == ["shop-v1"]
    assert desk.check().ok


def test_what_the_change_itself_raises_reaches_the_caller(desk: Desk) -> None:
    conflicting = rule("Other.", doc_id="other-v1", family="shop")
    with pytest.raises(DocumentConflict):
        desk.update_document(conflicting, gate=Gate(CASES))
    assert found(desk) == ["shop-v1"]


def test_a_fault_in_the_file_of_cases_stops_before_anything_is_written(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text('{"id": 1}\n', encoding="utf-8")
    with pytest.raises(CaseError, match="line 1"):
        desk.update_document(rule("Other.", doc_id="shop-v2", version="v2"), gate=Gate(tmp_path / "cases.jsonl"))
    assert found(desk) == ["shop-v1"]


def test_an_in_memory_desk_has_a_gate_too() -> None:
    with open_desk(sources=[rule()], embedder="toy") as desk:
        assert desk.update_document(rule("Helmets."), gate=Gate(CASES)).gate.accepted is False
        assert desk.chunk("shop-v1:c0").text == RETURNS


KILLED = """
import os, signal, sys
from evidencedesk import Desk
from evidencedesk.evaluation import gate
real = gate._found
def killed(*arguments):
    found = real(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)
gate._found = killed
with Desk.open(sys.argv[1]) as desk:
    desk.ingest(sys.argv[2], gate=gate.Gate(sys.argv[3]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
def test_a_gated_ingest_that_is_killed_leaves_the_old_state(tmp_path: Path) -> None:
    """BR-83, after every document was written and the cases were asked, before the commit."""
    path, folder = tmp_path / "desk.db", tmp_path / "corpus"
    shutil.copytree(CHECKOUT / "corpus", folder)
    with Desk.open(path, embedder="toy") as desk:
        desk.ingest(folder)
        before = desk.documents()
    for file in folder.glob("*.md"):
        text = file.read_text(encoding="utf-8")
        file.write_text(text + "\nOne more sentence stands here.\n", encoding="utf-8")
    cases = CHECKOUT / "data" / "rag_cases.jsonl"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run([sys.executable, "-c", KILLED, path, folder, cases], check=False, env=environment)
    assert done.returncode == -signal.SIGKILL
    with Desk.open(path) as desk:
        assert desk.documents() == before
        assert desk.check().ok
        report = desk.ingest(folder, gate=Gate(cases, fail_over={"wrong": 0}))
        assert report.gate is not None
        assert (report.gate.accepted, len(report.updated), report.embedded) == (True, 14, 0)
        assert desk.check().ok


def test_what_takes_force_later_is_shown_and_said_not_to_be_judged(desk: Desk) -> None:
    """The cases ask about today, so a loss that begins next year passes: the diff and a note say so."""
    later = rule("We sell helmets.", doc_id="shop-v2", version="v2", effective_from="2099-01-01")
    report = desk.update_document(later, gate=Gate(CASES))
    assert report.gate is not None
    assert (report.gate.accepted, report.status) == (True, "scheduled")
    assert report.gate.changes == (SentenceChange("shop-v1", "shop-v2", (RETURNS,), ("We sell helmets.",)),)
    assert report.notes[-1] == (
        'shop-v2 takes force on 2099-01-01, and then no gate is asked: cases with "as_of": "2099-01-01" ask about that '
        "day now"
    )
    asked = Gate([CASES[0].model_copy(update={"as_of": "2099-01-01"})], fail_under={"answered": 1.0})
    again = desk.update_document(
        rule("We sell bells.", doc_id="shop-v3", version="v3", effective_from="2098-01-01"), gate=asked
    )
    assert again.gate is not None
    assert not again.gate.accepted


def test_the_first_documents_are_not_compared_with_an_empty_desk(tmp_path: Path) -> None:
    """A question that nothing answered, because there was nothing, may get a wrong answer: limits say what may not be."""
    wrong = RagCase(id="wrong", question=QUESTION, answerable=False)
    with open_desk(tmp_path / "desk.db", embedder="toy") as empty:
        first = empty.update_document(rule(), gate=Gate([wrong]))
        assert first.gate is not None
        assert (first.gate.accepted, first.gate.rule) == (
            True, "nothing was in force before, so only cases that fail count",
        )  # fmt: skip
        second = empty.update_document(rule("Red bikes.", doc_id="red-v1"), gate=Gate([wrong], fail_over={"wrong": 0}))
        assert second.gate is not None
        assert (second.gate.accepted, second.gate.rule) == (False, "the stated limits alone decide")
