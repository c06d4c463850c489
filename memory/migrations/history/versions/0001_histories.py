"""Histories, what is known of messages that are gone."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.String(160).with_variant(sa.String(160, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "histories",
        sa.Column("key", KEY, nullable=False),
        sa.Column("chat_id", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(40), nullable=False),
        sa.Column("messages", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_histories"),
    )
    op.create_index("ix_histories_chat_id", "histories", ["chat_id"])
    op.create_table(
        "gone_messages",
        sa.Column("mark", sa.String(64), nullable=False),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("mark", name="pk_gone_messages"),
    )
    op.create_index("ix_gone_messages_gone_at", "gone_messages", ["gone_at"])


def downgrade() -> None:
    op.drop_table("gone_messages")
    op.drop_table("histories")
