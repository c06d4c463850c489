"""Process state: runs, their steps, the ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_runs()
    _create_steps()
    _create_ledger()


def downgrade() -> None:
    for table in ("outbox", "inbox", "steps", "runs"):
        op.drop_table(table)


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(68), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("card_name", sa.String(63), nullable=False),
        sa.Column("card", sa.JSON, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("started_by", sa.String(160), nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("finished_at", INSTANT),
        sa.Column("inputs", sa.JSON, nullable=False),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
    )
    op.create_index("ix_runs_started_at_run_id", "runs", ["started_at", "run_id"])
    op.create_index("ix_runs_status", "runs", ["status"])


def _create_steps() -> None:
    op.create_table(
        "steps",
        sa.Column("run_id", sa.String(68), nullable=False),
        sa.Column("step_id", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("role", sa.String(63), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("critical", sa.Boolean, nullable=False),
        sa.Column("artifact", sa.JSON),
        sa.Column("context", sa.JSON),
        sa.Column("started_at", INSTANT),
        sa.Column("finished_at", INSTANT),
        sa.Column("due_at", INSTANT),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "step_id", name="pk_steps"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.run_id"], name="fk_steps_run_id"),
    )
    op.create_index("ix_steps_due_at", "steps", ["due_at"])
    op.create_index("ix_steps_status", "steps", ["status"])


def _create_ledger() -> None:
    op.create_table(
        "inbox",
        sa.Column("consumer", sa.String(128), nullable=False),
        sa.Column("message_id", sa.String(128), nullable=False),
        sa.Column("outcome", sa.JSON, nullable=False),
        sa.Column("handled_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("consumer", "message_id", name="pk_inbox"),
    )
    op.create_index("ix_inbox_handled_at", "inbox", ["handled_at"])
    op.create_table(
        "outbox",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, nullable=False),
        sa.Column("exchange", sa.String(128), nullable=False),
        sa.Column("routing_key", sa.String(256), nullable=False),
        sa.Column("mandatory", sa.Boolean, nullable=False),
        sa.Column("envelope", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_outbox"),
        sqlite_autoincrement=True,
    )
