"""Quotas of a fleet: bytes of artifacts, tokens of models a day; tokens used by each person."""

import time
from collections.abc import Callable
from datetime import date, datetime

from sqlalchemy import BigInteger, Connection, String, delete, func, select
from sqlalchemy.orm import Mapped, mapped_column

from mindbus.sql.database import Database
from storage_service.errors import QuotaSpent
from storage_service.rows import upserting
from storage_service.runs import RunBase
from storage_service.tables import LIVE, PINNED, BlobRow, StorageBase

_STORED = select(func.sum(BlobRow.size_bytes)).where(BlobRow.state.in_((PINNED, LIVE)))
# How long a sum over all artifacts serves; what is registered here meanwhile is added to it.
_BELIEVED_S = 10.0

EVERYBODY = "*"
"""Under it the tokens of all calls are counted, whoever they were made for."""


class TokensByDayRow(StorageBase):
    """Tokens that all calls of models have cost on a day (UTC), `YYYY-MM-DD`."""

    __tablename__ = "tokens_by_day"
    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    tokens: Mapped[int] = mapped_column(BigInteger)


class TokensUsedRow(RunBase):
    """Tokens that models have used for somebody on a day (UTC), `YYYY-MM-DD`, in the orchestrator's database."""

    __tablename__ = "tokens_used"
    identity: Mapped[str] = mapped_column(String(160), primary_key=True)
    day: Mapped[str] = mapped_column(String(10), primary_key=True)
    tokens: Mapped[int]


class ByteQuota:
    """Bounds what artifacts weigh together; of two writers at once each may go over it by what it writes within 10 s.

    Equal contents are stored once, and count once as of the next sum.
    """

    def __init__(self, database: Database, most_bytes: int) -> None:
        self._database, self._most_bytes = database, most_bytes
        self._stored_bytes, self._summed_at = 0, float("-inf")

    async def take(self, size_bytes: int) -> None:
        """Count bytes that are about to be stored. Raises QuotaSpent."""
        if time.monotonic() - self._summed_at > _BELIEVED_S:
            async with self._database.reading() as session:
                self._stored_bytes = await session.scalar(_STORED) or 0
            self._summed_at = time.monotonic()
        if self._stored_bytes + size_bytes > self._most_bytes:
            raise QuotaSpent(stored_bytes=self._stored_bytes, size_bytes=size_bytes, quota_bytes=self._most_bytes)
        self._stored_bytes += size_bytes


class TokenCounts:
    """Tokens of models by day."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database, self._clock = database, clock

    async def add(self, tokens: int) -> None:
        """Count tokens of today, with the transaction of the current message."""
        day = self._today().isoformat()

        def count(connection: Connection) -> None:
            statement = upserting(connection.dialect.name, TokensByDayRow).values(day=day, tokens=tokens)
            more = {"tokens": TokensByDayRow.tokens + statement.excluded.tokens}
            connection.execute(statement.on_conflict_do_update(index_elements=["day"], set_=more))
            connection.execute(delete(TokensByDayRow).where(TokensByDayRow.day < day))

        await self._database.run(count)

    async def today(self) -> tuple[date, int]:
        """The day and its tokens."""
        day = self._today()
        query = select(TokensByDayRow.tokens).where(TokensByDayRow.day == day.isoformat())
        return day, await self._database.read(lambda connection: connection.execute(query).scalar() or 0)

    def _today(self) -> date:
        return self._clock().date()


def add_tokens(connection: Connection, identity: str, day: str, tokens: int) -> None:
    statement = upserting(connection.dialect.name, TokensUsedRow).values(identity=identity, day=day, tokens=tokens)
    more = {"tokens": TokensUsedRow.tokens + statement.excluded.tokens}
    connection.execute(statement.on_conflict_do_update(index_elements=["identity", "day"], set_=more))


def tokens_used(connection: Connection, identity: str, day: str) -> int:
    query = select(TokensUsedRow.tokens).where(TokensUsedRow.identity == identity, TokensUsedRow.day == day)
    return connection.execute(query).scalar() or 0


def forget_tokens(connection: Connection, identity: str | None) -> None:
    """Delete what somebody has used; None: what all have."""
    statement = delete(TokensUsedRow)
    connection.execute(statement if identity is None else statement.where(TokensUsedRow.identity == identity))
