"""Prepared statements do as SQLAlchemy's execution does, on every database."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import JSON, Column, Connection, Integer, MetaData, String, Table, bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

from mindbus.sql.database import Database
from mindbus.sql.statements import PreparedStatement
from mindbus.sql.tables import Utc, insert_or_ignore

METADATA = MetaData()
NOTES = Table(
    "notes",
    METADATA,
    Column("name", String(20), primary_key=True),
    Column("at", Utc),
    Column("content", JSON),
    Column("revision", Integer, nullable=False),
)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
INSERT = PreparedStatement(insert(NOTES).values(revision=1))
TAKE = PreparedStatement(
    lambda dialect: insert_or_ignore(dialect, NOTES).values(revision=1).returning(NOTES.c.name, NOTES.c.at)
)
OF_NAME = select(NOTES).where(NOTES.c.name == bindparam("of"))
FIND = PreparedStatement(OF_NAME)
REVISE = PreparedStatement(update(NOTES).where(NOTES.c.name == bindparam("of")).values(revision=NOTES.c.revision + 1))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.backends)])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    url = f"sqlite+aiosqlite:///{tmp_path / 'notes.db'}"
    made = Database(request.getfixturevalue("postgres_url") if request.param == "postgresql" else url, "notes")
    made.run_on_admin_connection(METADATA.create_all)
    yield made
    await made.dispose()


def note(name: str, **other: Any) -> dict[str, Any]:
    return {"name": name, "at": NOON, "content": {"lines": [name]}} | other


async def test_values_are_converted_as_the_types_of_the_columns_say(database: Database) -> None:
    abroad = NOON.astimezone(timezone(timedelta(hours=3)))
    rows = [note("a", at=abroad), note("b", at=None, content=None), note("c", content=[1, "й", None])]
    await database.write(lambda connection: INSERT.run(connection, rows))

    def read(connection: Connection, name: str) -> tuple[Any, Any]:
        return FIND.first(connection, {"of": name}), connection.execute(OF_NAME, {"of": name}).one()

    for row in rows:
        prepared, executed = await database.read(partial(read, name=row["name"]))
        assert tuple(prepared) == tuple(executed)
        assert (prepared.at, prepared.content, prepared.revision) == (row["at"] and NOON, row["content"], 1)


async def test_what_is_absent_is_none_and_a_key_that_is_taken_returns_nothing(database: Database) -> None:
    def take(connection: Connection) -> list[Any]:
        return [row.name for row in TAKE.all_of(connection, [note("a"), note("b")])]

    assert await database.write(take) == ["a", "b"]
    assert await database.write(lambda connection: TAKE.first(connection, note("b"))) is None
    assert await database.read(lambda connection: FIND.first(connection, {"of": "z"})) is None
    assert await database.write(lambda connection: TAKE.all_of(connection, [])) == []


async def test_a_change_tells_how_many_rows_it_changed(database: Database) -> None:
    await database.write(lambda connection: INSERT.run(connection, [note("a")]))

    assert await database.write(lambda connection: REVISE.count(connection, {"of": "a"})) == 1
    assert await database.write(lambda connection: REVISE.count(connection, {"of": "z"})) == 0
    assert (await database.read(lambda connection: FIND.first(connection, {"of": "a"}))).revision == 2


async def test_errors_are_those_of_sqlalchemy_and_undo_the_transaction(database: Database) -> None:
    with pytest.raises(IntegrityError):
        await database.write(lambda connection: INSERT.run(connection, [note("a"), note("a")]))

    assert await database.read(lambda connection: FIND.first(connection, {"of": "a"})) is None


async def test_a_session_shares_its_transaction_with_a_prepared_statement(database: Database) -> None:
    async with database.transaction() as session:
        connection = await session.connection()
        await connection.run_sync(lambda sync: INSERT.run(sync, [note("a")]))
        await session.rollback()

    assert await database.read(lambda connection: FIND.first(connection, {"of": "a"})) is None


async def test_a_statement_that_needs_more_than_its_values_is_no_prepared_one(tmp_path: Path) -> None:
    made = Database(f"sqlite+aiosqlite:///{tmp_path / 'notes.db'}", "notes")
    made.run_on_admin_connection(METADATA.create_all)
    some = PreparedStatement(select(NOTES).where(NOTES.c.name.in_(bindparam("names", expanding=True))))
    missing = PreparedStatement(select(Table("nowhere", MetaData(), Column("name", String))))

    with pytest.raises(ValueError, match="cannot be prepared"):
        await made.read(lambda connection: some.first(connection, {"names": ["a"]}))
    with pytest.raises(OperationalError):
        await made.groups.read(lambda connection: missing.all(connection, {}))  # type: ignore[union-attr]
    await made.dispose()
