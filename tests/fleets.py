"""Runs workers for a test and hands them out, so that it can look inside."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from config.settings import FleetSettings
from mindbus import Client, Worker, WorkerContext
from mindbus.integrations.bus_thread import BusThread
from mindbus.testing.deliver import running
from tests.migrated import add_databases

WorkerT = TypeVar("WorkerT", bound=Worker)


class Fleet:
    """Workers at work, by class, with a client among them."""

    def __init__(self, bus: Client, workers: list[Worker]) -> None:
        self.bus = bus
        self._workers = workers

    def __getitem__(self, kind: type[WorkerT]) -> WorkerT:
        return next(worker for worker in self._workers if isinstance(worker, kind))


@asynccontextmanager
async def fleet_of(*makers: Callable[[WorkerContext], Worker], settings: FleetSettings) -> AsyncIterator[Fleet]:
    """Run them until the block ends; databases in files have their tables already."""
    if settings.database_url is None:
        await asyncio.to_thread(add_databases, settings.data_dir)
    built: list[Worker] = []

    def remembering(make: Callable[[WorkerContext], Worker]) -> Callable[[WorkerContext], Worker]:
        def made(context: WorkerContext) -> Worker:
            built.append(make(context))
            return built[-1]

        made.name = getattr(make, "name", "")  # type: ignore[attr-defined]  # as a Worker class has one
        return made

    async with running(*map(remembering, makers), settings=settings) as bus:
        yield Fleet(bus, built)


def settings_for(amqp_url: str, data_dir: Path, **options: Any) -> FleetSettings:
    """FleetSettings with a short ladder, so that retries take no time."""
    return FleetSettings(amqp_url=amqp_url, data_dir=data_dir, **{"retry_rungs": "50ms,100ms,300ms", **options})


@asynccontextmanager
async def bus_thread(identity: str, settings: FleetSettings) -> AsyncIterator[BusThread]:
    """A connection in a thread of its own, as frameworks without an event loop of ours use it."""
    thread = BusThread(identity, settings=settings)
    await asyncio.to_thread(thread.__enter__)
    try:
        yield thread
    finally:
        await asyncio.to_thread(thread.__exit__, None, None, None)
