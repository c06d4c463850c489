"""A content may be in a pack, at an offset, rather than a file of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("blobs", sa.Column("pack", sa.String(80)))
    op.add_column("blobs", sa.Column("pack_offset", sa.BigInteger))


def downgrade() -> None:
    op.drop_column("blobs", "pack_offset")
    op.drop_column("blobs", "pack")
