"""The benchmark's worker on MindBus: validated envelope, strict JSON, deduplication, metrics, all as shipped."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from benchmarks.jobs import PREFETCH, Job
from benchmarks.orders import PlaceOrder, Receipt
from config.settings import FleetSettings
from mindbus import Worker, WorkerContext, connect, on_command
from mindbus.bus.connection import open_transport
from mindbus.runtime.service import build, topology_of


class Orders(Worker):
    concurrency = PREFETCH

    def __init__(self, name: str, handle: Callable[[PlaceOrder], Receipt]) -> None:
        self.name = name
        self._handle = handle

    @on_command
    async def place(self, command: PlaceOrder) -> Receipt:
        return self._handle(command)


class OnMindBus:
    @asynccontextmanager
    async def worker(self, job: Job, handle: Callable[[PlaceOrder], Receipt]) -> AsyncIterator[None]:
        def make(_kit: WorkerContext) -> Worker:
            return Orders(job.service, handle)

        settings = _settings(job)
        transport = open_transport(settings, "bench")
        service = build(make, job.service, settings, transport)
        await service.start()
        await service.wait_ready()
        yield
        await service.drain()
        await transport.close()

    @asynccontextmanager
    async def publisher(self, job: Job) -> AsyncIterator[Callable[[PlaceOrder], Awaitable[object]]]:
        settings = _settings(job)
        await _declare(job, settings)
        async with connect(settings=settings) as bus:
            yield lambda command: bus.send(command, to=job.service)

    @asynccontextmanager
    async def principal(self, job: Job) -> AsyncIterator[Callable[[PlaceOrder], Awaitable[Receipt]]]:
        async with connect(settings=_settings(job)) as bus:
            yield lambda command: bus.request(command, to=job.service, timeout_s=120)


async def _declare(job: Job, settings: FleetSettings) -> None:
    transport = open_transport(settings, "bench")
    await transport.declare(topology_of(Orders(job.service, _never), settings))
    await transport.close()


def _never(_order: PlaceOrder) -> Receipt:
    raise AssertionError("only declares the queue")


def _settings(job: Job) -> FleetSettings:
    return FleetSettings(amqp_url=job.amqp_url, data_dir=job.data_dir)
