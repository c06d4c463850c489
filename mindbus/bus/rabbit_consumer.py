"""A RabbitMQ consumer that restarts by itself."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from time import monotonic
from typing import Any

from pamqp import commands

from mindbus.bus.amqp.channel import UNLIMITED, ConsumingChannel
from mindbus.bus.amqp.frames import Content
from mindbus.bus.rabbit_link import CONNECTION_ERRORS, RabbitLink
from mindbus.bus.topology import Topology
from mindbus.bus.transport import Incoming, Origin, Properties, Receiver
from mindbus.errors import TopologyMissing
from mindbus.logs import logger
from mindbus.tasks import end
from mindbus.tenants import name_of

_BACKOFF_S = (0.1, 0.3, 1.0, 2.0, 5.0)
# A broker may forget to say that a queue is gone: seen on 3.10 when it goes just after the consumer came.
_CHECK_S = 10.0
_DECLARE_TIMEOUT_S = 20.0
_END_AGAIN_S = 0.5
_ACCESS_REFUSED = "ACCESS_REFUSED"
_END_TIMEOUT_S = 5.0
_MANY = 16
# A message that kills its process does so soon; others may take minutes, or need what waits behind them.
_CAUTIOUS_S = 5.0
# How often a quorum queue has delivered the message before.
_DELIVERIES = "x-delivery-count"


class RabbitConsumer:
    """Consumes, and starts over when the connection, the channel, the consumer or the queue is gone.

    Where many are taken at once from a queue of work, a new process takes one message at a time until it meets one that
    is delivered for the first time, or has survived one for some seconds: of those that were at work in a crash, only
    the one that causes it is delivered as often as its queue allows.
    """

    def __init__(
        self,
        link: RabbitLink,
        topology: Topology,
        queue: str,
        prefetch: int | None,
        deliver: Callable[[Incoming], None],
        on_begin: Callable[[], None] | None = None,
    ) -> None:
        self._link, self._topology, self._queue = link, topology, queue
        self._prefetch, self._deliver, self._on_begin = prefetch, deliver, on_begin
        self.check_s, self.cautious_s = _CHECK_S, _CAUTIOUS_S
        self._is_ready, self._is_refused = asyncio.Event(), asyncio.Event()
        self._channel: ConsumingChannel | None = None
        self._tag: str | None = None
        self._is_cautious = (prefetch or 0) >= _MANY and self._buries() and not self._stands_by()
        self._meets_new, self._trusts_at = asyncio.Event(), 0.0
        self._widening: asyncio.Task[None] | None = None
        self._task = asyncio.create_task(self._consume_for_ever(), name=f"consume {queue}")

    @property
    def ready(self) -> bool:
        return self._is_ready.is_set()

    async def wait_ready(self) -> None:
        """Wait for the first, or the next, time that it consumes."""
        await self._is_ready.wait()

    async def wait_refused(self) -> None:
        await self._is_refused.wait()

    async def pause(self) -> None:
        """Cancel the consumer, keep the channel for acknowledgements."""
        await self._stop_loop()
        if self._channel is not None and self._tag is not None:
            with suppress(*CONNECTION_ERRORS):
                async with asyncio.timeout(_END_TIMEOUT_S):
                    await self._channel.cancel(self._tag)

    async def close(self) -> None:
        """Stop; what is not settled goes back to the queue; one that serves this consumer alone is deleted."""
        await self._stop_loop()
        await self._drop_channel(with_queue=self._has_own_queue())

    async def _stop_loop(self) -> None:
        await end(self._task, try_again_s=_END_AGAIN_S)
        await self._stop_widening()
        self._is_ready.clear()

    async def _consume_for_ever(self) -> None:
        failures = 0
        while True:
            try:
                async with asyncio.timeout(_DECLARE_TIMEOUT_S):
                    channel = await self._begin()
                failures = 0
                self._is_ready.set()
                await self._wait_until_lost(channel)
                logger().warning("consumer is gone", queue=self._queue)
            except (*CONNECTION_ERRORS, TopologyMissing) as error:
                if _ACCESS_REFUSED in repr(error):
                    self._is_refused.set()
                logger().warning("consumer starts over", queue=self._queue, reason=repr(error))
            except Exception:  # noqa: BLE001  # a mistake in here must not end a consumer in silence
                logger().exception("consumer starts over", queue=self._queue)
            self._is_ready.clear()
            await self._drop_channel()
            await asyncio.sleep(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])
            failures += 1

    async def _begin(self) -> ConsumingChannel:
        channel = self._channel = await self._link.open_channel(ConsumingChannel)
        channel.on_delivery = partial(self._on_delivery, channel)
        await self._link.prepare(channel, self._topology)
        await channel.set_prefetch(self._window)
        if self._on_begin is not None:
            self._on_begin()
        self._tag = await channel.consume(self._queue, no_ack=self._prefetch is None)
        return channel

    @property
    def _window(self) -> int:
        return 1 if self._is_cautious else self._prefetch or UNLIMITED

    async def _widen(self, channel: ConsumingChannel) -> None:
        """Consume with all of the prefetch: a consumer keeps that which it was made with, so another replaces it."""
        while not self._meets_new.is_set() and (left_s := self._trusts_at - monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._meets_new.wait()
        with suppress(*CONNECTION_ERRORS):
            try:
                async with asyncio.timeout(_DECLARE_TIMEOUT_S):
                    await channel.set_prefetch(self._prefetch or UNLIMITED)
                    cautious, self._tag = self._tag, await channel.consume(self._queue)
                    await channel.cancel(cautious or "")
            except TimeoutError:
                # The consumer starts over, with all of its prefetch.
                await channel.close()
            finally:
                self._is_cautious = False

    async def _stop_widening(self) -> None:
        if self._widening is not None:
            await end(self._widening)
            self._widening = None

    async def _wait_until_lost(self, channel: ConsumingChannel) -> None:
        """Wait until the consumer is lost; poll as well, since some losses are not reported."""
        while not channel.lost.is_set():
            delivered = channel.delivered
            try:
                async with asyncio.timeout(self.check_s):
                    await channel.lost.wait()
            except TimeoutError:
                await self._check(channel, idle=channel.delivered == delivered)

    async def _check(self, channel: ConsumingChannel, *, idle: bool) -> None:
        counted = await self._link.count(self._queue)
        if not counted.consumer_count:
            raise ConnectionError(f"{self._queue} has no consumer")
        # Seen on 3.10: a queue that was made anew counts the old one's consumer, yet delivers nothing to it.
        has_room = self._window == UNLIMITED or len(channel.unsettled) < self._window
        if idle and counted.message_count and has_room and not self._stands_by():
            raise ConnectionError(f"{self._queue} delivers nothing, though {counted.message_count} messages wait")

    def _stands_by(self) -> bool:
        """Whether another consumer may rightly be the only one that is served."""
        return bool(self._argument("x-single-active-consumer"))

    def _buries(self) -> bool:
        """Whether the queue dead-letters what is delivered too often; others keep the order of what comes again."""
        return self._argument("x-dead-letter-exchange") is not None

    def _has_own_queue(self) -> bool:
        return any(queue.exclusive for queue in self._topology.queues if queue.name == self._queue)

    def _argument(self, name: str) -> Any:
        return next((queue.arguments.get(name) for queue in self._topology.queues if queue.name == self._queue), None)

    def _on_delivery(
        self, channel: ConsumingChannel, tag: int, exchange: str, routing_key: str, content: Content
    ) -> None:
        incoming = RabbitIncoming(channel, tag, exchange, routing_key, content, self._link.receiver)
        if self._is_cautious:
            self._trusts_at = monotonic() + self.cautious_s
            if not incoming.headers.get(_DELIVERIES):
                self._meets_new.set()
            if self._widening is None:
                self._widening = asyncio.create_task(self._widen(channel), name=f"widen {self._queue}")
        self._deliver(incoming)

    async def _drop_channel(self, *, with_queue: bool = False) -> None:
        await self._stop_widening()
        channel, self._channel, self._tag = self._channel, None, None
        if channel is not None:
            with suppress(*CONNECTION_ERRORS):
                async with asyncio.timeout(_END_TIMEOUT_S):
                    if with_queue:
                        # It would go on taking messages for as long as the connection lasts.
                        await channel.call(commands.Queue.Delete(queue=self._queue), commands.Queue.DeleteOk)
                    await channel.close()


class RabbitIncoming:
    """One delivery, settled on the channel that brought it."""

    def __init__(
        self,
        channel: ConsumingChannel,
        tag: int,
        exchange: str,
        routing_key: str,
        content: Content,
        receiver: Receiver,
    ) -> None:
        self._channel, self._tag, self._content, self._receiver = channel, tag, content, receiver
        self.body, self.exchange, self.routing_key = content.body, exchange, routing_key

    @cached_property
    def headers(self) -> dict[str, Any]:
        """The header table."""
        return self._content.headers()

    @cached_property
    def properties(self) -> Properties:
        """Properties that are strings; MindBus uses no others."""
        strings = self._content.strings()
        return Properties(**{name: value for name, value in strings.items() if name != "expiration"})

    @cached_property
    def origin(self) -> Origin:
        """The first sender."""
        return self._receiver.origin_of(name_of(self.properties.user_id or ""), self.exchange, lambda: self.headers)

    async def ack(self) -> None:
        """Acknowledge without waiting for the socket; a lost one only means a second delivery."""
        self._channel.ack(self._tag)

    async def requeue(self) -> None:
        self._channel.requeue(self._tag)
