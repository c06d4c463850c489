"""Tokens of models by day, for the quota of a fleet."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.create_table(
        "tokens_by_day",
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("tokens_by_day")
