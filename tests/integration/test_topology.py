"""Broker and code are kept together."""

from dataclasses import replace
from pathlib import Path

import aio_pika
import pytest

from config.settings import FleetSettings
from mindbus.bus.deadletters import DeadLetters
from mindbus.bus.decode import ORIGIN
from mindbus.bus.queue_moves import StillInUse
from mindbus.bus.topology import (
    Exchange,
    Queue,
    Topology,
    backbone,
    of_service,
    of_subscriber,
    rungs_of,
)
from mindbus.bus.topology_admin import apply, apply_policies, compare, migrate, prune
from mindbus.management import Management
from mindbus.testing.wait import until
from mindbus_fleet.cli.service_checks import delivery_limit
from tests.brokers import Broker
from tests.fleets import fleet_of, settings_for
from tests.greetings import Greet, Greeter

SHARED = backbone(rungs_of("50ms,100ms,300ms"))
WANTED = SHARED + of_service("greeter", takes_commands=True, event_keys=())
IN_ORDER = SHARED + of_service("greeter", takes_commands=True, event_keys=(), is_ordered=True)


@pytest.fixture
def api(broker: Broker, vhost: str) -> Management:
    login = f"{broker.username}:{broker.password}@"
    return Management(broker.management_url.replace("://", f"://{login}"), vhost)


@pytest.fixture
def settings(broker: Broker, vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path, management_url=broker.management_login_url)


async def test_a_running_worker_leaves_nothing_to_apply(settings: FleetSettings, api: Management) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.request(Greet(name="x"))
        differences = await compare(api, WANTED)

    assert differences == []


async def test_what_is_missing_is_named_and_applied(vhost_url: str, api: Management) -> None:
    assert {found.kind for found in await compare(api, WANTED)} == {
        "missing queue",
        "missing exchange",
        "missing binding",
        "missing policy",
    }

    await apply(vhost_url, WANTED)
    await apply_policies(api, WANTED)

    assert await compare(api, WANTED) == []


async def test_doctor_tells_of_queues_that_deliver_a_deadly_message_for_ever(vhost_url: str, api: Management) -> None:
    await apply(vhost_url, WANTED)

    async def status() -> str:
        return delivery_limit(await api.queues(), "3.13.7").status

    async def is_told() -> bool:
        return await status() == "failed"

    async def is_mended() -> bool:
        return await status() == "ok"

    # The broker's own numbers lag.
    await until(is_told)
    assert delivery_limit(await api.queues(), "4.1.0").status == "ok"
    await apply_policies(api, WANTED)
    await until(is_mended)


async def test_what_waits_for_a_retry_comes_back_though_its_rung_is_migrated(vhost_url: str, api: Management) -> None:
    rung = Queue("mb.retry.300ms", {"x-queue-type": "quorum", "x-message-ttl": 30_000})
    others = tuple(queue for queue in WANTED.queues if queue.name != rung.name)
    await apply(vhost_url, replace(WANTED, queues=(*others, rung)))
    async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
        exchange = await channel.get_exchange("mb.delay.300ms")
        await exchange.publish(aio_pika.Message(b"later", headers={ORIGIN: "mb.q.greeter"}), "mb.q.greeter")

    assert await migrate(vhost_url, api, WANTED) == [rung.name]

    await until(lambda: _depth(api, "mb.q.greeter", 1))
    assert await _depth(api, "mb.q.lost.dead", 0)


async def test_what_the_broker_has_dead_lettered_keeps_the_queue_that_it_comes_from(
    vhost_url: str, api: Management
) -> None:
    dead = Queue("mb.q.greeter.dead", {"x-queue-type": "quorum"})
    others = tuple(queue for queue in WANTED.queues if queue.name != dead.name)
    await apply(vhost_url, replace(WANTED, queues=(*others, dead)))
    async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
        by_broker = aio_pika.Message(b"{}", headers={"x-death": [{"queue": "mb.q.greeter", "reason": "expired"}]})
        await channel.default_exchange.publish(by_broker, dead.name)

    assert await migrate(vhost_url, api, WANTED) == [dead.name]

    assert [letter.origin for letter in await DeadLetters(vhost_url).look("greeter")] == ["mb.q.greeter"]


