"""Locks and counters in the database of the working memory."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.swm import Lock, LockInfo
from memory.errors import CounterFull, LockNotHeld
from memory.swm.coordination import MAX_VALUE, OPERATIONS_KEPT, Clock, LockRequest
from memory.swm.tables import LockRow, OperationRow, SharedCounterRow
from mindbus.sql.database import Database
from mindbus.tasks import Batches

_AT_ONCE = 500


@dataclass(slots=True)
class _Addition:
    counter: str
    by: int
    operation_id: str
    # None if the counter is full.
    value: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        return (self.counter, self.operation_id)


class SqlCoordination:
    """CoordinationStore of the instance that leads, whose clock is the only one.

    Concurrent additions are committed together.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._additions: Batches[_Addition] = Batches(self._save, max_items=_AT_ONCE, max_weight=_AT_ONCE)

    async def open(self) -> None:
        self._additions.start()

    async def close(self) -> None:
        """Stop committing; requests that still wait are repeated by their senders."""
        await self._additions.stop()

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
            row = await self._lock_row(session, name, token)
            if row.expires_at is None:
                raise LockNotHeld(name=name)
            row.expires_at = self._clock() + lease
            return _as_lock(row)

    async def release(self, name: str, token: str) -> None:
        async with self._database.transaction() as session:
            (await self._lock_row(session, name, token)).expires_at = None

    async def lock_info(self, name: str) -> LockInfo:
        async with self._database.reading() as session:
            row = await session.get(LockRow, name)
        if row is None or row.expires_at is None or row.expires_at <= self._clock():
            return LockInfo(name=name, fencing=0 if row is None else row.fencing)
        return LockInfo(name=name, holder=row.holder, fencing=row.fencing, expires=row.expires_at)

    async def add(self, counter: str, by: int, operation_id: str) -> int:
        addition = _Addition(counter, by, operation_id)
        await self._additions.add(addition)
        if addition.value is None:
            raise CounterFull(name=counter)
        return addition.value

    async def value(self, counter: str) -> int:
        async with self._database.reading() as session:
            return await session.scalar(select(SharedCounterRow.value).where(SharedCounterRow.name == counter)) or 0

    async def forget_old(self) -> None:
        async with self._database.transaction() as session:
            await session.execute(delete(OperationRow).where(OperationRow.made_at < self._clock() - OPERATIONS_KEPT))

    async def clear_counters(self) -> int:
        async with self._database.transaction() as session:
            await session.execute(delete(OperationRow))
            return len((await session.scalars(delete(SharedCounterRow).returning(SharedCounterRow.name))).all())

    async def _lock_row(self, session: AsyncSession, name: str, token: str) -> LockRow:
        """Row of a lock whose last holder has the token, unless the lease has ended; it may have been released."""
        row = await session.get(LockRow, name, with_for_update=True)
        if row is None or row.token != token or (row.expires_at is not None and row.expires_at <= self._clock()):
            raise LockNotHeld(name=name)
        return row

    async def _save(self, additions: Sequence[_Addition]) -> None:
        now = self._clock()
        async with self._database.transaction() as session:
            values = await _applied_operations(session, [addition.key for addition in additions])
            counters = await _counter_rows(session, {addition.counter for addition in additions})
            new = {}
            for addition in additions:
                if addition.key not in values:
                    counter = counters[addition.counter]
                    if abs(counter.value + addition.by) > MAX_VALUE:
                        continue
                    counter.value += addition.by
                    values[addition.key] = new[addition.key] = counter.value
                addition.value = values[addition.key]
            session.add_all(OperationRow(name=n, operation_id=o, value=v, made_at=now) for (n, o), v in new.items())


def _as_lock(row: LockRow) -> Lock:
    assert row.expires_at is not None
    return Lock(token=row.token, fencing=row.fencing, expires=row.expires_at)


async def _applied_operations(session: AsyncSession, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], int]:
    key = tuple_(OperationRow.name, OperationRow.operation_id)
    rows = await session.scalars(select(OperationRow).where(key.in_(keys)))
    return {(row.name, row.operation_id): row.value for row in rows}


async def _counter_rows(session: AsyncSession, names: set[str]) -> dict[str, SharedCounterRow]:
    rows = await session.scalars(select(SharedCounterRow).where(SharedCounterRow.name.in_(names)))
    counters = {row.name: row for row in rows}
    for name in names - counters.keys():
        counters[name] = SharedCounterRow(name=name, value=0)
        session.add(counters[name])
    return counters
