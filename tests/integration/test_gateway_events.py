"""Following what happens over HTTP: nothing is missed, nothing comes twice, nobody waits for the slow."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import httpx
import pytest

import mindbus
from config.settings import FleetSettings
from mindbus import Client
from mindbus.testing.wait import until
from tests.brokers import Broker
from tests.fleets import fleet_of
from tests.gateways import Frame, Served, gateway_settings, serving
from tests.installed import FLEET
from workers.tracker import TrackerWorker

STORAGE = FLEET["storage"]


class Rained(mindbus.Event, topic="rain", name="fell"):
    """It rained on somebody."""

    user_id: str
    millimetres: int
    note: str = ""


@pytest.fixture
def settings(broker: Broker, vhost_url: str, migrated_folder: Path) -> FleetSettings:
    return gateway_settings(broker, vhost_url, migrated_folder)


@pytest.fixture
async def gateway(settings: FleetSettings) -> AsyncIterator[Served]:
    async with serving(STORAGE, TrackerWorker, settings=settings) as served:
        yield served


async def rain(bus: Client, *millimetres: int, user: str = "anna", note: str = "") -> None:
    for each in millimetres:
        await bus.publish(Rained(user_id=user, millimetres=each, note=note), trace=f"conv_{user}")


def fell(frame: Frame) -> int:
    return int(frame.data["envelope"]["data"]["millimetres"])


async def take(frames: AsyncIterator[Frame], count: int) -> list[Frame]:
    async with asyncio.timeout(30):
        return [await anext(frames) for _ in range(count)]


def all_once_in_the_order_of_the_timeline(heard: list[Frame], count: int) -> bool:
    """What falls at the same time is recorded side by side: its numbers on the timeline may change places."""
    positions = [int(frame.id or "") for frame in heard]
    return sorted(map(fell, heard)) == list(range(count)) and positions == sorted(set(positions))


async def test_a_stream_begins_now(gateway: Served) -> None:
    await rain(gateway.bus, 1, 2)
    await until(lambda: _recorded(gateway, 2))
    async with gateway.stream("GET", "/api/events") as frames:
        await rain(gateway.bus, 3)
        (frame,) = await take(frames, 1)

    assert fell(frame) == 3
    assert frame.id == str(frame.data["sequence"]) == "3"
    assert frame.data in (await gateway.ok("GET", "/api/timeline"))["items"]


async def test_a_stream_begins_where_it_is_told_to(gateway: Served) -> None:
    for number in range(1, 6):
        await rain(gateway.bus, number)
        # The stream has the order in which they were recorded, several at a time.
        await until(partial(_recorded, gateway, number))
    since = (await gateway.ok("GET", "/api/timeline"))["items"][1]["time"]
    beginnings = [
        ({"params": {"since": since}}, [2, 3, 4, 5]),
        ({"params": {"cursor": "3"}}, [4, 5]),
        ({"params": {"cursor": "1"}, "headers": {"Last-Event-ID": "4"}}, [5]),
        ({"headers": {"Last-Event-ID": "0"}}, [1, 2, 3, 4, 5]),
    ]
    for options, expected in beginnings:
        async with gateway.stream("GET", "/api/events", **options) as frames:
            assert [fell(frame) for frame in await take(frames, len(expected))] == expected
    for missing in ("6", "999", "x"):
        assert (await gateway.no("GET", "/api/events", headers={"Last-Event-ID": missing}))[0] == 404


async def test_a_stream_tells_what_was_asked_for_alone(gateway: Served) -> None:
    conditions = [{"user": "anna"}, {"trace": "conv_anna"}, {"topic": "rain", "user": "anna"}]
    for query in conditions:
        async with gateway.stream("GET", "/api/events", params=query) as frames:
            await rain(gateway.bus, 1, user="boris")
            await rain(gateway.bus, 2, 3)
            assert sorted(fell(frame) for frame in await take(frames, 2)) == [2, 3]


async def test_a_client_that_comes_back_again_and_again_misses_nothing_hears_nothing_twice(gateway: Served) -> None:
    raining = asyncio.create_task(rain(gateway.bus, *range(300)))
    heard: list[Frame] = []
    headers = {"Last-Event-ID": "0"}
    while len(heard) < 300:
        async with gateway.stream("GET", "/api/events", headers=headers) as frames:
            heard += await take(frames, min(37, 300 - len(heard)))
        headers = {"Last-Event-ID": heard[-1].id or ""}
    await raining

    assert all_once_in_the_order_of_the_timeline(heard, 300)


async def test_a_gateway_that_comes_back_goes_on_at_its_address_where_it_was(settings: FleetSettings) -> None:
    settings = settings.model_copy(update={"gateway_port": None})
    heard: list[Frame] = []
    urls = set()
    async with fleet_of(STORAGE, TrackerWorker, settings=settings) as others:
        last = "0"
        for lifetime in range(3):
            begins = lifetime * 40
            async with serving(settings=settings) as gateway:
                urls.add(gateway.worker.url)
                raining = asyncio.create_task(rain(others.bus, *range(begins, begins + 40)))
                async with gateway.stream("GET", "/api/events", headers={"Last-Event-ID": last}) as frames:
                    # It ends while there is more to tell.
                    heard += await take(frames, 30)
                last = heard[-1].id or ""
                await raining
        async with (
            serving(settings=settings) as gateway,
            gateway.stream("GET", "/api/events", headers={"Last-Event-ID": last}) as frames,
        ):
            heard += await take(frames, 30)

    assert all_once_in_the_order_of_the_timeline(heard, 120)
    assert len(urls) == 1


async def test_streams_end_with_the_gateway_at_once(settings: FleetSettings) -> None:
    async with fleet_of(STORAGE, settings=settings), httpx.AsyncClient(trust_env=False, timeout=30) as http:
        async with serving(settings=settings) as gateway:
            listening = asyncio.create_task(http.get(f"{gateway.worker.url}/api/events"))
            await until(lambda: gateway.worker.streams.open_now == 1)
        ended = await listening

    assert ended.status_code == 200
    assert ended.text.endswith("\n\n")


async def test_there_are_so_many_streams_at_most(settings: FleetSettings) -> None:
    settings = settings.model_copy(update={"gateway_max_streams": 2})
    async with serving(STORAGE, settings=settings) as gateway:
        async with gateway.stream("GET", "/api/events"), gateway.stream("GET", "/api/events"):
            await until(lambda: gateway.worker.streams.open_now == 2)
            refused = await gateway.no("GET", "/api/events")
            said = await gateway.no(
                "POST", "/api/dialogues/anna/messages", json={"message": "x"}, headers={"Accept": "text/event-stream"}
            )
        await until(lambda: gateway.worker.streams.open_now == 0)
        async with gateway.stream("GET", "/api/events"):
            pass

    assert refused[:2] == said[:2] == (503, "unavailable")


async def test_nobody_waits_for_a_client_that_does_not_read(gateway: Served) -> None:
    url = httpx.URL(gateway.worker.url)
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.connect((url.host, url.port))
    reader, writer = await asyncio.open_connection(sock=small, limit=1024)
    writer.write(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 0\r\n\r\n")
    async with gateway.stream("GET", "/api/events", headers={"Last-Event-ID": "0"}) as frames:
        await until(lambda: gateway.worker.streams.open_now == 2)
        # More than any socket takes.
        await rain(gateway.bus, *range(150), note="ю" * 15_000)
        quick = [fell(frame) for frame in await take(frames, 150)]
    slow = await _numbers(reader, 150)
    writer.close()

    assert quick == slow
    # They are recorded several at a time, in whichever order.
    assert sorted(quick) == list(range(150))


async def _numbers(reader: asyncio.StreamReader, count: int) -> list[int]:
    told = b""
    async with asyncio.timeout(30):
        while len(found := re.findall(rb'"millimetres":([0-9]+),', told)) < count:
            told += await reader.read(1 << 22)
    return [int(number) for number in found]


async def _recorded(gateway: Served, count: int) -> bool:
    return len((await gateway.ok("GET", "/api/timeline"))["items"]) == count
