"""Tasks on request: commands and queries that the task manager serves, and the event of every change."""

from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field

from bus_schema.dialogue import DialogueMessageId
from bus_schema.identities import UserId
from bus_schema.messages import Command, Event, Page, Query
from bus_schema.processing import Task, TaskId, TaskStatus

_SERVICE = "task_manager"
MAX_WHEN_CHARS = 100


def _has_words(text: str) -> str:
    if not text.split():
        raise ValueError("there is nothing but white space")
    return text


TaskText = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_has_words)]


class TaskPage(Page[Task]):
    """Tasks in order of their due dates, those without one last."""


class AddTask(Command[Task], domain="task", action="add", service=_SERVICE):
    """Add a task that `user_id` asks for; `owner` is a name or a user id, by default the user.

    `when` is a date in everyday words or in ISO format, on the user's clock. With `remind`, its owner is reminded at
    that minute, quiet hours or not. `message_id` is the message that asks for it: a task that the agents have found in
    that message is returned instead of a second one. Repeating a `task_id` adds nothing twice.
    """

    user_id: UserId
    text: TaskText
    owner: str | None = Field(default=None, min_length=1, max_length=100)
    due: AwareDatetime | None = None
    when: str | None = Field(default=None, min_length=1, max_length=MAX_WHEN_CHARS)
    remind: bool = False
    message_id: DialogueMessageId | None = None
    task_id: TaskId | None = None


class ListTasks(Query[TaskPage], domain="task", action="list", service=_SERVICE):
    """Page through the tasks that a user owns or asked for; without a user, through everybody's (for operators).

    With `delegated`, only those that the user asked for and that somebody else owns, or nobody yet.
    """

    user_id: UserId | None = None
    status: TaskStatus | None = None
    owner: UserId | None = None
    due_before: AwareDatetime | None = None
    delegated: bool = False
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class GetTask(Query[Task], domain="task", action="get", service=_SERVICE):
    """Read a task; `user_id` is the user it is read for."""

    task_id: TaskId
    user_id: UserId | None = None


class UpdateTask(Command[Task], domain="task", action="update", service=_SERVICE):
    """Change the words, the owner or the due date of a task, or reopen it; what is not given stays unchanged."""

    task_id: TaskId
    user_id: UserId | None = None
    text: TaskText | None = None
    owner: str | None = Field(default=None, min_length=1, max_length=100)
    due: AwareDatetime | None = None
    when: str | None = Field(default=None, min_length=1, max_length=MAX_WHEN_CHARS)
    reopen: bool = False


class CompleteTask(Command[Task], domain="task", action="complete", service=_SERVICE):
    """Mark a task as done."""

    task_id: TaskId
    user_id: UserId | None = None


class CallOffTask(Command[Task], domain="task", action="cancel", service=_SERVICE):
    """Call a task off."""

    task_id: TaskId
    user_id: UserId | None = None


class TaskChanged(Event, topic="processed", name="task_changed"):
    """A task was added or changed on request, or found in a message at once; `user_id` is who did it, if known.

    Tasks that agents find in a fragment are in `processed.tasks_found`.
    """

    user_id: UserId
    change: Literal["found", "done", "moved", "cancelled", "reassigned", "reworded", "reopened"]
    task: Task
