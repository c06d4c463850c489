"""How much a database does for what is asked of it: counted, since times say more about the machine."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy import event

from benchmarks.servers.postgres import libpq_url
from mindbus.sql.database import Database
from mindbus.sql.postgresql import session_options

_STEPS_COUNTED_BY = 100


@dataclass(frozen=True)
class Work:
    """SQLite's own steps, or the manifests that PostgreSQL looked at; which tables were read from end to end."""

    amount: int
    scanned: frozenset[str]


@asynccontextmanager
async def statements(database: Database) -> AsyncIterator[list[tuple[str, Any]]]:
    """What the database is asked meanwhile."""
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    engines = [database.engine.sync_engine, *([database.groups.engine] if database.groups else [])]
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)


def work_of(database: Database, asked: list[tuple[str, Any]]) -> Work:
    """Ask it all again, this time watching."""
    selects = [(statement, parameters) for statement, parameters in asked if statement.startswith("SELECT")]
    return _of_sqlite(database, selects) if database.is_sqlite else _of_postgresql(database, selects)


def _of_sqlite(database: Database, selects: list[tuple[str, Any]]) -> Work:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += _STEPS_COUNTED_BY
        return 0

    connection = sqlite3.connect(str(database.url.database))
    connection.set_progress_handler(count, _STEPS_COUNTED_BY)
    scanned = set()
    for statement, parameters in selects:
        connection.execute(statement, parameters).fetchall()
        counted = steps
        plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
        steps = counted
        scanned |= {str(detail).split()[1] for *_ids, detail in plan if str(detail).startswith("SCAN ")}
    connection.close()
    return Work(steps, frozenset(scanned))


def _of_postgresql(database: Database, selects: list[tuple[str, Any]]) -> Work:
    looked_at, scanned = 0, set()
    url = libpq_url(database.url.render_as_string(hide_password=False))
    with psycopg.connect(url, options=session_options(database.schema)) as connection:
        for statement, parameters in selects:
            explained = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}"
            found = connection.execute(explained.encode(), parameters).fetchone()
            assert found
            for node in _nodes(found[0][0]["Plan"]):
                if node.get("Relation Name") == "artifact_manifests":
                    left_out = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
                    looked_at += (node["Actual Rows"] + left_out) * node["Actual Loops"]
                if node["Node Type"] == "Seq Scan" and node["Actual Loops"]:
                    scanned.add(node["Relation Name"])
    return Work(looked_at, frozenset(scanned))


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)
