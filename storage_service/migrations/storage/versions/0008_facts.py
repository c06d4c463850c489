"""Facts: one row each."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0008"
down_revision = "0007"

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


def upgrade() -> None:
    op.create_table(
        "facts",
        sa.Column("fact_id", sa.String(80), primary_key=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("said_by", sa.String(64), nullable=False),
        sa.Column("project", sa.String(100)),
        sa.Column("said_at", INSTANT, nullable=False, index=True),
        sa.Column("supersedes", sa.String(80)),
        sa.Column("superseded_by", sa.String(80)),
        sa.Column("message_ids", JSON, nullable=False),
    )
    op.create_index("ix_facts_said_by_said_at", "facts", ["said_by", "said_at"])


def downgrade() -> None:
    op.drop_table("facts")
