"""Steps: answers of models that were no result."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("steps", sa.Column("misbehaviours", sa.JSON))


def downgrade() -> None:
    op.drop_column("steps", "misbehaviours")
