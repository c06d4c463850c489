"""Answers name the earlier episodes that they were made with, and that memory did not answer."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


def upgrade() -> None:
    op.add_column("dialogue_messages", sa.Column("episodes", JSON))
    op.add_column("dialogue_messages", sa.Column("memory", sa.String(8)))


def downgrade() -> None:
    op.drop_column("dialogue_messages", "memory")
    op.drop_column("dialogue_messages", "episodes")
