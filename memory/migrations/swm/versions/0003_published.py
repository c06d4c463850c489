"""Units that a message has published: the same message, come again, publishes them no second time."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "published",
        sa.Column("message_id", sa.String(128), nullable=False),
        sa.Column("kem_key", sa.String(36), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("message_id", "kem_key", name="pk_published"),
    )
    op.create_index("ix_published_published_at", "published", ["published_at"])


def downgrade() -> None:
    op.drop_table("published")
