"""One delivery beside another of the same message."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from sqlalchemy import MetaData, func, select

from bus_schema.envelope import Envelope, Kind
from bus_schema.messages import Command, Event, Message, Nothing
from mindbus import TemporaryFailure, Worker, on_command
from mindbus.bus.claims import Claims
from mindbus.bus.decode import Decoded
from mindbus.bus.memory import MemoryBroker, MemoryTransport
from mindbus.bus.sender import Sender
from mindbus.bus.topology import REQUEUE, commands_exchange, commands_queue, of_service, rungs_of
from mindbus.bus.transport import Incoming, Origin, Outgoing, Properties, RawCopy, properties_of
from mindbus.files.store import FolderFiles
from mindbus.runtime.processor import Mailboxes, Processor, Work
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.tables import add_inbox_tables
from mindbus.tasks import end
from mindbus.testing.wait import until


class Toil(Command[Nothing], domain="toiler", action="toil"):
    """Fail once, then succeed."""


class Toiler(Worker):
    name = "toiler"

    def __init__(self) -> None:
        self.tries = 0

    @on_command
    async def toil(self, command: Toil) -> None:
        self.tries += 1
        if self.tries == 1:
            raise TemporaryFailure("not yet")


@dataclass
class Delivered:
    body: bytes
    exchange: str
    routing_key: str
    properties: Properties
    headers: dict[str, Any] = field(default_factory=dict)
    origin: Origin | None = None
    is_acked: bool = False

    async def ack(self) -> None:
        self.is_acked = True

    async def requeue(self) -> None:
        raise AssertionError("nothing was to be given back")


class SlowToConfirm(MemoryTransport):
    """Delivers a copy before it confirms that it has it."""

    processor: Processor
    returned: "asyncio.Task[None]"

    async def publish(self, message: Outgoing | RawCopy) -> None:
        assert isinstance(message, RawCopy)
        copy = Delivered(message.body, REQUEUE, message.routing_key, message.properties, message.headers)
        self.returned = asyncio.create_task(self.processor.process(copy))
        # As far as it gets while the confirmation is under way.
        await asyncio.wait([self.returned], timeout=0.01)


async def test_a_retry_that_comes_back_before_its_copy_is_confirmed_is_handled(tmp_path: Path) -> None:
    worker, transport = Toiler(), SlowToConfirm(MemoryBroker())
    sender = Sender("toiler", "1", "svc.toiler", "reply.toiler.1", Claims(FolderFiles(tmp_path, tmp_path.as_uri())))
    transport.processor = Processor(worker, sender, transport, rungs_of("1s"), commands_queue("toiler"), {})
    envelope = Envelope(
        id="msg_1",
        source="/mb/test/1",
        type=Toil.wire.type,
        time=datetime.now(UTC),
        correlationid="msg_1",
        mbkind=Kind.COMMAND,
        mbrequester="user.local",
    )
    first = Delivered(envelope.to_wire(), commands_exchange("toiler"), Toil.wire.routing_key, properties_of(envelope))

    await transport.processor.process(first)
    await transport.returned

    assert first.is_acked
    assert worker.tries == 2


class OrderlyToiler(Toiler):
    def order_key(self, message: Message | Envelope) -> str | None:
        return "everybody"


class ConfirmsNoDeadLetter(MemoryTransport):
    async def publish(self, message: Outgoing | RawCopy) -> None:
        await asyncio.Event().wait()


async def test_no_message_waits_for_the_dead_letters_of_unreadable_ones_before_it(tmp_path: Path) -> None:
    worker, transport = OrderlyToiler(), ConfirmsNoDeadLetter(MemoryBroker())
    worker.tries = 1
    sender = Sender("toiler", "1", "svc.toiler", "reply.toiler.1", Claims(FolderFiles(tmp_path, tmp_path.as_uri())))
    processor = Processor(worker, sender, transport, rungs_of("1s"), commands_queue("toiler"), {}, in_place=True)
    tasks: list[asyncio.Task[None]] = []

    def begin(_incoming: Incoming, work: Work) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(work()))
        return tasks[-1]

    mailboxes = Mailboxes(processor, begin)
    principal = Sender("test", "1", "user.local", "reply.test.1", sender.claims)
    command = await principal.command(Toil())
    unreadable = [Delivered(b"{}", "", commands_queue("toiler"), Properties()) for _ in range(20)]
    readable = Delivered(command.body, command.exchange, command.routing_key, properties_of(command.envelope))

    for incoming in (*unreadable, readable):
        mailboxes.deliver(incoming)

    await until(lambda: readable.is_acked)
    assert not any(each.is_acked for each in unreadable), "none is given up before its dead letter is safe"
    await mailboxes.close()
    await end(*tasks)


class Report(Command[Nothing], domain="archive", action="report"):
    """Sent to a service that may not have started yet."""


class Reported(Event, topic="toiler", name="reported"):
    """It was."""


class Reporter(Worker):
    name = "toiler"

    @on_command
    async def toil(self, command: Toil) -> list[Reported | Report]:
        return [Reported(), Report()]


async def test_what_nobody_takes_yet_waits_in_the_outbox_while_its_message_is_done_with(tmp_path: Path) -> None:
    database = Database(f"sqlite+aiosqlite:///{tmp_path / 'toiler.db'}", "toiler")
    metadata = MetaData()
    tables = add_inbox_tables(metadata)
    database.run_on_admin_connection(metadata.create_all)
    broker = MemoryBroker()
    worker, transport = Reporter(), MemoryTransport(broker)
    worker.inbox = inbox = SqlInbox(database)
    sender = Sender("toiler", "1", "svc.toiler", "reply.toiler.1", Claims(FolderFiles(tmp_path, tmp_path.as_uri())))
    processor = Processor(worker, sender, transport, rungs_of("1s"), commands_queue("toiler"), {})
    principal = Sender("test", "1", "user.local", "reply.test.1", sender.claims)
    command = await principal.command(Toil())
    incoming = Delivered(command.body, command.exchange, command.routing_key, properties_of(command.envelope))

    async def outbox() -> int:
        return await database.read(
            lambda connection: connection.scalar(select(func.count()).select_from(tables.outbox)) or 0
        )

    await processor.process(incoming)
    await inbox.relay(transport)
    assert incoming.is_acked
    assert await outbox() == 1

    broker.declare(of_service("archive", takes_commands=True, event_keys=()))
    await inbox.relay(transport)

    assert await outbox() == 0
    assert len(broker.queues[commands_queue("archive")].waiting) == 1
    await inbox.stop()
    await database.dispose()


class BrokenOff(FolderFiles):
    """A file store that fails once."""

    reads = 0

    def open_read(self, key: str) -> IO[bytes]:
        self.reads += 1
        if self.reads == 1:
            raise OSError("away")
        return super().open_read(key)


async def test_where_order_matters_a_store_that_is_back_is_asked_soon(tmp_path: Path) -> None:
    files, transport = BrokenOff(tmp_path, tmp_path.as_uri()), MemoryTransport(MemoryBroker())
    sender = Sender("toiler", "1", "svc.toiler", "reply.toiler.1", Claims(files))
    # The ladder would have all others wait for an hour.
    processor = Processor(Toiler(), sender, transport, rungs_of("1h"), commands_queue("toiler"), {}, in_place=True)
    asker = Sender("test", "1", "user.local", "reply.test.1", sender.claims, max_body_bytes=1)
    command = await asker.command(Toil())
    assert command.envelope.dataref
    incoming = Delivered(command.body, command.exchange, command.routing_key, properties_of(command.envelope))

    async with asyncio.timeout(20):
        decoded = await processor.decode(incoming)

    assert isinstance(decoded, Decoded)
    assert files.reads == 2
