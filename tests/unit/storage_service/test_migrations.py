"""Models and migrations agree, on either database."""

import io
from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, delete, insert

from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service.models import MIGRATIONS, Base, ledger
from tests.storage_kit import Depot


async def test_migrated_tables_are_those_of_the_models(tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'storage.db'}", "storage")
    differences: list[Any] = []

    def compare(connection: Connection) -> None:
        options = {"compare_type": True, "compare_server_default": True}
        differences.extend(compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata))

    await upgrade(database, MIGRATIONS)
    database.run_on_admin_connection(compare)

    assert differences == []


async def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'storage.db'}", "storage")

    await upgrade(database, MIGRATIONS)
    await upgrade(database, MIGRATIONS)


def test_the_migrations_are_one_line_of_history_that_can_be_walked_back(tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'storage.db'}", "storage")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")

    def there_and_back(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        command.downgrade(config, "base")

    database.run_on_admin_connection(there_and_back)

    assert len(ScriptDirectory.from_config(config).get_heads()) == 1


def test_the_migrations_speak_postgresql_too() -> None:
    script = io.StringIO()
    options = {"as_sql": True, "output_buffer": script, "target_metadata": Base.metadata}
    context = MigrationContext.configure(dialect_name="postgresql", opts=options)
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")

    with Operations.context(context):
        for revision in reversed(list(ScriptDirectory.from_config(config).walk_revisions())):
            revision.module.upgrade()

    statements = script.getvalue()
    assert "context JSONB" in statements
    assert "created_at TIMESTAMP WITH TIME ZONE NOT NULL" in statements
    assert "seq BIGSERIAL" in statements


async def test_the_outbox_never_uses_a_number_again(depot: Depot) -> None:
    row = {"exchange": "mb.evt", "routing_key": "evt.a.b", "mandatory": False, "envelope": "{}"}
    numbers = []

    for _ in range(3):
        async with depot.database.transaction() as session:
            numbers.append(await session.scalar(insert(ledger.outbox).values(row).returning(ledger.outbox.c.seq)))
        async with depot.database.transaction() as session:
            await session.execute(delete(ledger.outbox))

    assert numbers == sorted(set(numbers))
