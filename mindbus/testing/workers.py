"""Workers on an in-memory bus, for tests without a broker."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from mindbus.bus.client import Client
from mindbus.bus.connection import connect, open_transport
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.runtime.service import build
from mindbus.settings import Settings


@asynccontextmanager
async def running(
    *makers: Callable[[WorkerContext], Worker], settings: Settings, identity: str = "user.local"
) -> AsyncIterator[Client]:
    """Run workers on whatever bus the settings name, each with a connection of its own; yields a client."""
    transports = [open_transport(settings, "test") for _ in makers]
    services = [
        build(make, getattr(make, "name", "") or "worker", settings, transport)
        for make, transport in zip(makers, transports, strict=True)
    ]
    try:
        for service in services:
            await service.start()
        for service in services:
            await service.wait_ready()
        async with connect(identity, settings=settings) as bus:
            yield bus
    finally:
        for service in reversed(services):
            await service.drain()
        for transport in transports:
            await transport.close()
