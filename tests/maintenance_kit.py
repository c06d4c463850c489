"""Whoever looks after a depot: an operator, at the time that the store's own clock shows."""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from bus_schema.messages import Event
from bus_schema.storage import SearchArtifacts
from bus_schema.storage_maintenance import (
    Audit,
    AuditPage,
    CollectGarbage,
    GarbageReport,
    GetStorageStats,
    Rebuild,
    RebuildPage,
    StorageStats,
    Tally,
)
from mindbus.errors import Rejected
from mindbus.files.keys import OBJECTS
from mindbus.testing import deliver, run_task
from storage_service.tables import BlobRow
from tests.storage_kit import RESEARCHER, TRACE, Depot

OPERATOR = "user.local"
CONTENT = "# Отчёт\nfindings\n".encode() * 10


class Keeper:
    """Looks after a depot; asks as the operator, hears what storage tells, looks into the store."""

    def __init__(self, depot: Depot) -> None:
        self.depot = depot
        # The age of a file is by the store's clock, which no test can set.
        depot.clock.now = max(depot.clock.now, datetime.now(UTC))

    async def collect(self, *, by: str = OPERATOR, **wanted: Any) -> GarbageReport:
        report = await self.depot.handle(CollectGarbage(**wanted), by)
        assert isinstance(report, GarbageReport)
        return report

    async def refusal(self, **wanted: Any) -> Rejected:
        try:
            await self.collect(**wanted)
        except Rejected as no:
            return no
        raise AssertionError("it was not refused")

    async def audit(self, **wanted: Any) -> AuditPage:
        page = await self.depot.handle(Audit(**wanted), OPERATOR)
        assert isinstance(page, AuditPage)
        return page

    async def rebuild(self, **wanted: Any) -> RebuildPage:
        page = await self.depot.handle(Rebuild(limit=5000, **wanted), OPERATOR)
        assert isinstance(page, RebuildPage)
        assert page.next_cursor is None
        return page

    async def stats(self) -> StorageStats:
        stats = await self.depot.handle(GetStorageStats(), OPERATOR)
        assert isinstance(stats, StorageStats)
        return stats

    async def hear(self, event: Event, time: datetime | None = None) -> None:
        """Storage hears an event, of now if nothing else is said."""
        delivered = await deliver(self.depot.worker, event, time=time or self.depot.clock())
        if delivered.error is not None:
            raise delivered.error

    async def told(self) -> list[Event]:
        """What storage tells, by itself."""
        return list((await run_task(self.depot.worker, "publish_notices")).published)

    async def keys(self, folder: str) -> list[str]:
        if folder == OBJECTS:
            return await asyncio.to_thread(self.depot.object_files)
        return sorted([found.key async for found in self.depot.storage.blobs.listing(folder)])

    async def artifacts(self, by: str = RESEARCHER) -> list[str]:
        page = await self.depot.handle(SearchArtifacts(limit=200), by, TRACE)
        return sorted(manifest.id for manifest in page.items)

    async def put_object(self, content: bytes, generation: int = 1) -> str:
        """Have an object lie in the store that the database has never heard of."""
        sha256 = hashlib.sha256(content).hexdigest()
        key = f"objects/sha256/{sha256[:2]}/{sha256[2:4]}/{sha256}/{generation}"
        await self.depot.storage.blobs.write(key, content)
        return key

    async def set_blob(self, content: bytes, **values: Any) -> None:
        async with self.depot.database.transaction() as session:
            blob = await session.get_one(BlobRow, hashlib.sha256(content).hexdigest())
            for name, value in values.items():
                setattr(blob, name, value)

    def today(self) -> str:
        return self.depot.clock().date().isoformat()

    async def orphaned_after(self, **by: float) -> GarbageReport:
        """Time passes, then a collection runs."""
        self.depot.clock.now += timedelta(**by)
        return await self.collect()


def counts(report: GarbageReport) -> dict[str, int]:
    """What a report counts, where it is not nothing."""
    return {name: tally.count for name, tally in report if isinstance(tally, Tally) and tally.count}
