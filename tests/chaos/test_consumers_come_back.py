"""Consumers come back, and prove it by handling a real message."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import aio_pika
import pytest

from config.settings import FleetSettings
from mindbus import BusUnavailable, connect
from mindbus.bus.deadletters import DeadLetter, DeadLetters
from mindbus.bus.rabbit import RabbitTransport
from mindbus.bus.transport import Incoming
from mindbus.runtime.provision import queues_of
from mindbus.testing.wait import until
from mindbus_fleet.node.private import PrivateNode
from tests.brokers import registered
from tests.fleets import Fleet, fleet_of, settings_for
from tests.greetings import Greet, Greeter, Hold, Listener
from tests.management import Management
from tests.raw_amqp import an_envelope, raw_publisher

pytestmark = pytest.mark.chaos


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path)


async def greets_again(fleet: Fleet, name: str, within_s: float = 30) -> None:
    """A message that is sent after the trouble is handled, by the same worker."""

    async def greeted() -> bool:
        return bool(await _send(fleet, name)) and name in fleet[Greeter].greeted

    await until(greeted, within_s, "a greeting after the trouble")


async def _is_heard(fleet: Fleet, name: str) -> bool:
    await _send(fleet, name)
    return name in [heard for heard, _ in fleet[Listener].heard]


async def _send(fleet: Fleet, name: str) -> str:
    try:
        await fleet.bus.send(Greet(name=name))
    except BusUnavailable:
        return ""
    return name


async def test_after_its_queue_was_deleted(vhost_url: str, settings: FleetSettings) -> None:
    async with fleet_of(Greeter, Listener, settings=settings) as fleet:
        await fleet.bus.request(Greet(name="before"))
        async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
            for queue in ("mb.q.greeter", "mb.q.listener.events"):
                await channel.queue_delete(queue)

        await greets_again(fleet, "after")
        # An event that is told while its queue is gone has no listener; the next one has.
        await until(lambda: _is_heard(fleet, "later"), what="an event at the listener")


async def test_after_its_queue_was_deleted_and_made_anew_by_somebody_else(
    vhost_url: str, settings: FleetSettings
) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        async with await aio_pika.connect(vhost_url) as connection, connection.channel() as channel:
            await channel.queue_delete("mb.q.greeter")
        async with fleet_of(Greeter, settings=settings):
            pass

        await greets_again(fleet, "after")


async def test_after_its_connections_were_closed_again_and_again(
    vhost: str, settings: FleetSettings, management: Management
) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        for round_ in range(3):
            ours = await until(lambda: _connections(management, vhost), what="connections in the vhost")
            for name in ours:
                await management.close_connection(name)
            await greets_again(fleet, f"round {round_}")


async def _connections(management: Management, vhost: str) -> list[str]:
    return [connection.name for connection in await management.connections(vhost)]


async def test_who_subscribes_is_told_that_events_may_have_been_missed(
    vhost: str, settings: FleetSettings, management: Management
) -> None:
    gaps: list[None] = []
    async with connect(settings=settings) as bus, bus.subscribe("#", on_gap=lambda: gaps.append(None)):
        assert not gaps
        for name in await until(lambda: _connections(management, vhost), what="connections in the vhost"):
            await management.close_connection(name)
        await until(lambda: gaps, 30, what="the end of a gap")


async def test_work_outlives_a_lost_connection_and_is_done_once(
    vhost: str, settings: FleetSettings, management: Management
) -> None:
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.send(Hold())
        await until(lambda: fleet[Greeter].held)
        for name in await until(lambda: _connections(management, vhost), what="connections in the vhost"):
            await management.close_connection(name)
        await greets_again(fleet, "meanwhile")
        fleet[Greeter].gate.set()
        await until(lambda: _depth(management, vhost, 0), what="an empty queue")

        assert fleet[Greeter].held == 1


async def _depth(management: Management, vhost: str, depth: int) -> bool:
    return (await management.queue("mb.q.greeter", vhost)).depth == depth


@pytest.mark.parametrize("frozen_s", [0, pytest.param(30, marks=pytest.mark.proof)])
async def test_after_the_broker_was_frozen_until_publishers_gave_up(
    used_node: PrivateNode, tmp_path: Path, frozen_s: float
) -> None:
    settings = settings_for(used_node.amqp_url, tmp_path, publish_timeout_s=3)
    async with fleet_of(Greeter, settings=settings) as fleet:
        await fleet.bus.request(Greet(name="before"))
        used_node.freeze()
        frozen_at = time.monotonic()
        try:
            with pytest.raises(BusUnavailable, match="cannot be reached, or does not confirm"):
                await fleet.bus.send(Greet(name="into the ice"))
            await until(lambda: time.monotonic() - frozen_at > frozen_s, frozen_s + 5)
        finally:
            used_node.thaw()

        await greets_again(fleet, "after", within_s=60)


async def test_the_death_of_the_broker_loses_nothing_confirmed_and_a_request_outlives_it(
    own_node: PrivateNode, tmp_path: Path
) -> None:
    """The reply queue of the request dies with the broker, so that a reply on its way has nowhere to go."""
    settings = settings_for(own_node.amqp_url, tmp_path)
    async with fleet_of(Greeter, settings=settings) as fleet:
        await registered(own_node, "mb.q.greeter")
        asking = asyncio.create_task(fleet.bus.request(Hold(), timeout_s=120))
        await until(lambda: fleet[Greeter].held)
        sending = [asyncio.create_task(_send(fleet, f"{n}")) for n in range(300)]
        await until(lambda: len(fleet[Greeter].greeted) > 20)
        await own_node.kill()
        fleet[Greeter].gate.set()
        await own_node.start()
        confirmed = {name for name in await asyncio.gather(*sending) if name}

        async with asyncio.timeout(45):
            await asking
        assert fleet[Greeter].held == 1
        await greets_again(fleet, "after", within_s=60)
        await until(lambda: confirmed <= set(fleet[Greeter].greeted), deadline_s=30)
        assert (
            len(fleet[Greeter].greeted) == len(set(fleet[Greeter].greeted)) + fleet[Greeter].greeted.count("after") - 1
        )


CRASHER = """
import asyncio, os, signal, sys
from config.settings import FleetSettings
from mindbus import WorkerContext, Worker, on_command
from mindbus.testing.deliver import running
from tests.greetings import Greet, Greeting

