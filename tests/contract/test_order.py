"""Messages of one key are handled one after the other, as they were sent; keys side by side."""

import asyncio
import random
import secrets
from collections import defaultdict
from pathlib import Path

import pytest

import mindbus
from bus_schema.envelope import Envelope
from bus_schema.messages import Message
from config.settings import FleetSettings
from mindbus.bus.connection import connect, open_transport
from mindbus.bus.transport import Transport
from mindbus.runtime.service import Service, build
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for

KEYS = ("аня", "boris", "вера", "gleb")


class Say(mindbus.Command[mindbus.Nothing], domain="talk", action="say"):
    by: str
    number: int
    fails_times: int = 0


class Talk(mindbus.Worker):
    """Takes its time, a different one for each message."""

    name = "talk"
    concurrency = 32
    heard: dict[str, list[int]]

    def __init__(self, _kit: mindbus.WorkerContext) -> None:
        self.heard = defaultdict(list)
        self.at_once, self.most_at_once = 0, 0
        self.tried: dict[tuple[str, int], int] = defaultdict(int)
        self.chance = random.Random(7)
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    def order_key(self, message: Message | Envelope) -> str | None:
        return message.by if isinstance(message, Say) else None

    @mindbus.on_command
    async def hear(self, command: Say) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.chance.random() * 0.01)
            await self.may_go_on.wait()
            self.tried[command.by, command.number] += 1
            if self.tried[command.by, command.number] <= command.fails_times:
                raise mindbus.TemporaryFailure("not yet")
            self.heard[command.by].append(command.number)
        finally:
            self.at_once -= 1

    def count(self) -> int:
        return sum(map(len, self.heard.values()))


@pytest.fixture(params=["memory", pytest.param("rabbit", marks=pytest.mark.rabbit)])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> FleetSettings:
    in_memory = f"memory://{secrets.token_hex(4)}"
    url = in_memory if request.param == "memory" else request.getfixturevalue("vhost_url")
    return settings_for(url, tmp_path)


async def test_within_a_key_nothing_overtakes_while_keys_run_side_by_side(settings: FleetSettings) -> None:
    async with fleet_of(Talk, settings=settings) as fleet:
        for number in range(50):
            for key in KEYS:
                await fleet.bus.send(Say(by=key, number=number))
        talk = fleet[Talk]
        await until(lambda: talk.count() == 50 * len(KEYS), 30)

    assert dict(talk.heard) == {key: list(range(50)) for key in KEYS}
    assert talk.most_at_once > 1


async def test_a_message_that_is_tried_again_keeps_its_place_and_holds_up_nobody_else(settings: FleetSettings) -> None:
    async with fleet_of(Talk, settings=settings) as fleet:
        await fleet.bus.send(Say(by="аня", number=0, fails_times=2))
        for number in range(1, 4):
            await fleet.bus.send(Say(by="аня", number=number))
        await fleet.bus.send(Say(by="boris", number=0))
        talk = fleet[Talk]
        await until(lambda: talk.heard["boris"])
        assert talk.heard["аня"] == []
        await until(lambda: talk.count() == 5)

    assert talk.heard["аня"] == [0, 1, 2, 3]
    assert talk.tried["аня", 0] == 3


async def test_a_message_that_fails_for_good_makes_way_for_the_next(settings: FleetSettings) -> None:
    async with fleet_of(Talk, settings=settings) as fleet:
        await fleet.bus.send(Say(by="аня", number=0, fails_times=99))
        await fleet.bus.send(Say(by="аня", number=1))
        talk = fleet[Talk]
        await until(lambda: talk.count() == 1, 30)

    assert talk.heard["аня"] == [1]
    assert talk.tried["аня", 0] == Talk.attempts


async def test_a_standby_goes_on_where_the_first_stopped(settings: FleetSettings) -> None:
    transports = [open_transport(settings, "talk") for _ in range(2)]
    first, second = [await started(settings, transport) for transport in transports]
    one, two = first.worker, second.worker
    assert isinstance(one, Talk)
    assert isinstance(two, Talk)
    async with connect(settings=settings) as bus:
        for number in range(40):
            for key in KEYS:
                await bus.send(Say(by=key, number=number))
        await until(lambda: one.count() >= 20)
        assert two.count() == 0

        await first.drain()

        await until(lambda: one.count() + two.count() >= 40 * len(KEYS), 30)
    await second.drain()
    for transport in transports:
        await transport.close()
    assert {key: one.heard[key] + two.heard[key] for key in KEYS} == {key: list(range(40)) for key in KEYS}


async def started(settings: FleetSettings, transport: Transport) -> Service:
    service = build(Talk, "talk", settings, transport)
    await service.start()
    await service.wait_ready()
    return service
