"""Statistics of artifacts, contents and files."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.storage_maintenance import Amount, StorageStats
from mindbus.sql.database import Database
from storage_service.blobs import ORPHANS, STAGING, Blobs
from storage_service.maintenance.collector import COLLECTED
from storage_service.tables import (
    BlobRow,
    ManifestRow,
    NotificationRow,
    ProgressRow,
    RemovalRow,
    SpentUploadRow,
    TraceRow,
)

AUDITED = "audited"
_LARGEST = 20
_SIZE: ColumnElement[int] = func.coalesce(func.sum(ManifestRow.size_bytes), 0)


@dataclass(frozen=True, slots=True)
class StorageStatistics:
    """Counts of the database; those of staging and orphans come from the store."""

    database: Database
    blobs: Blobs

    async def stats(self) -> StorageStats:
        """Raises OSError."""
        staging, oldest = await self._amount_in(STAGING)
        orphans, _ = await self._amount_in(ORPHANS)
        unexpired = ManifestRow.expired_at.is_(None)
        async with self.database.reading() as session:
            return StorageStats(
                artifacts=await _amount(session, unexpired),
                expired=await _amount(session, ~unexpired),
                by_state=await _amounts(session, _states()),
                by_type=await _amounts(session, _largest(ManifestRow.artifact_type)),
                by_owner=await _amounts(session, _largest(ManifestRow.owner)),
                staging=staging,
                orphans=orphans,
                oldest_staged=oldest,
                spent_uploads=await _count(session, select(SpentUploadRow)),
                removals=await _count(session, select(RemovalRow)),
                notices=await _count(session, select(NotificationRow)),
                open_traces=await _count(session, select(TraceRow).where(TraceRow.closed_at.is_(None))),
                collected_at=await _time_of(session, COLLECTED),
                audited_at=await _time_of(session, AUDITED),
            )

    async def _amount_in(self, folder: str) -> tuple[Amount, datetime | None]:
        count = size_bytes = 0
        oldest: datetime | None = None
        async for found in self.blobs.listing(folder):
            count += 1
            size_bytes += found.size_bytes
            oldest = min(oldest or found.modified, found.modified)
        return Amount(count=count, size_bytes=size_bytes), oldest


def _states() -> Any:
    size: ColumnElement[int] = func.coalesce(func.sum(BlobRow.size_bytes), 0)
    return select(BlobRow.state, func.count(), size).group_by(BlobRow.state).order_by(BlobRow.state)


def _largest(column: Any) -> Any:
    unexpired = select(column, func.count(), _SIZE).where(ManifestRow.expired_at.is_(None))
    return unexpired.group_by(column).order_by(_SIZE.desc(), column).limit(_LARGEST)


async def _amount(session: AsyncSession, condition: ColumnElement[bool]) -> Amount:
    count, size_bytes = (await session.execute(select(func.count(), _SIZE).where(condition))).one()
    return Amount(count=count, size_bytes=size_bytes)


async def _amounts(session: AsyncSession, query: Any) -> dict[str, Amount]:
    rows: Sequence[Any] = (await session.execute(query)).all()
    return {name: Amount(count=count, size_bytes=size_bytes) for name, count, size_bytes in rows}


async def _count(session: AsyncSession, query: Any) -> int:
    return await session.scalar(select(func.count()).select_from(query.subquery())) or 0


async def _time_of(session: AsyncSession, name: str) -> datetime | None:
    row = await session.get(ProgressRow, name)
    return None if row is None else row.noted_at
