"""Deduplication and unit of work: a group of messages takes effect once, in one transaction."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from mindbus.bus.decode import Decoded
from mindbus.bus.inbox import Inbox
from mindbus.bus.transport import Outgoing


@dataclass(frozen=True, slots=True)
class Deduplication:
    """Handles the messages of a group that the inbox does not know; for the others, repeats the recorded outcomes.

    Queries change nothing, so they are handled again, outside the transaction.
    """

    inbox: Inbox
    consumer: str

    async def __call__(
        self, group: Sequence[Decoded], handle: Callable[[Decoded], Awaitable[Sequence[Outgoing]]]
    ) -> Mapping[str, Sequence[Outgoing]]:
        caused = {message.envelope.id: await handle(message) for message in group if message.is_query}
        changes = {message.envelope.id: message for message in group if not message.is_query}
        if changes:
            caused |= await self.inbox.outcomes_of(self.consumer, [*changes])
        if new := [message_id for message_id in changes if message_id not in caused]:
            async with self.inbox.unit_of_work(self.consumer) as unit:
                effects = {message_id: await handle(changes[message_id]) for message_id in new}
                await unit.record(effects)
            caused |= effects
        return caused
