"""Users: their records, which people and services write."""

from bus_schema.users import GetUser, ListUsers, PutUser, UserPage, UserRecord
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from storage_service.service import StorageService


class UserHandlers:
    """Handlers of user records."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def put_user(self, command: PutUser, context: MessageContext) -> UserRecord:
        context.require_operator()
        return await self._storage.users.put(command)

    @on_command
    async def get_user(self, query: GetUser) -> UserRecord:
        return await self._storage.users.get(query.user_id)

    @on_command
    async def list_users(self, query: ListUsers) -> UserPage:
        return await self._storage.users.page(query)
