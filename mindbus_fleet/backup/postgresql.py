"""Dumps of PostgreSQL databases, each of one instant."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psycopg
from sqlalchemy.engine import URL, make_url

from config.settings import FleetSettings
from mindbus_fleet.backup.errors import BackupFailed


def databases_of(settings: FleetSettings) -> dict[str, URL]:
    """The PostgreSQL databases that services keep their tables in, each once, by the first setting that names it."""
    found: dict[str, URL] = {}
    for name, url in urls_of(settings).items():
        if url.get_backend_name() == "postgresql" and url not in found.values():
            found[name] = url
    return found


def urls_of(settings: FleetSettings) -> dict[str, URL]:
    """The databases that settings name, by setting."""
    named = {name: getattr(settings, name) for name in ("database_url", "storage_database_url", "glm_database_url")}
    return {name: make_url(url) for name, url in named.items() if url}


def dump(database: URL, to: Path) -> None:
    """Write a dump in pg_dump's custom format. Raises BackupFailed."""
    _run(database, ["pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--no-comments", f"--file={to}"])


def require_empty(database: URL) -> None:
    """Raise BackupFailed where services have tables in a database already."""
    with _connect(database) as connection:
        row = connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname !~ '^(pg_|information_)'").fetchone()
    if row and row[0]:
        raise BackupFailed(f"the database {database.database} on {database.host} has tables; restore into an empty one")


def load(database: URL, dumped: Path) -> None:
    """Load a dump into an empty database, in one transaction. Raises BackupFailed."""
    _run(database, ["pg_restore", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"], dumped)


def forget_sending(database: URL, since: str) -> int:
    """Have what was handled since then publish its outcomes once more, as on SQLite."""
    again = 0
    with _connect(database) as connection:
        inboxes = "SELECT table_schema FROM information_schema.tables WHERE table_name = 'inbox'"
        for (schema,) in connection.execute(inboxes).fetchall():
            if schema != "orchestrator":
                named = psycopg.sql.Identifier(schema, "inbox")
                update = (
                    "UPDATE {} SET published = false WHERE handled_at >= %s AND outcome::text NOT IN ('[]', 'null')"
                )
                again += connection.execute(psycopg.sql.SQL(update).format(named), [since]).rowcount
    return again


def _connect(database: URL) -> psycopg.Connection:
    try:
        return psycopg.connect(database.set(drivername="postgresql").render_as_string(hide_password=False))
    except psycopg.OperationalError as error:
        raise BackupFailed(f"the database on {database.host} does not answer: {error}") from error


def _run(database: URL, command: Sequence[str], *files: Path) -> None:
    # The password stays out of the list of processes.
    environment = os.environ | {"PGPASSWORD": database.password or ""}
    address = database.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    try:
        done = subprocess.run(
            [*command, f"--dbname={address}", *map(str, files)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as missing:
        raise BackupFailed(f"{command[0]} is missing; install PostgreSQL's client programs") from missing
    if done.returncode:
        raise BackupFailed(f"{command[0]}: {done.stderr.strip()[-800:]}")
