"""The nearest chunks: exactly for small files and narrow scopes, over codes for the others; with exact cosines."""

from __future__ import annotations

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.errors import IndexOutOfStep
from evidencedesk.store import Scope, Snapshot, chunks, in_lists
from evidencedesk.vectors.codes import encode_question
from evidencedesk.vectors.memory import Picture, Selection, picture_of
from evidencedesk.vectors.scan import nearest_places
from evidencedesk.vectors.truth import cosine_by_key, exact_nearest, nearest_of

_CODED_FOR_EACH = 20
"""Codes are searched for k hits when so many chunks are in scope for each of them; nearly all of a scope is scanned."""


def nearest(
    snapshot: Snapshot, embedder_key: int, scope: Scope, question: NDArray[np.float32], k: int
) -> list[tuple[int, float]]:
    """The k chunks in scope with the highest cosine: (chunk key, cosine), best first, ties by chunk id. Reads only.

    Gives min(k, chunks in scope that have a vector), whatever the filters, with exact cosines. Which chunks these are
    is exact too, save in a scope of many chunks of a file whose vectors are coded: there recall@k is at least 0.99 at
    every k, as a mean over questions. What is found depends on the codes of the vectors in scope and on nothing else.
    IndexOutOfStep when a chunk that has one of the nearest vectors is gone; DamagedCodes for codes that cannot be.
    """
    picture = picture_of(snapshot, embedder_key)
    if picture is None:
        return exact_nearest(snapshot.connection, embedder_key, scope, question, k)
    selection = picture.selection(snapshot.connection, scope)
    if selection.doc_keys is not None:
        of_them = sa.select(chunks.c.chunk_key).where(chunks.c.doc_key.in_(selection.doc_keys))
        return nearest_of(snapshot.connection, embedder_key, snapshot.connection.scalars(of_them).all(), question, k)
    if selection.eligible < _CODED_FOR_EACH * k:
        return exact_nearest(snapshot.connection, embedder_key, scope, question, k)
    keys, cosines = _nearest_vectors(snapshot.connection, picture, selection, question, k)
    cosine_of = dict(zip(keys.tolist(), cosines.tolist(), strict=True))
    found: list[tuple[float, str, int]] = []
    doc_keys = picture.roster.documents["doc_key"]
    for some in in_lists(cosine_of):
        listed = ",".join(map(str, some))
        rows = snapshot.connection.exec_driver_sql(
            "SELECT v.vector_key, c.chunk_key, d.doc_key, d.doc_id || ':c' || c.ordinal FROM vectors v "
            "CROSS JOIN chunks c ON c.text_hash = v.text_hash CROSS JOIN documents d ON d.doc_key = c.doc_key "
            f"WHERE v.vector_key IN ({listed})"
        ).all()
        if gone := set(some) - {row[0] for row in rows}:
            raise IndexOutOfStep(chunk=f"the chunk of vector {min(gone)}", problem="is gone")
        in_scope = selection.in_scope[np.searchsorted(doc_keys, [row[2] for row in rows])]
        found += [(-cosine_of[row[0]], row[3], row[1]) for row, is_in in zip(rows, in_scope, strict=True) if is_in]
    return [(chunk_key, -negative) for negative, _, chunk_key in sorted(found)[:k]]


def _nearest_vectors(
    connection: sa.Connection, picture: Picture, selection: Selection, question: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers and cosines of the nearest vectors in scope."""
    keys, codes = picture.keys, picture.codes
    if selection.places is not None:
        keys, codes = keys[selection.places], codes.take(selection.places)
    places, cosines = nearest_places(
        codes,
        picture.coding,
        encode_question(picture.coding, question),
        k,
        lambda some: cosine_by_key(connection, keys[some], question),
        selection.outside,
    )
    return keys[places], cosines
