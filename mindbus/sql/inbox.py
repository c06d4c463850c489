"""Exactly-once effects: inbox row, effect, outbox rows in one transaction."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import MetaData, Text, cast, delete, insert, or_, select, true, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.envelope import Envelope, Kind
from mindbus.bus.inbox import Outcomes
from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import BusUnavailable, TemporaryFailure, Unroutable
from mindbus.logs import logger
from mindbus.sql.database import Database, DatabaseAway
from mindbus.sql.tables import InboxTables, add_inbox_tables
from mindbus.tasks import end

# Longer than any retry, dead letter or claim check lives (storage spec: 30 days).
KEPT = timedelta(days=30)
_BATCH = 100
_POLL_S = 1.0


class SqlInbox:
    """Inbox of a service with a database; its relay publishes the outbox in order."""

    publishes = True

    def __init__(self, database: Database) -> None:
        self.database = database
        self._tables = add_inbox_tables(MetaData())
        self._wake = asyncio.Event()
        self._relay: asyncio.Task[None] | None = None

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """Outcomes of those of the messages that have been handled. Raises DatabaseAway."""
        inbox = self._tables.inbox
        query = select(inbox.c.message_id, inbox.c.outcome).where(
            inbox.c.consumer == consumer, inbox.c.message_id.in_(message_ids)
        )
        async with self.database.reading() as session:
            rows = (await session.execute(query)).all()
        return {message_id: [_load(row) for row in outcome] for message_id, outcome in rows}

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator["_SqlUnit"]:
        """Give the handlers their transaction; it commits on leaving. Raises DatabaseAway."""
        # Away after a COMMIT of unknown outcome, too: the next attempt finds its inbox row, or begins anew.
        async with self.database.at_hand() as session:
            yield _SqlUnit(self._tables, session, consumer)
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
        """Publish the rows left by an earlier process, then new ones."""
        await self._forget_old()
        self._relay = asyncio.create_task(self._publish_for_ever(transport), name="outbox relay")
        self._wake.set()

    async def stop(self) -> None:
        """Stop publishing; what is left stays in the outbox."""
        if self._relay is not None:
            await end(self._relay)

    async def _publish_for_ever(self, transport: Transport) -> None:
        while True:
            self._wake.clear()
            try:
                await self.relay(transport)
            except (BusUnavailable, DatabaseAway, SQLAlchemyError, OSError) as unavailable:
                logger().warning("outbox waits", reason=str(unavailable))
            try:
                async with asyncio.timeout(_POLL_S):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def relay(self, transport: Transport) -> None:
        """Send every row once, as `start` does again and again.

        A command without a queue does not delay those behind it. Raises BusUnavailable, DatabaseAway.
        """
        outbox = self._tables.outbox
        last = 0
        while True:
            query = select(outbox).where(outbox.c.seq > last).order_by(outbox.c.seq).limit(_BATCH)
            async with self._taking() as session:
                rows = (await session.execute(query.with_for_update(skip_locked=True))).mappings().all()
                done = await self._send(transport, rows)
                if not self.database.is_sqlite:
                    await session.execute(delete(outbox).where(outbox.c.seq.in_(done)))
            if self.database.is_sqlite and done:
                async with self.database.transaction() as session:
                    await session.execute(delete(outbox).where(outbox.c.seq.in_(done)))
            if len(rows) < _BATCH:
                return
            last = rows[-1]["seq"]

    def _taking(self) -> AbstractAsyncContextManager[AsyncSession]:
        """On PostgreSQL several relays share the rows by locks; on SQLite a lock would hold up every handler."""
        return self.database.reading() if self.database.is_sqlite else self.database.transaction()

    async def _send(self, transport: Transport, rows: Sequence[Any]) -> list[int]:
        sent = await asyncio.gather(*(_try_send(transport, _load(row)) for row in rows))
        return [row["seq"] for row, was_sent in zip(rows, sent, strict=True) if was_sent]

    async def _forget_old(self) -> None:
        inbox = self._tables.inbox
        async with self.database.transaction() as session:
            await session.execute(delete(inbox).where(inbox.c.handled_at < datetime.now(UTC) - KEPT))


class _SqlUnit:
    def __init__(self, tables: InboxTables, session: AsyncSession, consumer: str) -> None:
        self._tables, self._session, self._consumer = tables, session, consumer

    async def record(self, outcomes: Outcomes) -> None:
        """Write both halves; a message handled twice at once fails on the inbox's key, so one of the two stands."""
        dumped = {message_id: [_dump(message) for message in caused] for message_id, caused in outcomes.items()}
        row = {"consumer": self._consumer, "handled_at": datetime.now(UTC)}
        inbox = [row | {"message_id": message_id, "outcome": rows} for message_id, rows in dumped.items()]
        try:
            await self._session.execute(insert(self._tables.inbox), inbox)
        except IntegrityError as handled:
            raise TemporaryFailure("another instance has just handled it") from handled
        await self._write([row for rows in dumped.values() for row in rows])

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        await self._write([_dump(message) for message in outgoing])

    async def _write(self, rows: list[dict[str, Any]]) -> None:
        if rows:
            await self._session.execute(insert(self._tables.outbox), rows)


async def _try_send(transport: Transport, message: Outgoing) -> bool:
    try:
        await transport.publish(message)
    except Unroutable as unroutable:
        # Nobody waits for this reply any more; a command waits until its service has a queue.
        is_reply = message.envelope.mbkind is Kind.REPLY
        logger().info("nobody takes it", type=message.envelope.type, reason=str(unroutable), dropped=is_reply)
        return is_reply
    return True


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
