"""Since when it is known that nobody has said of a search what of it was of use."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("searches", sa.Column("noticed_at", sa.DateTime(timezone=True), nullable=True))
    without_feedback = sa.text("feedback IS NULL")
    op.create_index(
        "ix_searches_without_feedback",
        "searches",
        ["noticed_at"],
        sqlite_where=without_feedback,
        postgresql_where=without_feedback,
    )


def downgrade() -> None:
    op.drop_index("ix_searches_without_feedback", "searches")
    op.drop_column("searches", "noticed_at")
