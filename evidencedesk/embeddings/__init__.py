"""Embedders, which turn texts into vectors, and the one check that every vector passes before it is used.

Built in are `toy`, `e5` and `openai:MODEL`; a host's own is any object with the members of `Embedder`, a function in
a `CallableEmbedder`, a model in a `SentenceTransformerEmbedder` or a `LangChainEmbedder`. Libraries
beyond numpy are imported when an embedder first needs them.
"""

from evidencedesk.embeddings.adapters import LangChainEmbedder, SentenceTransformerEmbedder
from evidencedesk.embeddings.batches import embed_in_batches, unit_vectors
from evidencedesk.embeddings.choosing import by_identity, default_embedder, resolve
from evidencedesk.embeddings.e5 import E5Embedder
from evidencedesk.embeddings.endpoint import OpenAIEmbedder
from evidencedesk.embeddings.host import CallableEmbedder, CountingEmbedder, counting
from evidencedesk.embeddings.protocol import Embedder, Vectors, identity, longer_than_limit
from evidencedesk.embeddings.toy import ToyEmbedder
from evidencedesk.records import EmbedderIdentity

__all__ = [
    "CallableEmbedder",
    "CountingEmbedder",
    "E5Embedder",
    "Embedder",
    "EmbedderIdentity",
    "LangChainEmbedder",
    "OpenAIEmbedder",
    "SentenceTransformerEmbedder",
    "ToyEmbedder",
    "Vectors",
    "by_identity",
    "counting",
    "default_embedder",
    "embed_in_batches",
    "identity",
    "longer_than_limit",
    "resolve",
    "unit_vectors",
]
