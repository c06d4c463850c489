"""Guarantees that are broken on purpose in the process of `booking`: a harness that sees nothing is of no use."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence

from mindbus.bus.decode import Decoded
from mindbus.bus.rabbit_consumer import RabbitIncoming
from mindbus.bus.transport import Outgoing
from mindbus.middleware.pipeline import Deduplication

CHOICES = ("lose", "double", "stick")
# The faults that a broken guarantee shows in.
SHOWN_BY = {"lose": "third_party_killed", "double": "duplicated", "stick": "connection_reset"}


def break_delivery(how: str | None) -> None:
    """Ack before handling, or handle without deduplication; a handler that never returns is `booking`'s own."""
    if how == "lose":
        _ack_first()
    if how == "double":
        Deduplication.__call__ = _handle_all  # type: ignore[method-assign]


def _ack_first() -> None:
    begin = RabbitIncoming.__init__

    def begin_with_ack(self: RabbitIncoming, *arguments: object) -> None:
        begin(self, *arguments)  # type: ignore[arg-type]
        self._channel.ack(self._tag)
        self._tag = 0

    async def nothing(_self: RabbitIncoming) -> None:
        return

    RabbitIncoming.__init__ = begin_with_ack  # type: ignore[assignment, method-assign]
    RabbitIncoming.ack = nothing  # type: ignore[assignment, method-assign]


async def _handle_all(
    self: Deduplication, group: Sequence[Decoded], handle: Callable[[Decoded], Awaitable[Sequence[Outgoing]]]
) -> Mapping[str, Sequence[Outgoing]]:
    async with self.inbox.unit_of_work(self.consumer):
        return {message.envelope.id: await handle(message) for message in group}


break_delivery(os.environ.get("CHAOS_SABOTAGE"))
