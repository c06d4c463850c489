"""Models and migrations agree, on either database."""

import asyncio
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, MetaData, Table, delete, insert, inspect, select

from memory.glm import tables as glm_tables
from memory.history import sql_store as history_tables
from memory.lsm import tables as lsm_tables
from memory.swm import tables as swm_tables
from mindbus.sql.database import Database
from mindbus.sql.migrations import config_of, upgrade
from storage_service import quotas, runs, tables
from tests.clocks import NOON
from tests.postgres import DatabaseOf
from tests.storage_kit import ON_FILES, Depot, OpenDepot

TABLES: dict[str, tuple[Path, MetaData]] = {
    "storage": (tables.MIGRATIONS, tables.StorageBase.metadata),
    "orchestrator": (runs.MIGRATIONS, quotas.TokensUsedRow.metadata),
    "glm": (glm_tables.MIGRATIONS, glm_tables.GlmBase.metadata),
    "lsm": (lsm_tables.MIGRATIONS, lsm_tables.LsmBase.metadata),
    "history": (history_tables.MIGRATIONS, history_tables.HistoryBase.metadata),
    "swm": (swm_tables.MIGRATIONS, swm_tables.SwmBase.metadata),
}

WORDS_ON_POSTGRESQL = {("column", "words"), ("index", "ix_kem_texts_words")}


@dataclass(frozen=True)
class Subject:
    """A service's database without tables, with what belongs into it."""

    database: Database
    migrations: Path
    metadata: MetaData

    def go(self, direction: Any, revision: str) -> None:
        def going(connection: Connection) -> None:
            config = config_of(self.migrations)
            config.attributes["connection"] = connection
            direction(config, revision)

        self.database.run_on_admin_connection(going)


@pytest.fixture(params=list(TABLES))
def subject(request: pytest.FixtureRequest, empty_database_of: DatabaseOf) -> Subject:
    return Subject(Database(empty_database_of(request.param), request.param), *TABLES[request.param])


def is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Not a database's own index of words, which models do not know."""
    return not (kind == "table" and str(name).startswith("kem_words")) and (kind, name) not in WORDS_ON_POSTGRESQL


def test_migrated_tables_are_those_of_the_models(subject: Subject) -> None:
    differences: list[Any] = []

    def compare(connection: Connection) -> None:
        options = {"compare_type": True, "compare_server_default": True, "include_name": is_ours}
        differences.extend(compare_metadata(MigrationContext.configure(connection, opts=options), subject.metadata))

    subject.go(command.upgrade, "head")
    subject.database.run_on_admin_connection(compare)

    assert differences == []


def test_the_migrations_are_one_line_of_history_that_can_be_walked_there_and_back(subject: Subject) -> None:
    revisions = [each.revision for each in ScriptDirectory.from_config(config_of(subject.migrations)).walk_revisions()]
    left: list[str] = []

    for revision in reversed(revisions):
        subject.go(command.upgrade, revision)
    for revision in [*revisions[1:], "base"]:
        subject.go(command.downgrade, revision)
    subject.database.run_on_admin_connection(lambda connection: left.extend(inspect(connection).get_table_names()))

    assert len(ScriptDirectory.from_config(config_of(subject.migrations)).get_heads()) == 1
    assert left == ["alembic_version"]


async def test_instances_that_start_together_migrate_once(postgres_is_empty: Subject) -> None:
    subject = postgres_is_empty

    await asyncio.gather(*(upgrade(subject.database, subject.migrations) for _ in range(4)))


@pytest.fixture
def postgres_is_empty(empty_postgres_url: str) -> Subject:
    return Subject(Database(empty_postgres_url, "storage"), *TABLES["storage"])


def test_no_two_services_share_a_table_but_inbox_and_outbox() -> None:
    tables = [set(metadata.tables) for _migrations, metadata in TABLES.values()]
    for one, other in combinations(tables, 2):
        assert one & other <= {"inbox", "outbox", "quarantine"}


@ON_FILES
async def test_what_the_first_release_kept_is_there_after_all_migrations(
    empty_database_of: DatabaseOf, open_depot: OpenDepot
) -> None:
    new = open_depot()
    manifest = await new.get(await new.put("находки".encode()))
    old = Subject(Database(empty_database_of("storage"), "storage"), *TABLES["storage"])
    old.go(command.upgrade, "0001")
    async with new.database.reading() as session:
        row = (await session.execute(select(tables.ManifestRow.__table__))).mappings().one()

    def keep(connection: Connection) -> None:
        table = Table("artifact_manifests", MetaData(), autoload_with=connection)
        known = {column.name: row[column.name] for column in table.columns}
        connection.execute(insert(table).values({name: value for name, value in known.items() if value is not None}))

    old.database.run_on_admin_connection(keep)
    await upgrade(old.database, old.migrations)

    reopened = Depot(new.folder, old.database, new.files)
    assert await reopened.get(manifest.id) == manifest
    await reopened.database.dispose()


async def test_events_recorded_before_events_were_counted_are_counted(empty_database_of: DatabaseOf) -> None:
    old = Subject(Database(empty_database_of("storage"), "storage"), *TABLES["storage"])
    old.go(command.upgrade, "0010")
    kinds = {
        "process.step_failed": {},
        "fleet.agent_result": {"outcome": "failed"},
        "subagent.subagent_tool_result": {"is_error": True},
        "dialogue.message_sent": {"is_error": "no"},
    }
    rows = [
        {
            "sequence": number,
            "event_id": f"evt_{number}",
            "name": wire,
            "topic": wire.partition(".")[0],
            "time": NOON,
            "envelope": {"source": "/mb/task-manager/1", "type": f"mb.evt.{wire}.v1", "data": data},
        }
        for number, (wire, data) in enumerate(kinds.items(), 1)
    ]

    def keep(connection: Connection) -> None:
        connection.execute(insert(Table("timeline", MetaData(), autoload_with=connection)), rows)

    old.database.run_on_admin_connection(keep)
    await upgrade(old.database, old.migrations)

    row = tables.TimelineRow
    async with old.database.reading() as session:
        kept = (await session.execute(select(row.service, row.is_failure).order_by(row.sequence))).all()
    await old.database.dispose()
    assert kept == [("task-manager", True)] * 3 + [("task-manager", False)]


async def test_the_outbox_never_uses_a_number_again(depot: Depot) -> None:
    row = {"exchange": "mb.evt", "routing_key": "evt.a.b", "mandatory": False, "envelope": "{}"}
    outbox = tables.inbox_tables.outbox
    numbers = []

    for _ in range(3):
        async with depot.database.transaction() as session:
            numbers.append(await session.scalar(insert(outbox).values(row).returning(outbox.c.seq)))
        async with depot.database.transaction() as session:
            await session.execute(delete(outbox))

    assert numbers == sorted(set(numbers))
