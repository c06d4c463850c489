"""When an episode came into which layer, with how many words there."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "layer_changes",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, primary_key=True),
        sa.Column("episode_id", sa.String(67), nullable=False, index=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("layer", sa.String(8), nullable=False),
        sa.Column("word_count", sa.Integer, nullable=False),
        sa.ForeignKeyConstraint(
            ["episode_id"], ["episodes.id"], ondelete="CASCADE", name="fk_layer_changes_episode_id"
        ),
    )


def downgrade() -> None:
    op.drop_table("layer_changes")
