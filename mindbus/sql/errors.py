"""Errors of a service's database: away for a while, or damaged."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree

from bus_schema.codes import Code
from mindbus.errors import Damaged, MindBusError, TemporaryFailure


class DatabaseAway(TemporaryFailure):
    """The database did not answer; what was being committed may have been committed, or not."""


class DatabaseDamaged(Damaged):
    """The database file is damaged."""

    def __init__(self, name: str, detail: object) -> None:
        advice = "stop the fleet, put a backup in its place (docs/how-to/storage-maintenance.md), start it again"
        super().__init__(f"the database {name} is damaged ({detail}): {advice}")


class DatabaseNewer(MindBusError, code=Code.UNAVAILABLE):
    """A file of newer code's; several processes on a server, which are upgraded one by one, are no such trouble."""

    def __init__(self, name: str, there: str, known: str) -> None:
        advice = "install the newer MindBus again, or restore a backup that this one has made"
        super().__init__(f"the database {name} has revision {there}, this MindBus knows {known}: {advice}")


def is_damage(error: BaseException | None) -> bool:
    """Whether SQLite found its file malformed, or no database at all."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, sqlite3.Error) and code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def is_read_only(error: BaseException | None) -> bool:
    """Whether a PostgreSQL server only reads: it is a standby since a fail-over, or its disk is nearly full."""
    return getattr(error, "sqlstate", None) == "25006"


def leave_standby(error: ExceptionContext) -> None:
    """Close a connection to a server that only reads: the next one may lead to the new primary."""
    if is_read_only(error.original_exception):
        error.is_disconnect = True


@contextmanager
def answering(name: str) -> Iterator[None]:
    """Raises DatabaseAway where the database of that name is away, busy or breaks off; DatabaseDamaged."""
    try:
        yield
    except (DBAPIError, NoneFree, DatabaseAway) as error:
        cause = getattr(error, "orig", error.__cause__)
        if is_damage(cause):
            raise DatabaseDamaged(name, cause) from error
        if isinstance(error, DatabaseAway):
            raise
        is_away = isinstance(error, OperationalError | InterfaceError | NoneFree) or is_read_only(cause)
        if is_away or (isinstance(error, DBAPIError) and error.connection_invalidated):
            raise DatabaseAway(f"database: {getattr(error, 'orig', error)}") from error
        raise
