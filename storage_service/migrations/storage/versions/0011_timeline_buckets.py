"""The timeline counts its events by service, topic and time, and finds its failures."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

COUNTED = ["time", "service", "topic", "is_failure", "user_id", "trace_id"]
FAILED = sa.text("is_failure")
# After "/mb/" comes the service, then its instance.
OF_SQLITE = """
UPDATE timeline SET
    service = substr(
        json_extract(envelope, '$.source'), 5, instr(substr(json_extract(envelope, '$.source'), 5), '/') - 1
    ),
    is_failure = json_extract(envelope, '$.type') IN ('mb.evt.process.step_failed.v1', 'mb.evt.process.failed.v1')
        OR coalesce(json_extract(envelope, '$.data.outcome') = 'failed', 0)
        OR coalesce(json_type(envelope, '$.data.is_error') = 'true', 0)
"""
OF_POSTGRESQL = """
UPDATE timeline SET
    service = split_part(envelope ->> 'source', '/', 3),
    is_failure = envelope ->> 'type' IN ('mb.evt.process.step_failed.v1', 'mb.evt.process.failed.v1')
        OR coalesce(envelope -> 'data' ->> 'outcome' = 'failed', false)
        OR coalesce(envelope -> 'data' -> 'is_error' = CAST('true' AS jsonb), false)
"""


def upgrade() -> None:
    op.add_column("timeline", sa.Column("service", sa.String(64), nullable=False, server_default=sa.text("''")))
    op.add_column("timeline", sa.Column("is_failure", sa.Boolean, nullable=False, server_default=sa.false()))
    op.execute(OF_SQLITE if op.get_bind().dialect.name == "sqlite" else OF_POSTGRESQL)
    op.create_index("ix_timeline_buckets", "timeline", COUNTED)
    op.create_index("ix_timeline_failures", "timeline", ["sequence"], sqlite_where=FAILED, postgresql_where=FAILED)
    op.drop_index("ix_timeline_time", "timeline")


def downgrade() -> None:
    op.create_index("ix_timeline_time", "timeline", ["time"])
    op.drop_index("ix_timeline_failures", "timeline")
    op.drop_index("ix_timeline_buckets", "timeline")
    op.drop_column("timeline", "is_failure")
    op.drop_column("timeline", "service")
