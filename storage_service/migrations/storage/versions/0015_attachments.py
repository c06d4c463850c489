"""Messages have attached files; answers name the model that wrote them, and its tokens."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0015"
down_revision = "0014"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


def upgrade() -> None:
    op.add_column("dialogue_messages", sa.Column("attachments", JSON))
    op.add_column("dialogue_messages", sa.Column("model_use", JSON))


def downgrade() -> None:
    op.drop_column("dialogue_messages", "model_use")
    op.drop_column("dialogue_messages", "attachments")
