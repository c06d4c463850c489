"""Units, who may read them, what they can be found by, the vectors to be written, the ledger."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from mindbus.sql.migrations import create_inbox_tables, drop_inbox_tables

revision = "0001"
down_revision = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True).with_variant(JSONB, "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "kems",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("owner", sa.String(96), nullable=False, index=True),
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
    )
    op.create_index("ix_kems_created_at_id", "kems", ["created_at", "id"])
    op.create_index("ix_kems_updated_at_id", "kems", ["updated_at", "id"])
    op.create_table(
        "kem_readers",
        sa.Column("kem_id", sa.String(128), sa.ForeignKey("kems.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("reader", sa.String(96), primary_key=True),
    )
    op.create_index("ix_kem_readers_reader_kem_id", "kem_readers", ["reader", "kem_id"])
    op.create_table(
        "kem_facets",
        sa.Column("kem_id", sa.String(128), sa.ForeignKey("kems.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("ordinal", sa.Integer, autoincrement=False, primary_key=True),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("text", sa.String(256)),
        sa.Column("number", sa.Double),
        sa.Column("flag", sa.Boolean),
    )
    op.create_index("ix_kem_facets_key_text_kem_id", "kem_facets", ["key", "text", "kem_id"])
    op.create_index("ix_kem_facets_key_number_kem_id", "kem_facets", ["key", "number", "kem_id"])
    op.create_table(
        "vector_writes",
        sa.Column("seq", NUMBER, autoincrement=True, primary_key=True),
        sa.Column("kem_id", sa.String(128), nullable=False),
        sqlite_autoincrement=True,
    )
    create_inbox_tables()


def downgrade() -> None:
    drop_inbox_tables()
    for table in ("vector_writes", "kem_facets", "kem_readers", "kems"):
        op.drop_table(table)
