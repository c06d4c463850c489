"""Tenants of one host: apart on the bus, on disk and at the gateway; quotas; one moves to another host."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aio_pika
import httpx
import psycopg
import pytest

from benchmarks.servers.postgres import PrivatePostgres, libpq_url
from config.settings import FleetSettings
from mindbus.management import open_management
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from mindbus.tenants import with_vhost
from mindbus.testing.wait import eventually
from mindbus_fleet.node.private import PrivateNode
from mindbus_fleet.tenants import NoSuchTenant, Quotas, TenantExists, TenantHost
from storage_service.tables import MIGRATIONS
from tests.command_line import Shell, require_rabbitmq

pytestmark = [pytest.mark.rabbit, pytest.mark.timeout(300)]

WORKERS = "storage,history,dialogue,task_manager"


@pytest.fixture(autouse=True)
def broker() -> None:
    require_rabbitmq()


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Shell]:
    yield from hosting(tmp_path / "host")


@pytest.fixture
def other_host(tmp_path: Path) -> Iterator[Shell]:
    yield from hosting(tmp_path / "other")


def hosting(folder: Path) -> Iterator[Shell]:
    shell = Shell(folder)
    shell.ok("up", "-d", "--workers", "storage,gateway", spawned=True)
    try:
        yield shell
    finally:
        shell.ok("down")


def as_tenant(host: Shell, name: str) -> Shell:
    return Shell(host.data_dir, settings={"MINDBUS_TENANT": name})


def gateway_of(host: Shell) -> str:
    return str(host.json("status")["gateway_url"])


@contextmanager
def served(host: Shell, token: str) -> Iterator[httpx.Client]:
    """A client of the tenant's site, once its host serves that."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{gateway_of(host)}/t/acme", headers=headers, timeout=60) as client:
        eventually(lambda: client.get("/healthz").status_code == 200, 30, "the tenant's site")
        yield client


def may_enter(amqp_url: str) -> bool:
    """Whether the broker lets somebody into a virtual host."""

    async def enter() -> None:
        await (await aio_pika.connect(amqp_url, timeout=10)).close()

    try:
        asyncio.run(enter())
    except (aio_pika.exceptions.AMQPError, OSError):
        return False
    return True


def test_tenants_are_apart_have_quotas_and_move(host: Shell, other_host: Shell, tmp_path: Path) -> None:
    host.ok("tenants", "add", "acme", "--queues", "100", "--bytes", "1MB", "--tokens-per-day", "5000")
    acme = as_tenant(host, "acme")
    password = tmp_path / "password"
    password.write_text("correct horse", encoding="utf-8")
    place = (str(tmp_path / "backups"), "--password-file", str(password))
    acme.ok("up", "-d", "--workers", WORKERS, spawned=True)
    try:
        put = require_quotas(host, acme, tmp_path)
        anna = require_own_people(host, acme)
        acme.ok("tasks", "add", "Call the painter", "--user", "anna")
        require_site(host, anna["token"])
        refused = host.run("tenants", "rm", "acme", "--yes")
        assert (refused.returncode, "is running" in refused.stderr) == (1, True)
        acme.ok("backup", *place)
    finally:
        acme.ok("down")
    require_moved(other_host, place, put, anna["token"])

    host.ok("tenants", "rm", "acme", "--yes")
    assert [each["name"] for each in host.json("tenants", "ls")] == ["idle"]
    assert not (host.data_dir / "tenants" / "acme").exists()
    assert not may_enter(anna["amqp_url"])


def require_quotas(host: Shell, acme: Shell, folder: Path) -> dict[str, Any]:
    """An artifact of the tenant, within its quota, of which its host knows nothing."""
    (listed,) = host.json("tenants", "ls")
    assert listed["quotas"] == {
        "queues": 100,
        "connections": None,
        "artifact_bytes": 1_000_000,
        "tokens_per_day": 5000,
    }
    assert listed["running"]
    small, large = folder / "small.txt", folder / "large.bin"
    small.write_text("what acme knows", encoding="utf-8")
    large.write_bytes(bytes(1_100_000))
    put: dict[str, Any] = acme.json("artifacts", "put", str(small), "--type", "note", "--trace", "notes")
    assert "quota" in acme.run("artifacts", "put", str(large), "--type", "note", "--trace", "notes").stderr
    assert "no such artifact" in host.run("artifacts", "show", put["artifact_id"]).stderr
    assert "unset MINDBUS_TENANT" in acme.run("tenants", "ls").stderr
    return put


