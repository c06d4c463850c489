"""Notes of packed episodes; those that were packed before are settled once more, which makes their notes."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "notes",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, primary_key=True),
        sa.Column("raw_log_id", sa.String(68), nullable=False, index=True),
        sa.Column("chat_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(["raw_log_id"], ["raw_log.id"], ondelete="CASCADE", name="fk_notes_raw_log_id"),
    )
    op.create_index("ix_notes_chat_id_position", "notes", ["chat_id", "position"])
    op.execute("UPDATE episodes SET is_settled = false WHERE layer != 'hot'")


def downgrade() -> None:
    op.drop_table("notes")
