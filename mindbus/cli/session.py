"""The bus connection of one command."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pydantic import ValidationError

from bus_schema.envelope import explain
from bus_schema.messages import Command
from bus_schema.replies import Code
from mindbus.bus.client import Client, ResultT
from mindbus.bus.connection import connect, find_broker
from mindbus.cli.environment import read_settings
from mindbus.cli.errors import CommandError, UsageError
from mindbus.settings import Settings

T = TypeVar("T")
_REACH_WITHIN_S = 3.0
_AMQP_PORT = {"amqp": 5672, "amqps": 5671}


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's asynchronous part."""
    return asyncio.run(work)


@asynccontextmanager
async def on_the_bus(identity: str, settings: Settings | None = None) -> AsyncIterator[Client]:
    """A client that speaks as `identity`. Raises NoBroker, CommandError where nothing listens."""
    settings = settings or read_settings()
    await require_reachable(find_broker(settings))
    async with connect(identity, settings=settings, service="cli") as client:
        yield client


async def require_reachable(amqp_url: str) -> None:
    """Find out in seconds what a client, which waits for a broker to come back, would take long to say."""
    parts = urlsplit(amqp_url)
    if parts.scheme not in _AMQP_PORT:
        return
    port = parts.port or _AMQP_PORT[parts.scheme]
    try:
        async with asyncio.timeout(_REACH_WITHIN_S):
            _reader, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError) as silent:
        raise CommandError(
            f"RabbitMQ does not answer at {parts.hostname}:{port}: start `mindbus up`, or mend MINDBUS_AMQP_URL",
            Code.UNAVAILABLE,
        ) from silent
    writer.close()


def answer_to(asked: Callable[[], Command[ResultT]], identity: str, longer_by_s: float = 0) -> ResultT:
    """Raises UsageError where it cannot be asked so, ReplyError, BusUnavailable."""
    try:
        command = asked()
    except ValidationError as invalid:
        raise UsageError(explain(invalid)) from invalid
    return run(_answer(command, identity, longer_by_s))


async def _answer(command: Command[ResultT], identity: str, longer_by_s: float) -> ResultT:
    settings = read_settings()
    async with on_the_bus(identity, settings) as bus:
        return await bus.request(command, timeout_s=settings.request_timeout_s + longer_by_s)
