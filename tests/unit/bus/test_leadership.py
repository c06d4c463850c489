"""One instance of a worker consumes, the others stand by."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import mindbus
from bus_schema.fleet import State
from config.settings import FleetSettings
from mindbus.bus.connection import connect, open_transport
from mindbus.bus.inbox import MemoryInbox
from mindbus.bus.worker import Leadership
from mindbus.runtime.service import Service, build
from mindbus.sql.leadership import FileLock
from mindbus.testing.wait import until


class Leader(mindbus.Nothing):
    instance: str


class WhoLeads(mindbus.Query[Leader], domain="led", action="who_leads"):
    pass


class LedWorker(mindbus.Worker):
    name = "led"

    def __init__(self, instance: str, leadership: Leadership) -> None:
        self.instance, self.leadership = instance, leadership
        self.starts = 0
        self.fails_to_start = False

    async def start(self) -> None:
        self.starts += 1
        if self.fails_to_start:
            raise OSError("the disk is full")

    @mindbus.on_command
    async def answer(self, query: WhoLeads) -> Leader:
        return Leader(instance=self.instance)


class Losable(FileLock):
    """A lock that can be lost, as one over a connection can."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gone = asyncio.Event()

    async def wait_until_lost(self) -> None:
        await self.gone.wait()
        self.gone.clear()


class Unopenable(FileLock):
    """A lock whose file cannot be opened while there is an `error`."""

    error: OSError | None = None

    async def try_acquire(self) -> bool:
        if self.error is not None:
            raise self.error
        return await super().try_acquire()


class Unclosable(MemoryInbox):
    """An inbox whose end fails, the first time."""

    stops = 0

    async def stop(self) -> None:
        self.stops += 1
        if self.stops == 1:
            raise RuntimeError("the connection is in use")


@asynccontextmanager
async def started(worker: LedWorker, settings: FleetSettings) -> AsyncIterator[Service]:
    transport = open_transport(settings, "test")
    service = build(lambda _kit: worker, worker.name, settings, transport)
    await service.start()
    await service.wait_ready()
    try:
        yield service
    finally:
        await service.drain()
        await transport.close()


def settings_in(folder: Path) -> FleetSettings:
    return FleetSettings(data_dir=folder, amqp_url=f"memory://{folder}", request_timeout_s=5)


def led(folder: Path, instance: str, lock: Callable[[Path], FileLock] = FileLock) -> LedWorker:
    return LedWorker(instance, lock(folder / "led.db.writer"))


def state_of(service: Service) -> State:
    return service.state


async def who_leads(settings: FleetSettings) -> str:
    async with connect(settings=settings) as bus:
        return (await bus.request(WhoLeads())).instance


async def test_the_second_instance_stands_by_and_takes_over_when_the_first_stops(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    first, second = led(tmp_path, "first"), led(tmp_path, "second")
    async with started(first, settings) as leader, started(second, settings) as standby:
        assert state_of(standby) is State.STANDING_BY
        assert second.starts == 0
        assert {await who_leads(settings) for _ in range(4)} == {"first"}

        await leader.drain()

        await until(lambda: state_of(standby) is State.READY)
        assert await who_leads(settings) == "second"


async def test_who_loses_the_lock_stops_consuming_until_it_has_it_again(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    first, second = led(tmp_path, "first", Losable), led(tmp_path, "second")
    async with started(first, settings) as leader, started(second, settings) as standby:
        assert isinstance(first.leadership, Losable)
        first.leadership.gone.set()
        await until(lambda: leader.state is State.STANDING_BY or first.starts == 2)
        await until(lambda: State.READY in (leader.state, standby.state))
        assert await who_leads(settings) in ("first", "second")
        assert [leader.state, standby.state].count(State.READY) == 1


async def test_a_standby_that_cannot_open_leaves_the_place_to_another(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    first, broken, third = led(tmp_path, "first"), led(tmp_path, "broken"), led(tmp_path, "third")
    broken.fails_to_start = True
    async with started(first, settings) as leader, started(broken, settings), started(third, settings) as spare:
        await leader.drain()
        await until(lambda: spare.state is State.READY, deadline_s=30)
        assert await who_leads(settings) == "third"


async def test_a_standby_that_cannot_ask_for_the_lock_says_so_and_takes_over_once_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindbus.runtime.service._LEAD_AGAIN_S", 0.01)
    monkeypatch.setattr("mindbus.tasks._FIRST_DELAY_S", 0.01)
    settings = settings_in(tmp_path)
    first, second = led(tmp_path, "first"), led(tmp_path, "second", Unopenable)
    async with started(first, settings) as leader, started(second, settings) as standby:
        assert isinstance(second.leadership, Unopenable)
        second.leadership.error = OSError("too many open files")
        await until(lambda: standby.state is State.UNREADY)
        assert standby.note == "failing again and again: led leads; its log says why"
        second.leadership.error = None
        await leader.drain()
        await until(lambda: standby.state is State.READY)
        assert await who_leads(settings) == "second"


async def test_who_cannot_close_leaves_the_place_to_another_all_the_same(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    first, second = led(tmp_path, "first", Losable), led(tmp_path, "second")
    first.inbox = inbox = Unclosable()
    async with started(first, settings) as leader, started(second, settings) as standby:
        assert isinstance(first.leadership, Losable)
        first.leadership.gone.set()
        await until(lambda: inbox.stops)
        await until(lambda: State.READY in (leader.state, standby.state))
        assert await who_leads(settings) in ("first", "second")
