"""Small SQLite files for one machine's own use, readable by their user alone."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BUSY_WITHIN_S = 5.0


@contextmanager
def private_database(file: Path, schema: str) -> Iterator[sqlite3.Connection]:
    """A transaction on a file, which is made with its tables where it is not there; nothing deleted stays in it."""
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
    database = sqlite3.connect(file, timeout=_BUSY_WITHIN_S)
    try:
        with database:
            database.executescript("PRAGMA secure_delete = ON;" + schema)
            yield database
    finally:
        database.close()
