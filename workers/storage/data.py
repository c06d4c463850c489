"""Answers those who want data gone."""

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.sql.inbox import SqlInbox
from storage_service.service import StorageService
from workers.storage.answering import answering


class DataDesk:
    """The part of storage that forgets."""

    storage: StorageService
    remembered: SqlInbox

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        with answering(context) as principal:
            counts = await self.storage.eraser.clear(principal)
        await self.remembered.forget()
        return Removed.of(counts)

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        user_id = command.user_id
        with answering(context) as principal:
            counts = await self.storage.eraser.forget(principal, user_id)
        await self.remembered.forget(user_id, f"user.{user_id}", conversation_trace(user_id))
        return Removed.of(counts)
