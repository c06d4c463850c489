"""Statements that go to SQLite's driver at once: those that are compiled once, those of transactions, pragmas."""

import asyncio
import sqlite3
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import await_only
from sqlalchemy.util.concurrency import in_greenlet

from mindbus.sql.errors import DatabaseAway
from mindbus.sql.spans import namespace_of, statement_span

Values = Mapping[str, Any]
BUSY_TIMEOUT_S = 30
_BUSY_PAUSE_S = 0.02
_REQUIRED = object()
# The fields are known only once a statement is.
_row_type: Callable[..., Any] = namedtuple


class PreparedStatement:
    """A statement with bind parameters, or a function that makes it for a dialect; compiled once for each dialect.

    SQLite finds a row by its key in a few microseconds, SQLAlchemy's execution takes several times that. Types convert
    values as ever; an IN that expands, and a default of a column that Python makes, do not work here. On other
    databases, and on sessions' connections, SQLAlchemy executes it. Raises SQLAlchemy's errors.
    """

    def __init__(self, statement: Any) -> None:
        self._of_dialect: Callable[[str], Any] = statement if callable(statement) else lambda _dialect: statement
        self._statements: dict[str, Any] = {}
        self._compiled: dict[tuple[str, ...], _SqliteStatement] = {}

    def all(self, connection: Connection, values: Values) -> Sequence[Any]:
        """The rows, whose columns are attributes."""
        return self.all_of(connection, (values,))

    def all_of(self, connection: Connection, each: Sequence[Values]) -> Sequence[Any]:
        """The rows of as many executions, which name the same values, together."""
        if not each:
            return []
        raw = _driver_in_place(connection)
        if raw is None:
            values: Any = each[0] if len(each) == 1 else each
            return connection.execute(self._statement(connection), values).all()
        compiled = self._sqlite(connection, each[0])
        found = [_execute(connection, raw, compiled.text, compiled.arguments(values)).fetchall() for values in each]
        return compiled.rows(chain.from_iterable(found))

    def first(self, connection: Connection, values: Values) -> Any:
        """The first row, or None."""
        rows = self.all(connection, values)
        return rows[0] if rows else None

    def count(self, connection: Connection, values: Values) -> int:
        """Execute a statement that returns no rows; the number of rows that it changed."""
        raw = _driver_in_place(connection)
        if raw is None:
            return connection.execute(self._statement(connection), values).rowcount
        compiled = self._sqlite(connection, values)
        return _execute(connection, raw, compiled.text, compiled.arguments(values)).rowcount

    def run(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Execute it for each of the rows, which name the same values."""
        if not rows:
            return
        raw = _driver_in_place(connection)
        if raw is None:
            connection.execute(self._statement(connection), rows)
            return
        compiled = self._sqlite(connection, rows[0])
        for row in rows:
            _execute(connection, raw, compiled.text, compiled.arguments(row))

    def _statement(self, connection: Connection) -> Any:
        dialect = connection.dialect.name
        if (statement := self._statements.get(dialect)) is None:
            statement = self._statements[dialect] = self._of_dialect(dialect)
        return statement

    def _sqlite(self, connection: Connection, values: Values) -> "_SqliteStatement":
        # The columns of an INSERT are those that have a value.
        names = tuple(values)
        if (compiled := self._compiled.get(names)) is None:
            compiled = self._compiled[names] = _SqliteStatement.of(self._statement(connection), names, connection)
        return compiled


@dataclass(frozen=True, slots=True)
class _SqliteStatement:
    """Text with question marks; for each its name, its value unless it is given, the conversion; the rows' type."""

    text: str
    parameters: tuple[tuple[str, Any, Callable[[Any], Any] | None], ...]
    row: Callable[[Iterable[Any]], Any]
    results: tuple[tuple[int, Callable[[Any], Any]], ...]

    @classmethod
    def of(cls, statement: Any, names: Sequence[str], connection: Connection) -> "_SqliteStatement":
        """Compile a statement. Raises ValueError where it needs more than its values."""
        dialect = connection.dialect
        compiled = statement.compile(dialect=dialect, column_keys=list(names))
        if compiled.post_compile_params or getattr(compiled, "insert_prefetch", ()):
            raise ValueError(f"cannot be prepared: {compiled}")
        parameters = []
        for name in compiled.positiontup:
            bind = compiled.binds[name]
            default = _REQUIRED if bind.required else bind.effective_value
            parameters.append((bind.key, default, bind.type.dialect_impl(dialect).bind_processor(dialect)))
        columns = getattr(statement, "exported_columns", ())
        # A name that is no identifier, as of an expression, becomes that of its place.
        row = _row_type("PreparedRow", [column.key or "?" for column in columns], rename=True)
        results = (column.type.dialect_impl(dialect).result_processor(dialect, None) for column in columns)
        converted = tuple((place, convert) for place, convert in enumerate(results) if convert is not None)
        return cls(str(compiled), tuple(parameters), row._make, converted)

    def arguments(self, values: Values) -> list[Any]:
        found = []
        for name, default, convert in self.parameters:
            value = values[name] if default is _REQUIRED else values.get(name, default)
            found.append(value if convert is None else convert(value))
        return found

    def rows(self, found: Iterable[tuple[Any, ...]]) -> list[Any]:
        if not self.results:
            return list(map(self.row, found))
        rows = []
        for plain in found:
            values = list(plain)
            for place, convert in self.results:
                values[place] = convert(values[place])
            rows.append(self.row(values))
        return rows


def _driver_in_place(connection: Connection) -> sqlite3.Connection | None:
    """The driver's connection, where it works in place."""
    raw: object = connection.connection.dbapi_connection
    return raw if isinstance(raw, sqlite3.Connection) else None


def _execute(connection: Connection, raw: sqlite3.Connection, text: str, arguments: list[Any]) -> sqlite3.Cursor:
    try:
        with statement_span(text, namespace=namespace_of(connection)):
            return raw.execute(text, arguments)
    except sqlite3.Error as error:
        raise DBAPIError.instance(text, arguments, error, sqlite3.Error, hide_parameters=True) from error


def driver_of(connection: Connection | None) -> sqlite3.Connection:
    if connection is None:
        raise DatabaseAway("database: the connection has been closed")
    raw = connection.connection.dbapi_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def begin_at_once(raw: sqlite3.Connection) -> bool:
    """Begin a transaction without waiting; False where another process is writing."""
    try:
        raw.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def execute(raw: sqlite3.Connection, statement: str) -> None:
    try:
        raw.execute(statement)
    except sqlite3.Error as error:
        raise DatabaseAway(f"database: {error}") from error


def set_pragma(cursor: Any, statement: str) -> None:
    """Execute a PRAGMA within the busy timeout.

    SQLite does not apply its own timeout to `journal_mode`: of several connections that open a new file at once and
    switch it to WAL, all but one would fail immediately with "database is locked".
    """
    give_up_at = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            cursor.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
        if in_greenlet():
            await_only(asyncio.sleep(_BUSY_PAUSE_S))
        else:
            time.sleep(_BUSY_PAUSE_S)
