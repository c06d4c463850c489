"""Rows that may be there already."""

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession


def insert_unless_there(session: AsyncSession, table: Any) -> "sqlite.Insert | postgresql.Insert":
    """An insert into a table, or the table of a class, that passes over a row whose key is taken."""
    if session.get_bind().dialect.name == "sqlite":
        return sqlite.insert(table).on_conflict_do_nothing()
    return postgresql.insert(table).on_conflict_do_nothing()
