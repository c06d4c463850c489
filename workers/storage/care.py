"""Answers for those who look after the store; does what comes round by itself."""

from bus_schema.process import ProcessCancelled, ProcessCompleted, ProcessFailed
from bus_schema.storage_care import (
    Audit,
    AuditPage,
    CollectGarbage,
    GarbageReport,
    GetStorageStats,
    Rebuild,
    RebuildPage,
    StorageStats,
)
from mindbus.bus.handlers import Told, every, on_command, on_event
from mindbus.bus.handling import Handling
from storage_service.service import StorageService
from workers.storage.answering import answering


class CareDesk:
    """The part of storage that keeps the store in order."""

    storage: StorageService

    @on_command
    async def collect_garbage(self, command: CollectGarbage, handling: Handling) -> GarbageReport:
        with answering(handling) as asker:
            return await self.storage.care.collect(asker, dry_run=command.dry_run, max_objects=command.max_objects)

    @on_command
    async def audit(self, command: Audit, handling: Handling) -> AuditPage:
        with answering(handling) as asker:
            return await self.storage.care.audit(asker, command.cursor, command.limit, rehash=command.rehash)

    @on_command
    async def rebuild(self, command: Rebuild, handling: Handling) -> RebuildPage:
        with answering(handling) as asker:
            return await self.storage.care.rebuild(
                asker, command.cursor, command.limit, dry_run=command.dry_run, deep=command.deep
            )

    @on_command
    async def stats(self, _query: GetStorageStats, handling: Handling) -> StorageStats:
        with answering(handling) as asker:
            return await self.storage.care.stats(asker)

    @on_event
    async def close_completed(self, event: ProcessCompleted) -> None:
        await self.storage.traces.close(event.run_id)

    @on_event
    async def close_failed(self, event: ProcessFailed) -> None:
        await self.storage.traces.close(event.run_id)

    @on_event
    async def close_cancelled(self, event: ProcessCancelled) -> None:
        await self.storage.traces.close(event.run_id)

    @every(seconds=2)
    async def tell(self) -> list[Told]:
        return [Told(notice.event, notice.trace_id, notice.step_id) for notice in await self.storage.care.tell()]

    @every(seconds=60)
    async def tend(self) -> None:
        await self.storage.care.tend()
