"""Alembic, run by the service itself when it starts; imported only where there is something to migrate.

While a fleet is upgraded worker by worker, older code meets a newer database. So a revision adds; one that older code
cannot live with, since it drops, renames or narrows, has a line `PHASE = "contract"` and comes a release later.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from mindbus.logs import logger
from mindbus.sql.database import QUICKLY_CHECKED_BYTES, Database
from mindbus.sql.errors import DatabaseNewer
from mindbus.sql.tables import NOT_PUBLISHED, named_metadata

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.operations import Operations

_ENVIRONMENT = Path(__file__).parent / "environment"
_CONTRACTS = '\nPHASE = "contract"\n'


@dataclass(frozen=True)
class Revision:
    """One step of a database, whose file is `NUMBER_name.py`; with one that contracts no older code works."""

    number: str
    name: str
    contracts: bool

    @classmethod
    def of(cls, file: Path) -> "Revision":
        number, _, name = file.stem.partition("_")
        return cls(number, name.replace("_", " "), _CONTRACTS in file.read_text(encoding="utf-8"))


def revisions(migrations: Path) -> list[Revision]:
    """Steps in the folder `migrations`, in order."""
    return [Revision.of(file) for file in sorted((migrations / "versions").glob("[0-9]*.py"))]


def revision_of(connection: sa.Connection) -> str | None:
    """The number of the last revision that a database has; None: it has no tables yet."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT max(version_num) FROM alembic_version")).scalar()


async def upgrade(database: Database, migrations: Path) -> None:
    """Bring a database to the newest revision in the folder `migrations`.

    On a server one of newer code is left as it is. Raises DatabaseDamaged, DatabaseNewer.
    """
    await asyncio.to_thread(database.require_sound, QUICKLY_CHECKED_BYTES)
    await asyncio.to_thread(
        database.run_on_admin_connection, lambda connection: _upgrade(connection, migrations, database.name)
    )


def run() -> None:
    """Migrate over the connection that `upgrade` has opened; called by `env.py`."""
    from alembic import context
    from alembic.operations import Operations

    connection = context.config.attributes["connection"]
    # Constraints get the names that the models' metadata gives them.
    context.configure(connection=connection, target_metadata=named_metadata(), render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()
        if not _is_inbox_complete(connection):
            _complete_inbox(Operations(context.get_context()))


def create_inbox_tables() -> None:
    """Create `inbox` and `outbox` as of the first release; `run` adds what later ones have, in every service alike."""
    from alembic import op

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


def drop_inbox_tables() -> None:
    """Drop what `create_inbox_tables` and `run` have created."""
    from alembic import op

    for table in ("quarantine", "outbox", "inbox"):
        op.drop_table(table, if_exists=True)


def _is_inbox_complete(connection: sa.Connection) -> bool:
    inspector = sa.inspect(connection)
    return not inspector.has_table("inbox") or inspector.has_table("quarantine")


def _complete_inbox(operations: "Operations") -> None:
    """Add what is newer than `create_inbox_tables`."""
    inspector = sa.inspect(operations.get_bind())
    if "published" not in {each["name"] for each in inspector.get_columns("inbox")}:
        is_published = sa.Column("published", sa.Boolean, nullable=False, server_default=sa.text("true"))
        operations.add_column("inbox", is_published)
        operations.create_index(
            "ix_inbox_unpublished", "inbox", ["handled_at"], sqlite_where=NOT_PUBLISHED, postgresql_where=NOT_PUBLISHED
        )
    operations.create_table(
        "quarantine",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, primary_key=True),
        sa.Column("source", sa.String(300), nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
    )


def _upgrade(connection: sa.Connection, migrations: Path, name: str) -> None:
    there, newest = revision_of(connection), revisions(migrations)[-1].number
    if there is not None and there > newest:
        if connection.dialect.name == "sqlite":
            raise DatabaseNewer(name, there, newest)
        logger().warning("database is of newer code: this process works as it is", there=there, known=newest)
        return
    if there == newest and _is_inbox_complete(connection):
        return
    from alembic import command

    config = config_of(migrations)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def config_of(migrations: Path) -> "Config":
    """Alembic's configuration for the folder `migrations`, whose revisions are in `versions`."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_ENVIRONMENT))
    config.set_main_option("version_locations", str(migrations / "versions"))
    config.set_main_option("path_separator", "newline")
    return config
