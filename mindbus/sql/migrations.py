"""Alembic, run by the service itself when it starts."""

import asyncio
from pathlib import Path

import sqlalchemy as sa
from alembic import command, context, op
from alembic.config import Config
from alembic.operations import Operations

from mindbus.sql.database import Database
from mindbus.sql.tables import NOT_PUBLISHED, named_metadata

_ENVIRONMENT = Path(__file__).parent / "environment"


async def upgrade(database: Database, migrations: Path) -> None:
    """Bring a database to the newest revision in the folder `migrations`."""
    await asyncio.to_thread(database.run_on_admin_connection, lambda connection: _upgrade(connection, migrations))


def run() -> None:
    """Migrate over the connection that `upgrade` has opened; called by `env.py`."""
    connection = context.config.attributes["connection"]
    # Constraints get the names that the models' metadata gives them.
    context.configure(connection=connection, target_metadata=named_metadata(), render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
        _complete_inbox(connection)


def create_inbox_tables() -> None:
    """Create `inbox` and `outbox` as of the first release; `run` adds what later ones have, in every service alike."""
    op.create_table(
        "inbox",
        sa.Column("consumer", sa.String(128), primary_key=True),
        sa.Column("message_id", sa.String(128), primary_key=True),
        sa.Column("outcome", sa.JSON, nullable=False),
        sa.Column("handled_at", sa.DateTime(timezone=True), nullable=False, index=True),
    )
    op.create_table(
        "outbox",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, primary_key=True),
        sa.Column("exchange", sa.String(128), nullable=False),
        sa.Column("routing_key", sa.String(256), nullable=False),
        sa.Column("mandatory", sa.Boolean, nullable=False),
        sa.Column("envelope", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )


def _complete_inbox(connection: sa.Connection) -> None:
    """Add the parts of `inbox` that are newer than `create_inbox_tables`."""
    inspector = sa.inspect(connection)
    if not inspector.has_table("inbox") or "published" in {each["name"] for each in inspector.get_columns("inbox")}:
        return
    operations = Operations(context.get_context())
    operations.add_column("inbox", sa.Column("published", sa.Boolean, nullable=False, server_default=sa.text("true")))
    operations.create_index(
        "ix_inbox_unpublished", "inbox", ["handled_at"], sqlite_where=NOT_PUBLISHED, postgresql_where=NOT_PUBLISHED
    )


def _upgrade(connection: sa.Connection, migrations: Path) -> None:
    config = config_of(migrations)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def config_of(migrations: Path) -> Config:
    """Alembic's configuration for the folder `migrations`, whose revisions are in `versions`."""
    config = Config()
    config.set_main_option("script_location", str(_ENVIRONMENT))
    config.set_main_option("version_locations", str(migrations / "versions"))
    config.set_main_option("path_separator", "newline")
    return config
