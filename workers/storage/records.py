"""Records of users, tasks and facts: who reads and writes them."""

from bus_schema.facts import FactPage, ListFactRecords, SaveFacts
from bus_schema.identities import user_of
from bus_schema.task_records import ListTaskRecords, SavedTasks, SaveTasks, SettleReminders
from bus_schema.tasks import TaskPage
from bus_schema.users import GetUser, ListUsers, PutUser, UserPage, UserRecord
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from storage_service.service import StorageService


class UserHandlers:
    """Handlers of user records."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def put_user(self, command: PutUser) -> UserRecord:
        return await self._storage.users.put(command)

    @on_command
    async def get_user(self, query: GetUser, context: MessageContext) -> UserRecord:
        return await self._storage.users.get(query.user_id, _viewer(context))

    @on_command
    async def list_users(self, query: ListUsers, context: MessageContext) -> UserPage:
        return await self._storage.users.page(query, _viewer(context))


class TaskHandlers:
    """Handlers of task records."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def save_tasks(self, command: SaveTasks) -> SavedTasks:
        return await self._storage.tasks.save(command)

    @on_command
    async def list_tasks(self, query: ListTaskRecords) -> TaskPage:
        return await self._storage.tasks.page(query)

    @on_command
    async def settle_reminders(self, command: SettleReminders) -> None:
        await self._storage.tasks.settle(command)


class FactHandlers:
    """Handlers of fact records."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def save_facts(self, command: SaveFacts) -> None:
        await self._storage.facts.save(command)

    @on_command
    async def list_facts(self, query: ListFactRecords) -> FactPage:
        return await self._storage.facts.page(query)


def _viewer(context: MessageContext) -> str | None:
    """The person who asks, unless an operator: they see those with whom they share a project."""
    return None if context.is_operator else user_of(context.requester)
