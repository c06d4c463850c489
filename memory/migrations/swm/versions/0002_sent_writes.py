"""Queued writes know the message that they are sent in."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("writes", sa.Column("message_id", sa.String(128)))


def downgrade() -> None:
    op.drop_column("writes", "message_id")
