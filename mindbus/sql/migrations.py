"""Alembic, run by the service itself when it starts."""

import asyncio
from pathlib import Path

from alembic import command, context
from alembic.config import Config
from sqlalchemy import Connection, MetaData

from mindbus.sql.database import Database


async def upgrade(database: Database, migrations: Path) -> None:
    """Bring a database to the newest revision in the folder `migrations`."""
    await asyncio.to_thread(database.run_on_admin_connection, lambda connection: _upgrade(connection, migrations))


def run(metadata: MetaData) -> None:
    """Migrate over the connection that `upgrade` has opened; called by every `env.py`."""
    connection = context.config.attributes["connection"]
    context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


def _upgrade(connection: Connection, migrations: Path) -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
