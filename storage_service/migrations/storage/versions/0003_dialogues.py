"""Dialogues, the timeline, the agents' own data."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")


def upgrade() -> None:
    _create_dialogues()
    _create_fragments()
    _create_timeline()
    op.create_table(
        "agent_data",
        sa.Column("agent", sa.String(64), nullable=False),
        sa.Column("namespace", sa.String(64), nullable=False),
        sa.Column("key", sa.String(256), nullable=False),
        sa.Column("value", JSON, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("agent", "namespace", "key", name="pk_agent_data"),
    )


def downgrade() -> None:
    for table in ("agent_data", "timeline", "dialogue_fragments", "dialogue_messages", "dialogues"):
        op.drop_table(table)


def _create_dialogues() -> None:
    op.create_table(
        "dialogues",
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("last_position", sa.BigInteger, nullable=False),
        sa.Column("fragmented_position", sa.BigInteger, nullable=False),
        sa.Column("last_activity", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("user_id", name="pk_dialogues"),
    )
    op.create_index("ix_dialogues_last_activity", "dialogues", ["last_activity"])
    op.create_table(
        "dialogue_messages",
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("position", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("message_id", sa.String(80), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("content", sa.Text),
        sa.Column("ref", JSON),
        sa.Column("time", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("user_id", "position", name="pk_dialogue_messages"),
        sa.UniqueConstraint("message_id", name="uq_dialogue_messages_message_id"),
    )
    op.create_index("ix_dialogue_messages_user_id_time", "dialogue_messages", ["user_id", "time"])


def _create_fragments() -> None:
    op.create_table(
        "dialogue_fragments",
        sa.Column("fragment_id", sa.String(80), nullable=False),
        sa.Column("user_id", sa.String(64), nullable=False),
        sa.Column("first_position", sa.BigInteger, nullable=False),
        sa.Column("last_position", sa.BigInteger, nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT, nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("ref", JSON),
        sa.PrimaryKeyConstraint("fragment_id", name="pk_dialogue_fragments"),
        sa.UniqueConstraint("user_id", "first_position", name="uq_dialogue_fragments_user_id_first_position"),
    )


def _create_timeline() -> None:
    op.create_table(
        "timeline",
        sa.Column("sequence", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("event_id", sa.String(80), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("topic", sa.String(64), nullable=False),
        sa.Column("time", INSTANT, nullable=False),
        sa.Column("user_id", sa.String(64)),
        sa.Column("trace_id", sa.String(128)),
        sa.Column("envelope", JSON, nullable=False),
        sa.PrimaryKeyConstraint("sequence", name="pk_timeline"),
        sa.UniqueConstraint("event_id", name="uq_timeline_event_id"),
    )
    for columns in (["user_id", "sequence"], ["trace_id", "sequence"], ["topic", "sequence"], ["time"]):
        op.create_index(f"ix_timeline_{'_'.join(columns)}", "timeline", columns)
