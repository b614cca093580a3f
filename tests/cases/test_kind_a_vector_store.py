"""Kind A: SQLite as the store of the vectors. What docs/cases.md lists under A and no other test proves whole."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path

import numpy as np
import pytest
from builders import Clock, found, make_source, open_desk, value_or_error, write_source
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import evidencedesk
from evidencedesk import BM25, Desk, RagCase, Retriever, connections
from evidencedesk.cli import app
from evidencedesk.embeddings import CallableEmbedder, OpenAIEmbedder, ToyEmbedder
from evidencedesk.errors import EmbedderMismatch, NotFound
from evidencedesk.llm import OpenAIClient
from evidencedesk.records import DocumentSummary, Thresholds

# ---------------------------------------------------------------- BR-03: any verb may be the first

VERBS: dict[str, Callable[[Desk, Path], object]] = {
    "search": lambda desk, _: desk.search("bikes", mode="vector"),
    "ask": lambda desk, _: desk.ask("Which bikes are red?", record=True),
    "verify": lambda desk, _: desk.verify("Bikes are red. [shop-v1:c0]"),
    "update": lambda desk, _: desk.update_document(make_source("Bikes are blue.", doc_id="shop-v2")),
    "ingest": lambda desk, place: desk.ingest(place / "texts", prune=True),
    "withdraw": lambda desk, _: desk.withdraw("shop-v1", reason="by the regulator"),
    "promote": lambda desk, _: desk.promote(),
    "reembed": lambda desk, _: desk.reembed(ToyEmbedder(16)),
    "compact": lambda desk, _: desk.compact(),
    "backup": lambda desk, place: desk.backup(place / "copy.db"),
    "check": lambda desk, _: desk.check(),
    "staleness": lambda desk, _: desk.staleness(),
    "forget": lambda desk, _: desk.forget(before="2020-01-01"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_any_verb_may_be_the_first_of_a_process(tmp_path: Path, verb: str) -> None:
    """BR-03: nothing has to come before it, and each connection of the pool can compare vectors afterwards."""
    write_source(tmp_path / "texts", "other.md", "Helmets are blue.", doc_id="other-v1")
    with open_desk(tmp_path / "desk.db", [make_source()], embedder="toy"):
        pass
    connections.find_driver.cache_clear()
    with open_desk(tmp_path / "desk.db") as desk:
        desk.embedder = ToyEmbedder()
        VERBS[verb](desk, tmp_path)
        with desk.engine.connect() as one, desk.engine.connect() as two, desk.engine.connect() as three:
            blob = np.array([0, 1], dtype="<f4").tobytes()
            for sql in (one, two, three):
                assert sql.exec_driver_sql("SELECT vec_distance_cosine(?, ?)", (blob, blob)).scalar() == 0.0
        assert desk.check().ok


# ---------------------------------------------------------------- BR-05: another embedder

NEEDS_VECTORS: dict[str, Callable[[Desk, Path], object]] = {
    "hybrid": lambda desk, _: desk.search("bikes"),
    "vector": lambda desk, _: desk.search("bikes", mode="vector"),
    "assess": lambda desk, _: desk.assess("Which bikes are red?"),
    "ask": lambda desk, _: desk.ask("Which bikes are red?"),
    "update": lambda desk, _: desk.update_document(make_source("Bikes are blue.", doc_id="shop-v2")),
    "correct": lambda desk, _: desk.update_document(make_source("Bikes are blue.")),
    "ingest": lambda desk, place: desk.ingest(place / "texts"),
}


@pytest.mark.parametrize("verb", NEEDS_VECTORS)
def test_an_open_desk_whose_file_was_given_another_embedder_refuses_and_mixes_nothing(
    tmp_path: Path, verb: str
) -> None:
    """BR-05: both widths are named; neither a search by keyword in silence nor a vector of the former model."""
    path = tmp_path / "desk.db"
    write_source(tmp_path / "texts", "other.md", "Helmets are blue.", doc_id="other-v1")

    def stored(desk: Desk) -> list[tuple[object, ...]]:
        with desk.engine.connect() as sql:
            query = "SELECT embedder_key, text_hash, embedding FROM vectors ORDER BY 1, 2"
            return [tuple(row) for row in sql.exec_driver_sql(query)]

    with open_desk(path, [make_source()], embedder=ToyEmbedder(8)) as former:
        with open_desk(path, embedder=ToyEmbedder(8)) as desk:
            desk.reembed(ToyEmbedder(16))
            switched = stored(desk)
        with pytest.raises(EmbedderMismatch) as caught:
            NEEDS_VECTORS[verb](former, tmp_path)
        assert "toy (16 dimensions" in str(caught.value)
        assert "toy (8 dimensions" in str(caught.value)
        assert stored(former) == switched
        assert found(former, "bikes", mode="keyword") == ["shop-v1:c0"], "asked for by name, keyword search works"
    with open_desk(path, embedder=ToyEmbedder(16)) as desk:
        NEEDS_VECTORS[verb](desk, tmp_path)
        assert desk.check().ok


# ---------------------------------------------------------------- BR-08: more neighbours than the extension gives


@pytest.fixture(scope="module")
def many() -> Iterator[Desk]:
    """4,150 chunks of one English document and 50 of a Bangla one, each with a vector of its own."""

    def embed(texts: Sequence[str]) -> np.ndarray:
        numbers = np.array([float(text.split("number ")[1].split()[0].rstrip(".")) for text in texts])
        return np.stack([np.ones(len(texts)), numbers / 1000, numbers % 7, numbers % 3], axis=1).astype(np.float32)

    sources = [
        make_source("\n\n".join(f"## Part {n}\n\nText number {n}." for n in range(count)), heading=None,
                    doc_id=f"{name}-v1", lang=lang)
        for name, lang, count in (("long", "en", 4150), ("short", "bn", 50))
    ]  # fmt: skip
    embedder = CallableEmbedder(embed, name="numbered", dimension=4)
    with open_desk(sources=sources, embedder=embedder) as desk:
        yield desk


@pytest.mark.parametrize("k", [4095, 4096, 4097, 4200, 10**12])
@pytest.mark.parametrize(
    ("filters", "eligible"), [({}, 4200), ({"lang": "bn"}, 50), ({"family": "long"}, 4150), ({"lang": "fr"}, 0)]
)
def test_k_around_the_extensions_limit_is_just_a_number(
    many: Desk, k: int, filters: dict[str, str], eligible: int
) -> None:
    """BR-08: with and without a filter, as many as there are, nearest first."""
    hits = many.search("number 17", mode="vector", k=k, **filters)
    assert len(hits) == min(k, eligible)
    cosines = [hit.cosine for hit in hits]
    assert cosines == sorted(cosines, reverse=True)


# ---------------------------------------------------------------- BR-10: odd values for whole numbers and shares

NO_COUNTS = [0, -1, 1.5, True, "5", float("nan"), float("inf"), [], -(2**70)]
NO_NUMBERS = [True, "5", None, float("nan"), float("inf"), float("-inf"), [], 1j]
ENDPOINT = {"base_url": "http://localhost:1/v1", "api_key": "none"}


class AllAlike:
    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        return [0.0] * len(texts)


CASES = [
    RagCase(
        id=f"{answerable} {n}", question=f"Which bikes are red, {n}?", answerable=answerable, must_cite=answerable,
        expected_doc_ids=["shop"] if answerable else [], tags=["direct" if answerable else "unanswerable"],
    )
    for answerable in (True, False)
    for n in range(2)
]  # fmt: skip

COUNTS: dict[str, Callable[[Desk, object], object]] = {
    "k": lambda desk, value: desk.search("bikes", k=value),
    "k of a Retriever": lambda desk, value: Retriever(desk).retrieve("bikes", value),
    "k of BM25": lambda desk, value: BM25(desk).search("bikes", value),
    "k of an evaluation": lambda desk, value: desk.evaluate(CASES, k=value, store=False),
    "k of a recall": lambda desk, value: evidencedesk.recall_at_k(["a"], {"a"}, value),
    "rerank_depth": lambda desk, value: desk.search("bikes", rerank_depth=value),
    "rerank_depth of a reranker": lambda desk, value: desk.search("bikes", reranker=AllAlike(), rerank_depth=value),
    "per_kind": lambda desk, value: desk.attack(per_kind=value),
    "limit": lambda desk, value: desk.answers(limit=value),
    "run_id": lambda desk, value: desk.outcomes(value),
    "answer_ids": lambda desk, value: desk.forget([value]),
    "budget_tokens": lambda desk, value: desk.ask("Which bikes are red?", budget_tokens=value),
    "chunk_chars": lambda desk, value: Desk.open(":memory:", embedder=None, chunk_chars=value).close(),
    "size": lambda desk, value: evidencedesk.chunk_fixed("text", value, 0),
    "n": lambda desk, value: evidencedesk.chunk_sentences("One. Two.", value),
    "max_chars": lambda desk, value: evidencedesk.chunk_corpus([make_source()], value),
}

NUMBERS: dict[str, Callable[[Desk, object], object]] = {
    "max_wrong": lambda desk, value: desk.calibrate(CASES, max_wrong=value, store=False),
    "confidence": lambda desk, value: desk.calibrate(CASES, confidence=value, store=False),
    "prune_limit": lambda desk, value: desk.ingest("nowhere", prune=True, prune_limit=value),
    "sweep": lambda desk, value: desk.evaluate(CASES, sweep=[(0.3, value)], store=False),
    "min_score": lambda desk, value: evidencedesk.assess([], min_score=value),
    "min_margin": lambda desk, value: evidencedesk.assess([], min_margin=value),
    "missing_weight": lambda desk, value: Thresholds(0.3, 0.05, "a test", missing_weight=value),
    "timeout_seconds": lambda desk, value: OpenAIEmbedder("m", **ENDPOINT, dimension=2, timeout_seconds=value),
    "timeout_seconds of a model": lambda desk, value: OpenAIClient("m", **ENDPOINT, timeout_seconds=value),
}


@pytest.fixture(scope="module")
def one_text() -> Iterator[Desk]:
    with open_desk(sources=[make_source()], embedder="toy") as desk:
        yield desk


@pytest.mark.parametrize("value", NO_COUNTS, ids=repr)
@pytest.mark.parametrize("place", COUNTS)
def test_what_is_no_count_is_refused_by_the_name_of_its_parameter(one_text: Desk, place: str, value: object) -> None:
    """BR-10: every whole number that the library takes; no driver ever sees one."""
    with pytest.raises(ValueError, match=rf"\b{place.split()[0]} must be"):
        COUNTS[place](one_text, value)


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("place", NUMBERS)
def test_what_is_no_finite_number_is_refused_by_the_name_of_its_parameter(
    one_text: Desk, place: str, value: object
) -> None:
    """BR-10: shares, thresholds and seconds. Nothing is below NaN, so as a threshold it would let everything pass."""
    with pytest.raises(ValueError, match=rf"\b{place.split()[0]} must be"):
        NUMBERS[place](one_text, value)


@pytest.mark.parametrize("place", COUNTS)
def test_a_number_beyond_every_collection_takes_all_of_it(one_text: Desk, place: str) -> None:
    """BR-10: a count that no integer of the database holds is a large count."""
    _, error = value_or_error(lambda: COUNTS[place](one_text, 2**70), NotFound)
    assert (error is not None) == (place == "run_id"), "the run of that number is looked for"


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["search", "bike", "-k", "1e3"], "-k"),
        (["search", "bike", "-k", ""], "-k"),
        (["eval", "cases.jsonl", "-k", "0"], "-k"),
        (["eval", "cases.jsonl", "--fail-under", "recall@3=nan"], "--fail-under"),
        (["calibrate", "cases.jsonl", "--max-wrong", "nan"], "--max-wrong"),
        (["calibrate", "cases.jsonl", "--confidence", "1"], "--confidence"),
        (["attack", "--per-kind", "-1"], "--per-kind"),
        (["attack", "--seed", "x"], "--seed"),
        (["answers", "-n", "0"], "-n"),
        (["ingest", ".", "--prune-limit", "nan"], "--prune-limit"),
        (["ingest", ".", "--chunk-chars", "39.5"], "--chunk-chars"),
    ],
    ids=" ".join,
)
def test_every_numeric_option_is_refused_as_usage(tmp_path: Path, words: list[str], option: str) -> None:
    """BR-10: exit code 2, the option named, and no file made."""
    result = CliRunner().invoke(app, [*words, "--db", str(tmp_path / "none.db")])
    assert result.exit_code == 2
    assert option in result.stderr.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- BR-11: filters are inside the search

DAYS = (None, "2025-01-01", "2026-01-01", "2027-01-01")
versions_of_lines = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(1, 3), st.sampled_from(["en", "en-GB", "bn"]), st.sampled_from(DAYS),
        st.integers(0, 99),
    ),
    min_size=1, max_size=8, unique_by=lambda drawn: drawn[:3],
)  # fmt: skip


def in_force(document: DocumentSummary, at: datetime) -> bool:
    return (
        document.status != "withdrawn"
        and document.valid_from <= at
        and (document.valid_to is None or at < document.valid_to)
    )


@settings(max_examples=25)
@given(
    versions_of_lines, st.sampled_from([None, "en", "bn"]), st.sampled_from([None, "a", "b"]), st.sampled_from(DAYS),
    st.integers(1, 5), st.integers(0, 99),
)  # fmt: skip
def test_any_filters_together_give_the_nearest_of_those_that_pass(
    lines: list[tuple[str, int, str, str | None, int]],
    lang: str | None,
    family: str | None,
    as_of: str | None,
    k: int,
    question: int,
) -> None:
    """BR-11: version, date, language and family at once: min(k, eligible) hits, and they are brute force's."""

    def angle(text: str) -> np.ndarray:
        turned = int(text.split("number ")[1].split()[0].rstrip(".")) / 100
        return np.array([np.cos(turned), np.sin(turned)])

    embedder = CallableEmbedder(
        lambda texts: np.stack([angle(text) for text in texts]).astype(np.float32), name="angles", dimension=2
    )
    sources = [
        make_source(f"Text number {number}.", doc_id=f"{name}-v{version}-{mark}", lang=mark, effective_from=start)
        for name, version, mark, start, number in lines
    ]
    with open_desk(sources=sources, embedder=embedder) as desk:
        at = desk.now() if as_of is None else datetime.combine(date.fromisoformat(as_of), time.max, UTC)
        eligible = [
            chunk
            for document in desk.documents()
            if in_force(document, at)
            and (lang is None or document.lang == lang or document.lang.startswith(f"{lang}-"))
            and family in (None, document.family)
            for chunk in desk.document(document.doc_id).chunks
        ]
        cosine_of = {chunk.id: float(angle(chunk.text) @ angle(f"number {question}")) for chunk in eligible}
        hits = desk.search(f"number {question}", mode="vector", k=k, lang=lang, family=family, as_of=as_of)
        assert len(hits) == min(k, len(eligible))
        best = sorted(cosine_of.values(), reverse=True)[:k]
        assert [hit.cosine for hit in hits] == pytest.approx(best, abs=1e-6)
        assert [cosine_of[hit.chunk.id] for hit in hits] == pytest.approx(best, abs=1e-6)


