"""The servers that tests share: RabbitMQ with a vhost for each, PostgreSQL with a database for each, Redis."""

import asyncio
import gc
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from redis import Redis

from benchmarks.servers.postgres import PostgresMissing, PrivatePostgres
from benchmarks.servers.redis import PrivateRedis
from benchmarks.servers.seaweed import PrivateSeaweed, SeaweedMissing
from mindbus.cli.main import bypass_proxy_for_loopback
from mindbus.logs import configure_logs
from mindbus.testing.wait import PATIENCE
from mindbus_fleet.node.installation import RabbitMQMissing
from mindbus_fleet.node.private import PrivateNode
from tests.brokers import Broker, do_without, some_broker, started_node
from tests.canaries import CANARY, GUARDED, require_none_in_files
from tests.management import Management
from tests.migrated import add_databases, migrate, migrated_databases, sqlite_in
from tests.postgres import DatabaseOf, Postgres, some_pgvector, some_postgres
from tests.redises import private_redis, some_redis
from tests.seaweed import ObjectServer, Place, some_object_server

ON_RABBIT = {"broker", "own_node", "used_node"}
ON_BACKENDS = {
    "postgres",
    "own_postgres",
    "pgvector",
    "object_server",
    "own_object_server",
    "redis_server",
    "own_redis",
}

# Tests never assert times: on a busy machine the first example of a property takes long.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
# As commands do: with a proxy in the environment, servers of these tests are reached all the same.
bypass_proxy_for_loopback()
# What is imported stays to the end: to go through all of it time after time takes a tenth of the tests' time.
gc.disable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What a proof was told by chance can be told again."""
    parser.addoption("--seed", type=int, help="of a proof by chance, tell only this story again")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever uses a server is marked as needing one; limits are as patient as deadlines."""
    for item in items:
        limit = item.get_closest_marker("timeout")
        if limit is not None and PATIENCE != 1:
            item.add_marker(pytest.mark.timeout(PATIENCE * limit.args[0]), append=False)
        used = set(getattr(item, "fixturenames", ()))
        if ON_RABBIT & used:
            item.add_marker(pytest.mark.rabbit)
        if ON_BACKENDS & used:
            item.add_marker(pytest.mark.backends)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """From here on garbage is looked for, in what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _secrets() -> None:
    """Settings of every test, and of what it starts, hold secrets."""
    os.environ.update(GUARDED)


@pytest.fixture(autouse=True)
def _no_secret_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test leaves in its folder shows none: logs, databases, dead letters, dumps."""
    folder = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else None
    yield
    if folder is not None:
        require_none_in_files(folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that prints or logs a secret has failed."""
    report = yield
    if any(CANARY in content for _section, content in report.sections):
        report.outcome, report.longrepr = "failed", f"{item.nodeid}: its output shows a secret of the settings"
    return report


@pytest.fixture(autouse=True)
def _logs() -> None:
    """A command that an earlier test ran in this process has set them up for itself."""
    configure_logs("INFO", "console")


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Say something to whoever runs the tests."""

    def say(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}")
        # What failed in a process of its own shows what was captured alone.
        print(text)

    return say


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One for the whole session; tests keep apart by vhost."""
    with some_broker(tmp_path_factory.mktemp("rabbitmq")) as found:
        yield found


@pytest.fixture(scope="session")
def node(broker: Broker) -> PrivateNode:
    """The shared node, which no test may stop; `own_node` is for those that do."""
    if broker.node is None:
        pytest.skip("the broker of this run is not a private node")
    return broker.node


@pytest.fixture(scope="session")
def amqp_url(broker: Broker) -> str:
    """The default vhost, which tests share; most want `vhost_url`."""
    return broker.amqp_url


@pytest.fixture
async def management(broker: Broker) -> AsyncIterator[Management]:
    """The management API of the shared broker."""
    async with broker.management() as client:
        yield client


@pytest.fixture
async def vhost(request: pytest.FixtureRequest, management: Management) -> AsyncIterator[str]:
    """A fresh vhost, deleted afterwards with all that is in it."""
    name = f"{re.sub(r'[^0-9A-Za-z_]+', '-', request.node.name)[:60]}-{secrets.token_hex(4)}"
    await management.create_vhost(name)
    yield name
    await management.delete_vhost(name)


@pytest.fixture
def vhost_url(broker: Broker, vhost: str) -> str:
    """The AMQP URL of the fresh vhost."""
    return broker.url_of(vhost)


@pytest.fixture(scope="module")
def fleet_settings(broker: Broker, request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Environment of the fleet that the tests of a module share: on the shared broker, in a vhost of its own."""
    with broker.fleet_settings(f"{request.node.path.stem}-{secrets.token_hex(4)}") as settings:
        yield settings


@pytest.fixture
async def own_node(tmp_path: Path) -> AsyncIterator[PrivateNode]:
    """A running node for one test, whose disk nobody has written to before."""
    private = PrivateNode(tmp_path / "rabbitmq")
    try:
        await private.start()
    except RabbitMQMissing as missing:
        do_without(missing)
    yield private
    await private.kill()


@pytest.fixture(scope="session")
def _spare_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateNode]:
    try:
        private = started_node(tmp_path_factory.mktemp("spare_rabbitmq"))
    except RabbitMQMissing as missing:
        do_without(missing)
    yield private
    asyncio.run(private.kill())