def require_own_people(host: Shell, acme: Shell) -> dict[str, str]:
    """Somebody of the tenant, whose login opens its virtual host alone."""
    granted: dict[str, str] = acme.json("users", "add", "anna", "--role", "user")
    host.ok("users", "add", "anna", "--role", "user")
    assert may_enter(granted["amqp_url"])
    assert not may_enter(with_vhost(granted["amqp_url"], "/"))
    assert not may_enter(granted["amqp_url"].replace("acme%2Fuser.anna", "user.anna"))
    return granted


def require_moved(host: Shell, place: tuple[str, ...], put: dict[str, Any], token: str) -> None:
    """The tenant's backup, restored at another host: its data are there, and whoever had access has it."""
    host.ok("tenants", "add", "acme")
    moved = as_tenant(host, "acme")
    moved.ok("restore", *place)
    moved.ok("up", "-d", "--workers", WORKERS, spawned=True)
    try:
        assert moved.json("artifacts", "show", put["artifact_id"])["checksum"] == f"sha256:{put['sha256']}"
        with served(host, token) as anna:
            assert [task["text"] for task in anna.get("/api/tasks?user=anna").json()["items"]] == ["Call the painter"]
    finally:
        moved.ok("down")


def require_site(host: Shell, token: str) -> None:
    """One gateway, two sites: each lets in its own people alone."""
    url = gateway_of(host)
    with served(host, token) as anna:
        assert [task["text"] for task in anna.get("/api/tasks?user=anna").json()["items"]] == ["Call the painter"]
        assert anna.get("/api/tasks?user=anna", headers={"Authorization": ""}).status_code == 401
        card = anna.get("/.well-known/agent-card.json").json()
        assert card["supportedInterfaces"][0]["url"] == f"{url}/t/acme/a2a"
        page = anna.get("/timeline")
        assert page.headers["location"] == f"{url.replace('127.0.0.1', 'acme.localhost')}/timeline"
        # As a browser under the tenant's own host name; the host's site asks for no token on this machine.
        by_name = {"Host": page.headers["location"].partition("//")[2].partition("/")[0], "Accept": "text/html"}
        assert (
            httpx.get(f"{url}/timeline", headers=by_name, timeout=60).headers["location"] == "/login?next=%2Ftimeline"
        )
        assert httpx.get(f"{url}/timeline", timeout=60).status_code == 200
        tenants_page = httpx.get(f"{url}/chat", headers=by_name | {"Authorization": f"Bearer {token}"}, timeout=60)
        assert (tenants_page.status_code, "· acme · MindBus" in tenants_page.text) == (200, True)
        assert httpx.get(f"{url}/t/nobody/healthz", timeout=60).status_code == 404
        host.ok("tenants", "add", "idle")
        eventually(
            lambda: httpx.get(f"{url}/t/idle/healthz", timeout=60).status_code == 503, 10, "a tenant that does not run"
        )


@pytest.mark.backends
async def test_on_servers_of_its_host_a_tenant_has_a_virtual_host_and_a_database(
    own_postgres: PrivatePostgres, tmp_path: Path
) -> None:
    async with PrivateNode(tmp_path / "node") as node:
        settings = FleetSettings(
            data_dir=tmp_path,
            amqp_url=node.amqp_url,
            management_url=node.address.management_url,
            database_url=own_postgres.url,
        )
        host, own = TenantHost(settings), FleetSettings(**settings.model_dump(exclude_unset=True) | {"tenant": "acme"})
        await host.add("acme", Quotas(queues=1))
        with pytest.raises(TenantExists):
            await host.add("acme", Quotas())
        database = Database(own.database_of("storage"), "storage")
        await upgrade(database, MIGRATIONS)
        await database.dispose()
        assert database.url.database == "postgres_acme"

        connection = await aio_pika.connect(str(own.amqp_url))
        async with connection, connection.channel() as channel:
            await channel.declare_queue("first", durable=True)
            with pytest.raises(aio_pika.exceptions.ChannelPreconditionFailed, match="queue limit"):
                await channel.declare_queue("second", durable=True)

        await host.change("acme", Quotas(queues=0, connections=3, artifact_bytes=10))
        assert (await host.show("acme")).quotas == Quotas(connections=3, artifact_bytes=10)
        assert await open_management(own, str(own.amqp_url)).limits() == {"max-connections": 3}
        # Whatever somebody has removed by hand, the rest can be removed.
        await open_management(own, str(own.amqp_url)).delete_vhost()
        assert (await host.show("acme")).queues == 0
        await host.remove("acme")
        with pytest.raises(NoSuchTenant):
            await host.show("acme")
        assert not may_enter_database(own)
        await host.add("acme", Quotas())


def may_enter_database(settings: FleetSettings) -> bool:
    """Whether the tenant's database is there."""
    try:
        psycopg.connect(libpq_url(str(settings.database_url))).close()
    except psycopg.OperationalError:
        return False
    return True
