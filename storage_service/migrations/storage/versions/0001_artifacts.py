"""Artifacts: manifests, their bytes, their traces, the ledger."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from mindbus.sql.migrations import create_inbox_tables, drop_inbox_tables

revision = "0001"
down_revision = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "artifact_manifests",
        sa.Column("id", sa.String(80), primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False, unique=True),
        sa.Column("logical_id", sa.String(80), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("supersedes", sa.String(80), sa.ForeignKey("artifact_manifests.id"), unique=True),
        sa.Column("trace_id", sa.String(128), nullable=False),
        sa.Column("step_id", sa.String(64)),
        sa.Column("created_by", sa.String(160), nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("artifact_type", sa.String(63), nullable=False),
        sa.Column("content_type", sa.String(127), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("retention", sa.String(16), nullable=False),
        sa.Column("retention_until", INSTANT),
        sa.Column("owner", sa.String(96), nullable=False),
        sa.Column("visibility", sa.String(16), nullable=False),
        sa.Column("context", sa.JSON().with_variant(postgresql.JSONB, "postgresql")),
        sa.Column("committed_at", INSTANT, nullable=False),
        sa.UniqueConstraint("logical_id", "version", name="uq_artifact_manifests_logical_id_version"),
    )
    for columns in (
        ("trace_id", "position"),
        ("owner", "position"),
        ("artifact_type", "position"),
        ("step_id", "position"),
        ("created_at",),
        ("sha256", "generation"),
        ("retention_until",),
    ):
        op.create_index(f"ix_artifact_manifests_{'_'.join(columns)}", "artifact_manifests", list(columns))
    op.create_table(
        "artifact_inputs",
        sa.Column("artifact_id", sa.String(80), sa.ForeignKey("artifact_manifests.id"), primary_key=True),
        sa.Column("input_id", sa.String(80), sa.ForeignKey("artifact_manifests.id"), primary_key=True, index=True),
    )
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("size_bytes", sa.BigInteger),
        sa.Column("pinned_until", INSTANT, index=True),
        sa.CheckConstraint("state IN ('pinned', 'live', 'deleting', 'gone')", name=op.f("ck_blobs_state")),
    )
    op.create_table(
        "spent_uploads",
        sa.Column("upload_key", sa.String(256), primary_key=True),
        sa.Column("artifact_id", sa.String(80), nullable=False),
        sa.Column("spent_at", INSTANT, nullable=False),
    )
    op.create_table(
        "trace_members",
        sa.Column("trace_id", sa.String(128), primary_key=True),
        sa.Column("member", sa.String(96), primary_key=True),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    create_inbox_tables()


def downgrade() -> None:
    drop_inbox_tables()
    for table in ("counters", "trace_members", "spent_uploads", "blobs", "artifact_inputs"):
        op.drop_table(table)
    op.drop_table("artifact_manifests")
