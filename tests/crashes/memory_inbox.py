"""Inbox with outbox in memory: what SqlInbox promises, over the database that the registry writes to."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mindbus.bus.inbox import Outcomes
from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import TemporaryFailure
from tests.crashes.memory_database import Connection, Tables, at_hand


class OutboxInbox:
    """The inbox of one process; whoever runs the process calls its relay."""

    publishes = True

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """As in Inbox."""
        inbox = (await self.connection.read()).inbox
        return {message_id: inbox[message_id] for message_id in message_ids if message_id in inbox}

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator["OutboxUnit"]:
        """As in Inbox."""
        async with self.connection.ambient():
            yield OutboxUnit()

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


class OutboxUnit:
    """The transaction of the handled messages."""

    async def record(self, outcomes: Outcomes) -> None:
        """As in UnitOfWork."""
        tables = await at_hand().tables()
        for message_id, outgoing in outcomes.items():
            if message_id in tables.inbox:
                raise TemporaryFailure("another instance has just handled it")
            tables.inbox[message_id] = outgoing
            await self.publish(outgoing)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """As in UnitOfWork."""
        tables = await at_hand().tables()
        for message in outgoing:
            tables.drawn += 1
            tables.outbox[tables.drawn] = message
