"""One connection to RabbitMQ, made anew when it breaks."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import aio_pika
import aiormq.exceptions
from aio_pika.abc import AbstractChannel
from yarl import URL

from mindbus.bus.topology import Topology
from mindbus.errors import BusUnavailable
from mindbus.logs import logger

HEARTBEAT_S = 15
_CONNECT_TIMEOUT_S = 10.0
_COUNT_TIMEOUT_S = 20.0

# aiormq reports a lost connection in all of these ways, a cancellation nobody asked for among them.
CONNECTION_ERRORS: tuple[type[BaseException], ...] = (
    aiormq.exceptions.AMQPError,
    aio_pika.exceptions.AMQPError,
    aio_pika.exceptions.ChannelInvalidStateError,
    RuntimeError,
    TimeoutError,
    OSError,
    asyncio.CancelledError,
)


class RabbitLink:
    """Keeps at most one connection, opened anew on the next use after a loss."""

    def __init__(self, url: str, name: str) -> None:
        self._url = URL(url)
        if "heartbeat" not in self._url.query:
            self._url = self._url.update_query(heartbeat=HEARTBEAT_S)
        self._name = name
        self._connection: aio_pika.abc.AbstractConnection | None = None
        self._connecting = asyncio.Lock()
        self._counting: AbstractChannel | None = None
        self._counts_one = asyncio.Lock()
        self._closed = False

    async def connection(self) -> aio_pika.abc.AbstractConnection:
        """The open connection. Raises one of CONNECTION_ERRORS."""
        async with self._connecting:
            if self._closed:
                raise ConnectionError("this transport has been closed")
            # `is_closed` stays false when the broker closes; `connected` is what aio-pika clears then.
            if self._connection is None or not self._connection.connected.is_set():
                self._connection = await aio_pika.connect(
                    self._url, timeout=_CONNECT_TIMEOUT_S, client_properties={"connection_name": self._name}
                )
                logger().debug("connected to RabbitMQ", link=self._name)
            return self._connection

    async def count(self, queue: str) -> aiormq.spec.Queue.DeclareOk:
        """Messages and consumers of a queue, over a channel that is kept for such questions.

        Raises one of CONNECTION_ERRORS, also where there is no such queue.
        """
        # Whoever waits for a slow answer to another question is not late itself.
        async with self._counts_one, asyncio.timeout(_COUNT_TIMEOUT_S):
            connection = await self.connection()
            if self._counting is None or self._counting.is_closed:
                self._counting = await connection.channel(publisher_confirms=False)
            # After a refusal the broker has closed it, after a late answer it is of no more use.
            channel, self._counting = self._counting, None
            counted = (await channel.declare_queue(queue, passive=True)).declaration_result
            self._counting = channel
            return counted

    async def close(self) -> None:
        self._closed = True
        if self._connection is not None and not self._connection.is_closed:
            await self._connection.close()


def is_own_cancellation(error: BaseException) -> bool:
    """Whether this task itself was cancelled, rather than by a closing connection that cancels its waiters."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


@contextmanager
def ignore_connection_errors() -> Iterator[None]:
    """End the block at any of CONNECTION_ERRORS; a cancellation of this task itself goes on."""
    try:
        yield
    except CONNECTION_ERRORS as error:
        if is_own_cancellation(error):
            raise


@contextmanager
def translate_connection_errors() -> Iterator[None]:
    """Raise BusUnavailable in place of any of CONNECTION_ERRORS; a cancellation of this task itself goes on."""
    try:
        yield
    except CONNECTION_ERRORS as error:
        if is_own_cancellation(error):
            raise
        raise BusUnavailable(f"{BusUnavailable.__doc__} ({error!r})") from error


@asynccontextmanager
async def admin_channel(amqp_url: str) -> AsyncIterator[AbstractChannel]:
    """A channel with confirms on a connection of its own. Raises BusUnavailable."""
    with translate_connection_errors():
        connection = await aio_pika.connect(amqp_url, timeout=10)
        async with connection, connection.channel(publisher_confirms=True, on_return_raises=True) as channel:
            yield channel


async def declare(channel: AbstractChannel, topology: Topology) -> None:
    """Declare exchanges, queues, bindings, in this order."""
    exchanges = {
        exchange.name: await channel.declare_exchange(
            exchange.name, exchange.kind, durable=True, arguments=exchange.arguments or None
        )
        for exchange in topology.exchanges
    }
    for queue in topology.queues:
        await channel.declare_queue(
            queue.name, durable=not queue.exclusive, exclusive=queue.exclusive, arguments=queue.arguments or None
        )
    for binding in topology.bindings:
        if binding.to_exchange:
            target = exchanges.get(binding.target) or await channel.get_exchange(binding.target, ensure=False)
            await target.bind(binding.source, routing_key=binding.key)
        else:
            queue_ = await channel.get_queue(binding.target, ensure=False)
            await queue_.bind(binding.source, routing_key=binding.key)
