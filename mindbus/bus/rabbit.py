"""RabbitMQ as a transport, on aio-pika."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import aio_pika
import aiormq
from pamqp.commands import Basic
from yarl import URL

from mindbus.bus.rabbit_consumer import RabbitConsumer
from mindbus.bus.rabbit_link import (
    CONNECTION_ERRORS,
    RabbitLink,
    declare,
    is_own_cancellation,
    translate_connection_errors,
)
from mindbus.bus.topology import Topology
from mindbus.bus.transport import Incoming, Outgoing, Properties, RawCopy, properties_of
from mindbus.errors import BusUnavailable, Unroutable
from mindbus.logs import logger

_BACKOFF_S = (0.05, 0.2, 0.5, 1.0)


class RabbitTransport:
    """Publishes and consumes on separate connections, so that a blocked publisher never stops a consumer."""

    def __init__(self, url: str, name: str, publish_timeout_s: float = 10.0) -> None:
        self._user = URL(url).user or "guest"
        self._publishing = RabbitLink(url, f"{name} publish")
        self._consuming = RabbitLink(url, f"{name} consume")
        self._publish_timeout_s = publish_timeout_s
        self._channel: aio_pika.abc.AbstractChannel | None = None
        self._opening = asyncio.Lock()
        self._exchanges: set[str] = set()

    async def publish(self, message: Outgoing | RawCopy) -> None:
        """Publish with a confirm; an attempt that times out is repeated under the same id."""
        deadline = asyncio.get_running_loop().time() + self._publish_timeout_s
        reason: BaseException | None = None
        for attempt in range(1_000_000):
            left_s = deadline - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            try:
                return await self._publish_once(message, min(left_s, self._publish_timeout_s / 2))
            except aio_pika.exceptions.PublishError:
                raise Unroutable(f"{Unroutable.__doc__} ({message.exchange}, {message.routing_key})") from None
            except CONNECTION_ERRORS as error:
                if is_own_cancellation(error):
                    raise
                reason = error
                self._channel = None
            await asyncio.sleep(min(_BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)], max(left_s, 0)))
        raise BusUnavailable(f"{BusUnavailable.__doc__} ({reason!r})")

    async def declare(self, topology: Topology) -> None:
        """Declare on the publishing connection. Raises BusUnavailable."""
        async with self._administering() as channel:
            await declare(channel, topology)

    async def remove(self, queue: str) -> None:
        """Delete a queue with its messages; it need not exist. Raises BusUnavailable."""
        async with self._administering() as channel:
            await channel.queue_delete(queue)

    @asynccontextmanager
    async def _administering(self) -> AsyncIterator[aio_pika.abc.AbstractChannel]:
        with translate_connection_errors():
            async with asyncio.timeout(self._publish_timeout_s):
                connection = await self._publishing.connection()
                async with connection.channel() as channel:
                    yield channel

    def consume(
        self, topology: Topology, queue: str, prefetch: int, deliver: Callable[[Incoming], None]
    ) -> RabbitConsumer:
        """Start a consumer that survives whatever happens to its connection, channel or queue."""
        return RabbitConsumer(self._consuming, topology, queue, prefetch, deliver)

    async def close(self) -> None:
        await self._publishing.close()
        await self._consuming.close()

    async def _publish_once(self, message: Outgoing | RawCopy, timeout_s: float) -> None:
        # Connecting, the exchange and the confirm share the time: a frozen broker may answer none of them.
        async with asyncio.timeout(timeout_s):
            channel = await self._open_channel()
            if message.exchange not in self._exchanges:
                await self._ensure_exchange(channel, message.exchange)
            if isinstance(message, Outgoing):
                properties = _amqp(properties_of(message.envelope), {}, self._user)
                properties.delivery_mode = 1 if message.transient else 2
                mandatory = message.mandatory
            else:
                properties, mandatory = _amqp(message.properties, message.headers, self._user), True
            underlay = cast("aiormq.Channel", await channel.get_underlay_channel())
            await underlay.basic_publish(
                message.body,
                exchange=message.exchange,
                routing_key=message.routing_key,
                properties=properties,
                mandatory=mandatory,
                wait=False,  # for the socket, which would let one publish at a time in: the confirm says all
            )

    async def _open_channel(self) -> aio_pika.abc.AbstractChannel:
        channel = self._channel
        if channel is not None and not channel.is_closed:
            return channel
        async with self._opening:
            if self._channel is None or self._channel.is_closed:
                connection = await self._publishing.connection()
                self._channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
                self._exchanges.clear()
                logger().debug("publishing channel open")
            return self._channel

    async def _ensure_exchange(self, channel: aio_pika.abc.AbstractChannel, name: str) -> None:
        """Declare the exchange: a publish to a missing one would close the channel for all publishers."""
        async with self._opening:
            if name in self._exchanges:
                return
            if name.startswith(("mb.cmd.", "mb.evt", "mb.reply", "mb.sub")):
                await channel.declare_exchange(name, "topic", durable=True)
            if name.startswith("mb.evt."):
                await channel.declare_exchange("mb.evt", "topic", durable=True)
                exchange = await channel.get_exchange("mb.evt", ensure=False)
                await exchange.bind(name, routing_key="#")
            self._exchanges.add(name)


def _amqp(properties: Properties, headers: dict[str, Any], user: str) -> Basic.Properties:
    return Basic.Properties(
        message_id=properties.message_id,
        message_type=properties.type,
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        correlation_id=properties.correlation_id,
        reply_to=properties.reply_to,
        app_id=properties.app_id,
        user_id=user,
        delivery_mode=2,
        headers=headers or None,
    )
