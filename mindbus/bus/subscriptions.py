"""Subscriptions to events: a temporary one, and one with a durable queue that collects while nobody listens."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, cast

from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.ids import uuid7
from bus_schema.messages import Event
from mindbus.bus.claims import Claims
from mindbus.bus.decode import Unreadable, data_of, read_envelope
from mindbus.bus.topology import Topology, of_subscriber, subscriber_queue, tap
from mindbus.bus.transport import Consumer, Incoming, Transport
from mindbus.errors import SubscriptionRefused
from mindbus.logs import logger
from mindbus.tasks import end

_PREFETCH = 100

ItemT = TypeVar("ItemT")


class _Subscription:
    """The deliveries of one queue; `async with` waits until it consumes. Raises SubscriptionRefused."""

    # Called whenever consuming begins anew, as after the connection was lost.
    _on_gap: Callable[[], None] | None = None
    _has_begun = False

    def __init__(self, transport: Transport, claims: Claims, topology: Topology, queue: str) -> None:
        self._transport, self._claims = transport, claims
        self._topology, self._queue = topology, queue
        self._deliveries: asyncio.Queue[Incoming] = asyncio.Queue()
        self._consumer: Consumer | None = None

    async def __aenter__(self) -> Self:
        if self._consumer is None:
            deliver = self._deliveries.put_nowait
            self._consumer = self._transport.consume(self._topology, self._queue, _PREFETCH, deliver, self._begin)
            await self._wait_ready(self._consumer)
        return self

    async def _wait_ready(self, consumer: Consumer) -> None:
        ready, refused = (asyncio.ensure_future(each()) for each in (consumer.wait_ready, consumer.wait_refused))
        try:
            await asyncio.wait((ready, refused), return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(ready, refused)
        if not consumer.ready and refused.done() and not refused.cancelled():
            await self.__aexit__()
            raise SubscriptionRefused

    def _begin(self) -> None:
        if self._has_begun and self._on_gap is not None:
            self._on_gap()
        self._has_begun = True

    async def __aexit__(self, *_error: object) -> None:
        """Stop consuming; what is unacknowledged returns to the queue."""
        if self._consumer is not None:
            await self._consumer.close()
            self._consumer = None

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        """Consume within the block; where its owner has begun to, the end of an iterator does not end that."""
        if self._consumer is not None:
            yield
            return
        async with self:
            yield

    async def _whole(self, envelope: Envelope) -> Envelope:
        return envelope.model_copy(update={"data": await data_of(envelope, self._claims)})


@dataclass(frozen=True, slots=True)
class WantedEvents:
    """Routing key of events, their class where they are typed, and the trace they belong to; None for any."""

    key: str
    kind: type[Event] | None
    trace: str | None


class EventSubscription(_Subscription, Generic[ItemT]):
    """Events as they come, typed or as raw envelopes: iterate over it."""

    def __init__(
        self,
        transport: Transport,
        claims: Claims,
        who: str,
        wanted: WantedEvents,
        on_gap: Callable[[], None] | None = None,
    ) -> None:
        queue = f"mb.tap.{who}.{uuid7().hex}"
        super().__init__(transport, claims, tap(queue, wanted.key), queue)
        self._kind, self._trace, self._on_gap = wanted.kind, wanted.trace, on_gap

    async def __aiter__(self) -> AsyncGenerator[ItemT, None]:
        """Matching events, without end."""
        async with self._listening():
            while True:
                incoming = await self._deliveries.get()
                await incoming.ack()
                try:
                    envelope = read_envelope(incoming)
                    if self._trace is None or envelope.mbtraceid == self._trace:
                        yield cast("ItemT", await self._item(envelope))
                except (Unreadable, ValidationError) as unreadable:
                    logger().warning("unreadable event", key=incoming.routing_key, reason=str(unreadable))

    async def _item(self, envelope: Envelope) -> Any:
        complete = await self._whole(envelope)
        return complete if self._kind is None else self._kind.model_validate(complete.data)


class StandingSubscription(_Subscription):
    """Events from a subscriber's own durable queue, in order: iterate over it.

    An event is acknowledged when the next one is requested, so an unfinished one comes again.
    """

    def __init__(self, transport: Transport, claims: Claims, subscriber: str) -> None:
        super().__init__(transport, claims, of_subscriber(subscriber), subscriber_queue(subscriber))

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        """Events of the queue, without end."""
        async with self._listening():
            while True:
                incoming = await self._deliveries.get()
                try:
                    yield await self._whole(read_envelope(incoming))
                except Unreadable as unreadable:
                    logger().warning("unreadable event", key=incoming.routing_key, reason=str(unreadable))
                await incoming.ack()
