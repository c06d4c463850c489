"""The index of what the timeline counts has the sequence, so that no envelope is read to count up to an event."""

from alembic import op

revision = "0014"
down_revision = "0013"

COUNTED = ["time", "service", "topic", "is_failure", "user_id", "trace_id"]


def upgrade() -> None:
    op.drop_index("ix_timeline_buckets", "timeline")
    op.create_index("ix_timeline_buckets", "timeline", [*COUNTED, "sequence"])


def downgrade() -> None:
    op.drop_index("ix_timeline_buckets", "timeline")
    op.create_index("ix_timeline_buckets", "timeline", COUNTED)
