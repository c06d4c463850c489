"""Answers name the units of memory that they were made with."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0005"
down_revision = "0004"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


def upgrade() -> None:
    op.add_column("dialogue_messages", sa.Column("kem_ids", JSON))


def downgrade() -> None:
    op.drop_column("dialogue_messages", "kem_ids")
