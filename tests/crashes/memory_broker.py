"""The command queue in memory, with whatever was published beside it."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from mindbus.bus.decode import ATTEMPT
from mindbus.bus.topology import DEAD_LETTERS, REQUEUE, Topology
from mindbus.bus.transport import Consumer, Incoming, Outgoing, Properties, RawCopy
from mindbus.errors import BusUnavailable
from tests.crashes.gates import Gates, Process


@dataclass(frozen=True, slots=True)
class Message:
    """A command as it lies in the queue."""

    body: bytes
    properties: Properties
    exchange: str
    routing_key: str
    headers: dict[str, Any] = field(default_factory=dict)

    @property
    def attempt(self) -> int:
        """Which attempt it is."""
        return int(self.headers.get(ATTEMPT, 1))


@dataclass(eq=False, slots=True)
class Delivery:
    """One delivery of a message to a process; once the broker has given it to another, settling it means nothing."""

    broker: "MemoryBroker"
    message: Message
    process: Process

    @property
    def body(self) -> bytes:
        """As in Incoming."""
        return self.message.body

    @property
    def exchange(self) -> str:
        """As in Incoming."""
        return self.message.exchange

    @property
    def routing_key(self) -> str:
        """As in Incoming."""
        return self.message.routing_key

    @property
    def headers(self) -> dict[str, Any]:
        """As in Incoming."""
        return self.message.headers

    @property
    def properties(self) -> Properties:
        """As in Incoming."""
        return self.message.properties

    @property
    def origin(self) -> None:
        """As in Incoming: nobody verifies."""

    async def ack(self) -> None:
        """As in Incoming."""
        await self.broker.gates.effect("ack", lambda: self.broker.settle(self))

    async def requeue(self) -> None:
        """As in Incoming."""
        await self.broker.gates.effect("requeue", lambda: self.broker.give_back(self))


class MemoryBroker:
    """What outlives every process: a queue that keeps a message until it is acknowledged."""

    shares_user = False
    is_cluster = False

    def __init__(self, gates: Gates) -> None:
        self.gates = gates
        self.pending: list[Message] = []
        self.unsettled: list[Delivery] = []
        self.dead: list[RawCopy] = []
        self.hear: Callable[[Outgoing], None] = lambda _message: None
        self.drops: Callable[[Message], bool] = lambda _message: False

    def deliver(self, message: Message, process: Process) -> Delivery:
        """Hand a waiting message to a process."""
        self.pending.remove(message)
        delivery = Delivery(self, message, process)
        self.unsettled.append(delivery)
        return delivery

    def settle(self, delivery: Delivery) -> None:
        """The message is done with, unless another has it by now."""
        if delivery in self.unsettled:
            self.unsettled.remove(delivery)

    def give_back(self, delivery: Delivery) -> None:
        """The message waits for another consumer, unless one has it already."""
        if delivery in self.unsettled:
            self.unsettled.remove(delivery)
            self.pending.append(delivery.message)

    def lose(self, process: Process) -> None:
        """The connection of a process is lost: what it has not settled is delivered again, or dropped."""
        for delivery in [delivery for delivery in self.unsettled if delivery.process is process]:
            if self.drops(delivery.message):
                self.settle(delivery)
            else:
                self.give_back(delivery)

    async def publish(self, message: Outgoing | RawCopy) -> None:
        """As in Transport."""
        if isinstance(message, Outgoing):
            kind = message.envelope.mbkind.value
            await self.gates.effect(f"publish {kind}", lambda: self.hear(message), BusUnavailable)
        else:
            await self.gates.effect("publish copy", lambda: self._take_back(message), BusUnavailable)

    async def declare(self, topology: Topology) -> None:
        """As in Transport: everything is there."""

    async def require(self, topology: Topology) -> None:
        """As in Transport: everything is there."""

    async def waiting(self, queue: str) -> AsyncGenerator[Incoming]:
        """As in Transport: nobody here looks at dead letters."""
        none: tuple[Incoming, ...] = ()
        for incoming in none:
            yield incoming

    async def remove(self, queue: str) -> None:
        """As in Transport: nobody here has a queue to be removed."""

    def consume(
        self,
        topology: Topology,
        queue: str,
        prefetch: int | None,
        deliver: Callable[[Incoming], None],
        on_begin: Callable[[], None] | None = None,
    ) -> Consumer:
        """As in Transport, but that deliveries are handed out by whoever tells the story."""
        raise TypeError("deliver() hands out the messages of this broker")

    async def close(self) -> None:
        """As in Transport: nothing to close."""

    def _take_back(self, copy: RawCopy) -> None:
        if copy.exchange == DEAD_LETTERS:
            self.dead.append(copy)
        else:
            self.pending.append(Message(copy.body, copy.properties, REQUEUE, copy.routing_key, copy.headers))
