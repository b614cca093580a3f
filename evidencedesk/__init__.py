"""evidencedesk: one SQLite file of versioned documents that answers only from what is in force.

Open a `Desk`, `ingest` a folder, `search`: each hit carries its chunk, its lines and the parts of its score.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from evidencedesk import errors
from evidencedesk.errors import EvidenceDeskError
from evidencedesk.release import VERSION

# The surface. Each name is imported when it is first asked for, so that a process loads what it uses and no more.
if TYPE_CHECKING:
    from evidencedesk.bm25 import BM25
    from evidencedesk.cases import RagCase, load_rag_cases
    from evidencedesk.chunking import chunk_corpus, chunk_fixed, chunk_sentences, overlap_study
    from evidencedesk.citations import RuleChecker, SupportChecker, check_citations, check_support
    from evidencedesk.citations.judge import LLMJudge
    from evidencedesk.desk import Desk
    from evidencedesk.documents import load_documents, parse_document
    from evidencedesk.embeddings import (
        CallableEmbedder,
        E5Embedder,
        Embedder,
        LangChainEmbedder,
        OpenAIEmbedder,
        SentenceTransformerEmbedder,
        ToyEmbedder,
        counting,
    )
    from evidencedesk.evaluation.attacks import AttackReport
    from evidencedesk.evaluation.calibration import CalibrationReport
    from evidencedesk.evaluation.gate import Gate
    from evidencedesk.evaluation.metrics import recall_at_k
    from evidencedesk.evaluation.report import EvaluationReport
    from evidencedesk.lesson import (
        Retriever,
        assess,
        candidates,
        guarded_answer,
        ingest,
        open_retriever,
        staleness,
        update_document,
    )
    from evidencedesk.llm import LLMClient, OpenAIClient, QuotingAnswerer, RecordedReplies
    from evidencedesk.records import (
        Answer,
        Assessment,
        CalibratedGuard,
        CheckReport,
        Chunk,
        Citation,
        CitationReport,
        Claim,
        Document,
        DocumentSummary,
        Failed,
        Flip,
        GateReport,
        Hit,
        Hits,
        IngestProgress,
        IngestReport,
        Location,
        ModelRequest,
        Problem,
        RecordedAnswer,
        ReembedReport,
        SentenceChange,
        Signal,
        Skipped,
        SourceDocument,
        Stale,
        StaleCitation,
        StatusChange,
        Support,
        Thresholds,
        UpdateReport,
        Verification,
    )
    from evidencedesk.retrieval import Reranker
    from evidencedesk.text import tokens
else:
    _NAMES_IN = {
        "bm25": ("BM25",),
        "cases": ("RagCase", "load_rag_cases"),
        "chunking": ("chunk_corpus", "chunk_fixed", "chunk_sentences", "overlap_study"),
        "citations": ("RuleChecker", "SupportChecker", "check_citations", "check_support"),
        "citations.judge": ("LLMJudge",),
        "desk": ("Desk",),
        "documents": ("load_documents", "parse_document"),
        "embeddings": (
            "CallableEmbedder", "E5Embedder", "Embedder", "LangChainEmbedder", "OpenAIEmbedder",
            "SentenceTransformerEmbedder", "ToyEmbedder", "counting",
        ),
        "evaluation.attacks": ("AttackReport",),
        "evaluation.calibration": ("CalibrationReport",),
        "evaluation.gate": ("Gate",),
        "evaluation.metrics": ("recall_at_k",),
        "evaluation.report": ("EvaluationReport",),
        "lesson": (
            "Retriever", "assess", "candidates", "guarded_answer", "ingest", "open_retriever", "staleness",
            "update_document",
        ),
        "llm": ("LLMClient", "OpenAIClient", "QuotingAnswerer", "RecordedReplies"),
        "retrieval": ("Reranker",),
        "text": ("tokens",),
    }  # fmt: skip
    _MODULE_OF = {name: module for module, names in _NAMES_IN.items() for name in names}
    """Of the names that are no records."""

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"evidencedesk.{_MODULE_OF.get(name, 'records')}")
        found = globals()[name] = getattr(module, name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__version__ = VERSION

__all__ = [
    "BM25",
    "Answer",
    "Assessment",
    "AttackReport",
    "CalibratedGuard",
    "CalibrationReport",
    "CallableEmbedder",
    "CheckReport",
    "Chunk",
    "Citation",
    "CitationReport",
    "Claim",
    "Desk",
    "Document",
    "DocumentSummary",
    "E5Embedder",
    "Embedder",
    "EvaluationReport",
    "EvidenceDeskError",
    "Failed",
    "Flip",
    "Gate",
    "GateReport",
    "Hit",
    "Hits",
    "IngestProgress",
    "IngestReport",
    "LLMClient",
    "LLMJudge",
    "LangChainEmbedder",
    "Location",
    "ModelRequest",
    "OpenAIClient",
    "OpenAIEmbedder",
    "Problem",
    "QuotingAnswerer",
    "RagCase",
    "RecordedAnswer",
    "RecordedReplies",
    "ReembedReport",
    "Reranker",
    "Retriever",
    "RuleChecker",
    "SentenceChange",
    "SentenceTransformerEmbedder",
    "Signal",
    "Skipped",
    "SourceDocument",
    "Stale",
    "StaleCitation",
    "StatusChange",
    "Support",
    "SupportChecker",
    "Thresholds",
    "ToyEmbedder",
    "UpdateReport",
    "Verification",
    "assess",
    "candidates",
    "check_citations",
    "check_support",
    "chunk_corpus",
    "chunk_fixed",
    "chunk_sentences",
    "counting",
    "errors",
    "guarded_answer",
    "ingest",
    "load_documents",
    "load_rag_cases",
    "open_retriever",
    "overlap_study",
    "parse_document",
    "recall_at_k",
    "staleness",
    "tokens",
    "update_document",
]
