"""SQLite, each COMMIT of which is an effect that is named after the tables it changes."""

import re
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import event

from mindbus.sql.database import Database

T = TypeVar("T")
_CHANGE = re.compile(r"\s*(?:INSERT(?: OR \w+)? INTO|UPDATE|DELETE FROM)\s+\"?(\w+)", re.IGNORECASE)
# Of PRAGMA synchronous: from here on, a COMMIT under WAL waits for the disk.
_FULL = 2


class Commits:
    """The commits of all connections to one file; `note` is called before and after each, while no other happens."""

    def __init__(self, file: Path, lock: RLock, note: Callable[[str], None]) -> None:
        self.file, self.lock, self.note = file, lock, note
        self.observer = sqlite3.connect(file, check_same_thread=False)
        self.version = 0
        self.now = self.on_disk = b""
        # The most transactions with a common COMMIT, by what it is called; how many of all were undone alone.
        self.shared: dict[str, int] = {}
        self.undone = 0
        self.look()
        self.on_disk = self.now

    def look(self) -> int:
        """Read the file as of the last commit; a number that is another after each."""
        (version,) = self.observer.execute("PRAGMA data_version").fetchone()
        if version != self.version:
            self.now, self.version = self.observer.serialize(), version
        return self.version

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Rows that are committed."""
        return self.observer.execute(query).fetchall()

    def close(self) -> None:
        """Look no more."""
        self.observer.close()

    def connect(self, *arguments: Any, **options: Any) -> "_Connection":
        """As sqlite3.Connection."""
        return _Connection(self, *arguments, **options)

    def commit(self, name: str, act: Callable[[], T], synchronous: Callable[[], int]) -> T:
        """Note a COMMIT, which is on the disk if its connection waits for that."""
        with self.lock:
            self.note(f"before {name}")
            result = act()
            self.look()
            if synchronous() >= _FULL:
                self.on_disk = self.now
            self.note(f"after {name}")
        return result


class _Connection(sqlite3.Connection):
    def __init__(self, commits: Commits, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._commits = commits
        self._tables: list[str] = []
        self._released = self._before = 0
        self.set_trace_callback(self._trace)

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        """As in sqlite3.Connection."""
        act = partial(super().execute, statement, *parameters)
        return self._commit(act) if statement == "COMMIT" else act()

    def commit(self) -> None:
        """As in sqlite3.Connection."""
        self._commit(super().commit)

    def _commit(self, act: Callable[[], T]) -> T:
        tables, self._tables = sorted(set(self._tables)), []
        if not tables:
            return act()
        name = f"commit of {', '.join(tables)}"
        shared = self._commits.shared
        shared[name] = max(shared.get(name, 0), self._released)
        return self._commits.commit(name, act, self._synchronous)

    def _trace(self, statement: str) -> None:
        if statement.startswith("BEGIN"):
            self._tables, self._released = [], 0
        elif statement.startswith("RELEASE"):
            self._released += 1
        elif statement.startswith("SAVEPOINT"):
            self._before = len(self._tables)
        elif statement.startswith("ROLLBACK TO"):
            self._commits.undone += len(self._tables) > self._before
            del self._tables[self._before :]
        elif match := _CHANGE.match(statement):
            self._tables.append(match[1])

    def _synchronous(self) -> int:
        return int(super().execute("PRAGMA synchronous").fetchone()[0])


class NotedDatabase(Database):
    """One process's way to a file whose commits are noted."""

    def __init__(self, commits: Commits, file: Path) -> None:
        super().__init__(f"sqlite+aiosqlite:///{file}", "storage")
        assert self.groups is not None
        for engine in (self.engine.sync_engine, self.groups.engine):
            event.listen(engine, "do_connect", partial(_connect_noted, commits))


def _connect_noted(commits: Commits, _dialect: Any, _record: Any, _arguments: Any, options: dict[str, Any]) -> None:
    options["factory"] = commits.connect
