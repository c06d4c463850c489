"""Answers for those who look after the store; does what comes round by itself."""

from bus_schema.process import ProcessCancelled, ProcessCompleted, ProcessFailed
from bus_schema.storage_maintenance import (
    Audit,
    AuditPage,
    CollectGarbage,
    GarbageReport,
    GetStorageStats,
    Rebuild,
    RebuildPage,
    StorageStats,
)
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, every, on_command, on_event
from storage_service.service import StorageService
from workers.storage.answering import answering


class CareDesk:
    """The part of storage that keeps the store in order."""

    storage: StorageService

    @on_command
    async def collect_garbage(self, command: CollectGarbage, context: MessageContext) -> GarbageReport:
        with answering(context) as principal:
            return await self.storage.maintenance.collect(
                principal, dry_run=command.dry_run, max_objects=command.max_objects
            )

    @on_command
    async def audit(self, command: Audit, context: MessageContext) -> AuditPage:
        with answering(context) as principal:
            return await self.storage.maintenance.audit(principal, command.cursor, command.limit, rehash=command.rehash)

    @on_command
    async def rebuild(self, command: Rebuild, context: MessageContext) -> RebuildPage:
        with answering(context) as principal:
            return await self.storage.maintenance.rebuild(
                principal, command.cursor, command.limit, dry_run=command.dry_run, deep=command.deep
            )

    @on_command
    async def stats(self, _query: GetStorageStats, context: MessageContext) -> StorageStats:
        with answering(context) as principal:
            return await self.storage.maintenance.stats(principal)

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
    async def tell(self) -> list[Publish]:
        return [
            Publish(notice.event, notice.trace_id, notice.step_id)
            for notice in await self.storage.maintenance.due_notifications()
        ]

    @every(seconds=60)
    async def tend(self) -> None:
        await self.storage.maintenance.run_due()
