"""Process state: runs, their steps, the ledger."""

import sqlalchemy as sa
from alembic import op

from mindbus.sql.migrations import create_inbox_tables, drop_inbox_tables

revision = "0001"
down_revision = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(68), primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("card_name", sa.String(63), nullable=False),
        sa.Column("card", sa.JSON, nullable=False),
        sa.Column("status", sa.String(16), nullable=False, index=True),
        sa.Column("started_by", sa.String(160), nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT),
        sa.Column("inputs", sa.JSON, nullable=False),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON),
        sa.Column("reason", sa.Text, nullable=False),
    )
    op.create_index("ix_runs_started_at_run_id", "runs", ["started_at", "run_id"])
    op.create_table(
        "steps",
        sa.Column("run_id", sa.String(68), sa.ForeignKey("runs.run_id"), primary_key=True),
        sa.Column("step_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("role", sa.String(63), nullable=False),
        sa.Column("status", sa.String(16), nullable=False, index=True),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("critical", sa.Boolean, nullable=False),
        sa.Column("artifact", sa.JSON),
        sa.Column("context", sa.JSON),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.Column("due_at", INSTANT, index=True),
        sa.Column("reason", sa.Text, nullable=False),
    )
    create_inbox_tables()


def downgrade() -> None:
    drop_inbox_tables()
    for table in ("steps", "runs"):
        op.drop_table(table)
