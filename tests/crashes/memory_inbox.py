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
    trouble = note = damage = ""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.marks: list[str] = []

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """As in Inbox."""
        inbox = (await self.connection.read()).inbox
        return {message_id: inbox[message_id] for message_id in message_ids if message_id in inbox}

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator["OutboxUnit"]:
        """As in Inbox."""
        async with self.connection.ambient():
            yield OutboxUnit()

    def mark_published(self, consumer: str, message_id: str) -> None:
        """As in Inbox."""
        self.marks.append(message_id)

    async def postpone(self, consumer: str, message_id: str, outgoing: Sequence[Outgoing]) -> None:
        """As in Inbox: here everything has a queue."""
        raise TypeError("everything has a queue")

    async def start(self, transport: Transport) -> None:
        """Nothing to open."""

    async def stop(self) -> None:
        """Nothing to close."""

    async def relay(self, transport: Transport) -> None:
        """Publish every row once, then mark or delete it; a death between the two repeats it."""
        await self.write_marks()
        await self.republish(transport)
        await self.relay_outbox(transport)

    async def write_marks(self) -> None:
        """Mark what the processor has published."""
        marks, self.marks = self.marks, []
        if marks:

            def mark(tables: Tables) -> None:
                for message_id in marks:
                    tables.unpublished.pop(message_id, None)

            await self.connection.write("published", mark)

    async def republish(self, transport: Transport) -> None:
        """Publish what is not marked, whoever has committed it."""
        for message_id, outgoing in dict(self.connection.database.committed.unpublished).items():
            await asyncio.gather(*map(transport.publish, outgoing))
            self.mark_published("storage", message_id)
        await self.write_marks()

    async def relay_outbox(self, transport: Transport) -> None:
        """Publish what a clock has set off."""
        if not self.connection.database.committed.outbox:
            return
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
            if outgoing:
                tables.unpublished[message_id] = outgoing

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """As in UnitOfWork."""
        tables = await at_hand().tables()
        for message in outgoing:
            tables.drawn += 1
            tables.outbox[tables.drawn] = message
