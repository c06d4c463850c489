"""Two workers whose effects can be counted: `booking` enters what it is ordered, `audit` what it hears of that.

They run in processes of their own under `mindbus up`. Neither table has a key that would hide a second effect.
"""

import asyncio
import os
import signal

from sqlalchemy import Column, Integer, MetaData, String, Table, insert

from bus_schema.messages import Command, Event, Value
from mindbus import MessageContext, Worker, WorkerContext, on_command, on_event
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.tables import add_inbox_tables

BOOKING_DATABASE = "CHAOS_BOOKING_DATABASE"
SABOTAGE = "CHAOS_SABOTAGE"
# Whoever books this kills its worker.
DEADLY = "deadly"
_STICKS_EVERY = 7
_LOSES_WITHIN_S = 0.5


class Booking(Value):
    """An entry that was made."""

    entry: str


class Book(Command[Booking], domain="booking", action="book"):
    """Make an entry, once."""

    entry: str


class Booked(Event, topic="booking", name="booked"):
    """An entry was made."""

    entry: str


def _tables(name: str) -> tuple[MetaData, Table]:
    metadata = MetaData()
    add_inbox_tables(metadata)
    columns = (Column("seq", Integer, primary_key=True), Column("entry", String(128), nullable=False))
    return metadata, Table(name, metadata, *columns)


class Entries:
    """Entries of one worker in its database, with its inbox."""

    def __init__(self, url: str, service: str) -> None:
        self.database = Database(url, service)
        self.inbox = SqlInbox(self.database)
        self._metadata, self._table = _tables("entries")

    async def open(self) -> None:
        """Create the tables. Raises a database error where that cannot be done."""
        await asyncio.to_thread(self.database.run_on_admin_connection, self._metadata.create_all)

    async def add(self, entry: str) -> None:
        """Within the transaction of the message being handled."""
        await self.database.run(lambda connection: connection.execute(insert(self._table), {"entry": entry}))


class BookingWorker(Worker):
    """Enters what it is ordered."""

    name = "booking"
    concurrency = 16
    attempts = 60

    def __init__(self, context: WorkerContext) -> None:
        url = os.environ.get(BOOKING_DATABASE) or context.settings.database_of("booking")
        self._entries = Entries(url, "booking")
        self.inbox = self._entries.inbox
        self._sabotage = os.environ.get(SABOTAGE)
        self._count = 0

    async def start(self) -> None:
        await self._entries.open()

    async def stop(self) -> None:
        await self._entries.database.dispose()

    @on_command
    async def book(self, command: Book, context: MessageContext) -> tuple[Booking, Booked]:
        if command.entry.startswith(DEADLY):
            os.kill(os.getpid(), signal.SIGKILL)
        self._count += 1
        if self._sabotage == "stick" and self._count % _STICKS_EVERY == 0:
            await asyncio.Event().wait()
        if self._sabotage == "lose":
            # What is acknowledged first is lost if the process dies before the end: give it the time.
            await asyncio.sleep(_LOSES_WITHIN_S)
        await self._entries.add(command.entry)
        return Booking(entry=command.entry), Booked(entry=command.entry)


class AuditWorker(Worker):
    """Enters what was booked."""

    name = "audit"
    concurrency = 16
    attempts = 60

    def __init__(self, context: WorkerContext) -> None:
        self._entries = Entries(context.settings.database_of("audit"), "audit")
        self.inbox = self._entries.inbox

    async def start(self) -> None:
        await self._entries.open()

    async def stop(self) -> None:
        await self._entries.database.dispose()

    @on_event
    async def note(self, event: Booked) -> None:
        await self._entries.add(event.entry)
