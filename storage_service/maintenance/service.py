"""Maintenance of the store, on request and at intervals, and its statistics."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.identities import Principal
from bus_schema.storage_maintenance import (
    Amount,
    ArtifactExpired,
    Audit,
    AuditPage,
    CollectGarbage,
    GarbageReport,
    Rebuild,
    RebuildPage,
    StorageStats,
)
from mindbus.errors import Rejected
from mindbus.logs import logger
from mindbus.sql.database import Database
from storage_service.acl import require_operator
from storage_service.blobs import ORPHANS, STAGING, Blobs
from storage_service.maintenance.audit import Auditor
from storage_service.maintenance.collector import COLLECTED, Collector
from storage_service.maintenance.manifest_copies import SpentUploads, write_copy
from storage_service.maintenance.rebuild import Rebuilder
from storage_service.maintenance.registry import Notification, RebuildRegistry
from storage_service.maintenance.survey import MaintenanceRules
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
# After a start, agents whose artifacts waited in staging register first.
_SETTLE = timedelta(minutes=15)
_MAX_PUBLISHED = 500
_TICKS_A_DAY = 24 * 60
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
        async for file in self.blobs.listing(folder):
            count += 1
            size_bytes += file.size_bytes
            oldest = min(oldest or file.modified, file.modified)
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


@dataclass
class MaintenanceService:
    """Maintenance of the store; a collection, a page of an audit and a page of a rebuild never run concurrently."""

    registry: RebuildRegistry
    manifests: SpentUploads
    blobs: Blobs
    statistics: StorageStatistics
    clock: Callable[[], datetime]
    rules: MaintenanceRules = field(default_factory=MaintenanceRules)
    settled_at: datetime | None = None
    running: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Held while copies of manifests are written, so that an erased one is not written again.
    copying: asyncio.Lock = field(default_factory=asyncio.Lock)
    # What the pages of a dry run of a rebuild have found.
    foretold: set[bytes] = field(default_factory=set)

    async def collect(self, command: CollectGarbage, principal: Principal) -> GarbageReport:
        """Raises NotAnOperator, TooMuchGarbage, DatabaseBehindStore."""
        require_operator(principal)
        async with self.running:
            return await self._collector.collect(dry_run=command.dry_run, max_objects=command.max_objects)

    async def audit(self, command: Audit, principal: Principal) -> AuditPage:
        """Raises NotAnOperator, InvalidCursor."""
        require_operator(principal)
        async with self.running:
            return await self._auditor.audit(command.cursor, command.limit, rehash=command.rehash)

    async def rebuild(self, command: Rebuild, principal: Principal) -> RebuildPage:
        """Raises NotAnOperator, InvalidCursor."""
        require_operator(principal)
        async with self.running:
            return await Rebuilder(self.registry, self.blobs, self.clock, self.foretold).rebuild(command)

    async def stats(self, principal: Principal) -> StorageStats:
        """Raises NotAnOperator."""
        require_operator(principal)
        return await self.statistics.stats()

    async def due_notifications(self) -> Sequence[Notification]:
        """Events to publish, deleted within the current transaction.

        The copy of an expired manifest is written before the event is published.
        """
        async with self.copying:
            notices = await self.registry.notices(_MAX_PUBLISHED)
            for notice in notices:
                if isinstance(notice.event, ArtifactExpired):
                    await write_copy(self.manifests, self.blobs, notice.event.artifact.artifact_id)
        if notices:
            await self.registry.delete_notifications([notice.seq for notice in notices])
        return notices

    async def erase(self) -> None:
        """Delete erased files, unless a long task is running: then soon."""
        if self.running.locked():
            return
        async with self.running:
            if erased := await self._collector.end_erasures():
                logger().info("erased", files=erased)

    async def run_due(self) -> None:
        """Once a minute: collect what is due, audit some artifacts; nothing right after a start."""
        if self.settled_at is None:
            self.settled_at = self.clock() + _SETTLE
        if self.clock() < self.settled_at or self.running.locked():
            return
        async with self.running:
            await self._collector.end_removals()
            if await self._is_time_to_collect():
                await self._collect_due()
            if self.rules.audit_within is not None:
                await self._audit_some(self.rules.audit_within)

    async def _is_time_to_collect(self) -> bool:
        if self.rules.interval is None:
            return False
        mark = await self.registry.mark(COLLECTED)
        return mark is None or self.clock() - mark[1] >= self.rules.interval

    async def _collect_due(self) -> None:
        try:
            await self._collector.collect()
        except Rejected as error:
            logger().error("garbage collection refused", reason=str(error), **error.details)
            await self.registry.set_progress(COLLECTED, "refused")

    async def _audit_some(self, within: timedelta) -> None:
        mark = await self.registry.mark(AUDITED)
        artifacts = await self.registry.artifact_count()
        ticks = within / timedelta(days=1) * _TICKS_A_DAY
        share = min(max(1, round(artifacts / ticks)), 1000)
        page = await self._auditor.audit(mark[0] if mark and mark[0] else None, share, rehash=True)
        await self.registry.set_progress(AUDITED, page.next_cursor or "")

    @property
    def _collector(self) -> Collector:
        return Collector(self.registry, self.blobs, self.clock, self.rules, self.copying)

    @property
    def _auditor(self) -> Auditor:
        return Auditor(self.registry, self.manifests, self.blobs, self.clock)
