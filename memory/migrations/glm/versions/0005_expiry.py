"""Units may say when they are to be deleted."""

import sqlalchemy as sa
from alembic import op

from mindbus.sql.tables import Utc

revision = "0005"
down_revision = "0004"
_EXPIRES = sa.text("expires_at IS NOT NULL")


def upgrade() -> None:
    op.add_column("kems", sa.Column("expires_at", Utc))
    op.create_index("ix_kems_expiring", "kems", ["expires_at"], sqlite_where=_EXPIRES, postgresql_where=_EXPIRES)


def downgrade() -> None:
    op.drop_index("ix_kems_expiring", "kems")
    op.drop_column("kems", "expires_at")
