"""Units that have yet to be embedded are found without a look at all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

WANTING = sa.text("model IS NULL AND content IS NOT NULL")


def upgrade() -> None:
    op.create_index("ix_kems_wanting", "kems", ["id"], sqlite_where=WANTING, postgresql_where=WANTING)


def downgrade() -> None:
    op.drop_index("ix_kems_wanting", "kems")
