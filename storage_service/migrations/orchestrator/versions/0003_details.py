"""Steps: rounds and what else plain steps do not have."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("steps", sa.Column("details", sa.JSON))


def downgrade() -> None:
    op.drop_column("steps", "details")
