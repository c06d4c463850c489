"""StorageErasure of stored data."""

from bus_schema.data import ClearData, DeleteUser, Removed
from bus_schema.dialogue import conversation_trace
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.sql.inbox import SqlInbox
from storage_service.service import StorageService
from workers.storage.principal import principal_of


class StorageErasure:
    """Handlers of erasure."""

    def __init__(self, storage: StorageService, inbox: SqlInbox) -> None:
        self._storage, self._inbox = storage, inbox

    @on_command
    async def clear(self, _command: ClearData, context: MessageContext) -> Removed:
        principal = principal_of(context)
        counts = await self._storage.eraser.clear(principal)
        await self._inbox.forget()
        return Removed.of(counts)

    @on_command
    async def delete_user(self, command: DeleteUser, context: MessageContext) -> Removed:
        user_id = command.user_id
        principal = principal_of(context)
        counts = await self._storage.eraser.forget(principal, user_id)
        await self._inbox.forget(user_id, f"user.{user_id}", conversation_trace(user_id))
        return Removed.of(counts)
