"""How a document becomes an answer, and how it stops being one: the version story on the shipped corpus."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from builders import found, open_desk

from evidencedesk import Desk, Stale, ToyEmbedder
from evidencedesk.documents import parse_document

CORPUS = Path(__file__).parent.parent / "corpus"
QUESTION = "How long do I have to return a bike?"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shipped") / "desk.db"
    with open_desk(path, embedder="toy") as desk:
        desk.ingest(CORPUS)
    return path


@pytest.fixture
def desk(shipped: Path, tmp_path: Path) -> Desk:
    """A throwaway copy of the desk of the shipped corpus."""
    copy = tmp_path / "desk.db"
    shutil.copy(shipped, copy)
    with open_desk(copy, embedder="toy") as opened:
        yield opened


def fourth_version() -> object:
    text = (CORPUS / "kc-returns-v3.md").read_text(encoding="utf-8")
    for old, new in (
        ("kc-returns-v3", "kc-returns-v4"),
        ("version: v3", "version: v4"),
        ("2025-03-01", "2026-05-01"),
        ("30 days", "45 days"),
    ):
        text = text.replace(old, new)
    return parse_document(text, "kc-returns-v4.md")


def promises(desk: Desk) -> set[str]:
    """The days that texts in force promise for returning a bike."""
    texts = [hit.chunk.text for hit in desk.search(QUESTION, mode="vector", k=50, lang="en")]
    return {days for days in ("14", "30", "45") for text in texts if f"within {days} days of delivery" in text}


def by_hand(desk: Desk, *statements: str) -> None:
    """What only someone who writes rows by hand can do: the index forbids it."""
    with desk.engine.connect() as sql, sql.begin():
        for statement in statements:
            sql.exec_driver_sql(statement)


def test_the_labels_of_the_shipped_corpus(desk: Desk) -> None:
    assert len(desk.search("the", mode="vector", k=100)) == 33
    labels = {hit.chunk.id: hit.label for hit in desk.search("বাইক bike refunds", mode="vector", k=100)}
    assert labels["kc-returns-v3:c0"] == "Returns policy (Returning a bike, lines 11-12) [kc-returns-v3:c0]"
    assert labels["kc-returns-v3:c2"] == "Returns policy (How refunds are paid, line 18) [kc-returns-v3:c2]"
    assert labels["kc-returns-v3-bn:c0"] == "রিটার্ন নীতি (বাইক ফেরত, lines 11-12) [kc-returns-v3-bn:c0]"


def test_one_document_is_superseded_and_never_found(desk: Desk) -> None:
    assert desk.staleness() == [Stale("kc-returns-v2", "v2", "superseded")]
    assert "kc-returns-v2:c0" not in found(desk, QUESTION, k=100)
    assert found(desk, QUESTION)[0] == "kc-returns-v3:c0"
    assert promises(desk) == {"30"}


def test_an_old_version_wrongly_marked_current_is_found_out(desk: Desk) -> None:
    mark = "UPDATE documents SET status = 'current' WHERE doc_id = 'kc-returns-v2'"
    with pytest.raises(Exception, match="UNIQUE constraint failed"):
        by_hand(desk, mark)
    by_hand(desk, "DROP INDEX ux_documents_one_current", mark)
    assert desk.staleness() == [Stale("kc-returns-v2", "v2", "outdated_but_current")]
    assert set(found(desk, QUESTION, k=2)) == {"kc-returns-v3:c0", "kc-returns-v2:c0"}
    kinds = {problem.kind for problem in desk.check().problems}
    assert {"outdated but current", "index missing", "wrong status", "BM25 totals differ"} <= kinds


def test_appending_a_version_leaves_two_promises_in_force(desk: Desk) -> None:
    """What a store without versions does, made by hand."""
    desk.update_document(fourth_version())
    by_hand(
        desk,
        "DROP INDEX ux_documents_one_current",
        "UPDATE documents SET status = 'current' WHERE doc_id = 'kc-returns-v3'",
    )
    assert promises(desk) == {"30", "45"}
    assert Stale("kc-returns-v3", "v3", "outdated_but_current") in desk.staleness()


def test_replacing_leaves_one_promise_and_both_older_ones_superseded(desk: Desk) -> None:
    report = desk.update_document(fourth_version())
    assert (report.action, report.status, report.superseded) == ("added", "current", ("kc-returns-v3",))
    assert promises(desk) == {"45"}
    assert desk.staleness() == [Stale("kc-returns-v2", "v2", "superseded"), Stale("kc-returns-v3", "v3", "superseded")]
    assert desk.check().ok
    assert [hit.chunk.doc_id for hit in desk.search(QUESTION, as_of="2024-06-01", k=1)] == ["kc-returns-v2"]


def test_a_family_means_its_current_document(desk: Desk) -> None:
    assert desk.document("kc-returns").doc_id == "kc-returns-v3"
    assert desk.document("kc-returns", lang="bn").doc_id == "kc-returns-v3-bn"
    assert [(d.doc_id, d.status) for d in desk.history("kc-returns")] == [
        ("kc-returns-v3-bn", "current"), ("kc-returns-v2", "superseded"), ("kc-returns-v3", "current"),
    ]  # fmt: skip


def test_the_file_remembers_its_embedder(shipped: Path) -> None:
    with Desk.open(shipped, read_only=True) as desk:
        assert isinstance(desk.embedder, ToyEmbedder)
        assert desk.search(QUESTION)[0].chunk.id == "kc-returns-v3:c0"
