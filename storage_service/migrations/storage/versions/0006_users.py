"""Users: names, roles, time zones, languages, projects."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"

JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("user_id", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("names", JSON, nullable=False),
        sa.Column("role", sa.String(200), nullable=False),
        sa.Column("zone", sa.String(64)),
        sa.Column("language", sa.String(8)),
        sa.Column("projects", JSON, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("users")