@pytest.fixture
async def used_node(_spare_node: PrivateNode) -> PrivateNode:
    """A running node, emptied, which the test may kill, freeze or stop: it takes less time than one of its own."""
    if not _spare_node.is_running:
        await _spare_node.start()
    address = _spare_node.address
    async with Management(address.management_url, address.username, address.password) as management:
        await management.delete_vhost("/")
        await management.create_vhost("/")
    return _spare_node


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One for the whole session; tests keep apart by database."""
    with some_postgres() as found:
        yield found


@pytest.fixture(scope="session")
def pgvector() -> Iterator[Postgres]:
    """The same with PostgreSQL's extension for vectors."""
    with some_pgvector() as found:
        yield found


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    """One for the whole session; tests keep apart by prefix."""
    with some_object_server() as found:
        yield found


@pytest.fixture
def s3_place(object_server: ObjectServer) -> Place:
    """Where this test alone keeps objects."""
    return object_server.place()


@pytest.fixture
async def own_object_server() -> AsyncIterator[PrivateSeaweed]:
    """A running server for one test, which may kill it."""
    try:
        server = PrivateSeaweed()
    except SeaweedMissing as missing:
        do_without(missing, "an object store of its own", "")
    try:
        await server.start()
        yield server
    finally:
        await server.remove()


@pytest.fixture(scope="session")
def migrated() -> Path:
    """A folder with an empty SQLite database of every service."""
    return migrated_databases()


@pytest.fixture(scope="session")
def migrated_postgres(postgres: Postgres) -> str:
    """The same on PostgreSQL, in one database."""
    url = postgres.create()
    asyncio.run(migrate(lambda _service: url))
    return url


@pytest.fixture(scope="session")
def used_databases() -> list[str]:
    """Those that no test has at the moment."""
    return []


@pytest.fixture
def postgres_url(postgres: Postgres, migrated_postgres: str, used_databases: list[str]) -> Iterator[str]:
    """An empty database with all tables."""
    with postgres.migrated(used_databases, migrated_postgres) as url:
        yield url


@pytest.fixture
def sqlite_database_of(tmp_path: Path, migrated: Path) -> DatabaseOf:
    """A fresh file for each service that asks for one."""

    def database_of(service: str) -> str:
        if not (tmp_path / f"{service}.db").exists():
            shutil.copy(migrated / f"{service}.db", tmp_path)
        return sqlite_in(tmp_path)(service)

    return database_of


@pytest.fixture
def migrated_folder(tmp_path: Path) -> Path:
    """The folder of this test, in which whatever service starts finds its tables."""
    add_databases(tmp_path)
    return tmp_path


@pytest.fixture
def postgres_database_of(postgres_url: str) -> DatabaseOf:
    """A fresh database, a schema of it for each service."""
    return lambda _service: postgres_url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.backends)])
def database_of(request: pytest.FixtureRequest) -> DatabaseOf:
    """A fresh database of each service, with all its tables."""
    found: DatabaseOf = request.getfixturevalue(f"{request.param}_database_of")
    return found


@pytest.fixture
def empty_postgres_url(postgres: Postgres) -> Iterator[str]:
    """A fresh database without any table."""
    url = postgres.create()
    yield url
    postgres.drop(url)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.backends)])
def empty_database_of(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseOf:
    """A fresh database of each service, without any table."""
    if request.param == "sqlite":
        return sqlite_in(tmp_path / "empty")
    url: str = request.getfixturevalue("empty_postgres_url")
    return lambda _service: url


@pytest.fixture
async def own_postgres() -> AsyncIterator[PrivatePostgres]:
    """A running server for one test, which may kill it, with the tables of every service."""
    try:
        server = PrivatePostgres()
    except PostgresMissing as missing:
        do_without(missing, "a PostgreSQL of its own", "")
    try:
        await server.start()
        await migrate(lambda _service: server.url)
        yield server
    finally:
        await server.remove()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """One for the whole session; whoever uses it finds it empty, through `redis_url`."""
    with some_redis() as url:
        yield url


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """A Redis with nothing in it, set up as it was built to be."""
    with Redis.from_url(redis_server) as redis:
        redis.flushall()
        redis.config_set("maxmemory", 0)
        redis.config_set("maxmemory-policy", "noeviction")
        redis.config_set("notify-keyspace-events", "")
    return redis_server


@pytest.fixture
async def own_redis() -> AsyncIterator[PrivateRedis]:
    """A running server for one test, which may kill it or freeze it; it keeps what it was told."""
    server = private_redis(keeps=True)
    try:
        await server.start()
        yield server
    finally:
        await server.remove()
