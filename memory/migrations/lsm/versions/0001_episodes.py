"""The raw log, episodes in their layers, vectors of turns, searches, the ledger."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
UNSETTLED = sa.text("NOT is_settled")


def upgrade() -> None:
    _create_log()
    _create_episodes()
    _create_searches()
    _create_ledger()


def downgrade() -> None:
    tables = ("outbox", "inbox", "search_weights", "searches", "turn_vectors", "episode_of_turn", "episodes")
    for table in (*tables, "raw_log", "chats"):
        op.drop_table(table)


def _create_log() -> None:
    op.create_table(
        "chats",
        sa.Column("chat_id", sa.String(64), nullable=False),
        sa.Column("turns", sa.BigInteger, nullable=False),
        sa.Column("heard", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("chat_id", name="pk_chats"),
    )
    op.create_table(
        "raw_log",
        sa.Column("id", sa.String(68), nullable=False),
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
        sa.PrimaryKeyConstraint("id", name="pk_raw_log"),
    )
    op.create_index("ix_raw_log_chat_id_position", "raw_log", ["chat_id", "position"], unique=True)
    op.create_index("ix_raw_log_chat_id_time_position", "raw_log", ["chat_id", "time", "position"])


def _create_episodes() -> None:
    op.create_table(
        "episodes",
        sa.Column("id", sa.String(67), nullable=False),
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
        sa.PrimaryKeyConstraint("id", name="pk_episodes"),
    )
    op.create_index("ix_episodes_chat_id_ended_at_id", "episodes", ["chat_id", "ended_at", "id"])
    op.create_index("ix_episodes_layer_last_accessed_id", "episodes", ["layer", "last_accessed", "id"])
    options = {"sqlite_where": UNSETTLED, "postgresql_where": UNSETTLED}
    op.create_index("ix_episodes_unsettled", "episodes", ["chat_id", "id"], **options)
    _create_of_turns()


def _create_of_turns() -> None:
    op.create_table(
        "episode_of_turn",
        sa.Column("raw_log_id", sa.String(68), nullable=False),
        sa.Column("episode_id", sa.String(67), nullable=False),
        _reference("episode_of_turn", "raw_log_id", "raw_log.id"),
        _reference("episode_of_turn", "episode_id", "episodes.id"),
        sa.PrimaryKeyConstraint("raw_log_id", name="pk_episode_of_turn"),
    )
    op.create_index("ix_episode_of_turn_episode_id", "episode_of_turn", ["episode_id"])
    op.create_table(
        "turn_vectors",
        sa.Column("raw_log_id", sa.String(68), nullable=False),
        sa.Column("model", sa.String(128), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        _reference("turn_vectors", "raw_log_id", "raw_log.id"),
        sa.PrimaryKeyConstraint("raw_log_id", name="pk_turn_vectors"),
    )


def _create_searches() -> None:
    op.create_table(
        "searches",
        sa.Column("search_id", sa.String(69), nullable=False),
        sa.Column("requester", sa.String(160), nullable=False),
        sa.Column("chat_id", sa.String(64), nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("unpacked", sa.Boolean, nullable=False),
        sa.Column("hits", JSON, nullable=False),
        sa.Column("feedback", JSON),
        sa.PrimaryKeyConstraint("search_id", name="pk_searches"),
    )
    op.create_index("ix_searches_chat_id_at", "searches", ["chat_id", "at"])
    op.create_table(
        "search_weights",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", JSON, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_search_weights"),
    )


def _create_ledger() -> None:
    op.create_table(
        "inbox",
        sa.Column("consumer", sa.String(128), nullable=False),
        sa.Column("message_id", sa.String(128), nullable=False),
        sa.Column("outcome", sa.JSON, nullable=False),
        sa.Column("handled_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("consumer", "message_id", name="pk_inbox"),
    )
    op.create_index("ix_inbox_handled_at", "inbox", ["handled_at"])
    op.create_table(
        "outbox",
        sa.Column("seq", NUMBER, autoincrement=True, nullable=False),
        sa.Column("exchange", sa.String(128), nullable=False),
        sa.Column("routing_key", sa.String(256), nullable=False),
        sa.Column("mandatory", sa.Boolean, nullable=False),
        sa.Column("envelope", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_outbox"),
        sqlite_autoincrement=True,
    )


def _reference(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"fk_{table}_{column}", ondelete="CASCADE")
