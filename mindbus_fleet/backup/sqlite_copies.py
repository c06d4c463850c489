"""Copies of SQLite databases in use: all of one and the same instant."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path

from mindbus_fleet.backup.errors import BackupFailed

_MAGIC = b"SQLite format 3\x00"
# As long as a worker may hold its database for a group of writes, and more.
_LOCKED_WITHIN_S = 30.0


def databases_in(folder: Path) -> list[Path]:
    """The SQLite databases directly in a folder, by name."""
    return sorted(path for path in folder.iterdir() if path.is_file() and _is_database(path))


def copy_together(databases: Mapping[Path, Path], locked_within_s: float = _LOCKED_WITHIN_S) -> None:
    """Copy each database to its path, as all of them were at one instant.

    Nobody may write for the milliseconds in which the copies' snapshots begin; after that only reading is done. Raises
    BackupFailed where one stays locked, cannot be read or is damaged.
    """
    path = Path()
    with ExitStack() as stack:
        try:
            with ExitStack() as locks:
                for path in databases:
                    writer = locks.enter_context(closing(_open(path, locked_within_s)))
                    writer.execute("BEGIN IMMEDIATE")
                    locks.callback(writer.rollback)
                readers = {path: stack.enter_context(closing(_snapshot(path))) for path in databases}
            for path, reader in readers.items():
                _copy(reader, databases[path])
        except sqlite3.Error as error:
            raise BackupFailed(f"{path.name} cannot be copied: {error}") from error


def check(database: Path) -> str:
    """Trouble with a copy; empty where there is none."""
    with closing(sqlite3.connect(database)) as connection:
        try:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.Error as error:
            return str(error)
    return "" if found == "ok" else str(found)


def count_rows(database: Path) -> dict[str, int]:
    """Rows by table, but for the inner tables of indexes."""
    with closing(sqlite3.connect(database)) as connection:
        return {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in _tables(connection)
        }


def digest_of(file: Path) -> str:
    """SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def forget_sending(databases: Iterable[Path], since: str) -> int:
    """Have what messages handled since then have caused published once more; returns how many that is.

    `since` is an instant in UTC as SQLite keeps it. Whoever has received it already drops it by its id.
    """
    again = 0
    for path in databases:
        with closing(sqlite3.connect(path)) as connection, connection:
            if "inbox" in _tables(connection):
                again += connection.execute(
                    "UPDATE inbox SET published = 0 WHERE handled_at >= ? AND outcome NOT IN ('[]', 'null')", (since,)
                ).rowcount
    return again


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _open(path: Path, locked_within_s: float = _LOCKED_WITHIN_S) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=locked_within_s, isolation_level=None)


def _snapshot(path: Path) -> sqlite3.Connection:
    """A connection whose reading transaction has begun."""
    reader = _open(path)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sqlite_master")
    return reader


def _copy(reader: sqlite3.Connection, to: Path) -> None:
    to.unlink(missing_ok=True)
    with closing(sqlite3.connect(to)) as copy:
        reader.backup(copy)
        # A single file: without its log beside it, it could not be read.
        copy.execute("PRAGMA journal_mode = DELETE")


def _tables(connection: sqlite3.Connection) -> Iterator[str]:
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    virtual = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")]
    for name in names:
        if not name.startswith(("sqlite_", *(f"{each}_" for each in virtual))) and name not in virtual:
            yield name
