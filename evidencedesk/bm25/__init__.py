"""The lexical index: postings of every chunk, statistics of the chunks in force, exact BM25.

One index over all chunks serves today and the past. Most postings are packed in segments that are never changed,
those of the newest chunks are rows (`segments`); whether a chunk is in force or gone is a bit beside its segment. N, n
and the lengths of the chunks in force today are rows of the file, kept by the transaction that changes a chunk or a
status; those of another instant are counted from the postings. Filters on language or family never change them.

`scoring` the formula. `writing` what a transaction does to the index, over `segments` and `packing`. `ranking` the
best chunks and the scores of given ones, over what a process keeps in `memory`: a `state` of the file, and `lists` of
one set of segments. `counting` the kept figures, and all of it counted anew for `check`. `showing` the
numbers for people.
"""

from evidencedesk.bm25.counting import (
    DamagedSegment,
    StoredPostings,
    every_posting,
    kept_statistics,
    postings_of,
    rebuilt_statistics,
)
from evidencedesk.bm25.packing import DamagedPostings
from evidencedesk.bm25.ranking import Scores, best, explained, scores_of, statistics
from evidencedesk.bm25.scoring import K1, B, Statistics
from evidencedesk.bm25.showing import BM25
from evidencedesk.bm25.writing import add_chunks, leave_force, rebuild, remove_chunks, settle_line

__all__ = [
    "BM25",
    "K1",
    "B",
    "DamagedPostings",
    "DamagedSegment",
    "Scores",
    "Statistics",
    "StoredPostings",
    "add_chunks",
    "best",
    "every_posting",
    "explained",
    "kept_statistics",
    "leave_force",
    "postings_of",
    "rebuild",
    "rebuilt_statistics",
    "remove_chunks",
    "scores_of",
    "settle_line",
    "statistics",
]
