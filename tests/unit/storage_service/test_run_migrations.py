"""The orchestrator's models and migrations agree, on either database."""

import io
from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service.models import Base as StorageBase
from storage_service.run_tables import MIGRATIONS, Base


def an_empty_database(folder: Path) -> Database:
    return Database(f"sqlite+aiosqlite:///{folder / 'orchestrator.db'}", "orchestrator")


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config


async def test_migrated_tables_are_those_of_the_models(tmp_path: Path) -> None:
    database = an_empty_database(tmp_path)
    differences: list[Any] = []

    def compare(connection: Connection) -> None:
        options = {"compare_type": True, "compare_server_default": True}
        differences.extend(compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata))

    await upgrade(database, MIGRATIONS)
    await upgrade(database, MIGRATIONS)
    database.run_on_admin_connection(compare)

    assert differences == []


def test_the_migrations_are_one_line_of_history_that_can_be_walked_back(tmp_path: Path) -> None:
    config = alembic_config()

    def there_and_back(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        command.downgrade(config, "base")

    an_empty_database(tmp_path).run_on_admin_connection(there_and_back)

    assert len(ScriptDirectory.from_config(config).get_heads()) == 1


def test_the_migrations_speak_postgresql_too() -> None:
    script = io.StringIO()
    options = {"as_sql": True, "output_buffer": script, "target_metadata": Base.metadata}

    with Operations.context(MigrationContext.configure(dialect_name="postgresql", opts=options)):
        for revision in reversed(list(ScriptDirectory.from_config(alembic_config()).walk_revisions())):
            revision.module.upgrade()

    assert "due_at TIMESTAMP WITH TIME ZONE" in script.getvalue()
    assert "seq BIGSERIAL" in script.getvalue()


def test_the_orchestrator_shares_no_table_with_storage_but_the_ledger() -> None:
    assert set(Base.metadata.tables) & set(StorageBase.metadata.tables) == {"inbox", "outbox"}
