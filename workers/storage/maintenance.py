"""Maintenance of the store: garbage, audit, rebuild, statistics, erasure."""

from datetime import timedelta

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from bus_schema.process import ProcessCancelled, ProcessCompleted, ProcessFailed
from bus_schema.run_control import OutputReplaced, ProcessRetried
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
from mindbus.bus.handlers import Publish, every, on_command, on_event, time_limit
from mindbus.bus.topology import DEAD_LETTERS_KEPT, EVENTS_KEPT
from mindbus.sql.inbox import SqlInbox
from storage_service.service import StorageService
from workers.storage.artifacts import principal_of

_KEPT_BY_THE_BROKER = {
    "events that no worker takes": EVENTS_KEPT / timedelta(days=1),
    "dead letters": DEAD_LETTERS_KEPT / timedelta(days=1),
}


class StorageMaintenance:
    """Handlers of operators and periodic work on the store."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    @time_limit(seconds=3600)
    async def collect_garbage(self, command: CollectGarbage, context: MessageContext) -> GarbageReport:
        return await self._storage.maintenance.collect(command, principal_of(context))

    @on_command
    async def audit(self, command: Audit, context: MessageContext) -> AuditPage:
        return await self._storage.maintenance.audit(command, principal_of(context))

    @on_command
    async def rebuild(self, command: Rebuild, context: MessageContext) -> RebuildPage:
        return await self._storage.maintenance.rebuild(command, principal_of(context))

    @on_command
    async def stats(self, _query: GetStorageStats, context: MessageContext) -> StorageStats:
        stats = await self._storage.stats(principal_of(context))
        return stats.model_copy(update={"kept_days": stats.kept_days | _KEPT_BY_THE_BROKER})

    @on_event
    async def close_completed(self, event: ProcessCompleted, context: MessageContext) -> None:
        await self._storage.traces.close(event.run_id, context.envelope.time)

    @on_event
    async def close_failed(self, event: ProcessFailed, context: MessageContext) -> None:
        await self._storage.traces.close(event.run_id, context.envelope.time)

    @on_event
    async def close_cancelled(self, event: ProcessCancelled, context: MessageContext) -> None:
        await self._storage.traces.close(event.run_id, context.envelope.time)

    @on_event
    async def reopen_retried(self, event: ProcessRetried, context: MessageContext) -> None:
        await self._storage.traces.reopen(event.run_id, context.envelope.time)

    @on_event
    async def reopen_replaced(self, event: OutputReplaced, context: MessageContext) -> None:
        await self._storage.traces.reopen(event.run_id, context.envelope.time)

    @every(seconds=2)
    async def publish_notices(self) -> list[Publish]:
        notices = await self._storage.maintenance.due_notifications()
        return [Publish(notice.event, notice.trace_id, notice.step_id) for notice in notices]

    @every(seconds=2)
    async def clean(self) -> None:
        await self._storage.clean()

    @every(seconds=3600)
    async def prune_timeline(self) -> None:
        await self._storage.prune_timeline()

    @every(seconds=60)
    async def maintain(self) -> None:
        await self._storage.maintenance.run_due()


class StorageErasure:
    """Handlers of erasure."""

    def __init__(self, storage: StorageService, inbox: SqlInbox) -> None:
        self._storage, self._inbox = storage, inbox

    @on_command
    @time_limit(seconds=3600)
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        counts = await self._storage.eraser.clear(principal_of(context))
        await self._inbox.forget()
        return Removed.of(counts)

    @on_command
    @time_limit(seconds=3600)
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        user_id = command.user_id
        counts = await self._storage.eraser.forget(principal_of(context), user_id)
        await self._inbox.forget(user_id, f"user.{user_id}", conversation_trace(user_id))
        return Removed.of(counts)