async def test_a_worker_that_the_code_does_not_name_keeps_its_queues_while_it_runs(
    settings: FleetSettings, vhost_url: str, api: Management
) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.request(Greet(name="x"))
        await until(lambda: _is_consumed(api, "mb.q.greeter"))

        retired = Topology(exchanges=(Exchange("mb.retry.50ms", "fanout"),))
        await apply(vhost_url, retired)
        assert await prune(vhost_url, api, SHARED) == ["mb.retry.50ms"]
        await fleet.bus.request(Greet(name="x"))


async def test_only_unknown_empty_queues_are_pruned(vhost_url: str, api: Management) -> None:
    # A subscriber that is away is no stranger.
    others = of_service("retired", takes_commands=True, event_keys=()) + of_subscriber("away")
    # Retries went through an exchange of the name of their queue.
    others += Topology(exchanges=(Exchange("mb.retry.50ms", "fanout"),))
    await apply(vhost_url, WANTED + others)
    await apply_policies(api, WANTED)
    async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
        await channel.default_exchange.publish(aio_pika.Message(b"precious"), "mb.q.retired")
    await until(lambda: _depth(api, "mb.q.retired", 1))

    pruned = await prune(vhost_url, api, WANTED)

    assert pruned == ["mb.q.retired.dead", "mb.cmd.retired", "mb.evt.retired", "mb.retry.50ms"]
    assert [found.name for found in await compare(api, WANTED)] == ["mb.q.retired"]


@pytest.mark.parametrize("wanted", [WANTED, IN_ORDER], ids=["side by side", "in order"])
async def test_a_queue_with_other_arguments_is_migrated_with_its_messages(
    vhost_url: str, api: Management, wanted: Topology
) -> None:
    await _apply_older(vhost_url, wanted)
    async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
        for number in range(450):
            await channel.default_exchange.publish(aio_pika.Message(f"{number}".encode()), "mb.q.greeter")
    different = [found for found in await compare(api, wanted) if found.kind.startswith("different")]
    assert [found.detail for found in different] == ["x-delivery-limit: 3 → None"]

    assert await migrate(vhost_url, api, wanted) == ["mb.q.greeter"]

    assert await compare(api, wanted) == []
    async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
        queue = await channel.get_queue("mb.q.greeter")
        async with queue.iterator(no_ack=True) as messages:
            bodies = [(await anext(messages)).body for _ in range(450)]
    assert bodies == [f"{number}".encode() for number in range(450)]


async def test_a_queue_that_an_earlier_version_has_made_serves_as_it_is(
    vhost_url: str, api: Management, settings: FleetSettings
) -> None:
    await _apply_older(vhost_url)
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.request(Greet(name="x"))

    assert {found.kind for found in await compare(api, WANTED)} == {"different queue"}


async def test_a_migration_that_was_cut_short_is_finished(vhost_url: str, api: Management) -> None:
    await apply(vhost_url, Topology(queues=(MOVING,)))
    async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
        await channel.default_exchange.publish(aio_pika.Message(b"on its way"), "mb.q.greeter.moving")
    await apply(vhost_url, Topology(WANTED.exchanges))

    assert await migrate(vhost_url, api, WANTED) == ["mb.q.greeter"]

    await until(lambda: _depth(api, "mb.q.greeter", 1))


async def test_a_queue_in_use_is_not_migrated(vhost_url: str, api: Management) -> None:
    await _apply_older(vhost_url)
    async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
        queue = await channel.get_queue("mb.q.greeter")
        await queue.consume(_ignore)

        with pytest.raises(StillInUse, match=r"mb\.q\.greeter"):
            await migrate(vhost_url, api, WANTED)
        # A retry goes nowhere else meanwhile.
        assert not [row for row in await api.bindings() if row["destination"].endswith(".moving")]


MOVING = Queue("mb.q.greeter.moving", {"x-queue-type": "quorum", "x-delivery-limit": 1_000_000})


async def _apply_older(vhost_url: str, wanted: Topology = WANTED) -> None:
    older = tuple(
        Queue(queue.name, queue.arguments | {"x-delivery-limit": 3}) if queue.name == "mb.q.greeter" else queue
        for queue in wanted.queues
    )
    await apply(vhost_url, Topology(wanted.exchanges, older, wanted.bindings))


async def _depth(api: Management, name: str, depth: int) -> bool:
    return any(queue.name == name and queue.depth == depth for queue in await api.queues())


async def _is_consumed(api: Management, name: str) -> bool:
    return any(queue.name == name and queue.consumers for queue in await api.queues())


async def _ignore(_message: object) -> None:
    """Take it and say nothing."""
