"""Facts that their speaker has shared with a project."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("facts", sa.Column("shared_with", sa.String(100)))


def downgrade() -> None:
    op.drop_column("facts", "shared_with")
