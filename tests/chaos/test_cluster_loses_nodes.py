"""A cluster of three RabbitMQ nodes loses each in turn: no command is lost, none has effect twice."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus_schema.codes import Code
from config.settings import FleetSettings
from mindbus import BusUnavailable, Client
from mindbus.bus.connection import open_broker
from mindbus.bus.topology import backbone, of_service
from mindbus.errors import NoReply, ReplyError, Unroutable
from mindbus.runtime.provision import kept_on
from mindbus.testing.wait import until
from tests.chaos.bookkeeping import AuditWorker, Book, BookingWorker
from tests.chaos.ledger import Entries
from tests.chaos.lost_nodes import each_in_turn
from tests.fleets import fleet_of
from tests.rabbit_cluster import RabbitCluster, rabbit_cluster

pytestmark = [pytest.mark.slow, pytest.mark.chaos, pytest.mark.rabbit]

_AT_ONCE = 20
_DONE_WITHIN_S = 180.0
_WORKERS = ("booking", "audit")


class Orders:
    """Commands, each sent under its own id until it is answered."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        self.answered: list[str] = []
        self.failure: BaseException | None = None
        self._is_over = asyncio.Event()

    async def flow(self, wanted: int) -> None:
        """Send until there are enough and the faults are over."""

        async def send_some(sender: int) -> None:
            number = 0
            while not self._is_over.is_set() or len(self.answered) < wanted:
                number += 1
                await self._send(f"order_{sender}_{number}")

        await asyncio.gather(*(send_some(sender) for sender in range(_AT_ONCE)))

    def end(self) -> None:
        self._is_over.set()

    async def _send(self, entry: str) -> None:
        try:
            await self._send_until_answered(entry)
        except Exception as error:
            self.failure = error
            raise

    async def _send_until_answered(self, entry: str) -> None:
        while True:
            try:
                await self._bus.request(Book(entry=entry), message_id=f"msg_{entry}", timeout_s=10)
            except (BusUnavailable, NoReply, Unroutable):
                continue
            except ReplyError as error:
                # An earlier copy may have come too late, while this one is carried out.
                if error.retryable or error.code is Code.EXPIRED:
                    continue
                raise
            self.answered.append(entry)
            return


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[RabbitCluster]:
    async with rabbit_cluster(tmp_path / "cluster") as found:
        yield found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("wanted", [1_000, pytest.param(20_000, marks=pytest.mark.proof)])
async def test_a_node_killed_one_frozen_one_without_its_disk(
    cluster: RabbitCluster, tmp_path: Path, wanted: int
) -> None:
    settings = FleetSettings(
        amqp_url=f"{cluster.amqp_url}?heartbeat=4", data_dir=tmp_path / "data", retry_rungs="50ms,300ms,1s"
    )
    await _keep_on_one(cluster)
    async with fleet_of(BookingWorker, AuditWorker, settings=settings) as fleet:
        assert await _nodes_of_queues(cluster) == {"mb.q.single": 1, "mb.q.single.dead": 1, "others": 3}
        orders = Orders(fleet.bus)
        flowing = asyncio.create_task(orders.flow(wanted))
        try:
            await each_in_turn(cluster, lambda: _goes_on(orders))
        finally:
            orders.end()
        await flowing

        booked, audited = (Entries(name, settings.database_of(name), "SELECT entry FROM entries") for name in _WORKERS)
        once = dict.fromkeys(orders.answered, 1)
        await until(lambda: len(audited.count()) == len(once), _DONE_WITHIN_S, "all events have arrived")
        assert booked.count() == Counter(once)
        assert audited.count() == Counter(once)


async def _keep_on_one(cluster: RabbitCluster) -> None:
    """Make queues of a service as it does of which the settings say that one node is enough."""
    transport = open_broker(cluster.amqp_url, "test", publish_timeout_s=10)
    try:
        own = of_service("single", takes_commands=True, event_keys=())
        await transport.declare(backbone(()) + kept_on(1, own))
    finally:
        await transport.close()


async def _nodes_of_queues(cluster: RabbitCluster) -> dict[str, int]:
    """On how many nodes queues of work are kept."""
    said = await cluster.nodes[0].ctl("--quiet", "list_queues", "name", "members", "--formatter", "json")
    found = {row["name"]: len(row["members"]) for row in json.loads(said) if row["name"].startswith("mb.q.")}
    (others,) = {number for name, number in found.items() if "single" not in name}
    return {name: number for name, number in found.items() if "single" in name} | {"others": others}


async def _goes_on(orders: Orders, more: int = 100) -> None:
    """Wait until so many more commands have been answered."""
    goal = len(orders.answered) + more
    await until(lambda: len(orders.answered) >= goal or orders.failure, _DONE_WITHIN_S, "commands are answered")
    assert orders.failure is None
