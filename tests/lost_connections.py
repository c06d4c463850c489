"""A transport whose connection can be lost, as that of RabbitMQ: consumers begin anew, on queues that are empty."""

from collections.abc import Callable

from mindbus.bus.memory import MemoryBroker, MemoryConsumer, MemoryTransport
from mindbus.bus.topology import Topology
from mindbus.bus.transport import Incoming


class LostConnections(MemoryTransport):
    """Keeps what is to be called when a consumer begins."""

    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__(broker)
        self._begins: list[Callable[[], None]] = []

    def consume(
        self,
        topology: Topology,
        queue: str,
        prefetch: int | None,
        deliver: Callable[[Incoming], None],
        on_begin: Callable[[], None] | None = None,
    ) -> MemoryConsumer:
        if on_begin is not None:
            self._begins.append(on_begin)
        return super().consume(topology, queue, prefetch, deliver, on_begin)

    def begin_anew(self) -> None:
        for begin in self._begins:
            begin()
