"""Records of users, tasks and facts: who reads and writes them."""

from bus_schema.facts import FactPage, ListFactRecords, SaveFacts
from bus_schema.replies import Code
from bus_schema.task_records import ListTaskRecords, SavedTasks, SaveTasks, SettleReminders
from bus_schema.tasks import TaskPage
from bus_schema.users import GetUser, ListUsers, PutUser, UserPage, UserRecord
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.errors import Rejected
from storage_service.service import StorageService

_TASK_MANAGER, _CONTEXT_MANAGER, _OPERATOR = "agent.task_manager", "agent.context_manager", "user.local"


class NotTheTaskManager(Rejected, code=Code.UNAUTHORIZED):
    """Records of tasks are for services and the task manager; ask it: task.list, task.update."""


class NotTheContextManager(Rejected, code=Code.UNAUTHORIZED):
    """Records of facts are for services and the context manager; ask it: fact.list."""


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


class TaskHandlers:
    """Handlers of task records: a list of them is not limited to the requester's own."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def save_tasks(self, command: SaveTasks, context: MessageContext) -> SavedTasks:
        _require(_TASK_MANAGER, context, NotTheTaskManager)
        return await self._storage.tasks.save(command)

    @on_command
    async def list_tasks(self, query: ListTaskRecords, context: MessageContext) -> TaskPage:
        _require(_TASK_MANAGER, context, NotTheTaskManager)
        return await self._storage.tasks.page(query)

    @on_command
    async def settle_reminders(self, command: SettleReminders, context: MessageContext) -> None:
        _require(_TASK_MANAGER, context, NotTheTaskManager)
        await self._storage.tasks.settle(command)


class FactHandlers:
    """Handlers of fact records: a list of them is not limited to the requester's own."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def save_facts(self, command: SaveFacts, context: MessageContext) -> None:
        _require(_CONTEXT_MANAGER, context, NotTheContextManager)
        await self._storage.facts.save(command)

    @on_command
    async def list_facts(self, query: ListFactRecords, context: MessageContext) -> FactPage:
        _require(_CONTEXT_MANAGER, context, NotTheContextManager)
        return await self._storage.facts.page(query)


def _require(agent: str, context: MessageContext, rejection: type[Rejected]) -> None:
    """Raises the rejection unless a service, the operator or that agent asks."""
    if not (context.owner in (agent, _OPERATOR) or context.owner.startswith("svc.")):
        raise rejection(requester=context.requester)
