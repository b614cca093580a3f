"""Evaluations are kept case by case, with the state of the file that was asked, and so are calibrated guards.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("answers", sa.Column("probability", sa.Double(), nullable=True))
    op.add_column("answers", sa.Column("threshold", sa.Double(), nullable=True))
    op.create_table(
        "state",
        sa.Column("state_key", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("generation", sa.Text(), nullable=False),
        sa.CheckConstraint("state_key = 1", name=op.f("ck_state_one_row")),
        sa.PrimaryKeyConstraint("state_key", name=op.f("pk_state")),
    )
    op.execute("INSERT INTO state (state_key, generation) VALUES (1, lower(hex(randomblob(16))))")
    op.create_table(
        "guard_fits",
        sa.Column("fit_key", sa.Integer(), primary_key=True),
        sa.Column("embedder_key", sa.Integer(), nullable=True),
        sa.Column("fitted_at", sa.DateTime(), nullable=False),
        sa.Column("intercept", sa.Double(), nullable=False),
        sa.Column("threshold", sa.Double(), nullable=False),
        sa.Column("promise", sa.Text(), nullable=False),
        sa.Column("max_wrong", sa.Double(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("cases_hash", sa.Text(), nullable=False),
        sa.Column("case_count", sa.Integer(), nullable=False),
        sa.Column("answered", sa.Integer(), nullable=False),
        sa.Column("wrong", sa.Integer(), nullable=False),
        sa.Column("auroc", sa.Double(), nullable=True),
        sa.Column("aurc", sa.Double(), nullable=True),
        sa.Column("code_version", sa.Text(), nullable=False),
        sa.CheckConstraint("threshold >= 0 AND threshold <= 1", name=op.f("ck_guard_fits_threshold")),
        sa.ForeignKeyConstraint(
            ["embedder_key"], ["embedders.embedder_key"], name=op.f("fk_guard_fits_embedder_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("fit_key", name=op.f("pk_guard_fits")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_guard_fits_embedder_key", "guard_fits", ["embedder_key"])
    op.create_table(
        "guard_weights",
        sa.Column("fit_key", sa.Integer(), nullable=False),
        sa.Column("signal", sa.Text(), nullable=False),
        sa.Column("mean", sa.Double(), nullable=False),
        sa.Column("deviation", sa.Double(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["fit_key"], ["guard_fits.fit_key"], name=op.f("fk_guard_weights_fit_key"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("fit_key", "signal", name=op.f("pk_guard_weights")),
    )
    op.create_table(
        "runs",
        sa.Column("run_key", sa.Integer(), primary_key=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("accepted", sa.Boolean(), nullable=True),
        sa.Column("started_at", sa.DateTime(), nullable=False),
        sa.Column("cases_hash", sa.Text(), nullable=False),
        sa.Column("case_count", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Text(), nullable=False),
        sa.Column("documents_in_force", sa.Integer(), nullable=False),
        sa.Column("embedder", sa.Text(), nullable=True),
        sa.Column("thresholds", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("checker", sa.Text(), nullable=False),
        sa.Column("code_version", sa.Text(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.CheckConstraint("kind IN ('evaluation', 'gate')", name=op.f("ck_runs_kind")),
        sa.PrimaryKeyConstraint("run_key", name=op.f("pk_runs")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "run_cases",
        sa.Column("run_key", sa.Integer(), nullable=False),
        sa.Column("case_id", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("answerable", sa.Boolean(), nullable=False),
        sa.Column("as_of", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("keyword_rank", sa.Integer(), nullable=True),
        sa.Column("vector_rank", sa.Integer(), nullable=True),
        sa.Column("hybrid_rank", sa.Integer(), nullable=True),
        sa.Column("top_chunk_id", sa.Text(), nullable=True),
        sa.Column("top", sa.Double(), nullable=True),
        sa.Column("margin", sa.Double(), nullable=True),
        sa.Column("cited", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_key"], ["runs.run_key"], name=op.f("fk_run_cases_run_key"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_key", "case_id", name=op.f("pk_run_cases")),
    )
    op.create_index("ix_run_cases_case_id", "run_cases", ["case_id"])


def downgrade() -> None:
    raise RuntimeError("evidencedesk files are not downgraded: restore the copy that the upgrade set aside")
