"""Tasks: one row each."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


def upgrade() -> None:
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.String(80), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("owner", sa.String(100)),
        sa.Column("owner_id", sa.String(64)),
        sa.Column("asked_by", sa.String(64), nullable=False),
        sa.Column("due", INSTANT),
        sa.Column("due_order", INSTANT, nullable=False),
        sa.Column("due_said", sa.String(100), nullable=False),
        sa.Column("due_on", sa.Date),
        sa.Column("remind_at", INSTANT),
        sa.Column("next_reminder", INSTANT),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("found_at", INSTANT, nullable=False),
        sa.Column("changed_at", INSTANT, nullable=False, index=True),
        sa.Column("message_ids", JSON, nullable=False),
        sa.Column("written_at", JSON, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
    )
    for columns in (
        ["owner_id", "status", "due_order"],
        ["asked_by", "status", "due_order"],
        ["status", "due_order"],
        ["status", "next_reminder"],
    ):
        op.create_index(f"ix_tasks_{'_'.join(columns)}", "tasks", columns)


def downgrade() -> None:
    op.drop_table("tasks")