class Crasher(Worker):
    name = "greeter"
    concurrency = int(sys.argv[3])
    def __init__(self, context: WorkerContext) -> None: ...
    @on_command
    async def greet(self, command: Greet) -> Greeting:
        if command.name == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        return Greeting(text="")

async def main() -> None:
    settings = FleetSettings(amqp_url=sys.argv[1], data_dir=sys.argv[2], retry_rungs="50ms,100ms,300ms")
    async with running(Crasher, settings=settings):
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("concurrency", [pytest.param(1, marks=pytest.mark.proof), 32])
async def test_a_message_that_kills_its_worker_ends_among_the_dead_alone(
    vhost: str, vhost_url: str, settings: FleetSettings, management: Management, concurrency: int
) -> None:
    """The broker gives it up, the worker tries it once more, the broker gives it up for good."""
    await management.limit_deliveries(2, vhost)
    async with fleet_of(Greeter, settings=settings):
        pass
    async with raw_publisher(vhost_url) as raw:
        for name in ("deadly", *(f"innocent {number}" for number in range(20))):
            await raw.envelope(an_envelope(data={"name": name}))

    dead, deaths = DeadLetters(vhost_url), 0
    while not (letters := await _given_up(dead)):
        arguments = (CRASHER, vhost_url, str(settings.data_dir), str(concurrency))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", *arguments, env={**os.environ, "PYTHONPATH": "."}
        )
        exited = asyncio.create_task(process.wait())
        buried = asyncio.create_task(until(lambda: _given_up(dead), 60, "a dead letter"))
        await asyncio.wait({exited, buried}, return_when=asyncio.FIRST_COMPLETED)
        if buried.done():
            process.terminate()
            await exited
        else:
            buried.cancel()
            deaths += 1
            assert process.returncode == -signal.SIGKILL

    assert deaths == 6
    assert len(letters) == len(await dead.look("greeter")) == 1
    assert "the worker died on it again and again" in letters[0].reason
    assert letters[0].origin == "mb.q.greeter"


async def _given_up(dead: DeadLetters) -> list[DeadLetter]:
    """Dead letters that have been replayed before."""
    return [letter for letter in await dead.look("greeter") if letter.replayed_by]


async def test_messages_that_take_long_are_handled_side_by_side_after_a_crash(
    vhost: str, vhost_url: str, settings: FleetSettings, management: Management
) -> None:
    """Each may wait for those behind it; and a consumer that takes one at a time is not one that gets nothing."""
    async with fleet_of(Greeter, settings=settings) as fleet:
        topology = queues_of(fleet[Greeter], settings)
    async with raw_publisher(vhost_url) as raw:
        for _ in range(3):
            await raw.envelope(an_envelope(type="mb.cmd.greeter.hold.v1", data={}))
    async with await aio_pika.connect(vhost_url) as connection:
        queue = await (await connection.channel()).get_queue("mb.q.greeter", ensure=False)
        for _ in range(3):
            await queue.get()
    transport, at_work = RabbitTransport(vhost_url, "test"), list[Incoming]()

    consumer = transport.consume(topology, "mb.q.greeter", 32, at_work.append)
    consumer.cautious_s, consumer.check_s = 2.0, 0.2

    await until(lambda: at_work)
    assert len(at_work) == 1
    await until(lambda: len(at_work) == 3)
    for incoming in at_work:
        await incoming.ack()
    await until(lambda: _depth(management, vhost, 0), what="an empty queue")
    assert len(at_work) == 3
    await transport.close()
