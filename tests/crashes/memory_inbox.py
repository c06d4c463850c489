"""Inbox with outbox in memory: what SqlInbox promises, over the database that the registry writes to."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import TemporaryFailure
from tests.crashes.memory_database import Connection, Tables, at_hand


class OutboxInbox:
    """The inbox of one process; whoever runs the process calls its relay."""

    publishes = True

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def outcome_of(self, consumer: str, message_id: str) -> Sequence[Outgoing] | None:
        """As in Ledger."""
        return (await self.connection.read()).inbox.get(message_id)

    @asynccontextmanager
    async def entry(self, consumer: str, message_id: str | None) -> AsyncIterator["OutboxEntry"]:
        """As in Ledger."""
        async with self.connection.ambient():
            yield OutboxEntry(message_id)

    async def start(self, transport: Transport) -> None:
        """Nothing to open."""

    async def stop(self) -> None:
        """Nothing to close."""

    async def relay(self, transport: Transport) -> None:
        """Publish every row once, then delete those rows; a death between the two repeats them."""
        rows = dict(self.connection.database.committed.outbox)
        await asyncio.gather(*map(transport.publish, rows.values()))

        def delete(tables: Tables) -> None:
            for sequence in rows:
                tables.outbox.pop(sequence, None)

        await self.connection.write("relayed", delete)


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One message's line in the inbox, still open."""

    message_id: str | None

    async def record(self, outgoing: Sequence[Outgoing]) -> None:
        """As in Entry."""
        tables = await at_hand().tables()
        if self.message_id is not None:
            if self.message_id in tables.inbox:
                raise TemporaryFailure("another instance has just handled it")
            tables.inbox[self.message_id] = outgoing
        for message in outgoing:
            tables.drawn += 1
            tables.outbox[tables.drawn] = message
