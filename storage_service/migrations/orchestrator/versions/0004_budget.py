"""Runs: tokens that were used when a person last let the run go on."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("runs", sa.Column("budget_from", sa.Integer))


def downgrade() -> None:
    op.drop_column("runs", "budget_from")
