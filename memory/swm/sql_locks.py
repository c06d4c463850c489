"""Locks in the database of the working memory."""

import secrets
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.swm import Lock, LockInfo
from memory.swm.locks import Clock, Want
from memory.swm.refusals import LockLost
from memory.swm.tables import LockRow
from mindbus.sql.database import Database


class SqlLocks:
    """A LockStore for the one instance that leads: its clock is the only one."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def take(self, want: Want) -> Lock | datetime:
        """As in LockStore."""
        async with self._database.transaction() as session:
            row, now = await session.get(LockRow, want.name, with_for_update=True), self._clock()
            if row is not None and row.expires_at is not None and row.expires_at > now:
                return _lock(row) if row.ticket == want.ticket else row.expires_at
            if row is None:
                row = LockRow(name=want.name, fencing=0)
                session.add(row)
            row.ticket, row.token, row.holder = want.ticket, secrets.token_hex(16), want.holder
            row.fencing, row.expires_at = row.fencing + 1, now + want.lease
            return _lock(row)

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        """As in LockStore."""
        async with self._database.transaction() as session:
            row = await self._held(session, name, token)
            row.expires_at = self._clock() + lease
            return _lock(row)

    async def release(self, name: str, token: str) -> None:
        """As in LockStore."""
        async with self._database.transaction() as session:
            row = await session.get(LockRow, name, with_for_update=True)
            if row is None or row.token != token or (row.expires_at is not None and row.expires_at <= self._clock()):
                raise LockLost(name=name)
            row.expires_at = None

    async def info(self, name: str) -> LockInfo:
        """As in LockStore."""
        async with self._database.reading() as session:
            row = await session.get(LockRow, name)
        if row is None or row.expires_at is None or row.expires_at <= self._clock():
            return LockInfo(name=name, fencing=0 if row is None else row.fencing)
        return LockInfo(name=name, holder=row.holder, fencing=row.fencing, expires=row.expires_at)

    async def _held(self, session: AsyncSession, name: str, token: str) -> LockRow:
        row = await session.get(LockRow, name, with_for_update=True)
        if row is None or row.token != token or row.expires_at is None or row.expires_at <= self._clock():
            raise LockLost(name=name)
        return row


def _lock(row: LockRow) -> Lock:
    assert row.expires_at is not None
    return Lock(token=row.token, fencing=row.fencing, expires=row.expires_at)
