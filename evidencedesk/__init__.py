"""evidencedesk: one SQLite file of versioned documents that answers only from what is in force.

Open a `Desk`, `ingest` a folder, `search`: each hit carries its chunk, its lines and the parts of its score.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from evidencedesk import errors
from evidencedesk.bm25 import BM25
from evidencedesk.chunking import chunk_corpus, chunk_fixed, chunk_sentences, overlap_study
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
from evidencedesk.errors import EvidenceDeskError
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
from evidencedesk.release import VERSION
from evidencedesk.retrieval import Reranker
from evidencedesk.text import tokens

if TYPE_CHECKING:
    from evidencedesk.cases import RagCase, load_rag_cases
    from evidencedesk.citations import RuleChecker, SupportChecker, check_citations, check_support
    from evidencedesk.citations.judge import LLMJudge
    from evidencedesk.evaluation.attacks import AttackReport
    from evidencedesk.evaluation.calibration import CalibrationReport
    from evidencedesk.evaluation.gate import Gate
    from evidencedesk.evaluation.metrics import recall_at_k
    from evidencedesk.evaluation.report import EvaluationReport
    from evidencedesk.llm import LLMClient, OpenAIClient, QuotingAnswerer, RecordedReplies

__version__ = VERSION

# Imported when first asked for: searching needs neither these modules nor pydantic.
_LAZY = {
    "RagCase": "evidencedesk.cases",
    "load_rag_cases": "evidencedesk.cases",
    "RuleChecker": "evidencedesk.citations",
    "SupportChecker": "evidencedesk.citations",
    "check_citations": "evidencedesk.citations",
    "check_support": "evidencedesk.citations",
    "LLMJudge": "evidencedesk.citations.judge",
    "recall_at_k": "evidencedesk.evaluation.metrics",
    "AttackReport": "evidencedesk.evaluation.attacks",
    "CalibrationReport": "evidencedesk.evaluation.calibration",
    "Gate": "evidencedesk.evaluation.gate",
    "EvaluationReport": "evidencedesk.evaluation.report",
    "LLMClient": "evidencedesk.llm",
    "OpenAIClient": "evidencedesk.llm",
    "QuotingAnswerer": "evidencedesk.llm",
    "RecordedReplies": "evidencedesk.llm",
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


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
