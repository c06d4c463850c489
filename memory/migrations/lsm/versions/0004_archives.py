"""Texts of cold episodes in artifacts: which turns, which artifacts."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("raw_log", sa.Column("archived", sa.BigInteger, nullable=True))
    op.create_table(
        "archives",
        sa.Column("episode_id", sa.String(67), primary_key=True),
        sa.Column("artifact_id", sa.String(68), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("text_bytes", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["episode_id"], ["episodes.id"], ondelete="CASCADE", name="fk_archives_episode_id"),
    )


def downgrade() -> None:
    archived = op.get_bind().scalar(sa.text("SELECT count(*) FROM raw_log WHERE archived IS NOT NULL"))
    if archived:
        raise RuntimeError(
            f"the texts of {archived} turns are in artifacts, which only this version reads: unpack them"
        )
    op.drop_table("archives")
    op.drop_column("raw_log", "archived")
