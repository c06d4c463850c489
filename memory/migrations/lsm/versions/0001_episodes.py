"""The raw log, episodes in their layers, vectors of turns, searches, the ledger."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from mindbus.sql.migrations import create_inbox_tables, drop_inbox_tables

revision = "0001"
down_revision = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
UNSETTLED = sa.text("NOT is_settled")


def upgrade() -> None:
    op.create_table(
        "chats",
        sa.Column("chat_id", sa.String(64), primary_key=True),
        sa.Column("turns", sa.BigInteger, nullable=False),
        sa.Column("heard", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "raw_log",
        sa.Column("id", sa.String(68), primary_key=True),
        sa.Column("chat_id", sa.String(64), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("message_id", sa.String(68)),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("speaker", sa.String(80)),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("time", INSTANT, nullable=False),
        sa.Column("word_count", sa.Integer, nullable=False),
        sa.Column("is_heard", sa.Boolean, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
    )
    op.create_index("ix_raw_log_chat_id_position", "raw_log", ["chat_id", "position"], unique=True)
    op.create_index("ix_raw_log_chat_id_time_position", "raw_log", ["chat_id", "time", "position"])
    op.create_table(
        "episodes",
        sa.Column("id", sa.String(67), primary_key=True),
        sa.Column("chat_id", sa.String(64), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("last_accessed", INSTANT, nullable=False),
        sa.Column("access_count", sa.Integer, nullable=False),
        sa.Column("layer_accesses", sa.Integer, nullable=False),
        sa.Column("layer", sa.String(8), nullable=False),
        sa.Column("priority", sa.Double, nullable=False),
        sa.Column("content_hot", JSON),
        sa.Column("content_warm", JSON),
        sa.Column("content_cold", JSON),
        sa.Column("headline", sa.Text, nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("model", sa.String(128)),
        sa.Column("embedding", sa.LargeBinary),
        sa.Column("continues_from", sa.String(67)),
        sa.Column("related_to", JSON, nullable=False),
        sa.Column("is_anchor", sa.Boolean, nullable=False),
        sa.Column("anchor_reason", sa.String(16)),
        sa.Column("anchored_by", sa.String(8)),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT, nullable=False),
        sa.Column("turns", sa.Integer, nullable=False),
        sa.Column("word_count", sa.Integer, nullable=False),
        sa.Column("layer_word_count", sa.Integer),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("packed_version", sa.BigInteger),
        sa.Column("report", JSON),
        sa.Column("is_settled", sa.Boolean, nullable=False),
        sa.Column("fragment_id", sa.String(69)),
    )
    op.create_index("ix_episodes_chat_id_ended_at_id", "episodes", ["chat_id", "ended_at", "id"])
    op.create_index("ix_episodes_layer_last_accessed_id", "episodes", ["layer", "last_accessed", "id"])
    options = {"sqlite_where": UNSETTLED, "postgresql_where": UNSETTLED}
    op.create_index("ix_episodes_unsettled", "episodes", ["chat_id", "id"], **options)
    op.create_table(
        "episode_of_turn",
        sa.Column("raw_log_id", sa.String(68), primary_key=True),
        sa.Column("episode_id", sa.String(67), nullable=False, index=True),
        _reference("episode_of_turn", "raw_log_id", "raw_log.id"),
        _reference("episode_of_turn", "episode_id", "episodes.id"),
    )
    op.create_table(
        "turn_vectors",
        sa.Column("raw_log_id", sa.String(68), primary_key=True),
        sa.Column("model", sa.String(128), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        _reference("turn_vectors", "raw_log_id", "raw_log.id"),
    )
    op.create_table(
        "searches",
        sa.Column("search_id", sa.String(69), primary_key=True),
        sa.Column("requester", sa.String(160), nullable=False),
        sa.Column("chat_id", sa.String(64), nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("unpacked", sa.Boolean, nullable=False),
        sa.Column("hits", JSON, nullable=False),
        sa.Column("feedback", JSON),
    )
    op.create_index("ix_searches_chat_id_at", "searches", ["chat_id", "at"])
    op.create_table(
        "search_weights",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
    )
    create_inbox_tables()


def downgrade() -> None:
    drop_inbox_tables()
    tables = ("search_weights", "searches", "turn_vectors", "episode_of_turn", "episodes")
    for table in (*tables, "raw_log", "chats"):
        op.drop_table(table)


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}", ondelete="CASCADE")
