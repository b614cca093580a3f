"""Documents with versions, chunks with lines, vectors and the lexical tables.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "embedders",
        sa.Column("embedder_key", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("embedder_key", name=op.f("pk_embedders")),
        sa.UniqueConstraint("name", "dimension", "fingerprint", name=op.f("uq_embedders_name_dimension_fingerprint")),
        sa.CheckConstraint("dimension > 0", name=op.f("ck_embedders_dimension")),
    )
    op.create_table(
        "desk",
        sa.Column("desk_key", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("created_at", sa.DateTime(), nullable=False),
        sa.Column("text_version", sa.Text(), nullable=False),
        sa.Column("chunker_version", sa.Text(), nullable=False),
        sa.Column("max_chunk_chars", sa.Integer(), nullable=False),
        sa.Column("embedder_key", sa.Integer(), nullable=True),
        sa.Column("next_change_at", sa.DateTime(), nullable=True),
        sa.PrimaryKeyConstraint("desk_key", name=op.f("pk_desk")),
        sa.CheckConstraint("desk_key = 1", name=op.f("ck_desk_one_row")),
        sa.ForeignKeyConstraint(["embedder_key"], ["embedders.embedder_key"], name=op.f("fk_desk_embedder_key")),
    )
    op.create_table(
        "documents",
        sa.Column("doc_key", sa.Integer(), primary_key=True, nullable=False),
        sa.Column("doc_id", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("version_sort", sa.Text(), nullable=False),
        sa.Column("lang", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("valid_from", sa.DateTime(), nullable=False),
        sa.Column("valid_to", sa.DateTime(), nullable=True),
        sa.Column("effective_from", sa.DateTime(), nullable=True),
        sa.Column("effective_to", sa.DateTime(), nullable=True),
        sa.Column("came_in_at", sa.DateTime(), nullable=False),
        sa.Column("changed_at", sa.DateTime(), nullable=False),
        sa.Column("withdrawn_at", sa.DateTime(), nullable=True),
        sa.Column("withdrawn_reason", sa.Text(), nullable=True),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("author_metadata", sa.JSON(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.UniqueConstraint("family", "lang", "version_sort", name=op.f("uq_documents_family_lang_version_sort")),
        sa.CheckConstraint(
            "status IN ('current', 'superseded', 'scheduled', 'expired', 'withdrawn')", name=op.f("ck_documents_status")
        ),
        sa.CheckConstraint("valid_to IS NULL OR valid_to >= valid_from", name=op.f("ck_documents_validity")),
        sa.CheckConstraint("(status = 'withdrawn') = (withdrawn_at IS NOT NULL)", name=op.f("ck_documents_withdrawn")),
        sa.UniqueConstraint("doc_id", name=op.f("uq_documents_doc_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ux_documents_one_current",
        "documents",
        ["family", "lang"],
        unique=True,
        sqlite_where=sa.text("status = 'current'"),
        postgresql_where=sa.text("status = 'current'"),
    )
    op.create_index("ix_documents_valid_from", "documents", ["valid_from"])
    op.create_index("ix_documents_valid_to", "documents", ["valid_to"])
    op.create_index("ix_documents_root_path", "documents", ["root", "path"])
    op.create_table(
        "chunks",
        sa.Column("chunk_key", sa.Integer(), primary_key=True, nullable=False),
        sa.Column("doc_key", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("heading", sa.Text(), nullable=False),
        sa.Column("line_start", sa.Integer(), nullable=False),
        sa.Column("line_end", sa.Integer(), nullable=False),
        sa.Column("preamble", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("term_count", sa.Integer(), nullable=False),
        sa.UniqueConstraint("doc_key", "ordinal", name=op.f("uq_chunks_doc_key_ordinal")),
        sa.CheckConstraint("ordinal >= 0 AND line_start >= 1 AND line_end >= line_start", name=op.f("ck_chunks_place")),
        sa.ForeignKeyConstraint(["doc_key"], ["documents.doc_key"], name=op.f("fk_chunks_doc_key"), ondelete="CASCADE"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_chunks_text_hash", "chunks", ["text_hash"])
    op.create_table(
        "vectors",
        sa.Column("embedder_key", sa.Integer(), nullable=False),
        sa.Column("text_hash", sa.Text(), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("embedder_key", "text_hash", name=op.f("pk_vectors")),
        sa.ForeignKeyConstraint(["embedder_key"], ["embedders.embedder_key"], name=op.f("fk_vectors_embedder_key")),
    )
    op.create_table(
        "lexical_terms",
        sa.Column("term_key", sa.Integer(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("chunks_in_force", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("term_key", name=op.f("pk_lexical_terms")),
        sa.UniqueConstraint("term", name=op.f("uq_lexical_terms_term")),
    )
    op.create_table(
        "lexical_postings",
        sa.Column("term_key", sa.Integer(), nullable=False),
        sa.Column("chunk_key", sa.Integer(), nullable=False),
        sa.Column("frequency", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("term_key", "chunk_key", name=op.f("pk_lexical_postings")),
        sa.ForeignKeyConstraint(["term_key"], ["lexical_terms.term_key"], name=op.f("fk_lexical_postings_term_key")),
        sa.ForeignKeyConstraint(
            ["chunk_key"], ["chunks.chunk_key"], name=op.f("fk_lexical_postings_chunk_key"), ondelete="CASCADE"
        ),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_lexical_postings_chunk_key", "lexical_postings", ["chunk_key"])
    op.create_table(
        "lexical_totals",
        sa.Column("totals_key", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("chunks_in_force", sa.Integer(), nullable=False),
        sa.Column("terms_in_force", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("totals_key", name=op.f("pk_lexical_totals")),
        sa.CheckConstraint("totals_key = 1", name=op.f("ck_lexical_totals_one_row")),
    )
    op.execute("INSERT INTO lexical_totals (totals_key, chunks_in_force, terms_in_force) VALUES (1, 0, 0)")


def downgrade() -> None:
    raise RuntimeError("evidencedesk files are not downgraded: restore the copy that the upgrade set aside")
