"""When an episode came into which layer, with how many words there."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "layer_changes",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False, autoincrement=True),
        sa.Column("episode_id", sa.String(67), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("layer", sa.String(8), nullable=False),
        sa.Column("word_count", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("position", name="pk_layer_changes"),
        sa.ForeignKeyConstraint(
            ["episode_id"], ["episodes.id"], ondelete="CASCADE", name="fk_layer_changes_episode_id"
        ),
    )
    op.create_index("ix_layer_changes_episode_id", "layer_changes", ["episode_id"])


def downgrade() -> None:
    op.drop_table("layer_changes")
