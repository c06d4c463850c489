"""Alembic, run by the service itself when it starts."""

import asyncio
from pathlib import Path

import sqlalchemy as sa
from alembic import command, context, op
from alembic.config import Config

from mindbus.sql.database import Database


async def upgrade(database: Database, migrations: Path) -> None:
    """Bring a database to the newest revision in the folder `migrations`."""
    await asyncio.to_thread(database.run_on_admin_connection, lambda connection: _upgrade(connection, migrations))


def run(metadata: sa.MetaData) -> None:
    """Migrate over the connection that `upgrade` has opened; called by every `env.py`."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


def create_inbox_tables() -> None:
    """Create `inbox` and `outbox`, as a service's first revision does; a later change of them is another revision."""
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


def _upgrade(connection: sa.Connection, migrations: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
