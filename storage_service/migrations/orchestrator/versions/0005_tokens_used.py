"""Tokens that models have used for each person and day; runs that the budget of a person does not hold."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("runs", sa.Column("is_budget_free", sa.Boolean))
    op.create_table(
        "tokens_used",
        sa.Column("identity", sa.String(160), primary_key=True),
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("tokens", sa.Integer, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("tokens_used")
    op.drop_column("runs", "is_budget_free")
