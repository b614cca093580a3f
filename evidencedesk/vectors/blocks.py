"""Codings and codes as rows of the file. Derived from the vectors: `upkeep` writes them, `memory` reads them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from evidencedesk.models import VectorCodesRow, VectorCodingRow, table_of
from evidencedesk.vectors.codes import Codes, Coding, DamagedCodes, read_array

_codings = table_of(VectorCodingRow)
_codes = table_of(VectorCodesRow)


def read_coding(connection: sa.Connection, embedder_key: int) -> Coding | None:
    """How the vectors of an embedder are coded; None when they are not. DamagedCodes for bytes that cannot be."""
    row = connection.exec_driver_sql(
        "SELECT dimension, coding_id, centre, slack, kept_share, recall, fitted_on, tuned_on, coded_through "
        "FROM vector_codings JOIN embedders USING (embedder_key) WHERE embedder_key = ?",
        (embedder_key,),
    ).one_or_none()
    if row is None:
        return None
    centre = read_array(row[2], "<f4").astype(np.float32)
    if len(centre) != row[0]:
        raise DamagedCodes(f"a centre of {len(centre)} numbers for vectors of {row[0]}")
    return Coding(row[1], centre, *row[3:])


def write_coding(connection: sa.Connection, embedder_key: int, coding: Coding) -> None:
    """Store a coding in the place of the former one of the embedder, whose codes stay."""
    values = {
        "coding_id": coding.coding_id,
        "centre": np.ascontiguousarray(coding.centre, dtype="<f4").tobytes(),
        "slack": coding.slack,
        "kept_share": coding.kept_share,
        "recall": coding.recall,
        "fitted_on": coding.fitted_on,
        "tuned_on": coding.tuned_on,
        "coded_through": coding.coded_through,
    }
    mine = _codings.c.embedder_key == embedder_key
    if not connection.execute(sa.update(_codings).where(mine).values(values)).rowcount:
        connection.execute(sa.insert(_codings).values(embedder_key=embedder_key, **values))


def drop_coding(connection: sa.Connection, embedder_key: int) -> None:
    """Delete an embedder's coding with its codes and roster."""
    connection.execute(sa.delete(_codings).where(_codings.c.embedder_key == embedder_key))


def coded_count(connection: sa.Connection, embedder_key: int) -> int:
    """Vectors of an embedder that have codes in the file."""
    query = sa.select(sa.func.coalesce(sa.func.sum(_codes.c.vector_count), 0))
    return int(connection.execute(query.where(_codes.c.embedder_key == embedder_key)).scalar_one())


def write_block(connection: sa.Connection, embedder_key: int, keys: NDArray[np.int64], codes: Codes) -> None:
    """Store the codes of vectors with these numbers, ascending."""
    places = keys - keys[0]
    consecutive = int(places[-1]) == len(keys) - 1
    connection.execute(
        sa.insert(_codes).values(
            embedder_key=embedder_key,
            first_key=int(keys[0]),
            vector_count=len(keys),
            vector_keys=b"" if consecutive else places.astype("<u4").tobytes(),
            codes=codes.to_bytes(),
        )
    )


def read_blocks(connection: sa.Connection, embedder_key: int, width: int) -> Iterator[tuple[NDArray[np.int64], Codes]]:
    """Every block of an embedder in order: numbers of the vectors, and their codes. DamagedCodes as `from_bytes`."""
    rows = connection.exec_driver_sql(
        "SELECT first_key, vector_count, vector_keys, codes FROM vector_codes "
        "WHERE embedder_key = ? ORDER BY first_key",
        (embedder_key,),
    )
    for first_key, count, listed, codes in rows:
        places = read_array(listed, "<u4").astype(np.int64) if listed else np.arange(count, dtype=np.int64)
        if len(places) != count:
            raise DamagedCodes(f"{len(places)} numbers for {count} codes")
        yield first_key + places, Codes.from_bytes(codes, width, count)
