"""Histories, what is known of messages that are gone."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

KEY = sa.String(160).with_variant(sa.String(160, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "histories",
        sa.Column("key", KEY, primary_key=True),
        sa.Column("chat_id", sa.String(64), nullable=False, index=True),
        sa.Column("digest", sa.String(40), nullable=False),
        sa.Column("messages", sa.Text, nullable=False),
    )
    op.create_table(
        "gone_messages",
        sa.Column("mark", sa.String(64), primary_key=True),
        sa.Column("gone_at", sa.DateTime(timezone=True), nullable=False, index=True),
    )


def downgrade() -> None:
    op.drop_table("gone_messages")
    op.drop_table("histories")
