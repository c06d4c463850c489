"""Writes on their way, locks, counters, subscriptions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

INSTANT = sa.DateTime(timezone=True)
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "writes",
        sa.Column("seq", NUMBER, autoincrement=True, primary_key=True),
        sa.Column("target", sa.String(8), nullable=False),
        sa.Column("kem_id", sa.String(128), nullable=False, index=True),
        sa.Column("kem", sa.JSON),
        sa.Column("publisher", sa.String(160), nullable=False),
        sa.Column("given", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_writes_target_seq", "writes", ["target", "seq"])
    op.create_table(
        "locks",
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("ticket", sa.String(128), nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("holder", sa.String(160), nullable=False),
        sa.Column("fencing", sa.BigInteger, nullable=False),
        sa.Column("expires_at", INSTANT),
    )
    op.create_table(
        "shared_counters",
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    op.create_table(
        "counter_operations",
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("operation_id", sa.String(128), primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.Column("made_at", INSTANT, nullable=False, index=True),
    )
    op.create_table(
        "subscriptions",
        sa.Column("subscription_id", sa.String(68), primary_key=True),
        sa.Column("agent_id", sa.String(160), nullable=False),
        sa.Column("filters", sa.JSON, nullable=False),
    )
    op.create_table(
        "told_kems",
        sa.Column("kem_id", sa.String(128), primary_key=True),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("readers", sa.JSON),
    )


def downgrade() -> None:
    for table in ("told_kems", "subscriptions", "counter_operations", "shared_counters", "locks", "writes"):
        op.drop_table(table)
