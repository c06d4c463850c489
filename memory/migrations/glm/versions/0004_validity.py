"""Units say from when to when they hold, which older ones they supersede, and by which they are."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from mindbus.sql.tables import Utc

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("kems", sa.Column("valid_from", Utc))
    op.add_column("kems", sa.Column("valid_to", Utc))
    op.add_column("kems", sa.Column("superseded_by", sa.String(128)))
    op.add_column("kems", sa.Column("supersedes", sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")))


def downgrade() -> None:
    for column in ("supersedes", "superseded_by", "valid_to", "valid_from"):
        op.drop_column("kems", column)
