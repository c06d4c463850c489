"""In-memory double of RabbitMQ, for tests without a broker."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from mindbus.bus.topology import Binding, Queue, Topology
from mindbus.bus.transport import Incoming, Outgoing, Properties, RawCopy, properties_of
from mindbus.errors import BusUnavailable, Unroutable


@dataclass(frozen=True, slots=True)
class _Stored:
    exchange: str
    routing_key: str
    body: bytes
    properties: Properties
    headers: dict[str, Any]


@dataclass(slots=True)
class _Queue:
    declared: Queue
    waiting: deque[_Stored] = field(default_factory=deque)
    consumers: "deque[MemoryConsumer]" = field(default_factory=deque)


class MemoryBroker:
    """Exchanges, queues, bindings, delays in one process; transports that share it are connected."""

    def __init__(self) -> None:
        self.queues: dict[str, _Queue] = {}
        self._kinds: dict[str, str] = {}
        self._bindings: set[Binding] = set()

    def declare(self, topology: Topology) -> None:
        for exchange in topology.exchanges:
            self._kinds.setdefault(exchange.name, exchange.kind)
        for queue in topology.queues:
            self.queues.setdefault(queue.name, _Queue(queue))
        self._bindings.update(topology.bindings)

    def route(self, message: _Stored, exchange: str) -> list[str]:
        reached: list[str] = []
        for binding in self._bindings:
            if binding.source == exchange and self._fits(binding, message.routing_key):
                reached += self.route(message, binding.target) if binding.to_exchange else [binding.target]
        return sorted({name for name in reached if name in self.queues})

    def enqueue(self, name: str, message: _Stored) -> None:
        """Put a message at the end of a queue; a queue with a TTL passes it on after that time."""
        queue = self.queues[name]
        queue.waiting.append(message)
        ttl_ms = queue.declared.arguments.get("x-message-ttl")
        if ttl_ms is None:
            self.dispatch(queue)
        else:
            asyncio.get_running_loop().call_later(ttl_ms / 1000, self._expire, queue, message)

    def dispatch(self, queue: _Queue) -> None:
        """Hand waiting messages to consumers that have room, in turn; where order matters, to the first alone."""
        if queue.declared.arguments.get("x-single-active-consumer"):
            while queue.waiting and queue.consumers and queue.consumers[0].has_room:
                queue.consumers[0].take(queue.waiting.popleft())
            return
        for _ in range(len(queue.consumers)):
            while queue.waiting and queue.consumers[0].has_room:
                queue.consumers[0].take(queue.waiting.popleft())
            queue.consumers.rotate(-1)

    def _expire(self, queue: _Queue, message: _Stored) -> None:
        queue.waiting.remove(message)
        target = queue.declared.arguments["x-dead-letter-exchange"]
        moved = _Stored(target, message.routing_key, message.body, message.properties, message.headers)
        for name in self.route(moved, target):
            self.enqueue(name, moved)

    def _fits(self, binding: Binding, key: str) -> bool:
        kind = self._kinds.get(binding.source)
        return kind == "fanout" or (binding.key == key if kind == "direct" else _matches(binding.key, key))


class MemoryTransport:
    # There is no administrator either, and no delivery twice.
    shares_user = False
    is_cluster = False

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._own: list[MemoryConsumer] = []
        self._closed = False

    async def publish(self, message: Outgoing | RawCopy) -> None:
        """Deliver at once. Raises Unroutable, or BusUnavailable after `close`."""
        if self._closed:
            raise BusUnavailable(BusUnavailable.__doc__)
        await asyncio.sleep(0)
        if isinstance(message, Outgoing):
            properties, headers, mandatory = properties_of(message.envelope), {}, message.mandatory
        else:
            properties, headers, mandatory = message.properties, dict(message.headers), True
        self._ensure_event_exchange(message.exchange)
        stored = _Stored(message.exchange, message.routing_key, message.body, properties, headers)
        reached = self._broker.route(stored, message.exchange)
        if not reached and mandatory:
            raise Unroutable(f"{Unroutable.__doc__} ({message.exchange}, {message.routing_key})")
        for name in reached:
            self._broker.enqueue(name, stored)

    async def declare(self, topology: Topology) -> None:
        self._broker.declare(topology)

    async def require(self, topology: Topology) -> None:
        """Declare it: in memory everybody may."""
        self._broker.declare(topology)

    async def remove(self, queue: str) -> None:
        self._broker.queues.pop(queue, None)

    def consume(
        self,
        topology: Topology,
        queue: str,
        prefetch: int | None,
        deliver: Callable[[Incoming], None],
        on_begin: Callable[[], None] | None = None,
    ) -> "MemoryConsumer":
        self._broker.declare(topology)
        if on_begin is not None:
            on_begin()
        consumer = MemoryConsumer(self._broker, queue, prefetch, deliver)
        self._own.append(consumer)
        return consumer

    async def waiting(self, queue: str) -> AsyncGenerator[Incoming]:
        """Messages that wait in a queue just now."""
        found: list[Incoming] = []
        if queue in self._broker.queues:
            consumer = MemoryConsumer(self._broker, queue, len(self._broker.queues[queue].waiting), found.append)
            await asyncio.sleep(0)
            try:
                for incoming in found:
                    yield incoming
            finally:
                await consumer.close()

    async def close(self) -> None:
        self._closed = True
        for consumer in self._own:
            await consumer.close()

    def _ensure_event_exchange(self, name: str) -> None:
        if name.startswith("mb.evt."):
            self._broker.declare(Topology(bindings=(Binding(name, "mb.evt", "#", to_exchange=True),)))


class MemoryConsumer:
    """Takes up to `prefetch` unsettled messages; where that is None, they are settled when they are delivered."""

    def __init__(
        self, broker: MemoryBroker, queue: str, prefetch: int | None, deliver: Callable[[Incoming], None]
    ) -> None:
        self._broker, self._queue, self._prefetch, self._deliver = broker, broker.queues[queue], prefetch, deliver
        self._unsettled: list[MemoryIncoming] = []
        self._queue.consumers.append(self)
        # As with a real broker, the first delivery comes after `consume` has returned.
        asyncio.get_running_loop().call_soon(broker.dispatch, self._queue)

    @property
    def ready(self) -> bool:
        return self in self._queue.consumers

    @property
    def has_room(self) -> bool:
        return self._prefetch is None or len(self._unsettled) < self._prefetch

    async def wait_ready(self) -> None:
        """It always is."""

    async def wait_refused(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def pause(self) -> None:
        if self.ready:
            self._queue.consumers.remove(self)

    async def close(self) -> None:
        await self.pause()
        self._queue.waiting.extendleft(incoming.stored for incoming in reversed(self._unsettled))
        self._unsettled.clear()
        self._broker.dispatch(self._queue)
        if self._queue.declared.exclusive:
            self._broker.queues.pop(self._queue.declared.name, None)

    def take(self, message: _Stored) -> None:
        incoming = MemoryIncoming(self, message)
        if self._prefetch is not None:
            self._unsettled.append(incoming)
        self._deliver(incoming)

    def settle(self, incoming: "MemoryIncoming", *, back: bool) -> None:
        if incoming in self._unsettled:
            self._unsettled.remove(incoming)
            if back:
                self._queue.waiting.appendleft(incoming.stored)
            self._broker.dispatch(self._queue)


class MemoryIncoming:
    def __init__(self, consumer: MemoryConsumer, stored: _Stored) -> None:
        self._consumer, self.stored = consumer, stored
        self.body, self.exchange, self.routing_key = stored.body, stored.exchange, stored.routing_key
        self.headers, self.properties = dict(stored.headers), stored.properties
        self.origin = None

    async def ack(self) -> None:
        self._consumer.settle(self, back=False)

    async def requeue(self) -> None:
        self._consumer.settle(self, back=True)


def _matches(pattern: str, key: str) -> bool:
    """AMQP topic matching: `*` is one word, `#` any number of them."""
    expression = re.escape(pattern).replace(r"\*", r"[^.]+").replace(r"\.\#", r"(?:\..*)?").replace(r"\#", r".*")
    return re.fullmatch(expression, key) is not None
