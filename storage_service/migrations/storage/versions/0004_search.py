"""Search: indexes in order of commit without what has expired; when the artifacts of a stretch of commits were made."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

INSTANT = sa.DateTime(timezone=True)
MANIFESTS = "artifact_manifests"
BEFORE = (
    ("trace_id", "position"),
    ("owner", "position"),
    ("artifact_type", "position"),
    ("step_id", "position"),
    ("created_at",),
)
AFTER = (
    ("trace_id", "visibility", "position"),
    ("owner", "position"),
    ("artifact_type", "position"),
    ("step_id", "position"),
)
SHOWN_TO = ("public", "trace")


def upgrade() -> None:
    for columns in BEFORE:
        op.drop_index(_name(columns), MANIFESTS)
    for columns in AFTER:
        _index(_name(columns), columns, "expired_at IS NULL")
    for visibility in SHOWN_TO:
        _index(_name((visibility, "position")), ("position",), f"visibility = '{visibility}' AND expired_at IS NULL")
    op.create_index("ix_trace_members_member", "trace_members", ["member"])
    op.create_table(
        "creation_spans",
        sa.Column("stretch", sa.BigInteger, autoincrement=False, primary_key=True),
        sa.Column("earliest", INSTANT, nullable=False),
        sa.Column("latest", INSTANT, nullable=False),
    )
    op.execute(
        "INSERT INTO creation_spans (stretch, earliest, latest)"
        " SELECT position / 256, min(created_at), max(created_at) FROM artifact_manifests GROUP BY position / 256"
    )


def downgrade() -> None:
    op.drop_table("creation_spans")
    op.drop_index("ix_trace_members_member", "trace_members")
    for visibility in SHOWN_TO:
        op.drop_index(_name((visibility, "position")), MANIFESTS)
    for columns in AFTER:
        op.drop_index(_name(columns), MANIFESTS)
    for columns in BEFORE:
        op.create_index(_name(columns), MANIFESTS, list(columns))


def _index(name: str, columns: tuple[str, ...], condition: str) -> None:
    op.create_index(
        name, MANIFESTS, list(columns), sqlite_where=sa.text(condition), postgresql_where=sa.text(condition)
    )


def _name(columns: tuple[str, ...]) -> str:
    return f"ix_{MANIFESTS}_{'_'.join(columns)}"
