"""Dialogues, the timeline, the agents' own data."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


def upgrade() -> None:
    op.create_table(
        "dialogues",
        sa.Column("user_id", sa.String(64), primary_key=True),
        sa.Column("last_position", sa.BigInteger, nullable=False),
        sa.Column("fragmented_position", sa.BigInteger, nullable=False),
        sa.Column("last_activity", INSTANT, nullable=False, index=True),
    )
    op.create_table(
        "dialogue_messages",
        sa.Column("user_id", sa.String(64), primary_key=True),
        sa.Column("position", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("message_id", sa.String(80), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("content", sa.Text),
        sa.Column("ref", JSON),
        sa.Column("time", INSTANT, nullable=False),
    )
    op.create_index("ix_dialogue_messages_user_id_time", "dialogue_messages", ["user_id", "time"])
    op.create_table(
        "dialogue_fragments",
        sa.Column("fragment_id", sa.String(80), primary_key=True),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("first_position", sa.BigInteger, nullable=False),
        sa.Column("last_position", sa.BigInteger, nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT, nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("ref", JSON),
        sa.UniqueConstraint("user_id", "first_position", name="uq_dialogue_fragments_user_id_first_position"),
    )
    op.create_table(
        "timeline",
        sa.Column("sequence", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("event_id", sa.String(80), nullable=False, unique=True),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("topic", sa.String(64), nullable=False),
        sa.Column("time", INSTANT, nullable=False),
        sa.Column("user_id", sa.String(64)),
        sa.Column("trace_id", sa.String(128)),
        sa.Column("envelope", JSON, nullable=False),
    )
    for columns in (["user_id", "sequence"], ["trace_id", "sequence"], ["topic", "sequence"], ["time"]):
        op.create_index(f"ix_timeline_{'_'.join(columns)}", "timeline", columns)
    op.create_table(
        "agent_data",
        sa.Column("agent", sa.String(64), primary_key=True),
        sa.Column("namespace", sa.String(64), primary_key=True),
        sa.Column("key", sa.String(256), primary_key=True),
        sa.Column("value", JSON, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
    )


def downgrade() -> None:
    for table in ("agent_data", "timeline", "dialogue_fragments", "dialogue_messages", "dialogues"):
        op.drop_table(table)
