"""One ear for many listeners."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bus_schema.envelope import Envelope
from bus_schema.fleet import Heartbeat, State
from config.settings import FleetSettings
from gateway.event_feed import EventFeed, Listener, MissedEvents
from mindbus import Client, Event, connect
from mindbus.bus.connection import new_client, new_sender
from mindbus.bus.memory import MemoryBroker
from mindbus.testing.wait import until
from tests.lost_connections import LostConnections


class Rained(Event, topic="weather", name="rained_here"):
    """It rained."""

    millimetres: int


class Clock:
    """Time as a test has it."""

    now = datetime(2026, 3, 14, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Ear:
    """A feed on a bus of the test's own."""

    def __init__(self, feed: EventFeed, bus: Client, clock: Clock) -> None:
        self.feed, self.bus, self.clock = feed, bus, clock

    async def beat(self, service: str, **options: bool) -> None:
        how = {"ready": True} | options
        await self.bus.publish(Heartbeat(service=service, instance="1", version="7", **how))


@pytest.fixture
async def ear(request: pytest.FixtureRequest) -> AsyncIterator[Ear]:
    clock = Clock()
    async with connect(settings=FleetSettings(amqp_url=f"memory://{request.node.name}")) as bus:
        feed = EventFeed(bus, 5, clock)
        async with feed.receiving():
            yield Ear(feed, bus, clock)


def millimetres(items: list[Envelope | MissedEvents]) -> list[object]:
    return [item if isinstance(item, MissedEvents) else (item.data or {})["millimetres"] for item in items]


async def test_every_listener_hears_every_event_from_when_it_listens_on(ear: Ear) -> None:
    with ear.feed.listen() as first:
        await ear.bus.publish(Rained(millimetres=1))
        await first.wait()
        with ear.feed.listen() as second:
            await ear.bus.publish(Rained(millimetres=2))
            await second.wait()

            assert millimetres(first.take()) == [1, 2]
            assert millimetres(second.take()) == [2]
            assert second.take() == []


async def test_who_is_too_slow_is_told_so_then_hears_the_latest(ear: Ear) -> None:
    with ear.feed.listen(capacity=3) as slow, ear.feed.listen() as quick:
        for number in range(5):
            await ear.bus.publish(Rained(millimetres=number))
        await until(lambda: len(quick) == 5)
        missed, *rest = slow.take()

    assert isinstance(missed, MissedEvents)
    assert millimetres(rest) == [3, 4]
    assert millimetres(quick.take()) == [0, 1, 2, 3, 4]


async def test_what_was_published_while_the_connection_was_lost_is_told_as_missed(tmp_path: Path) -> None:
    settings, transport = FleetSettings(data_dir=tmp_path), LostConnections(MemoryBroker())
    async with new_client(transport, new_sender("ear", "svc.ear", settings), settings) as bus:
        feed = EventFeed(bus, 5, Clock())
        async with feed.receiving():
            with feed.listen() as listener:
                assert listener.take() == []
                transport.begin_anew()
                assert [type(item) for item in listener.take()] == [MissedEvents]


async def test_a_listener_is_read_like_a_stream(ear: Ear) -> None:
    with ear.feed.listen() as listener:
        for number in range(3):
            await ear.bus.publish(Rained(millimetres=number))
        heard: list[Envelope | MissedEvents] = []
        async for item in listener:
            heard.append(item)
            if len(heard) == 3:
                break

    assert millimetres(heard) == [0, 1, 2]


async def test_a_mistake_of_one_listener_does_not_end_the_feed(ear: Ear) -> None:
    heard: list[object] = []

    def accepts(_item: Envelope) -> bool:
        heard.append("a mistake")
        raise LookupError("foreseen by nobody")

    async def hears() -> bool:
        await ear.bus.publish(Rained(millimetres=2))
        heard.extend(millimetres(listener.take()))
        return 2 in heard

    with ear.feed.listen(accepts=accepts):
        await ear.bus.publish(Rained(millimetres=1))
        await until(lambda: bool(heard))
    with ear.feed.listen() as listener:
        await until(hears)


async def test_heartbeats_show_the_fleet_and_disturb_nobody(ear: Ear) -> None:
    with ear.feed.listen() as listener:
        await ear.beat("storage")
        await ear.beat("dialogue", ready=False, standing_by=True)
        await ear.beat("context", ready=False)
        await until(lambda: len(ear.feed.workers) == 3)

        assert len(listener) == 0
    assert [(seen.service, seen.state, seen.is_silent) for seen in ear.feed.workers] == [
        ("context", State.UNREADY, False),
        ("dialogue", State.STANDING_BY, False),
        ("storage", State.READY, False),
    ]


async def test_a_worker_is_silent_after_three_beats_and_forgotten_after_an_hour(ear: Ear) -> None:
    await ear.beat("storage")
    await until(lambda: ear.feed.workers)
    assert ear.feed.is_connected

    ear.clock.now += timedelta(seconds=16)
    assert [seen.is_silent for seen in ear.feed.workers] == [True]
    assert not ear.feed.is_connected

    ear.clock.now += timedelta(hours=1)
    assert ear.feed.workers == []


def test_a_listener_starts_with_nothing() -> None:
    assert Listener(1).take() == []
