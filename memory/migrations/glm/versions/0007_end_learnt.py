"""Units know when it was learnt that they end."""

import sqlalchemy as sa
from alembic import op

from mindbus.sql.tables import Utc

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.add_column("kems", sa.Column("end_learnt_at", Utc))


def downgrade() -> None:
    op.drop_column("kems", "end_learnt_at")