# ---------------------------------------------------------------- BR-13: metadata that is not there

OPTIONAL = {"lang": "en", "version": "v2", "effective_from": "2025-01-01", "family": "rules", "title": "Rules"}


@pytest.mark.parametrize("given_keys", [keys for n in range(6) for keys in itertools.combinations(OPTIONAL, n)])
def test_whatever_metadata_is_missing_the_text_is_stored_and_found_under_every_filter(
    tmp_path: Path, given_keys: tuple[str, ...]
) -> None:
    """BR-13: without a language it has `und`, without a date it holds from its coming in, without a family its name."""
    given_fields = {"doc_id": None, "title": None, "lang": None} | {key: OPTIONAL[key] for key in given_keys}
    write_source(tmp_path, "notes.md", "Bikes are red.", **given_fields)
    with open_desk(embedder="toy") as desk:
        (doc_id,) = desk.ingest(tmp_path).added
        lang, family = given_fields["lang"] or "und", given_fields.get("family", "notes")
        expected = [f"{doc_id}:c0"]
        for mode in ("keyword", "vector", "hybrid"):
            assert found(desk, "bikes", mode=mode, lang=lang, family=family) == expected
            assert found(desk, "bikes", mode=mode, lang="en" if lang == "und" else "und") == []
            assert found(desk, "bikes", mode=mode, as_of="2026-06-01") == expected
            dated = "effective_from" in given_keys
            assert found(desk, "bikes", mode=mode, as_of="2025-06-01") == (expected if dated else [])
        with desk.engine.connect() as sql:
            row = sql.exec_driver_sql("SELECT * FROM documents").mappings().one()
        assert all(row[key] is not None for key in ("lang", "family", "title", "version", "valid_from"))


# ---------------------------------------------------------------- BR-18: what an update costs in bytes


def test_growth_by_an_update_is_that_of_what_is_kept(tmp_path: Path) -> None:
    """BR-18: a correction keeps no former text, a new version keeps one more; `compact` gives the rest back."""

    def size_after(name: str, doc_ids: Sequence[str]) -> int:
        clock = Clock()
        with open_desk(tmp_path / name, embedder="toy", clock=clock) as desk:
            for number, doc_id in enumerate(doc_ids):
                body = "\n\n".join(f"## Part {n}\n\nText {n} of edition {number}." for n in range(30))
                desk.update_document(make_source(body, heading=None, doc_id=doc_id))
                clock.advance(days=1)
            desk.compact()
        return (tmp_path / name).stat().st_size

    once = size_after("once.db", ["shop-v1"])
    corrected = size_after("corrected.db", ["shop-v1"] * 10)
    versions = size_after("versions.db", [f"shop-v{n}" for n in range(1, 11)])
    assert corrected <= 1.1 * once
    assert once < versions <= 11 * once
