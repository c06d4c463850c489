"""Publication of what a service has recorded: outcomes that a dead process has left, then the outbox, in order."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Text, bindparam, cast, delete, func, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import BusUnavailable, QueueUnavailable
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.dispatch import UNREADABLE, Sending, Sent, reason_of, worse
from mindbus.sql.errors import DatabaseAway
from mindbus.sql.statements import PreparedStatement
from mindbus.sql.tables import NOT_PUBLISHED, InboxTables, dump, load
from mindbus.tasks import Supervised, end

_BATCH, _POLL_S = 100, 1.0
# How long a process may take to publish what it has committed before others do so, too.
_LOOK_AGAIN_S = 60.0


class OutboxRelay:
    """Publishes, again and again, the unmarked outcomes of the inbox and the rows of the outbox.

    A row that cannot be read goes to the table `quarantine`, with the reason, so that it holds up nothing behind it.
    """

    def __init__(self, database: Database, tables: InboxTables) -> None:
        self.database, self._tables = database, tables
        inbox = tables.inbox
        is_it = (inbox.c.consumer == bindparam("of"), inbox.c.message_id == bindparam("id"))
        self._marking = PreparedStatement(update(inbox).where(*is_it).values(published=True))
        self._marks: list[dict[str, str]] = []
        self._wake = asyncio.Event()
        self._running: Supervised | None = None
        self._task: asyncio.Task[None] | None = None
        self._left_before: datetime | None = None
        self._looked_at = monotonic()
        self._holds_forgotten = self._is_held_up = False
        self.poll_s, self.look_again_s = _POLL_S, _LOOK_AGAIN_S
        self.set_aside = 0

    @property
    def is_failing(self) -> bool:
        """Whether it has failed again and again, or has outcomes that a queue does not take."""
        return self._is_held_up or (self._running is not None and self._running.is_failing)

    def start(self, transport: Transport) -> None:
        """Publish what an earlier process has left, then what comes."""
        self._left_before = datetime.now(UTC)
        self._running = Supervised("outbox relay", partial(self._round, transport), 0)
        self._task = asyncio.create_task(self._running.run(), name="outbox relay")

    async def stop(self) -> None:
        """Stop publishing; what is left stays in the tables."""
        if self._task is not None:
            await end(self._task)
        with suppress(DatabaseAway, SQLAlchemyError, OSError):
            await self.write_marks()

    def wake(self) -> None:
        """Look into the outbox at once."""
        self._wake.set()

    def empty_log_soon(self) -> None:
        """Have SQLite's log emptied as soon as nobody reads or writes."""
        self._holds_forgotten = True
        self._wake.set()

    def mark(self, consumer: str, message_id: str) -> None:
        """Have the row of a message marked as published, with others."""
        self._marks.append({"of": consumer, "id": message_id})

    async def postpone(self, consumer: str, message_id: str, outgoing: Sequence[Outgoing]) -> None:
        """Leave what nobody takes yet, the rest being published, to the outbox. Raises DatabaseAway."""

        def write(connection: Connection) -> None:
            connection.execute(insert(self._tables.outbox), [dump(message) for message in outgoing])
            self._mark([{"of": consumer, "id": message_id}], connection)

        await self.database.write(write)

    async def count_set_aside(self) -> None:
        """Count the rows of `quarantine`, which an operator may have emptied. Raises DatabaseAway."""
        query = select(func.count()).select_from(self._tables.quarantine)
        self.set_aside = await self.database.read(lambda connection: connection.scalar(query) or 0)

    async def write_marks(self) -> None:
        """Mark the rows of messages whose outcomes are published. Raises DatabaseAway."""
        while marks := self._marks[:_BATCH]:
            del self._marks[:_BATCH]
            try:
                await self.database.write(partial(self._mark, marks))
            except BaseException:
                self._marks += marks
                raise

    def _mark(self, rows: Sequence[dict[str, str]], connection: Connection) -> None:
        self._marking.run(connection, rows)

    async def relay(self, transport: Transport) -> None:
        """Publish once whatever is not published yet, by whichever process. Raises BusUnavailable, DatabaseAway."""
        await self.write_marks()
        sending = Sending(transport)
        await self._relay_outbox(sending, await self._republish(sending, datetime.now(UTC)))

    async def _round(self, transport: Transport) -> None:
        self._wake.clear()
        if self._left_before is None and monotonic() - self._looked_at > self.look_again_s:
            self._left_before = datetime.now(UTC) - timedelta(seconds=self.look_again_s)
        await self.write_marks()
        sending, held_up = Sending(transport), None
        if self._left_before is not None:
            held_up = await self._republish(sending, self._left_before)
            self._is_held_up = held_up is not None
            await self.database.truncate_log()
            self._left_before, self._looked_at = None, monotonic()
        self._holds_forgotten = self._holds_forgotten and not await self.database.truncate_log()
        await self._relay_outbox(sending, held_up)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.poll_s):
                await self._wake.wait()

    async def _republish(self, sending: Sending, before: datetime) -> QueueUnavailable | None:
        """Publish, under their ids, the outcomes that nobody has marked as published since before that time.

        Their messages may have been dead-lettered or dropped after the commit, so that they never come again. Returns
        why a queue took some of them not, which does not delay the others. Raises BusUnavailable, DatabaseAway.
        """
        inbox = self._tables.inbox
        # As text: one that is not JSON would make all of them unreadable.
        query = (
            select(inbox.c.consumer, inbox.c.message_id, cast(inbox.c.outcome, Text))
            .where(NOT_PUBLISHED, inbox.c.handled_at < before)
            .order_by(inbox.c.handled_at, inbox.c.consumer, inbox.c.message_id)
            .limit(_BATCH)
        )
        left, held_up = 0, None

        def read(connection: Connection) -> Sequence[Any]:
            return connection.execute(query.offset(left)).all()

        # Those that are left are the oldest of what is still not marked.
        while rows := await self.database.read(read):
            for consumer, message_id, outcome in rows:
                try:
                    messages = [load(row) for row in json.loads(outcome)]
                except UNREADABLE as error:
                    await self._set_outcome_aside(consumer, message_id, outcome, reason_of(error))
                    continue
                sent, failure = await sending.send_all(messages)
                if isinstance(failure, QueueUnavailable):
                    left, held_up = left + 1, held_up or failure
                    continue
                if failure is not None:
                    raise failure
                unsent = [message for message, was_sent in zip(messages, sent, strict=True) if not was_sent]
                if unsent:
                    await self.postpone(consumer, message_id, unsent)
                else:
                    self.mark(consumer, message_id)
            await self.write_marks()
        return held_up

    async def _set_outcome_aside(self, consumer: str, message_id: str, outcome: str, reason: str) -> None:
        inbox, mark = self._tables.inbox, {"of": consumer, "id": message_id}
        is_this = (inbox.c.consumer == consumer) & (inbox.c.message_id == message_id)

        def write(connection: Connection) -> None:
            self._set_aside(connection, f"inbox {consumer} {message_id}", outcome, reason)
            connection.execute(update(inbox).where(is_this).values(outcome=[]))
            self._mark([mark], connection)

        await self.database.write(write)

    async def _relay_outbox(self, sending: Sending, failure: Exception | None) -> None:
        """Send every row of the outbox once.

        A command without a queue, or with a full one, does not delay those behind it. Raises BusUnavailable,
        DatabaseAway, and at the end this failure or whatever else kept one from being sent.
        """
        last = 0
        sends = self._send_unlocked if self.database.is_sqlite else self._send_locked
        while True:
            rows, sent = await sends(sending, last)
            failure = worse(failure, sent.failure)
            if isinstance(failure, BusUnavailable) and not isinstance(failure, QueueUnavailable):
                raise failure
            if len(rows) < _BATCH:
                break
            last = rows[-1]["seq"]
        if failure is not None:
            raise failure

    async def _send_locked(self, sending: Sending, last: int) -> tuple[Sequence[RowMapping], Sent]:
        """On PostgreSQL several relays share the rows by locks."""
        async with self.database.transaction() as session:
            locked = self._rows_after(last).with_for_update(skip_locked=True)
            rows: Sequence[RowMapping] = (await session.execute(locked)).mappings().all()
            sent = await sending.send_rows(rows)
            await (await session.connection()).run_sync(partial(self._settle, sent))
        return rows, sent

    async def _send_unlocked(self, sending: Sending, last: int) -> tuple[Sequence[RowMapping], Sent]:
        """On SQLite a lock would hold up every handler."""
        query = self._rows_after(last)
        rows = await self.database.read(lambda connection: connection.execute(query).mappings().all())
        sent = await sending.send_rows(rows)
        if sent.done or sent.unreadable:
            await self.database.write(partial(self._settle, sent))
        return rows, sent

    def _settle(self, sent: Sent, connection: Connection) -> None:
        for row, reason in sent.unreadable:
            content = json.dumps(dict(row), ensure_ascii=False, default=str)
            self._set_aside(connection, f"outbox {row['seq']}", content, reason)
        outbox, gone = self._tables.outbox, sent.done + [row["seq"] for row, _ in sent.unreadable]
        connection.execute(delete(outbox).where(outbox.c.seq.in_(gone)))

    def _set_aside(self, connection: Connection, source: str, content: str, reason: str) -> None:
        logger().error("unreadable message set aside", source=source, reason=reason, table="quarantine")
        row = {"source": source, "content": content, "reason": reason, "at": datetime.now(UTC)}
        connection.execute(insert(self._tables.quarantine), row)
        self.set_aside += 1

    def _rows_after(self, last: int) -> Select[Any]:
        outbox = self._tables.outbox
        return select(outbox).where(outbox.c.seq > last).order_by(outbox.c.seq).limit(_BATCH)
