"""What a worker does by itself and keeps failing makes it unready, for as long as it fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import mindbus
from bus_schema.fleet import State
from config.settings import FleetSettings
from mindbus.bus.connection import open_transport
from mindbus.runtime.service import Service, build
from mindbus.tasks import kept_running
from mindbus.testing.wait import until


class DiligentWorker(mindbus.Worker):
    """Counts by itself every so often, and listens all the time."""

    name = "diligent"

    def __init__(self) -> None:
        self.failing = ""
        self._running = AsyncExitStack()

    async def start(self) -> None:
        await self._running.enter_async_context(kept_running(self._listen, "listening"))

    async def stop(self) -> None:
        await self._running.aclose()

    @mindbus.every(seconds=0.01)
    async def count(self) -> None:
        if self.failing == "diligent.count":
            raise OSError("the disk is full")

    async def _listen(self) -> None:
        while True:
            if self.failing == "listening":
                raise KeyError("a field that nobody foresaw")
            await asyncio.sleep(0.01)


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    monkeypatch.setattr("mindbus.tasks._FIRST_DELAY_S", 0.01)
    monkeypatch.setattr("mindbus.tasks._WORKS_AFTER_S", 0.2)
    settings = FleetSettings(data_dir=tmp_path, amqp_url=f"memory://{tmp_path}")
    transport = open_transport(settings, "test")
    service = build(lambda _context: DiligentWorker(), DiligentWorker.name, settings, transport)
    await service.start()
    await service.wait_ready()
    yield service
    await service.drain()
    await transport.close()


@pytest.mark.parametrize("task", ["listening", "diligent.count"])
async def test_a_task_that_keeps_failing_makes_its_worker_unready(service: Service, task: str) -> None:
    assert isinstance(service.worker, DiligentWorker)
    assert (service.state, service.note) == (State.READY, "")
    service.worker.failing = task
    await until(lambda: service.state is State.UNREADY)
    assert service.note == f"failing again and again: {task}; its log says why"
    service.worker.failing = ""
    await until(lambda: service.state is State.READY)
    assert service.note == ""
    service.worker.failing = task
    await until(lambda: service.state is State.UNREADY)
