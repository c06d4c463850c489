"""A RabbitMQ consumer that restarts by itself."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import aio_pika
import aiormq.abc

from mindbus.bus.rabbit_link import (
    CONNECTION_ERRORS,
    RabbitLink,
    declare,
    ignore_connection_errors,
    is_own_cancellation,
)
from mindbus.bus.topology import Topology
from mindbus.bus.transport import Incoming, Properties
from mindbus.logs import logger
from mindbus.tasks import end

_BACKOFF_S = (0.1, 0.3, 1.0, 2.0, 5.0)
# A broker may forget to say that a queue is gone: seen on 3.10 when it goes just after the consumer came.
_CHECK_S = 10.0
_DECLARE_TIMEOUT_S = 20.0
_END_AGAIN_S = 0.5
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
        self, link: RabbitLink, topology: Topology, queue: str, prefetch: int, deliver: Callable[[Incoming], None]
    ) -> None:
        self._link, self._topology, self._queue = link, topology, queue
        self._prefetch, self._deliver = prefetch, deliver
        self._is_ready = asyncio.Event()
        self._channel: aio_pika.abc.AbstractChannel | None = None
        self._tag: str | None = None
        self._is_cautious = prefetch >= _MANY and self._buries() and not self._stands_by()
        self._meets_new, self._trusts_at = asyncio.Event(), 0.0
        self._widening: asyncio.Task[None] | None = None
        self._delivered = 0
        self._unsettled: set[int] = set()
        self._task = asyncio.create_task(self._consume_for_ever(), name=f"consume {queue}")

    @property
    def ready(self) -> bool:
        return self._is_ready.is_set()

    async def wait_ready(self) -> None:
        """Wait for the first, or the next, time that it consumes."""
        await self._is_ready.wait()

    async def pause(self) -> None:
        """Cancel the consumer, keep the channel for acknowledgements."""
        await self._stop_loop()
        if self._channel is not None and not self._channel.is_closed and self._tag is not None:
            with ignore_connection_errors():
                underlay = await self._channel.get_underlay_channel()
                await underlay.basic_cancel(self._tag, timeout=5)

    async def close(self) -> None:
        """Stop; what is not settled goes back to the queue."""
        await self._stop_loop()
        await self._drop_channel()

    async def _stop_loop(self) -> None:
        await end(self._task, try_again_s=_END_AGAIN_S)
        await self._stop_widening()
        self._is_ready.clear()

    async def _consume_for_ever(self) -> None:
        failures = 0
        while True:
            try:
                async with asyncio.timeout(_DECLARE_TIMEOUT_S):
                    cancelled = await self._begin()
                failures = 0
                self._is_ready.set()
                await self._wait_until_lost(cancelled)
                logger().warning("consumer is gone", queue=self._queue)
            except CONNECTION_ERRORS as error:
                if is_own_cancellation(error):
                    raise
                logger().warning("consumer starts over", queue=self._queue, reason=repr(error))
            except Exception:  # noqa: BLE001  # a mistake in here must not end a consumer in silence
                logger().exception("consumer starts over", queue=self._queue)
            self._is_ready.clear()
            await self._drop_channel()
            await asyncio.sleep(_BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)])
            failures += 1

    async def _begin(self) -> asyncio.Event:
        connection = await self._link.connection()
        channel = await connection.channel(publisher_confirms=False)
        # Each channel counts for itself: what an earlier one delivered is settled in vain.
        self._channel, self._unsettled = channel, set()
        await declare(channel, self._topology)
        await channel.set_qos(prefetch_count=self._window)
        underlay = await channel.get_underlay_channel()
        cancelled = asyncio.Event()
        underlay.on_consumer_cancel_callbacks.add(lambda _frame: cancelled.set())
        underlay.closing.add_done_callback(lambda _future: cancelled.set())
        ok = await underlay.basic_consume(self._queue, self._on_message)
        self._tag = ok.consumer_tag
        return cancelled

    @property
    def _window(self) -> int:
        return 1 if self._is_cautious else self._prefetch

    async def _widen(self, channel: aio_pika.abc.AbstractChannel) -> None:
        """Consume with all of the prefetch: a consumer keeps that which it was made with, so another replaces it."""
        while not self._meets_new.is_set() and (left_s := self._trusts_at - monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._meets_new.wait()
        with ignore_connection_errors():
            try:
                async with asyncio.timeout(_DECLARE_TIMEOUT_S):
                    await channel.set_qos(prefetch_count=self._prefetch)
                    underlay = await channel.get_underlay_channel()
                    cautious, ok = self._tag, await underlay.basic_consume(self._queue, self._on_message)
                    self._tag = ok.consumer_tag
                    await underlay.basic_cancel(cautious or "")
            except TimeoutError:
                # The consumer starts over, with all of its prefetch.
                await channel.close()
            finally:
                self._is_cautious = False

    async def _stop_widening(self) -> None:
        if self._widening is not None:
            await end(self._widening)
            self._widening = None

    async def _wait_until_lost(self, cancelled: asyncio.Event) -> None:
        """Wait until the consumer is lost; poll as well, since some losses are not reported."""
        while not cancelled.is_set():
            delivered = self._delivered
            try:
                async with asyncio.timeout(_CHECK_S):
                    await cancelled.wait()
            except TimeoutError:
                await self._check(idle=self._delivered == delivered)

    async def _check(self, *, idle: bool) -> None:
        declared = await self._link.count(self._queue)
        if not declared.consumer_count:
            raise ConnectionError(f"{self._queue} has no consumer")
        # Seen on 3.10: a queue that was made anew counts the old one's consumer, yet delivers nothing to it.
        if idle and declared.message_count and len(self._unsettled) < self._window and not self._stands_by():
            raise ConnectionError(f"{self._queue} delivers nothing, though {declared.message_count} messages wait")

    def _stands_by(self) -> bool:
        """Whether another consumer may rightly be the only one that is served."""
        return bool(self._argument("x-single-active-consumer"))

    def _buries(self) -> bool:
        """Whether the queue dead-letters what is delivered too often; others keep the order of what comes again."""
        return self._argument("x-dead-letter-exchange") is not None

    def _argument(self, name: str) -> Any:
        return next((queue.arguments.get(name) for queue in self._topology.queues if queue.name == self._queue), None)

    async def _on_message(self, message: aiormq.abc.DeliveredMessage) -> None:
        # aiormq cancels this coroutine when the channel closes: hand over and be done.
        self._delivered += 1
        self._unsettled.add(message.delivery_tag or 0)
        if self._is_cautious:
            self._trusts_at = monotonic() + _CAUTIOUS_S
            if not (message.header.properties.headers or {}).get(_DELIVERIES):
                self._meets_new.set()
            if self._widening is None and self._channel is not None:
                self._widening = asyncio.create_task(self._widen(self._channel), name=f"widen {self._queue}")
        self._deliver(RabbitIncoming(message, self._unsettled))

    async def _drop_channel(self) -> None:
        await self._stop_widening()
        channel, self._channel, self._tag = self._channel, None, None
        if channel is not None and not channel.is_closed:
            with ignore_connection_errors():
                async with asyncio.timeout(5):
                    await channel.close()


class RabbitIncoming:
    """One delivery, settled on the channel that brought it."""

    __slots__ = ("_message", "_unsettled", "body", "exchange", "headers", "properties", "routing_key")

    def __init__(self, message: aiormq.abc.DeliveredMessage, unsettled: set[int]) -> None:
        header = message.header.properties
        self._message, self._unsettled = message, unsettled
        self.body: bytes = message.body
        self.exchange: str = message.exchange or ""
        self.routing_key: str = message.routing_key or ""
        self.headers: dict[str, Any] = dict(header.headers or {})
        self.properties = Properties(
            message_id=header.message_id,
            type=header.message_type,
            content_type=header.content_type,
            content_encoding=header.content_encoding,
            correlation_id=header.correlation_id,
            reply_to=header.reply_to,
            app_id=header.app_id,
            user_id=header.user_id,
        )

    async def ack(self) -> None:
        """Acknowledge without waiting for the socket; a lost one only means a second delivery."""
        await self._settle(lambda: self._message.channel.basic_ack(self._message.delivery_tag or 0, wait=False))

    async def requeue(self) -> None:
        await self._settle(
            lambda: self._message.channel.basic_reject(self._message.delivery_tag or 0, requeue=True, wait=False)
        )

    async def _settle(self, act: Callable[[], Any]) -> None:
        try:
            await act()
        except CONNECTION_ERRORS as error:
            if is_own_cancellation(error):
                raise
            logger().debug("settled too late, it will be delivered again", reason=repr(error))
        self._unsettled.discard(self._message.delivery_tag or 0)
