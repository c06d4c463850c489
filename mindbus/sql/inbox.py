"""Exactly-once effects: the effect and the inbox row with what it caused in one transaction."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any

from sqlalchemy import (
    Connection,
    MetaData,
    RowMapping,
    Select,
    Table,
    Text,
    Update,
    bindparam,
    cast,
    delete,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from bus_schema.envelope import Envelope, Kind
from mindbus.bus.inbox import Outcomes
from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import BusUnavailable, TemporaryFailure, Unroutable
from mindbus.logs import logger
from mindbus.sql.database import AmbientTransaction, Database
from mindbus.sql.groups import DatabaseAway
from mindbus.sql.tables import NOT_PUBLISHED, InboxTables, add_inbox_tables
from mindbus.tasks import end

# Longer than any retry, dead letter or claim check lives (storage spec: 30 days).
KEPT = timedelta(days=30)
_BATCH = 100
_POLL_S = 1.0
# How long a process may take to publish what it has committed before others do so, too.
_LOOK_AGAIN_S = 60.0


class SqlInbox:
    """Inbox of a service with a database.

    The outcome of a message is published by the runtime once it is committed; its row is marked when that is done. The
    relay publishes what a process that died has left unmarked, whether or not the message comes again, and the outbox,
    in order. With `only_rows`, whatever the handlers do is in their transaction and in what they return: a message that
    has led to neither leaves no row either, since a second handling does nothing again.
    """

    publishes = True

    def __init__(self, database: Database, *, only_rows: bool = False) -> None:
        self.database, self._only_rows = database, only_rows
        self._tables = tables = add_inbox_tables(MetaData())
        inbox = tables.inbox
        self._outcomes = select(inbox.c.message_id, inbox.c.outcome).where(
            inbox.c.consumer == bindparam("of"), inbox.c.message_id.in_(bindparam("ids", expanding=True))
        )
        self._marking = (
            update(inbox)
            .where(inbox.c.consumer == bindparam("of"), inbox.c.message_id == bindparam("id"))
            .values(published=True)
        )
        self._marks: list[dict[str, str]] = []
        self._wake = asyncio.Event()
        self._relay: asyncio.Task[None] | None = None

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """Outcomes of those of the messages that have been handled. Raises DatabaseAway."""
        values = {"of": consumer, "ids": list(message_ids)}
        rows = await self.database.read(lambda connection: connection.execute(self._outcomes, values).all())
        return {message_id: [_load(row) for row in outcome] for message_id, outcome in rows}

    def mark_published(self, consumer: str, message_id: str) -> None:
        """Have the row of a message marked, with others: until then, what it caused would be published again."""
        self._marks.append({"of": consumer, "id": message_id})

    async def postpone(self, consumer: str, message_id: str, outgoing: Sequence[Outgoing]) -> None:
        """Leave what nobody takes yet, the rest being published, to the outbox. Raises DatabaseAway."""

        def write(connection: Connection) -> None:
            connection.execute(insert(self._tables.outbox), [_dump(message) for message in outgoing])
            connection.execute(self._marking, {"of": consumer, "id": message_id})

        await self.database.write(write)

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator["_SqlUnit"]:
        """Give the handlers their transaction; it commits on leaving. Raises DatabaseAway."""
        # Away after a COMMIT of unknown outcome, too: the next attempt finds its inbox row, or begins anew.
        async with self.database.at_hand() as transaction:
            unit = _SqlUnit(self._tables, transaction, consumer, only_rows=self._only_rows)
            yield unit
        if unit.has_left:
            self._wake.set()

    async def forget(self, *names: str) -> None:
        """Within the current transaction, empty the outcomes that contain one of these words, or all of them.

        The messages stay recorded as handled, so that a redelivery has no effect.
        """
        inbox = self._tables.inbox
        conditions = [cast(inbox.c.outcome, Text).contains(f'\\"{name}\\"', autoescape=True) for name in names]
        await self.database.session.execute(
            update(inbox).where(or_(*conditions) if conditions else true()).values(outcome=[])
        )

    async def start(self, transport: Transport) -> None:
        """Publish what an earlier process has left, then the new rows of the outbox."""
        await self._forget_old()
        self._relay = asyncio.create_task(self._publish_for_ever(transport), name="outbox relay")
        self._wake.set()

    async def stop(self) -> None:
        """Stop publishing; what is left stays in the tables."""
        if self._relay is not None:
            await end(self._relay)
        with suppress(DatabaseAway, SQLAlchemyError, OSError):
            await self.write_marks()

    async def _publish_for_ever(self, transport: Transport) -> None:
        left_before: datetime | None = datetime.now(UTC)
        looked_at = monotonic()
        while True:
            self._wake.clear()
            try:
                await self.write_marks()
                if left_before is not None:
                    await self.republish(transport, left_before)
                    left_before, looked_at = None, monotonic()
                await self.relay_outbox(transport)
            except (BusUnavailable, DatabaseAway, SQLAlchemyError, OSError) as unavailable:
                logger().warning("outbox waits", reason=str(unavailable))
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await self._wake.wait()
            if left_before is None and monotonic() - looked_at > _LOOK_AGAIN_S:
                left_before = datetime.now(UTC) - timedelta(seconds=_LOOK_AGAIN_S)

    async def write_marks(self) -> None:
        """Mark the rows of messages whose outcomes are published. Raises DatabaseAway."""
        while marks := self._marks[:_BATCH]:
            del self._marks[:_BATCH]
            try:
                await self.database.write(partial(_execute_many, self._marking, marks))
            except BaseException:
                self._marks += marks
                raise

    async def republish(self, transport: Transport, before: datetime) -> None:
        """Publish, under their ids, the outcomes that nobody has marked as published since before that time.

        Their messages may have been dead-lettered or dropped after the commit, so that they never come again. Raises
        BusUnavailable, DatabaseAway.
        """
        inbox = self._tables.inbox
        query = (
            select(inbox.c.consumer, inbox.c.message_id, inbox.c.outcome)
            .where(NOT_PUBLISHED, inbox.c.handled_at < before)
            .order_by(inbox.c.handled_at)
            .limit(_BATCH)
        )
        while rows := await self.database.read(lambda connection: connection.execute(query).all()):
            for consumer, message_id, outcome in rows:
                messages = [_load(row) for row in outcome]
                sent = await asyncio.gather(*(_try_send(transport, message) for message in messages))
                unsent = [message for message, was_sent in zip(messages, sent, strict=True) if not was_sent]
                if unsent:
                    await self.postpone(consumer, message_id, unsent)
                else:
                    self.mark_published(consumer, message_id)
            await self.write_marks()

    async def relay(self, transport: Transport) -> None:
        """Publish once whatever is not published yet, by whichever process. Raises BusUnavailable, DatabaseAway."""
        await self.write_marks()
        await self.republish(transport, datetime.now(UTC))
        await self.relay_outbox(transport)

    async def relay_outbox(self, transport: Transport) -> None:
        """Send every row of the outbox once, as `start` does again and again.

        A command without a queue does not delay those behind it. Raises BusUnavailable, DatabaseAway.
        """
        last, sends = 0, self._send_unlocked if self.database.is_sqlite else self._send_locked
        while True:
            rows = await sends(transport, last)
            if len(rows) < _BATCH:
                return
            last = rows[-1]["seq"]

    async def _send_locked(self, transport: Transport, last: int) -> Sequence[RowMapping]:
        """On PostgreSQL several relays share the rows by locks."""
        outbox = self._tables.outbox
        async with self.database.transaction() as session:
            locked = self._rows_after(last).with_for_update(skip_locked=True)
            rows: Sequence[RowMapping] = (await session.execute(locked)).mappings().all()
            await session.execute(delete(outbox).where(outbox.c.seq.in_(await self._send(transport, rows))))
        return rows

    async def _send_unlocked(self, transport: Transport, last: int) -> Sequence[RowMapping]:
        """On SQLite a lock would hold up every handler."""
        outbox, query = self._tables.outbox, self._rows_after(last)
        rows = await self.database.read(lambda connection: connection.execute(query).mappings().all())
        if done := await self._send(transport, rows):
            await self.database.write(
                lambda connection: connection.execute(delete(outbox).where(outbox.c.seq.in_(done)))
            )
        return rows

    def _rows_after(self, last: int) -> Select[Any]:
        outbox = self._tables.outbox
        return select(outbox).where(outbox.c.seq > last).order_by(outbox.c.seq).limit(_BATCH)

    async def _send(self, transport: Transport, rows: Sequence[Any]) -> list[int]:
        sent = await asyncio.gather(*(_try_send(transport, _load(row)) for row in rows))
        return [row["seq"] for row, was_sent in zip(rows, sent, strict=True) if was_sent]

    async def _forget_old(self) -> None:
        inbox = self._tables.inbox
        async with self.database.transaction() as session:
            is_old = inbox.c.handled_at < datetime.now(UTC) - KEPT
            await session.execute(delete(inbox).where(is_old, inbox.c.published))


class _SqlUnit:
    def __init__(self, tables: InboxTables, transaction: AmbientTransaction, consumer: str, *, only_rows: bool) -> None:
        self._tables, self._transaction, self._consumer, self._only_rows = tables, transaction, consumer, only_rows
        self.has_left = False

    async def record(self, outcomes: Outcomes) -> None:
        """Write the rows; a message handled twice at once fails on the inbox's key, so one of the two stands."""
        if self._only_rows and not self._transaction.has_begun and not any(outcomes.values()):
            return
        row = {"consumer": self._consumer, "handled_at": datetime.now(UTC)}
        rows = [
            row | {"message_id": message_id, "outcome": [_dump(message) for message in caused], "published": not caused}
            for message_id, caused in outcomes.items()
        ]
        try:
            await self._insert(self._tables.inbox, rows)
        except IntegrityError as handled:
            raise TemporaryFailure("another instance has just handled it") from handled

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        if outgoing:
            await self._insert(self._tables.outbox, [_dump(message) for message in outgoing])
            self.has_left = True

    async def _insert(self, table: Table, rows: list[dict[str, Any]]) -> None:
        await self._transaction.run(lambda connection: connection.execute(insert(table), rows))


async def _try_send(transport: Transport, message: Outgoing) -> bool:
    try:
        await transport.publish(message)
    except Unroutable as unroutable:
        # Nobody waits for this reply any more; a command waits until its service has a queue.
        is_reply = message.envelope.mbkind is Kind.REPLY
        logger().info("nobody takes it", type=message.envelope.type, reason=str(unroutable), dropped=is_reply)
        return is_reply
    return True


def _execute_many(statement: Update, rows: list[dict[str, str]], connection: Connection) -> None:
    connection.execute(statement, rows)


def _dump(message: Outgoing) -> dict[str, Any]:
    return {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "mandatory": message.mandatory,
        "envelope": message.body.decode(),
    }


def _load(row: Any) -> Outgoing:
    envelope = Envelope.model_validate_json(row["envelope"])
    return Outgoing(row["exchange"], row["routing_key"], envelope, row["envelope"].encode(), row["mandatory"])
