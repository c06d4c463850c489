"""The id of an event is as long as that of any message, 128 characters."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    # SQLite keeps texts of any length in any column: there is nothing to copy.
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("timeline", "event_id", type_=sa.String(128))


def downgrade() -> None:
    """Ids that were stored meanwhile may be longer, so the column stays as it is."""
