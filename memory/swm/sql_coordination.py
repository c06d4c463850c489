"""Locks and counters in the database of the working memory."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.swm import Lock, LockInfo
from memory.swm.coordination import MAX_VALUE, OPERATIONS_KEPT, Addition, Clock, CounterStore, LockRequest, LockStore
from memory.swm.errors import CounterFull, LockNotHeld
from memory.swm.tables import LockRow, OperationRow, SharedCounterRow
from mindbus.sql.database import Database
from mindbus.tasks import Batches


class SqlLocks:
    """LockStore of the instance that leads, whose clock is the only one."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def take(self, request: LockRequest) -> Lock | datetime:
        async with self._database.transaction() as session:
            row, now = await session.get(LockRow, request.name, with_for_update=True), self._clock()
            if row is not None and row.expires_at is not None and row.expires_at > now:
                return _as_lock(row) if row.ticket == request.ticket else row.expires_at
            if row is None:
                row = LockRow(name=request.name, fencing=0)
                session.add(row)
            row.ticket, row.token, row.holder = request.ticket, secrets.token_hex(16), request.holder
            row.fencing, row.expires_at = row.fencing + 1, now + request.lease
            return _as_lock(row)

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        async with self._database.transaction() as session:
            row = await self._held(session, name, token)
            row.expires_at = self._clock() + lease
            return _as_lock(row)

    async def release(self, name: str, token: str) -> None:
        async with self._database.transaction() as session:
            row = await session.get(LockRow, name, with_for_update=True)
            if row is None or row.token != token or (row.expires_at is not None and row.expires_at <= self._clock()):
                raise LockNotHeld(name=name)
            row.expires_at = None

    async def info(self, name: str) -> LockInfo:
        async with self._database.reading() as session:
            row = await session.get(LockRow, name)
        if row is None or row.expires_at is None or row.expires_at <= self._clock():
            return LockInfo(name=name, fencing=0 if row is None else row.fencing)
        return LockInfo(name=name, holder=row.holder, fencing=row.fencing, expires=row.expires_at)

    async def _held(self, session: AsyncSession, name: str, token: str) -> LockRow:
        row = await session.get(LockRow, name, with_for_update=True)
        if row is None or row.token != token or row.expires_at is None or row.expires_at <= self._clock():
            raise LockNotHeld(name=name)
        return row


def _as_lock(row: LockRow) -> Lock:
    assert row.expires_at is not None
    return Lock(token=row.token, fencing=row.fencing, expires=row.expires_at)


_AT_ONCE = 500


@dataclass(slots=True)
class _Pending:
    addition: Addition
    # None if the counter is full.
    value: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.addition.name, self.addition.operation_id)


class SqlCounters:
    """CounterStore of the instance that leads; concurrent additions are committed together."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._batches: Batches[_Pending] = Batches(self._save, most=_AT_ONCE, heaviest=_AT_ONCE)

    def start(self) -> None:
        """Start committing."""
        self._batches.start()

    async def stop(self) -> None:
        """Stop committing; requests that still wait are repeated by their senders."""
        await self._batches.stop()

    async def add(self, addition: Addition) -> int:
        pending = _Pending(addition)
        await self._batches.add(pending)
        if pending.value is None:
            raise CounterFull(name=addition.name)
        return pending.value

    async def value(self, name: str) -> int:
        async with self._database.reading() as session:
            return await session.scalar(select(SharedCounterRow.value).where(SharedCounterRow.name == name)) or 0

    async def forget_old(self) -> None:
        async with self._database.transaction() as session:
            await session.execute(delete(OperationRow).where(OperationRow.made_at < self._clock() - OPERATIONS_KEPT))

    async def clear(self) -> int:
        async with self._database.transaction() as session:
            await session.execute(delete(OperationRow))
            return len((await session.scalars(delete(SharedCounterRow).returning(SharedCounterRow.name))).all())

    async def _save(self, additions: Sequence[_Pending]) -> None:
        now = self._clock()
        async with self._database.transaction() as session:
            made = await _made_operations(session, [pending.key for pending in additions])
            counters = await _counter_rows(session, {pending.addition.name for pending in additions})
            new = {}
            for pending in additions:
                if pending.key not in made:
                    counter = counters[pending.addition.name]
                    if abs(counter.value + pending.addition.by) > MAX_VALUE:
                        continue
                    counter.value += pending.addition.by
                    made[pending.key] = new[pending.key] = counter.value
                pending.value = made[pending.key]
            session.add_all(OperationRow(name=n, operation_id=o, value=v, made_at=now) for (n, o), v in new.items())


async def _made_operations(session: AsyncSession, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    key = tuple_(OperationRow.name, OperationRow.operation_id)
    found = await session.scalars(select(OperationRow).where(key.in_(keys)))
    return {(row.name, row.operation_id): row.value for row in found}


async def _counter_rows(session: AsyncSession, names: set[str]) -> dict[str, SharedCounterRow]:
    found = await session.scalars(select(SharedCounterRow).where(SharedCounterRow.name.in_(names)))
    counters = {row.name: row for row in found}
    for name in names - counters.keys():
        counters[name] = SharedCounterRow(name=name, value=0)
        session.add(counters[name])
    return counters


class SqlCoordination:
    """In the database of the working memory."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.locks: LockStore = SqlLocks(database, clock)
        self._counters = SqlCounters(database, clock)
        self.counters: CounterStore = self._counters

    async def open(self) -> None:
        self._counters.start()

    async def close(self) -> None:
        await self._counters.stop()
