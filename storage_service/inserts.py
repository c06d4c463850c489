"""Inserts that lose a race quietly, on either database."""

from typing import Any

from sqlalchemy import literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase

from storage_service.models import CounterRow


async def insert_unless_taken(session: AsyncSession, table: type[DeclarativeBase], **values: Any) -> bool:
    """Whether the row went in; it does not where any key or unique column of it is taken."""
    # Asked for a row, both databases say what went in; not every driver counts it.
    statement = upserting(session, table).values(values).on_conflict_do_nothing().returning(literal(1))
    return (await session.execute(statement)).first() is not None


async def next_number(session: AsyncSession, counter: str) -> int:
    """The next number, in order of commit: whoever draws one holds off the others until its transaction ends."""
    statement = upserting(session, CounterRow).values(name=counter, value=1)
    drawn = statement.on_conflict_do_update(index_elements=["name"], set_={"value": CounterRow.value + 1})
    return int((await session.execute(drawn.returning(CounterRow.value))).scalar_one())


def upserting(session: AsyncSession, table: type[DeclarativeBase]) -> Any:
    """An insert that can say what is to happen where the row is there already."""
    dialects = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
    return dialects[session.get_bind().dialect.name](table.__table__)  # type: ignore[arg-type]  # a mapped class's Table
