"""Care: expiry, the end of traces, what is being removed, what is still to be told."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

INSTANT = sa.DateTime(timezone=True)
UNEXPIRED = sa.text("expired_at IS NULL")
RETENTION = "ix_artifact_manifests_retention_until"
TYPE = "ix_artifact_manifests_artifact_type_committed_at"


def upgrade() -> None:
    op.add_column("artifact_manifests", sa.Column("expired_at", INSTANT))
    op.add_column("blobs", sa.Column("condemned_at", INSTANT))
    op.drop_index(RETENTION, "artifact_manifests")
    for name, columns in ((RETENTION, ["retention_until"]), (TYPE, ["artifact_type", "committed_at"])):
        op.create_index(name, "artifact_manifests", columns, sqlite_where=UNEXPIRED, postgresql_where=UNEXPIRED)
    op.create_table(
        "traces",
        sa.Column("trace_id", sa.String(128), primary_key=True),
        sa.Column("retention", sa.String(16)),
        sa.Column("closed_at", INSTANT),
        sa.Column("kept_until", INSTANT, index=True),
    )
    op.create_table(
        "removals",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.String(64)),
        sa.Column("generation", sa.Integer),
        sa.Column("decided_at", INSTANT, nullable=False),
    )
    op.create_table(
        "notices",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, primary_key=True),
        sa.Column("type", sa.String(128), nullable=False),
        sa.Column("trace_id", sa.String(128)),
        sa.Column("step_id", sa.String(64)),
        sa.Column("data", sa.JSON, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "care_marks",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.String(256), nullable=False),
        sa.Column("noted_at", INSTANT, nullable=False),
    )


def downgrade() -> None:
    for table in ("care_marks", "notices", "removals", "traces"):
        op.drop_table(table)
    op.drop_index(TYPE, "artifact_manifests")
    op.drop_index(RETENTION, "artifact_manifests")
    op.drop_column("blobs", "condemned_at")
    op.drop_column("artifact_manifests", "expired_at")
    op.create_index(RETENTION, "artifact_manifests", ["retention_until"])
