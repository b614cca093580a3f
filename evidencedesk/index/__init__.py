"""The write way: files -> documents -> chunks -> embeddings -> store, one transaction a document.

`writing` stores one document, `folder` brings in a folder of them, `upkeep` is what a file needs over the years.
"""

from evidencedesk.index.folder import Ahead, embed_ahead, ingest_folder
from evidencedesk.index.upkeep import compact, reembed, withdraw
from evidencedesk.index.writing import Index, set_up

__all__ = [
    "Ahead",
    "Index",
    "compact",
    "embed_ahead",
    "ingest_folder",
    "reembed",
    "set_up",
    "withdraw",
]
