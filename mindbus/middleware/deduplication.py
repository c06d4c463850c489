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
        caused: dict[str, Sequence[Outgoing]] = {}
        commands: list[Decoded] = []
        for message in group:
            if message.is_query:
                caused[message.envelope.id] = await handle(message)
            else:
                commands.append(message)
        if not commands:
            return caused
        known = await self.inbox.outcomes_of(self.consumer, [message.envelope.id for message in commands])
        caused.update(known)
        new = [message for message in commands if message.envelope.id not in known] if known else commands
        if new:
            async with self.inbox.unit_of_work(self.consumer) as unit:
                effects = {message.envelope.id: await handle(message) for message in new}
                await unit.record(effects)
            caused.update(dict.fromkeys(effects, ()) if self.inbox.publishes else effects)
        return caused
