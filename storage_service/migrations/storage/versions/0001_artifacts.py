"""Artifacts: manifests, their bytes, their traces, the ledger."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _create_manifests()
    _create_inputs()
    _create_bytes()
    op.create_table(
        "trace_members",
        sa.Column("trace_id", sa.String(128), nullable=False),
        sa.Column("member", sa.String(96), nullable=False),
        sa.PrimaryKeyConstraint("trace_id", "member", name="pk_trace_members"),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    _create_ledger()


def downgrade() -> None:
    for table in ("outbox", "inbox", "counters", "trace_members", "spent_uploads", "blobs", "artifact_inputs"):
        op.drop_table(table)
    op.drop_table("artifact_manifests")


def _create_manifests() -> None:
    op.create_table(
        "artifact_manifests",
        sa.Column("id", sa.String(80), nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("logical_id", sa.String(80), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("supersedes", sa.String(80)),
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
        sa.PrimaryKeyConstraint("id", name="pk_artifact_manifests"),
        sa.UniqueConstraint("position", name="uq_artifact_manifests_position"),
        sa.UniqueConstraint("logical_id", "version", name="uq_artifact_manifests_logical_id_version"),
        sa.UniqueConstraint("supersedes", name="uq_artifact_manifests_supersedes"),
        sa.ForeignKeyConstraint(["supersedes"], ["artifact_manifests.id"], name="fk_artifact_manifests_supersedes"),
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


def _create_inputs() -> None:
    op.create_table(
        "artifact_inputs",
        sa.Column("artifact_id", sa.String(80), nullable=False),
        sa.Column("input_id", sa.String(80), nullable=False),
        sa.PrimaryKeyConstraint("artifact_id", "input_id", name="pk_artifact_inputs"),
        sa.ForeignKeyConstraint(["artifact_id"], ["artifact_manifests.id"], name="fk_artifact_inputs_artifact_id"),
        sa.ForeignKeyConstraint(["input_id"], ["artifact_manifests.id"], name="fk_artifact_inputs_input_id"),
    )
    op.create_index("ix_artifact_inputs_input_id", "artifact_inputs", ["input_id"])


def _create_bytes() -> None:
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("size_bytes", sa.BigInteger),
        sa.Column("pinned_until", INSTANT),
        sa.PrimaryKeyConstraint("sha256", name="pk_blobs"),
        sa.CheckConstraint("state IN ('pinned', 'live', 'deleting', 'gone')", name=op.f("ck_blobs_state")),
    )
    op.create_index("ix_blobs_pinned_until", "blobs", ["pinned_until"])
    op.create_table(
        "spent_uploads",
        sa.Column("upload_key", sa.String(256), nullable=False),
        sa.Column("artifact_id", sa.String(80), nullable=False),
        sa.Column("spent_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("upload_key", name="pk_spent_uploads"),
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
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, nullable=False),
        sa.Column("exchange", sa.String(128), nullable=False),
        sa.Column("routing_key", sa.String(256), nullable=False),
        sa.Column("mandatory", sa.Boolean, nullable=False),
        sa.Column("envelope", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_outbox"),
        sqlite_autoincrement=True,
    )
