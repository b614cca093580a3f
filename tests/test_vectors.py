"""Exact vector search: equal to brute force under every filter, and refusals of what is no vector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from builders import found, make_source, open_desk, write_source

from evidencedesk import vectors
from evidencedesk.embeddings import CallableEmbedder
from evidencedesk.errors import BadVectors, EmbedderMismatch


def planted(texts: Sequence[str]) -> np.ndarray:
    """The vector that a text asks for: `at 3 4` becomes (3, 4, 0, 0); no such words give a vector of ones."""
    rows = []
    for text in texts:
        numbers = [float(word) for word in text.split(" at ")[-1].rstrip(".").split()] if " at " in text else [1.0] * 4
        rows.append(numbers + [0.0] * (4 - len(numbers)))
    return np.array(rows, dtype=np.float32)


def planted_embedder(dimension: int = 4) -> CallableEmbedder:
    return CallableEmbedder(
        lambda texts: planted(texts)[:, :dimension], name="planted", dimension=dimension, fingerprint="1"
    )


def test_a_filter_never_starves_the_nearest() -> None:
    """BR-11: the hundred nearest are superseded, in another language or family; still k, and those of brute force."""
    sources = [make_source(f"Old {n} at 1 0.0{n:03d}.", doc_id=f"near-{n}-v1") for n in range(100)]
    sources += [make_source(f"New {n} at 0 1 {n / 50}.", doc_id=f"near-{n}-v2") for n in range(100)]
    sources += [make_source(f"Other {n} at 1 1 {n / 50}.", doc_id=f"far-{n}-v1-bn", lang="bn") for n in range(20)]
    with open_desk(sources=sources, embedder=planted_embedder()) as desk:
        hits = desk.search("question at 1 0", mode="vector", k=5)
        assert [hit.vector_rank for hit in hits] == [1, 2, 3, 4, 5]
        assert {hit.chunk.lang for hit in hits} == {"bn"}
        for filters in (
            {"lang": "en"},
            {"family": "far-3"},
            {"lang": "bn", "family": "far-7"},
            {"lang": "en", "family": "near-7"},
        ):
            got = desk.search("question at 1 0", mode="vector", k=5, **filters)
            eligible = [
                chunk
                for document in desk.documents(status="current")
                if filters.get("lang") in (None, document.lang) and filters.get("family") in (None, document.family)
                for chunk in desk.document(document.doc_id).chunks
            ]
            assert len(got) == min(5, len(eligible))
            cosines = {
                c.id: float(v[0] / np.linalg.norm(v)) for c in eligible for v in planted([c.indexed_text]).astype(float)
            }
            best = sorted(cosines, key=lambda name: (-round(cosines[name], 6), name))[:5]
            assert [hit.chunk.id for hit in got] == best
            assert [hit.cosine for hit in got] == pytest.approx([cosines[name] for name in best], abs=1e-6)


def test_ties_are_broken_by_chunk_id_however_many_there_are() -> None:
    sources = [make_source("Same at 1 2.", doc_id=f"doc-{n:03d}-v1") for n in range(120)]
    with open_desk(sources=sources, embedder=planted_embedder()) as desk:
        assert found(desk, "q at 1 2", mode="vector", k=3) == [f"doc-{n:03d}-v1:c0" for n in range(3)]


def test_k_beyond_every_limit_gives_everything() -> None:
    """BR-08: the extension's own limit of 4,096 neighbours is nobody's business."""
    body = "\n\n".join(f"## Section {n}\n\nText at 1 {n}." for n in range(5000))
    with open_desk(sources=[make_source(body, heading=None)], embedder=planted_embedder()) as desk:
        assert len(desk.search("q at 1 0", mode="vector", k=6000)) == 5000
        assert len(desk.search("text", mode="keyword", k=10**9)) == 5000


@pytest.mark.parametrize(
    ("vector", "problem"),
    [
        ([0, 0, 0, 0], "zero"),
        ([np.nan, 0, 0, 1], "NaN|finite"),
        ([np.inf, 0, 0, 1], "finite|infinit"),
        ([1, 0], "4|width|wide"),
    ],
)
def test_what_is_no_vector_is_refused_with_the_chunk_named(vector: list[float], problem: str) -> None:
    """BR-16: before anything is written, and the former text still answers."""
    given = [1.0, 0.0, 0.0, 0.0]
    embedder = CallableEmbedder(lambda texts: np.array([given] * len(texts), dtype=np.float32), name="x", dimension=4)
    with open_desk(sources=[make_source("Former text.")], embedder=embedder) as desk:
        given[:] = vector
        with pytest.raises(BadVectors, match=problem) as caught:
            desk.update_document(make_source("New text."))
        assert "shop-v1:c0" in str(caught.value)
        given[:] = [1.0, 0.0, 0.0, 0.0]
        assert desk.chunk("shop-v1:c0").text == "Former text."
        assert desk.check().ok


def test_a_question_without_a_vector_is_searched_by_keyword_and_says_so() -> None:
    """BR-16: a zero vector of the question never ranks anything."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.array([[0.0] * 2 if text == "zero bikes" else [1.0, 0.0] for text in texts], dtype=np.float32)

    with open_desk(sources=[make_source()], embedder=CallableEmbedder(embed, name="x", dimension=2)) as desk:
        hits = desk.search("zero bikes")
        assert (hits.mode, [hit.cosine for hit in hits]) == ("keyword", [None])
        assert "searched by keyword" in hits.notes[0]
        with pytest.raises(BadVectors, match="the question"):
            desk.search("zero bikes", mode="vector")


@pytest.mark.parametrize(
    "other", [planted_embedder(3), CallableEmbedder(planted, name="planted", dimension=4, fingerprint="2")]
)
def test_another_embedder_is_refused_with_both_named(tmp_path: Path, other: CallableEmbedder) -> None:
    """BR-05: at open, even at the same width; stored vectors stay and still answer."""
    with open_desk(tmp_path / "desk.db", [make_source("A at 1 0.")], embedder=planted_embedder()):
        pass
    with pytest.raises(EmbedderMismatch, match=r"planted.*4.*planted.*Nothing was changed"):
        with open_desk(tmp_path / "desk.db", embedder=other):
            pass
    with open_desk(tmp_path / "desk.db", embedder=planted_embedder()) as desk:
        assert found(desk, "q at 1 0", mode="vector") == ["shop-v1:c0"]


def test_a_text_is_embedded_once_whatever_document_it_moves_to(tmp_path: Path) -> None:
    from evidencedesk import counting

    embedder = counting(planted_embedder())
    first = make_source("Shared.", title="T")
    with open_desk(sources=[first], embedder=embedder) as desk:
        assert embedder.documents == 1
        report = desk.update_document(make_source("Shared.", title="T", doc_id="elsewhere-v1"))
        assert (report.action, report.embedded) == ("added", 0)
        assert desk.update_document(make_source("Shared.", title="T", note="new metadata")).embedded == 0
        write_source(tmp_path, "a.md", "Shared.", title="T", doc_id="third-v1")
        assert desk.ingest(tmp_path).embedded == 0
        assert embedder.documents == 1


def test_a_stored_cosine_is_that_of_the_unit_vectors() -> None:
    question = np.array([0.6, 0.8], dtype=np.float32)
    assert vectors.cosine(vectors.to_blob(question), question) == pytest.approx(1.0, abs=1e-7)
    assert vectors.cosine(vectors.to_blob(-question), question) == pytest.approx(-1.0, abs=1e-7)
