"""Answers are remembered with what they rest on, so that one query names those that went stale.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("answer_key", sa.Integer(), primary_key=True),
        sa.Column("asked_at", sa.DateTime(), nullable=False),
        sa.Column("as_of", sa.DateTime(), nullable=True),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("abstained", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("guard_state", sa.Text(), nullable=False),
        sa.Column("guard_measure", sa.Text(), nullable=False),
        sa.Column("top", sa.Double(), nullable=False),
        sa.Column("margin", sa.Double(), nullable=False),
        sa.Column("min_score", sa.Double(), nullable=True),
        sa.Column("min_margin", sa.Double(), nullable=True),
        sa.Column("missing_weight", sa.Double(), nullable=True),
        sa.Column("values_source", sa.Text(), nullable=True),
        sa.Column("embedder", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("checker", sa.Text(), nullable=False),
        sa.Column("code_version", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("answer_key", name="pk_answers"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_answers_asked_at", "answers", ["asked_at"])
    op.create_table(
        "answer_hits",
        sa.Column("answer_key", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("chunk_id", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.Column("bm25", sa.Double(), nullable=False),
        sa.Column("cosine", sa.Double(), nullable=True),
        sa.Column("keyword_rank", sa.Integer(), nullable=True),
        sa.Column("vector_rank", sa.Integer(), nullable=True),
        sa.Column("idf_share", sa.Double(), nullable=False),
        sa.Column("other_script", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["answer_key"], ["answers.answer_key"], name="fk_answer_hits_answer_key", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("answer_key", "rank", name="pk_answer_hits"),
    )
    op.create_table(
        "answer_claims",
        sa.Column("answer_key", sa.Integer(), nullable=False),
        sa.Column("claim_number", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["answer_key"], ["answers.answer_key"], name="fk_answer_claims_answer_key", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("answer_key", "claim_number", name="pk_answer_claims"),
    )
    op.create_table(
        "answer_citations",
        sa.Column("answer_key", sa.Integer(), nullable=False),
        sa.Column("claim_number", sa.Integer(), nullable=False),
        sa.Column("citation_number", sa.Integer(), nullable=False),
        sa.Column("cited", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("support", sa.Text(), nullable=True),
        sa.Column("support_reason", sa.Text(), nullable=True),
        sa.Column("chunk_id", sa.Text(), nullable=True),
        sa.Column("doc_id", sa.Text(), nullable=True),
        sa.Column("family", sa.Text(), nullable=True),
        sa.Column("lang", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("line_start", sa.Integer(), nullable=True),
        sa.Column("line_end", sa.Integer(), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("quote", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["answer_key", "claim_number"],
            ["answer_claims.answer_key", "answer_claims.claim_number"],
            name="fk_answer_citations_answer_key_claim_number",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("answer_key", "claim_number", "citation_number", name="pk_answer_citations"),
    )
    op.create_index("ix_answer_citations_family_lang", "answer_citations", ["family", "lang"])


def downgrade() -> None:
    raise RuntimeError("evidencedesk files are not downgraded: restore the copy that the upgrade set aside")
