"""evidencedesk: one SQLite file of versioned documents that answers only from what is in force.

Open a `Desk`, `ingest` a folder, `search`: each hit carries its chunk, its lines and the parts of its score.
"""

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
from evidencedesk.lesson import Retriever, ingest, open_retriever, staleness, update_document
from evidencedesk.records import (
    CheckReport,
    Chunk,
    Document,
    DocumentSummary,
    Failed,
    Hit,
    Hits,
    IngestProgress,
    IngestReport,
    Location,
    Problem,
    ReembedReport,
    Skipped,
    SourceDocument,
    Stale,
    StatusChange,
    UpdateReport,
)
from evidencedesk.retrieval import Reranker
from evidencedesk.text import tokens

__version__ = "0.1.0"

__all__ = [
    "BM25",
    "CallableEmbedder",
    "CheckReport",
    "Chunk",
    "Desk",
    "Document",
    "DocumentSummary",
    "E5Embedder",
    "Embedder",
    "EvidenceDeskError",
    "Failed",
    "Hit",
    "Hits",
    "IngestProgress",
    "IngestReport",
    "LangChainEmbedder",
    "Location",
    "OpenAIEmbedder",
    "Problem",
    "ReembedReport",
    "Reranker",
    "Retriever",
    "SentenceTransformerEmbedder",
    "Skipped",
    "SourceDocument",
    "Stale",
    "StatusChange",
    "ToyEmbedder",
    "UpdateReport",
    "chunk_corpus",
    "chunk_fixed",
    "chunk_sentences",
    "counting",
    "errors",
    "ingest",
    "load_documents",
    "open_retriever",
    "overlap_study",
    "parse_document",
    "staleness",
    "tokens",
    "update_document",
]
