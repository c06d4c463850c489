"""Units, who may read them, what they can be found by, the vectors to be written, the ledger."""

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


def upgrade() -> None:
    _create_kems()
    _create_readers()
    _create_facets()
    op.create_table(
        "vector_writes",
        sa.Column("seq", NUMBER, autoincrement=True, nullable=False),
        sa.Column("kem_id", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_vector_writes"),
        sqlite_autoincrement=True,
    )
    _create_ledger()


def downgrade() -> None:
    for table in ("outbox", "inbox", "vector_writes", "kem_facets", "kem_readers", "kems"):
        op.drop_table(table)


def _create_kems() -> None:
    op.create_table(
        "kems",
        sa.Column("id", sa.String(128), nullable=False),
        sa.Column("owner", sa.String(96), nullable=False),
        sa.Column("visibility", sa.String(16), nullable=False),
        sa.Column("readers", JSON, nullable=False),
        sa.Column("writers", JSON, nullable=False),
        sa.Column("content_type", sa.String(127), nullable=False),
        sa.Column("content", sa.LargeBinary),
        sa.Column("ref", JSON),
        sa.Column("metadata", JSON, nullable=False),
        sa.Column("source", JSON),
        sa.Column("model", sa.String(128)),
        sa.Column("vector", sa.LargeBinary),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_kems"),
    )
    op.create_index("ix_kems_created_at_id", "kems", ["created_at", "id"])
    op.create_index("ix_kems_updated_at_id", "kems", ["updated_at", "id"])
    op.create_index("ix_kems_owner", "kems", ["owner"])


def _create_readers() -> None:
    op.create_table(
        "kem_readers",
        sa.Column("kem_id", sa.String(128), nullable=False),
        sa.Column("reader", sa.String(96), nullable=False),
        sa.PrimaryKeyConstraint("kem_id", "reader", name="pk_kem_readers"),
        sa.ForeignKeyConstraint(["kem_id"], ["kems.id"], name="fk_kem_readers_kem_id", ondelete="CASCADE"),
    )
    op.create_index("ix_kem_readers_reader_kem_id", "kem_readers", ["reader", "kem_id"])


def _create_facets() -> None:
    op.create_table(
        "kem_facets",
        sa.Column("kem_id", sa.String(128), nullable=False),
        sa.Column("ordinal", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("text", sa.String(256)),
        sa.Column("number", sa.Double),
        sa.Column("flag", sa.Boolean),
        sa.PrimaryKeyConstraint("kem_id", "ordinal", name="pk_kem_facets"),
        sa.ForeignKeyConstraint(["kem_id"], ["kems.id"], name="fk_kem_facets_kem_id", ondelete="CASCADE"),
    )
    op.create_index("ix_kem_facets_key_text_kem_id", "kem_facets", ["key", "text", "kem_id"])
    op.create_index("ix_kem_facets_key_number_kem_id", "kem_facets", ["key", "number", "kem_id"])


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
