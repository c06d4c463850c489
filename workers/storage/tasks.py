"""Tasks: their records, for the task manager and other services."""

from bus_schema.replies import Code
from bus_schema.task_records import ListTaskRecords, SavedTasks, SaveTasks, SettleReminders
from bus_schema.tasks import TaskPage
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import on_command
from mindbus.errors import Rejected
from storage_service.service import StorageService

_TASK_MANAGER, _OPERATOR = "agent.task_manager", "user.local"


class NotTheTaskManager(Rejected, code=Code.UNAUTHORIZED):
    """Records of tasks are for services and the task manager; ask it: task.list, task.update."""


class TaskHandlers:
    """Handlers of task records."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def save_tasks(self, command: SaveTasks, context: MessageContext) -> SavedTasks:
        _require_service(context)
        return await self._storage.tasks.save(command)

    @on_command
    async def list_tasks(self, query: ListTaskRecords, context: MessageContext) -> TaskPage:
        _require_service(context)
        return await self._storage.tasks.page(query)

    @on_command
    async def settle_reminders(self, command: SettleReminders, context: MessageContext) -> None:
        _require_service(context)
        await self._storage.tasks.settle(command)


def _require_service(context: MessageContext) -> None:
    """Raises NotTheTaskManager: a list of tasks is not limited to the requester's own."""
    if not (context.owner in (_TASK_MANAGER, _OPERATOR) or context.owner.startswith("svc.")):
        raise NotTheTaskManager(requester=context.requester)
