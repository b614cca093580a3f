"""Postings that are not packed yet lie in one row a chunk, and what writes change of the terms' counts lies apart.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from itertools import groupby

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lexical_changes",
        sa.Column("term_key", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("change", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("term_key", name=op.f("pk_lexical_changes")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "lexical_unpacked",
        sa.Column("chunk_key", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("term_keys", sa.LargeBinary(), nullable=False),
        sa.Column("frequencies", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chunk_key", name=op.f("pk_lexical_unpacked")),
        sa.ForeignKeyConstraint(
            ["chunk_key"], ["chunks.chunk_key"], name=op.f("fk_lexical_unpacked_chunk_key"), ondelete="CASCADE"
        ),
    )
    connection = op.get_bind()
    postings = connection.exec_driver_sql(
        "SELECT chunk_key, term_key, frequency FROM lexical_postings ORDER BY chunk_key, term_key"
    )
    for chunk_key, rows in groupby(postings, key=lambda row: row[0]):
        term_keys, frequencies = zip(*((row[1], row[2]) for row in rows), strict=True)
        connection.exec_driver_sql(
            "INSERT INTO lexical_unpacked (chunk_key, term_keys, frequencies) VALUES (?, ?, ?)",
            (chunk_key, _u4(term_keys), _u4(frequencies)),
        )
    # A chunk without a term has a row too: none says that its postings are missing.
    op.execute(
        "INSERT INTO lexical_unpacked (chunk_key, term_keys, frequencies) SELECT chunk_key, x'', x'' FROM chunks "
        "WHERE chunk_key > (SELECT coalesce(max(last_key), 0) FROM lexical_segments) "
        "AND chunk_key NOT IN (SELECT chunk_key FROM lexical_unpacked)"
    )
    op.drop_table("lexical_postings")
    # Made anew instead of altered: SQLite refuses that where a host's view reads one of ours, which are dropped now.
    op.execute("CREATE TEMP TABLE former_terms AS SELECT term_key, term, chunks_in_force FROM lexical_terms")
    last_key = connection.exec_driver_sql("SELECT seq FROM sqlite_sequence WHERE name = 'lexical_terms'").scalar()
    op.drop_table("lexical_terms")
    op.create_table(
        "lexical_terms",
        sa.Column("term_key", sa.Integer(), primary_key=True, nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("chunks_in_force", sa.Integer(), nullable=False),
        sa.UniqueConstraint("term", name=op.f("uq_lexical_terms_term")),
        sqlite_autoincrement=True,
    )
    op.execute("INSERT INTO lexical_terms SELECT term_key, term, chunks_in_force FROM former_terms")
    op.execute("DROP TABLE temp.former_terms")
    if last_key is not None:
        # A number that a former term had is not to be used again.
        connection.exec_driver_sql("DELETE FROM sqlite_sequence WHERE name = 'lexical_terms'")
        connection.exec_driver_sql("INSERT INTO sqlite_sequence (name, seq) VALUES ('lexical_terms', ?)", (last_key,))


def _u4(numbers: Iterable[int]) -> bytes:
    packed = array("I", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def downgrade() -> None:
    raise RuntimeError("evidencedesk files are not downgraded: restore the copy that the upgrade set aside")
