"""When units were last found, for eviction by priority."""

import sqlalchemy as sa
from alembic import op

from mindbus.sql.tables import Utc

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "kem_found",
        sa.Column("kem_id", sa.String(128), sa.ForeignKey("kems.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("found_at", Utc, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("kem_found")
