"""Kinds of tasks, by their ids."""

from a2a.utils.errors import TaskNotFoundError

from gateway.a2a.delegation_tasks import DELEGATION, DelegationTasks
from gateway.a2a.dialogue_tasks import MESSAGE, DialogueTasks
from gateway.a2a.run_tasks import RUN, RunTasks
from gateway.backend import Backend

Tasks = RunTasks | DialogueTasks | DelegationTasks
_KINDS: dict[str, type[Tasks]] = {RUN: RunTasks, MESSAGE: DialogueTasks, DELEGATION: DelegationTasks}


def tasks_of(backend: Backend, task_id: str) -> Tasks:
    """The tasks of the kind that an id is of. Raises TaskNotFoundError."""
    for prefix, kind in _KINDS.items():
        if task_id.startswith(prefix):
            return kind(backend)
    raise TaskNotFoundError
