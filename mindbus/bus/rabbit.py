"""RabbitMQ as a transport."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pamqp import commands

from mindbus.broker_url import nodes_of
from mindbus.bus.amqp.channel import Address, Channel, ChannelClosed, NotTaken, PublishingChannel, Returned
from mindbus.bus.amqp.frames import Content, pack_properties
from mindbus.bus.rabbit_consumer import RabbitConsumer, RabbitIncoming
from mindbus.bus.rabbit_link import CONNECTION_ERRORS, RabbitLink, checks, declarations, translate_connection_errors
from mindbus.bus.topology import EVENTS, Binding, Exchange, Topology
from mindbus.bus.transport import Incoming, Outgoing, Properties, RawCopy, properties_of
from mindbus.errors import BusUnavailable, NotPermitted, QueueUnavailable, Unroutable
from mindbus.logs import logger

# The broker's number for a prefetch has sixteen bits.
_MOST_AT_HAND = 65_535
_BACKOFF_S = (0.05, 0.2, 0.5, 1.0)


class RabbitTransport:
    """Publishes and consumes on separate connections, so that a blocked publisher never stops a consumer.

    In a cluster they begin at two of its nodes, by chance, so that all clients together load all nodes.
    """

    def __init__(self, url: str, name: str, publish_timeout_s: float = 10.0, service: str = "") -> None:
        nodes = list(nodes_of(url))
        random.shuffle(nodes)
        self.is_cluster = len(nodes) > 1
        self._publishing = RabbitLink(nodes, f"{name} publish", service)
        self._consuming = RabbitLink([*nodes[1:], nodes[0]], f"{name} consume", service)
        self._publish_timeout_s = publish_timeout_s
        self._channel: PublishingChannel | None = None
        self._opening = asyncio.Lock()
        self._exchanges: set[str] = set()

    @property
    def shares_user(self) -> bool:
        """Whether participants share the user that it logs in."""
        return self._publishing.receiver.shares_user

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
            except Returned:
                raise Unroutable(f"{Unroutable.__doc__} ({message.exchange}, {message.routing_key})") from None
            except NotTaken as error:
                reason = error
            except CONNECTION_ERRORS as error:
                # The end of the time says less than what went wrong before.
                if reason is None or not isinstance(error, TimeoutError):
                    reason = error
                if _is_refusal(error, message):
                    raise NotPermitted(f"{NotPermitted.__doc__} ({error})") from error
            await asyncio.sleep(min(_BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)], max(left_s, 0)))
        kind = QueueUnavailable if isinstance(reason, NotTaken) else BusUnavailable
        raise kind(f"{kind.__doc__} ({reason!r})")

    async def declare(self, topology: Topology) -> None:
        """Declare on the publishing connection; without the exchanges, unless participants share the user.

        Raises BusUnavailable.
        """
        if not self.shares_user:
            topology = replace(topology, exchanges=())
        async with self._administering() as channel:
            await channel.call_all(declarations(topology))

    async def require(self, topology: Topology) -> None:
        """Check queues that an administrator makes, unless participants share the user.

        Raises TopologyMissing, BusUnavailable.
        """
        if not self.shares_user:
            async with self._administering() as channel:
                await self._publishing.prepare(channel, topology)

    async def remove(self, queue: str) -> None:
        """Delete a queue with its messages; it need not exist. Raises BusUnavailable."""
        async with self._administering() as channel:
            await channel.call(commands.Queue.Delete(queue=queue), commands.Queue.DeleteOk)

    @asynccontextmanager
    async def _administering(self) -> AsyncIterator[Channel]:
        with translate_connection_errors():
            async with asyncio.timeout(self._publish_timeout_s), self._publishing.channel() as channel:
                yield channel

    def consume(
        self,
        topology: Topology,
        queue: str,
        prefetch: int | None,
        deliver: Callable[[Incoming], None],
        on_begin: Callable[[], None] | None = None,
    ) -> RabbitConsumer:
        """Start a consumer that survives whatever happens to its connection, channel or queue."""
        return RabbitConsumer(self._consuming, topology, queue, prefetch, deliver, on_begin)

    async def waiting(self, queue: str) -> AsyncGenerator[Incoming]:
        """Messages that wait in a queue just now, each once; those not acknowledged go back when it is closed."""
        arrived: asyncio.Queue[RabbitIncoming] = asyncio.Queue()
        with translate_connection_errors():
            async with self._consuming.channel() as channel:

                def deliver(tag: int, exchange: str, routing_key: str, content: Content) -> None:
                    incoming = RabbitIncoming(channel, tag, exchange, routing_key, content, self._consuming.receiver)
                    arrived.put_nowait(incoming)

                channel.on_delivery = deliver
                count = min(await _depth(channel, queue), _MOST_AT_HAND)
                if count:
                    await channel.set_prefetch(count)
                    await channel.consume(queue)
                for _ in range(count):
                    try:
                        async with asyncio.timeout(self._publish_timeout_s):
                            incoming = await arrived.get()
                    except TimeoutError:
                        # Somebody else has taken the others meanwhile.
                        return
                    yield incoming

    async def close(self) -> None:
        await self._publishing.close()
        await self._consuming.close()

    async def _publish_once(self, message: Outgoing | RawCopy, timeout_s: float) -> None:
        channel: PublishingChannel | None = None
        try:
            # Connecting, the exchange and the confirm share the time: a frozen broker may answer none of them.
            async with asyncio.timeout(timeout_s):
                channel = await self._open_channel()
                if message.exchange not in self._exchanges:
                    await self._ensure_exchange(channel, message.exchange)
                address, properties, body = self._packed(message)
                await channel.publish(address, properties, body, mandatory=_must_arrive(message))
        except (NotTaken, TimeoutError):
            # Seen on 3.10: a channel over which a queue was published to that has lost its leader may refuse for ever.
            if channel is not None and channel is self._channel and channel.output.writable.is_set():
                self._channel = None
                channel.retire()
            raise

    def _packed(self, message: Outgoing | RawCopy) -> tuple[Address, bytes, bytes]:
        """Address, properties, body."""
        if isinstance(message, Outgoing):
            properties, headers, is_durable = properties_of(message.envelope), dict[str, Any](), not message.transient
        else:
            properties, headers, is_durable = message.properties, message.headers, True
        packed = _pack(properties, headers, self._publishing.login, is_durable)
        return (message.exchange, message.routing_key, properties.message_id or ""), packed, message.body

    async def _open_channel(self) -> PublishingChannel:
        if self._channel is not None and self._channel.error is None:
            return self._channel
        async with self._opening:
            if self._channel is None or self._channel.error is not None:
                self._channel = await self._publishing.open_channel(PublishingChannel)
                self._exchanges.clear()
                logger().debug("publishing channel open")
            return self._channel

    async def _ensure_exchange(self, channel: Channel, name: str) -> None:
        """Declare the exchange: a publish to a missing one would close the channel for all publishers."""
        async with self._opening:
            if name in self._exchanges:
                return
            if not self.shares_user:
                await self._check_exchange(name)
                self._exchanges.add(name)
                return
            topology = Topology()
            if name.startswith(("mb.cmd.", "mb.evt", "mb.reply", "mb.sub")):
                topology += Topology(exchanges=(Exchange(name),))
            if name.startswith("mb.evt."):
                topology += Topology(exchanges=(Exchange(EVENTS),), bindings=(Binding(name, EVENTS, "#", True),))
            await channel.call_all(declarations(topology))
            self._exchanges.add(name)

    async def _check_exchange(self, name: str) -> None:
        """Raise Returned where there is no such exchange."""
        async with self._publishing.channel() as channel:
            try:
                await channel.call_all(checks(Topology(exchanges=(Exchange(name),))))
            except ChannelClosed as error:
                if "NOT_FOUND" in str(error):
                    raise Returned(Returned.__doc__) from error
                raise


async def _depth(channel: Channel, queue: str) -> int:
    """Number of messages that wait in a queue; 0 where there is no such queue."""
    try:
        answer = await channel.call(commands.Queue.Declare(queue=queue, passive=True), commands.Queue.DeclareOk)
    except ChannelClosed as error:
        if "NOT_FOUND" in str(error):
            return 0
        raise
    return answer.message_count or 0


def _must_arrive(message: Outgoing | RawCopy) -> bool:
    """Whether it is an error that no queue takes it."""
    return message.mandatory if isinstance(message, Outgoing) else True


def _is_refusal(error: BaseException, message: Outgoing | RawCopy) -> bool:
    """Whether the broker does not let this user publish this message; others fail with the channel, too."""
    reason = str(error)
    is_of_exchange = "ACCESS_REFUSED" in reason and f"exchange '{message.exchange}'" in reason
    return is_of_exchange and ("topic '" not in reason or f"topic '{message.routing_key}'" in reason)


def _pack(properties: Properties, headers: dict[str, Any], user: str, is_durable: bool) -> bytes:
    strings = {
        "content_type": properties.content_type,
        "content_encoding": properties.content_encoding,
        "correlation_id": properties.correlation_id,
        "reply_to": properties.reply_to,
        "message_id": properties.message_id,
        "type": properties.type,
        "user_id": user,
        "app_id": properties.app_id,
    }
    return pack_properties(strings, headers, is_durable=is_durable)
