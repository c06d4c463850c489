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
from memory.glm.moving import Moving
from memory.glm.notices import notice_of
from memory.glm.service import GlobalMemory
from mindbus.bus.handlers import on_command
from mindbus.bus.handling import Handling
from mindbus.sql.ledger import SqlLedger
from workers.glm.answering import answering

_SETTLED_WITHIN_S = 10.0
_PORTION_S = 5.0


class CareDesk:
    """The part of the global memory that keeps it in order."""

    memory: GlobalMemory
    remembered: SqlLedger
    moving: Moving
    go_over: Callable[[], Awaitable[None]]

    @on_command
    async def check(self, _command: CheckMemory, handling: Handling) -> MemoryReport:
        handling.require_operator()
        with answering(handling):
            await self.memory.following.catch_up(_SETTLED_WITHIN_S)
            return await self.memory.relay.check()

    @on_command
    async def reindex(self, command: Reindex, handling: Handling) -> ReindexProgress:
        """A portion of it; whoever asks again has it go on."""
        handling.require_operator()
        with answering(handling):
            progress = await self.moving.advance(command.model, _PORTION_S)
            if progress.done == progress.total and self.memory.index.space.model != command.model:
                await self.go_over()
        return progress

    @on_command
    async def stats(self, _query: GetMemoryStats, handling: Handling) -> MemoryStats:
        with answering(handling) as asker:
            return await self.memory.statistics.count(asker)

    @on_command
    async def clear(self, _command: ClearData, handling: Handling) -> Removed:
        handling.require_operator()
        kems = await self.memory.erasing.clear()
        self.memory.after_commit()
        await self.remembered.forget()
        return Removed.of({"kems": kems})

    @on_command
    async def delete_user(
        self, command: DeleteUser, handling: Handling
    ) -> tuple[Removed | KemDeleted | KemUpdated, ...]:
        handling.require_operator()
        user_id = command.user_id
        forgotten = await self.memory.erasing.forget(user_id)
        self.memory.after_commit()
        await self.remembered.forget(user_id, f"user.{user_id}", conversation_trace(user_id))
        removed = Removed.of({"kems": len(forgotten.gone), "rights": len(forgotten.changed)})
        told = (KemDeleted(kem_id=kem_id) for kem_id in forgotten.gone)
        return (removed, *told, *(notice_of(kem, KemUpdated) for kem in forgotten.changed))
