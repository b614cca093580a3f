"""Vectors get a number that stays, codes of them are kept, and the file knows what each change touched.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # A row's own number changes with VACUUM unless it is a column; SQLite adds no primary key to a table that is there.
    op.rename_table("vectors", "vectors_0005")
    op.create_table(
        "vectors",
        sa.Column("vector_key", sa.Integer(), nullable=False),
        sa.Column("embedder_key", sa.Integer(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("vector_key", name=op.f("pk_vectors")),
        sa.UniqueConstraint("embedder_key", "text_hash", name=op.f("uq_vectors_embedder_key_text_hash")),
        sa.ForeignKeyConstraint(["embedder_key"], ["embedders.embedder_key"], name=op.f("fk_vectors_embedder_key")),
        sqlite_autoincrement=True,
    )
    op.execute(
        "INSERT INTO vectors (embedder_key, text_hash, embedding) "
        "SELECT embedder_key, text_hash, embedding FROM vectors_0005 ORDER BY embedder_key, text_hash"
    )
    op.drop_table("vectors_0005")
    op.create_table(
        "vector_codings",
        sa.Column("embedder_key", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("coding_id", sa.Text(), nullable=False),
        sa.Column("centre", sa.LargeBinary(), nullable=False),
        sa.Column("slack", sa.Double(), nullable=False),
        sa.Column("kept_share", sa.Double(), nullable=False),
        sa.Column("recall", sa.Double(), nullable=False),
        sa.Column("fitted_on", sa.Integer(), nullable=False),
        sa.Column("tuned_on", sa.Integer(), nullable=False),
        sa.Column("coded_through", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("embedder_key", name=op.f("pk_vector_codings")),
        sa.ForeignKeyConstraint(
            ["embedder_key"],
            ["embedders.embedder_key"],
            name=op.f("fk_vector_codings_embedder_key"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "vector_codes",
        sa.Column("embedder_key", sa.Integer(), nullable=False),
        sa.Column("first_key", sa.Integer(), nullable=False),
        sa.Column("vector_count", sa.Integer(), nullable=False),
        sa.Column("vector_keys", sa.LargeBinary(), nullable=False),
        sa.Column("codes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("embedder_key", "first_key", name=op.f("pk_vector_codes")),
        sa.ForeignKeyConstraint(
            ["embedder_key"],
            ["vector_codings.embedder_key"],
            name=op.f("fk_vector_codes_embedder_key"),
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "vector_rosters",
        sa.Column("embedder_key", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("change_number", sa.Integer(), nullable=False),
        sa.Column("through_key", sa.Integer(), nullable=False),
        sa.Column("languages", sa.JSON(), nullable=False),
        sa.Column("documents", sa.LargeBinary(), nullable=False),
        sa.Column("chunks", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("embedder_key", name=op.f("pk_vector_rosters")),
        sa.ForeignKeyConstraint(
            ["embedder_key"],
            ["vector_codings.embedder_key"],
            name=op.f("fk_vector_rosters_embedder_key"),
            ondelete="CASCADE",
        ),
    )
    op.add_column("documents", sa.Column("change_number", sa.Integer(), server_default="0", nullable=False))
    op.create_index("ix_documents_change_number", "documents", ["change_number"])
    op.add_column("state", sa.Column("change_number", sa.Integer(), server_default="0", nullable=False))
    op.create_table(
        "recent_states",
        sa.Column("change_number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("generation", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("change_number", name=op.f("pk_recent_states")),
    )
    op.execute("INSERT INTO recent_states (change_number, generation) SELECT change_number, generation FROM state")


def downgrade() -> None:
    raise RuntimeError("evidencedesk files are not downgraded: restore the copy that the upgrade set aside")
