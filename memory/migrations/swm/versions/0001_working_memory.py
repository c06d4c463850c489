"""Writes on their way, locks, counters, subscriptions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "writes",
        sa.Column("seq", NUMBER, autoincrement=True, nullable=False),
        sa.Column("target", sa.String(8), nullable=False),
        sa.Column("kem_id", sa.String(128), nullable=False),
        sa.Column("kem", sa.JSON),
        sa.Column("publisher", sa.String(160), nullable=False),
        sa.Column("given", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_writes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_writes_target_seq", "writes", ["target", "seq"])
    op.create_index("ix_writes_kem_id", "writes", ["kem_id"])
    op.create_table(
        "locks",
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("ticket", sa.String(128), nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("holder", sa.String(160), nullable=False),
        sa.Column("fencing", sa.BigInteger, nullable=False),
        sa.Column("expires_at", INSTANT),
        sa.PrimaryKeyConstraint("name", name="pk_locks"),
    )
    _create_counters()
    _create_subscriptions()


def downgrade() -> None:
    for table in ("told_kems", "subscriptions", "counter_operations", "shared_counters", "locks", "writes"):
        op.drop_table(table)


def _create_counters() -> None:
    op.create_table(
        "shared_counters",
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    op.create_table(
        "counter_operations",
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("operation_id", sa.String(128), nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.Column("made_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("name", "operation_id", name="pk_counter_operations"),
    )
    op.create_index("ix_counter_operations_made_at", "counter_operations", ["made_at"])


def _create_subscriptions() -> None:
    op.create_table(
        "subscriptions",
        sa.Column("subscription_id", sa.String(68), nullable=False),
        sa.Column("agent_id", sa.String(160), nullable=False),
        sa.Column("filters", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("subscription_id", name="pk_subscriptions"),
    )
    op.create_table(
        "told_kems",
        sa.Column("kem_id", sa.String(128), nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("readers", sa.JSON),
        sa.PrimaryKeyConstraint("kem_id", name="pk_told_kems"),
    )
