"""Finds a RabbitMQ for the tests: one that is named, the machine's own, a container, or none."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from mindbus.testing.wait import eventually, until
from mindbus_fleet.node.installation import RabbitMQMissing
from mindbus_fleet.node.private import PrivateNode
from tests.management import Management

CONTAINER_IMAGE = "rabbitmq:4-management"
CONTAINER_WITHIN_S = 120
MANAGEMENT_PORT = 15672
ADVICE = "For the tests alone, MINDBUS_TEST_AMQP_URL=amqp://… names another and MINDBUS_TEST_CONTAINERS=1 starts one."


@dataclass(frozen=True)
class Broker:
    amqp_url: str
    management_url: str
    username: str
    password: str
    node: PrivateNode | None = None

    def management(self) -> Management:
        """A client for one event loop."""
        return Management(self.management_url, self.username, self.password)

    def url_of(self, vhost: str) -> str:
        """The AMQP URL of a vhost."""
        return f"{self.amqp_url.rsplit('/', 1)[0]}/{vhost}"

    @property
    def management_login_url(self) -> str:
        """The management URL with user and password."""
        return self.management_url.replace("://", f"://{self.username}:{self.password}@")

    @contextmanager
    def fleet_settings(self, vhost: str) -> Iterator[dict[str, str]]:
        """Environment of a fleet on this broker, in a vhost that lives as long as the block."""
        _run_aside(self._change_vhosts(Management.create_vhost, vhost))
        try:
            yield {"MINDBUS_AMQP_URL": self.url_of(vhost), "MINDBUS_MANAGEMENT_URL": self.management_login_url}
        finally:
            _run_aside(self._change_vhosts(Management.delete_vhost, vhost))

    async def _change_vhosts(self, change: Callable[[Management, str], Awaitable[None]], vhost: str) -> None:
        async with self.management() as client:
            await change(client, vhost)


@contextmanager
def some_broker(folder: Path) -> Iterator[Broker]:
    """MINDBUS_TEST_AMQP_URL, a private node, a container if MINDBUS_TEST_CONTAINERS=1; else skip, and fail in CI."""
    if url := os.environ.get("MINDBUS_TEST_AMQP_URL"):
        yield _named(url)
        return
    try:
        node = started_node(folder)
    except RabbitMQMissing as missing:
        if os.environ.get("MINDBUS_TEST_CONTAINERS") == "1":
            with _container() as broker:
                yield broker
            return
        do_without(missing)
    try:
        yield Broker(node.amqp_url, node.address.management_url, node.address.username, node.address.password, node)
    finally:
        asyncio.run(node.kill())


def started_node(folder: Path) -> PrivateNode:
    """A private node that any event loop may use and end."""
    node = PrivateNode(folder)
    asyncio.run(node.start())
    return node


async def registered(node: PrivateNode, queue: str) -> None:
    """Wait until a quorum queue would survive a kill.

    RabbitMQ saves the names of quorum queues half a second late; a queue that is lost so has no leader afterwards
    and answers nobody.
    """
    await until(
        lambda: any(queue.encode() in names.read_bytes() for names in node.folder.glob("mnesia/*/quorum/*/names.dets")),
        what=f"{queue} in the broker's list of quorum queues on disk",
    )


def do_without(missing: Exception, needed: str = "a RabbitMQ", advice: str = ADVICE) -> NoReturn:
    """A laptop may lack a server, CI may not."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{missing}\n{advice}", pytrace=False)
    pytest.skip(f"needs {needed}. {advice}")


def _run_aside(work: Coroutine[Any, Any, None]) -> None:
    """Run it in a thread, since Playwright has an event loop in this one."""
    with ThreadPoolExecutor(1) as aside:
        aside.submit(asyncio.run, work).result()


def _named(url: str) -> Broker:
    parts = urlsplit(url)
    management = os.environ.get("MINDBUS_TEST_MANAGEMENT_URL") or f"http://{parts.hostname}:{MANAGEMENT_PORT}"
    return Broker(
        amqp_url=url if parts.path else f"{url}/",
        management_url=management,
        username=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
    )


@contextmanager
def _container() -> Iterator[Broker]:
    # Imported here: it warns at import, and most machines never come this way.
    from testcontainers.core.container import DockerContainer

    user = "mindbus"
    password = os.urandom(12).hex()
    container = DockerContainer(CONTAINER_IMAGE).with_exposed_ports(5672, MANAGEMENT_PORT)
    container = container.with_env("RABBITMQ_DEFAULT_USER", user).with_env("RABBITMQ_DEFAULT_PASS", password)
    with container:
        host = container.get_container_host_ip()
        management = f"http://{host}:{container.get_exposed_port(MANAGEMENT_PORT)}"
        _wait_for(management, user, password)
        amqp = f"amqp://{user}:{password}@{host}:{container.get_exposed_port(5672)}/"
        yield Broker(amqp, management, user, password)


def _wait_for(management_url: str, user: str, password: str) -> None:
    url = f"{management_url}/api/health/checks/port-listener/5672"

    def listens() -> bool:
        try:
            return httpx.get(url, auth=(user, password), trust_env=False, timeout=60).is_success
        except httpx.HTTPError:
            return False

    eventually(listens, CONTAINER_WITHIN_S, "RabbitMQ listens")
