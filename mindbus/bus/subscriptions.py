"""Subscriptions with a durable queue, which collects events while the subscriber is disconnected."""

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from bus_schema.envelope import Envelope
from mindbus.bus.claims import Claims
from mindbus.bus.decode import Unreadable, data_of, read_envelope
from mindbus.bus.topology import of_subscriber, subscriber_queue
from mindbus.bus.transport import Consumer, Incoming, Transport
from mindbus.logs import logger

_PREFETCH = 100


class StandingSubscription:
    """Events from a subscriber's own durable queue, in order: iterate over it.

    An event is acknowledged when the next one is requested, so an unfinished one comes again.
    """

    def __init__(self, transport: Transport, claims: Claims, subscriber: str) -> None:
        self._transport, self._claims, self._subscriber = transport, claims, subscriber
        self._heard: asyncio.Queue[Incoming] = asyncio.Queue()
        self._consumer: Consumer | None = None

    async def __aenter__(self) -> Self:
        if self._consumer is None:
            queue = subscriber_queue(self._subscriber)
            topology = of_subscriber(self._subscriber)
            self._consumer = self._transport.consume(topology, queue, _PREFETCH, self._heard.put_nowait)
            await self._consumer.wait_ready()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Stop consuming; unacknowledged events return to the queue."""
        if self._consumer is not None:
            await self._consumer.close()
            self._consumer = None

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        """Events of the queue, without end."""
        async with self:
            while True:
                incoming = await self._heard.get()
                try:
                    envelope = read_envelope(incoming)
                    yield envelope.model_copy(update={"data": await data_of(envelope, self._claims)})
                except Unreadable as unreadable:
                    logger().warning("unreadable event", key=incoming.routing_key, reason=str(unreadable))
                await incoming.ack()
