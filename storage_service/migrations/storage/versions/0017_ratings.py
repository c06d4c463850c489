"""Answers name the search of long-term memory behind them; users rate answers."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("dialogue_messages", sa.Column("search_id", sa.String(69)))
    op.add_column("dialogue_messages", sa.Column("rating", sa.String(16)))


def downgrade() -> None:
    op.drop_column("dialogue_messages", "rating")
    op.drop_column("dialogue_messages", "search_id")
