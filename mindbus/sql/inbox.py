"""Exactly-once effects: the effect and the inbox row with what it caused in one transaction."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic

from sqlalchemy import (
    Connection,
    MetaData,
    Text,
    bindparam,
    cast,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError

from mindbus.bus.inbox import Outcomes
from mindbus.bus.telemetry import Metric, series
from mindbus.bus.transport import Outgoing, Transport
from mindbus.errors import TemporaryFailure
from mindbus.sql.database import QUICKLY_CHECKED_BYTES, AmbientTransaction, Database
from mindbus.sql.errors import DatabaseDamaged
from mindbus.sql.relay import OutboxRelay
from mindbus.sql.statements import PreparedStatement
from mindbus.sql.tables import NOT_PUBLISHED, InboxTables, add_inbox_tables, dump, load
from mindbus.tasks import Supervised, end

# Longer than any retry, dead letter or claim check lives (storage spec: 30 days).
KEPT = timedelta(days=30)
_AT_ONCE, _SET_ASIDE_AT_ONCE = 5_000, 100
_PRUNE_EVERY_S = 86_400.0
_MEASURE_EVERY_S = 10.0
_LOOK_EVERY_S, _SHARE_OF_LOOKS = 20.0, 0.005
OUTBOX_ROWS = Metric("Gauge", "mindbus_outbox_rows", "Outcomes and messages still to be published", ("schema",))
OUTBOX_LAG = Metric("Gauge", "mindbus_outbox_lag_seconds", "Age of the oldest unpublished outcome", ("schema",))


class SqlInbox:
    """Inbox of a service with a database.

    The outcome of a message is published by the runtime once it is committed; its row is marked when that is done. The
    relay publishes what a process that died has left unmarked, whether or not the message comes again, and the outbox,
    in order. With `only_rows`, whatever the handlers do is in their transaction and in what they return: a message that
    has led to neither leaves no row either, since a second handling does nothing again.
    """

    publishes = True

    @property
    def trouble(self) -> str:
        """Reason why what it has recorded is not published; empty where it is."""
        return "what it has to say cannot be published; its log says why" if self.outbox.is_failing else ""

    @property
    def note(self) -> str:
        """How many unreadable messages lie in `quarantine`; empty where there are none."""
        if not (aside := self.outbox.set_aside):
            return ""
        return f"{aside} unreadable messages in the table quarantine of {self.database.name}: look at them"

    def __init__(self, database: Database, *, only_rows: bool = False) -> None:
        self.database, self._only_rows = database, only_rows
        self._tables = tables = add_inbox_tables(MetaData())
        inbox = tables.inbox
        self._outcome = PreparedStatement(
            select(inbox.c.outcome).where(inbox.c.consumer == bindparam("of"), inbox.c.message_id == bindparam("id"))
        )
        self._recording = PreparedStatement(insert(inbox))
        self.outbox = OutboxRelay(database, tables)
        self.prune_every_s = _PRUNE_EVERY_S
        self._prunes_at = 0.0
        self.damage = ""
        self._looks = Supervised(f"look at {database.schema}", self._look, _LOOK_EVERY_S)
        self._watches: list[asyncio.Task[None]] = []

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        """Outcomes of those of the messages that have been handled. Raises DatabaseAway."""

        def find(connection: Connection) -> Outcomes:
            rows = {each: self._outcome.first(connection, {"of": consumer, "id": each}) for each in message_ids}
            return {each: [load(message) for message in row.outcome] for each, row in rows.items() if row is not None}

        return await self.database.read(find)

    def mark_published(self, consumer: str, message_id: str) -> None:
        """Have the row of a message marked, with others: until then, what it caused would be published again."""
        self.outbox.mark(consumer, message_id)

    async def postpone(self, consumer: str, message_id: str, outgoing: Sequence[Outgoing]) -> None:
        """Leave what nobody takes yet, the rest being published, to the outbox. Raises DatabaseAway."""
        await self.outbox.postpone(consumer, message_id, outgoing)

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator["_SqlUnit"]:
        """Give the handlers their transaction; it commits on leaving. Raises DatabaseAway."""
        # Away after a COMMIT of unknown outcome, too: the next attempt finds its inbox row, or begins anew.
        async with self.database.at_hand() as transaction:
            unit = _SqlUnit(self._tables, self._recording, transaction, consumer, only_rows=self._only_rows)
            yield unit
        if unit.has_left:
            self.outbox.wake()

    async def forget(self, *names: str) -> None:
        """Within the current transaction, empty the outcomes that contain one of these words, or all of them.

        Those set aside in `quarantine` are deleted alike. SQLite's log, in which all that was deleted with them still
        stands, is emptied once nobody uses it. The messages stay recorded as handled, so that a redelivery has no
        effect.
        """
        inbox = self._tables.inbox
        conditions = [cast(inbox.c.outcome, Text).contains(f'\\"{name}\\"', autoescape=True) for name in names]
        emptied = update(inbox).where(or_(*conditions) if conditions else true()).values(outcome=[])
        # A million rows in one statement would take longer than PostgreSQL is given for one.
        key, last = tuple_(inbox.c.consumer, inbox.c.message_id), ("", "")
        upto = select(inbox.c.consumer, inbox.c.message_id).order_by(inbox.c.consumer, inbox.c.message_id)
        while page := (await self.database.session.execute(upto.where(key > last).limit(_AT_ONCE))).all():
            await self.database.session.execute(emptied.where(key > last, key <= tuple(page[-1])))
            last = tuple(page[-1])
        await self._forget_set_aside(names)
        self.database.after_commit(self.outbox.empty_log_soon)

    async def _forget_set_aside(self, names: Sequence[str]) -> None:
        """Delete what was set aside and has one of the names as a whole, not anna in anna_2 or joanna; or all of it."""
        aside, last = self._tables.quarantine, 0
        if not names:
            await self.database.session.execute(delete(aside))
            return
        whole = re.compile(rf"(?:(?<![\w@.-])|(?<=\\[bfnrt]))(?:{'|'.join(map(re.escape, names))})(?!\.?[\w@-])")
        contains = or_(*(aside.c.content.contains(name, autoescape=True) for name in names))
        found = select(aside.c.seq, aside.c.content).where(contains).order_by(aside.c.seq).limit(_SET_ASIDE_AT_ONCE)
        while page := (await self.database.session.execute(found.where(aside.c.seq > last))).all():
            gone = [row.seq for row in page if whole.search(row.content)]
            await self.database.session.execute(delete(aside).where(aside.c.seq.in_(gone)))
            last = page[-1].seq

    async def start(self, transport: Transport) -> None:
        """Publish what an earlier process has left, then the new rows of the outbox. Raises DatabaseDamaged."""
        # Before a message is taken: what is done on a damaged file is lost with it.
        await asyncio.to_thread(self.database.require_sound, QUICKLY_CHECKED_BYTES)
        await self.outbox.count_set_aside()
        self.outbox.start(transport)
        within_s = min(_MEASURE_EVERY_S, self.prune_every_s)
        pruning = Supervised(f"pruning of the inbox of {self.database.schema}", self._prune, within_s)
        measure = partial(_measure_lag, self.database, self._tables)
        measuring = Supervised(f"outbox lag of {self.database.schema}", measure, _MEASURE_EVERY_S)
        watched = [asyncio.create_task(each.run(), name=each.name) for each in (self._looks, measuring)]
        self._watches = [pruning.start(), *watched]

    async def stop(self) -> None:
        """Stop publishing; what is left stays in the tables."""
        await end(*self._watches)
        await self.outbox.stop()

    async def relay(self, transport: Transport) -> None:
        """Publish once whatever is not published yet, by whichever process. Raises BusUnavailable, DatabaseAway."""
        await self.outbox.relay(transport)

    async def _look(self) -> None:
        """Look for damage, in a share of time that nobody notices."""
        began = monotonic()
        try:
            await asyncio.to_thread(self.database.require_sound, QUICKLY_CHECKED_BYTES)
        except DatabaseDamaged as damage:
            self.damage = str(damage)
        await self.outbox.count_set_aside()
        self._looks.interval_s = max(_LOOK_EVERY_S, (monotonic() - began) / _SHARE_OF_LOOKS)

    async def _prune(self) -> None:
        """Forget what is old, once a day; what fails is tried again soon."""
        if monotonic() >= self._prunes_at:
            await self._forget_old()
            self._prunes_at = monotonic() + self.prune_every_s

    async def _forget_old(self) -> None:
        """Delete what no message can ask for any more, a batch to a transaction. Raises DatabaseAway."""
        inbox, before = self._tables.inbox, datetime.now(UTC) - KEPT
        key = tuple_(inbox.c.consumer, inbox.c.message_id)
        old = select(inbox.c.consumer, inbox.c.message_id).where(inbox.c.handled_at < before, inbox.c.published)
        oldest = old.order_by(inbox.c.handled_at).limit(_AT_ONCE)
        deleted = _AT_ONCE
        while deleted == _AT_ONCE:
            async with self.database.transaction() as session:
                connection = await session.connection()
                deleted = (await connection.execute(delete(inbox).where(key.in_(oldest)))).rowcount


class _SqlUnit:
    def __init__(
        self,
        tables: InboxTables,
        recording: PreparedStatement,
        transaction: AmbientTransaction,
        consumer: str,
        *,
        only_rows: bool,
    ) -> None:
        self._tables, self._recording, self._transaction = tables, recording, transaction
        self._consumer, self._only_rows = consumer, only_rows
        self.has_left = False

    async def record(self, outcomes: Outcomes) -> None:
        """Write the rows; a message handled twice at once fails on the inbox's key, so one of the two stands."""
        if self._only_rows and not self._transaction.has_begun and not any(outcomes.values()):
            return
        row = {"consumer": self._consumer, "handled_at": datetime.now(UTC)}
        rows = [
            row | {"message_id": message_id, "outcome": [dump(message) for message in caused], "published": not caused}
            for message_id, caused in outcomes.items()
        ]
        try:
            await self._transaction.run(lambda connection: self._recording.run(connection, rows))
        except IntegrityError as handled:
            raise TemporaryFailure("another instance has just handled it") from handled

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        if outgoing:
            rows = [dump(message) for message in outgoing]
            await self._transaction.run(lambda connection: connection.execute(insert(self._tables.outbox), rows))
            self.has_left = True


async def _measure_lag(database: Database, tables: InboxTables) -> None:
    """Measure the unmarked outcomes of the inbox and the rows of the outbox. Raises DatabaseAway."""
    inbox = tables.inbox
    unmarked = select(func.count(), func.min(inbox.c.handled_at)).where(NOT_PUBLISHED)
    left = select(func.count()).select_from(tables.outbox)

    def count(connection: Connection) -> tuple[int, datetime | None]:
        outcomes, since = connection.execute(unmarked).one()
        return outcomes + (connection.scalar(left) or 0), since

    rows, since = await database.read(count)
    series(OUTBOX_ROWS, database.schema).set(rows)
    series(OUTBOX_LAG, database.schema).set(_age_s(since) if since else 0.0)


def _age_s(moment: datetime) -> float:
    # SQLite knows no time zones: it keeps UTC.
    return max((datetime.now(UTC) - moment.replace(tzinfo=moment.tzinfo or UTC)).total_seconds(), 0.0)
