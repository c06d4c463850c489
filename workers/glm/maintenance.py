"""MemoryMaintenance of the global memory: checks, reindexing, statistics, erasure."""

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from bus_schema.glm import (
    CheckMemory,
    GetMemoryStats,
    KemDeleted,
    KemUpdated,
    MemoryReport,
    MemoryStats,
    Reindex,
    ReindexProgress,
)
from memory.glm.migration import ModelMigration
from memory.glm.notices import notice_of
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.sql.inbox import SqlInbox
from workers.glm.current_memory import CurrentMemory
from workers.glm.principal import principal_of

_SETTLED_WITHIN_S = 10.0
_PORTION_S = 5.0


class MemoryMaintenance:
    """Handlers of operators: check, reindex, statistics, erasure."""

    def __init__(self, current: CurrentMemory, inbox: SqlInbox, migration: ModelMigration) -> None:
        self._current, self._inbox, self._migration = current, inbox, migration

    @on_command
    async def check(self, _command: CheckMemory, context: MessageContext) -> MemoryReport:
        context.require_operator()
        await self._current.memory.index_sync.catch_up(_SETTLED_WITHIN_S)
        return await self._current.memory.relay.check()

    @on_command
    async def reindex(self, command: Reindex, context: MessageContext) -> ReindexProgress:
        """Reindex a portion; the next command continues."""
        context.require_operator()
        progress = await self._migration.advance(command.model, _PORTION_S)
        if progress.done == progress.total and self._current.memory.index.space.model != command.model:
            await self._current.replace()
        return progress

    @on_command
    async def stats(self, _query: GetMemoryStats, context: MessageContext) -> MemoryStats:
        principal = principal_of(context)
        return await self._current.memory.statistics.count(principal)

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        context.require_operator()
        kems = await self._current.memory.erasure.clear()
        self._current.memory.after_commit()
        await self._inbox.forget()
        return Removed.of({"kems": kems})

    @on_command
    async def delete_user(
        self, command: DeleteUser, context: MessageContext
    ) -> tuple[Removed | KemDeleted | KemUpdated, ...]:
        context.require_operator()
        user_id = command.user_id
        forgotten = await self._current.memory.erasure.erase_user(user_id)
        self._current.memory.after_commit()
        await self._inbox.forget(user_id, f"user.{user_id}", conversation_trace(user_id))
        removed = Removed.of({"kems": len(forgotten.deleted), "rights": len(forgotten.changed)})
        told = (KemDeleted(kem_id=kem_id) for kem_id in forgotten.deleted)
        return (removed, *told, *(notice_of(kem, KemUpdated) for kem in forgotten.changed))
