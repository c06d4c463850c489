"""Answers those who look after memory, or want something gone from it."""

from collections.abc import Awaitable, Callable

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
from memory.glm.service import GlobalMemory
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.sql.inbox import SqlInbox
from workers.glm.answering import answering

_SETTLED_WITHIN_S = 10.0
_PORTION_S = 5.0


class CareDesk:
    """The part of the global memory that keeps it in order."""

    memory: GlobalMemory
    remembered: SqlInbox
    moving: ModelMigration
    go_over: Callable[[], Awaitable[None]]

    @on_command
    async def check(self, _command: CheckMemory, context: MessageContext) -> MemoryReport:
        context.require_operator()
        with answering(context):
            await self.memory.index_sync.catch_up(_SETTLED_WITHIN_S)
            return await self.memory.relay.check()

    @on_command
    async def reindex(self, command: Reindex, context: MessageContext) -> ReindexProgress:
        """A portion of it; whoever asks again has it go on."""
        context.require_operator()
        with answering(context):
            progress = await self.moving.advance(command.model, _PORTION_S)
            if progress.done == progress.total and self.memory.index.space.model != command.model:
                await self.go_over()
        return progress

    @on_command
    async def stats(self, _query: GetMemoryStats, context: MessageContext) -> MemoryStats:
        with answering(context) as principal:
            return await self.memory.statistics.count(principal)

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        context.require_operator()
        kems = await self.memory.erasure.clear()
        self.memory.after_commit()
        await self.remembered.forget()
        return Removed.of({"kems": kems})

    @on_command
    async def delete_user(
        self, command: DeleteUser, context: MessageContext
    ) -> tuple[Removed | KemDeleted | KemUpdated, ...]:
        context.require_operator()
        user_id = command.user_id
        forgotten = await self.memory.erasure.erase_user(user_id)
        self.memory.after_commit()
        await self.remembered.forget(user_id, f"user.{user_id}", conversation_trace(user_id))
        removed = Removed.of({"kems": len(forgotten.deleted), "rights": len(forgotten.changed)})
        told = (KemDeleted(kem_id=kem_id) for kem_id in forgotten.deleted)
        return (removed, *told, *(notice_of(kem, KemUpdated) for kem in forgotten.changed))
