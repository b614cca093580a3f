"""Postings are packed in segments; those that are there already stay rows until a write or `compact` packs them.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Made anew instead of altered: term numbers are not to be used again, and a new column counts what is held.
    op.execute(
        "CREATE TEMP TABLE former_terms AS SELECT t.term_key, t.term, t.chunks_in_force, coalesce(p.held, 0) AS held "
        "FROM lexical_terms t LEFT JOIN (SELECT term_key, count(*) AS held FROM lexical_postings GROUP BY term_key) p "
        "ON p.term_key = t.term_key"
    )
    op.drop_table("lexical_terms")
    op.create_table(
        "lexical_terms",
        sa.Column("term_key", sa.Integer(), primary_key=True, nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("chunks_in_force", sa.Integer(), nullable=False),
        sa.Column("chunks_held", sa.Integer(), nullable=False),
        sa.UniqueConstraint("term", name=op.f("uq_lexical_terms_term")),
        sqlite_autoincrement=True,
    )
    op.execute(
        "INSERT INTO lexical_terms (term_key, term, chunks_in_force, chunks_held) "
        "SELECT term_key, term, chunks_in_force, held FROM former_terms"
    )
    op.execute("DROP TABLE temp.former_terms")
    op.create_table(
        "lexical_segments",
        sa.Column("segment_key", sa.Integer(), primary_key=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("first_key", sa.Integer(), nullable=False),
        sa.Column("last_key", sa.Integer(), nullable=False),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        sa.Column("chunk_keys", sa.LargeBinary(), nullable=False),
        sa.Column("document_keys", sa.LargeBinary(), nullable=False),
        sa.Column("lengths", sa.LargeBinary(), nullable=False),
        sa.UniqueConstraint("name", name=op.f("uq_lexical_segments_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "lexical_marks",
        sa.Column("segment_key", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("in_force", sa.LargeBinary(), nullable=False),
        sa.Column("removed", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("segment_key", name=op.f("pk_lexical_marks")),
        sa.ForeignKeyConstraint(
            ["segment_key"],
            ["lexical_segments.segment_key"],
            name=op.f("fk_lexical_marks_segment_key"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "lexical_packed",
        sa.Column("segment_key", sa.Integer(), nullable=False),
        sa.Column("term_key", sa.Integer(), nullable=False),
        sa.Column("best_frequency", sa.Integer(), nullable=False),
        sa.Column("shortest_length", sa.Integer(), nullable=False),
        sa.Column("numbers", sa.LargeBinary(), nullable=True),
        sa.Column("frequencies", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("segment_key", "term_key", name=op.f("pk_lexical_packed")),
        sa.ForeignKeyConstraint(
            ["segment_key"],
            ["lexical_segments.segment_key"],
            name=op.f("fk_lexical_packed_segment_key"),
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    raise RuntimeError("evidencedesk files are not downgraded: restore the copy that the upgrade set aside")
