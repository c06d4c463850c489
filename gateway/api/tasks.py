"""Tasks that a user owns or asked for, and facts that a user has stated, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from bus_schema.dialogue import conversation_trace
from bus_schema.facts import FactPage, ListFacts
from bus_schema.identities import UserId
from bus_schema.messages import Command
from bus_schema.processing import FactKind, Task, TaskId, TaskStatus
from bus_schema.tasks import (
    MAX_WHEN_CHARS,
    AddTask,
    CallOffTask,
    CompleteTask,
    GetTask,
    ListTasks,
    TaskPage,
    UpdateTask,
)
from gateway.backend import QUERY_TIMEOUT_S, Backend, BackendDependency, ResultT

router = APIRouter(tags=["tasks"])


class NewTask(BaseModel):
    """A task to add; `when` is a date in plain words or ISO, in the user's time zone."""

    model_config = ConfigDict(extra="forbid")
    user: UserId
    text: str = Field(min_length=1, max_length=500)
    owner: str | None = Field(default=None, min_length=1, max_length=100)
    due: AwareDatetime | None = None
    when: str | None = Field(default=None, min_length=1, max_length=MAX_WHEN_CHARS)


class TaskEdit(BaseModel):
    """Changes to a task; the status `open` reopens a closed one."""

    model_config = ConfigDict(extra="forbid")
    text: str | None = Field(default=None, min_length=1, max_length=500)
    owner: str | None = Field(default=None, min_length=1, max_length=100)
    due: AwareDatetime | None = None
    when: str | None = Field(default=None, min_length=1, max_length=MAX_WHEN_CHARS)
    status: TaskStatus | None = None


class TaskFilter(BaseModel):
    """Conditions on the user's tasks."""

    user: UserId
    status: TaskStatus | None = None
    owner: UserId | None = None
    due_before: AwareDatetime | None = None
    delegated: bool = False
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


@router.get("/tasks")
async def tasks(wanted: Annotated[TaskFilter, Query()], backend: BackendDependency) -> TaskPage:
    """A page of the user's tasks, by due date."""
    query = ListTasks(user_id=wanted.user, **wanted.model_dump(exclude={"user"}))
    return await read_tasks(backend, query, wanted.user)


@router.post("/tasks", status_code=201)
async def add(wanted: NewTask, backend: BackendDependency) -> Task:
    """Add a task on behalf of its user."""
    command = AddTask(user_id=wanted.user, text=wanted.text, owner=wanted.owner, due=wanted.due, when=wanted.when)
    return await request_task(backend, wanted.user, command)


@router.get("/tasks/{task_id}")
async def task(task_id: TaskId, user: UserId, backend: BackendDependency) -> Task:
    """One of the user's tasks."""
    return await request_task(backend, user, GetTask(task_id=task_id))


@router.patch("/tasks/{task_id}")
async def edit(task_id: TaskId, user: UserId, changes: TaskEdit, backend: BackendDependency) -> Task:
    """Change a task on behalf of a user: text, owner and date first, then its status."""
    given = changes.model_dump(exclude={"status"}, exclude_none=True)
    if changes.status is TaskStatus.OPEN:
        given["reopen"] = True
    command: Command[Task] = UpdateTask(task_id=task_id, **given) if given else GetTask(task_id=task_id)
    result = await request_task(backend, user, command)
    if changes.status is TaskStatus.DONE:
        return await request_task(backend, user, CompleteTask(task_id=task_id))
    if changes.status is TaskStatus.CANCELLED:
        return await request_task(backend, user, CallOffTask(task_id=task_id))
    return result


class FactFilter(BaseModel):
    """Conditions on the user's facts."""

    model_config = ConfigDict(extra="forbid")
    user: UserId
    kind: FactKind | None = None
    superseded: bool = False
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


@router.get("/facts")
async def facts(wanted: Annotated[FactFilter, Query()], backend: BackendDependency) -> FactPage:
    """A page of the facts that the user has stated, the newest first."""
    return await read_facts(backend, ListFacts(user_id=wanted.user, **wanted.model_dump(exclude={"user"})), wanted.user)


async def read_facts(backend: Backend, query: ListFacts, user_id: str) -> FactPage:
    """A page of facts in a user's name. Raises ReplyError, BusUnavailable."""
    return await _request(backend, user_id, query)


async def read_tasks(backend: Backend, query: ListTasks, user_id: str | None) -> TaskPage:
    """A page of tasks in a user's name, or in the gateway's. Raises ReplyError, BusUnavailable."""
    return await _request(backend, user_id, query)


async def request_task(backend: Backend, user_id: str | None, command: Command[Task]) -> Task:
    """Result of a command on a task in a user's name, or in the gateway's. Raises ReplyError, BusUnavailable."""
    return await _request(backend, user_id, command)


async def _request(backend: Backend, user_id: str | None, command: Command[ResultT]) -> ResultT:
    if user_id is None:
        return await backend.query(command)
    bus = backend.acting_as(user_id)
    return await bus.request(command, trace=conversation_trace(user_id), timeout_s=QUERY_TIMEOUT_S)
