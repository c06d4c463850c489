"""The RabbitMQ that tests share, with a vhost of its own for each."""

import re
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mindbus.logs import configure_logs
from mindbus.node.failures import RabbitMQMissing
from mindbus.node.private import PrivateNode
from tests.brokers import Broker, do_without, some_broker
from tests.management import Management

ON_RABBIT = {"broker", "own_node"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever uses a broker is marked as needing one."""
    for item in items:
        if ON_RABBIT & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.rabbit)


@pytest.fixture(scope="session", autouse=True)
def _logs() -> None:
    configure_logs("INFO", "console")


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


@pytest.fixture
async def own_node(tmp_path: Path) -> AsyncIterator[PrivateNode]:
    """A running node for one test, which may kill, freeze or stop it."""
    private = PrivateNode(tmp_path / "rabbitmq")
    try:
        await private.start()
    except RabbitMQMissing as missing:
        do_without(missing)
    yield private
    await private.kill()
