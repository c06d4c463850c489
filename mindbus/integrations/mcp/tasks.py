"""MCP tools of a person's tasks."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import AwareDatetime, BaseModel, Field

from bus_schema.processing import Task, TaskStatus
from bus_schema.tasks import AddTask, CallOffTask, CompleteTask, ListTasks, UpdateTask
from mindbus.integrations.mcp.participant import ParticipantOf

TaskId = Annotated[str, Field(description="Such as task_0192….")]
TaskText = Annotated[str, Field(min_length=1, max_length=500, description="What is to be done.")]
When = Annotated[str, Field(description='A date in plain words, "Friday at 3 pm", or ISO; in the person\'s time zone.')]
Owner = Annotated[str, Field(description="Name or user id of whoever is to do it; default: you.")]


class FoundTasks(BaseModel):
    """Tasks in order of due date; pass `cursor` to get the next ones."""

    items: list[Task]
    cursor: str | None = None


class PersonalTaskTools:
    """The tasks that a person has, or has asked others for."""

    def __init__(self, participant_of: ParticipantOf) -> None:
        self._of = participant_of

    async def task_list(
        self,
        context: Context[Any, Any],
        status: TaskStatus | None = TaskStatus.OPEN,
        due_before: AwareDatetime | None = None,
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
        cursor: str | None = None,
    ) -> FoundTasks:
        """List your tasks; without a status, also those that are done or cancelled."""
        participant = self._of(context)
        query = ListTasks(user_id=participant.user_id, status=status, due_before=due_before, limit=limit, cursor=cursor)
        page = await participant.bus.request(query)
        return FoundTasks(items=list(page.items), cursor=page.next_cursor)

    async def task_add(
        self,
        context: Context[Any, Any],
        text: TaskText,
        when: When | None = None,
        owner: Owner | None = None,
        remind: Annotated[bool, Field(description="Remind its owner at that minute.")] = False,
    ) -> Task:
        """Add a task."""
        participant = self._of(context)
        command = AddTask(user_id=participant.user_id, text=text, when=when, owner=owner, remind=remind)
        return await participant.bus.request(command)

    async def task_update(
        self,
        context: Context[Any, Any],
        id: TaskId,
        text: TaskText | None = None,
        when: When | None = None,
        owner: Owner | None = None,
    ) -> Task:
        """Change the text, date or owner of a task; what you leave out stays."""
        participant = self._of(context)
        command = UpdateTask(task_id=id, user_id=participant.user_id, text=text, when=when, owner=owner)
        return await participant.bus.request(command)

    async def task_complete(self, context: Context[Any, Any], id: TaskId) -> Task:
        """Mark a task as done."""
        participant = self._of(context)
        return await participant.bus.request(CompleteTask(task_id=id, user_id=participant.user_id))

    async def task_cancel(self, context: Context[Any, Any], id: TaskId) -> Task:
        """Cancel a task."""
        participant = self._of(context)
        return await participant.bus.request(CallOffTask(task_id=id, user_id=participant.user_id))
