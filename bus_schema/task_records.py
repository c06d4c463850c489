"""Tasks as storage keeps them: one row each, merged field by field; for the task manager."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from bus_schema.dialogue import DialogueMessageId
from bus_schema.identities import UserId
from bus_schema.messages import Command, Nothing, Query, Value
from bus_schema.processing import Task, TaskId, TaskStatus
from bus_schema.tasks import TaskPage

MAX_SAVED = 100
MAX_USERS = 1000
MAX_WORDS = 100
TaskField = Literal["text", "owner", "due", "status"]


class TaskWrite(Value):
    """Fields of a task as of the moment `at`: each replaces what was written as of an earlier moment.

    `owner` comes with `owner_id`; `due` with `due_said`, `due_on`, `remind_at` and the next reminder. A new task is
    inserted whole if `insert` is set; messages are added to the existing ones.
    """

    task: Task
    fields: tuple[TaskField, ...] = ("text", "owner", "due", "status")
    at: AwareDatetime
    next_reminder: AwareDatetime | None = None
    insert: bool = True


class SavedTasks(Value):
    """The tasks after the write; one that does not exist is left out."""

    items: tuple[Task, ...]


class MessageTasks(Value):
    """Tasks that belong to a user's message, as the writer has read them."""

    user_id: UserId
    message_id: DialogueMessageId
    task_ids: tuple[TaskId, ...] = Field(default=(), max_length=MAX_SAVED)


class SaveTasks(Command[SavedTasks], domain="storage", action="save_tasks"):
    """Merge tasks into the existing ones; repeating it changes nothing.

    It is a conflict, and nothing is saved, if a message meanwhile has other tasks than `expected`, besides those that
    this command saves.
    """

    writes: tuple[TaskWrite, ...] = Field(min_length=1, max_length=MAX_SAVED)
    expected: MessageTasks | None = None


class ListTaskRecords(Query[TaskPage], domain="storage", action="list_tasks"):
    """Page through tasks by due date, those without one last; all conditions hold together.

    `users` are owners or askers; none means anybody. The text has one of the `words`, which may be beginnings of words.
    """

    users: tuple[UserId, ...] = Field(default=(), max_length=MAX_USERS)
    task_ids: tuple[TaskId, ...] = Field(default=(), max_length=MAX_SAVED)
    message_id: DialogueMessageId | None = None
    words: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = Field(default=(), max_length=MAX_WORDS)
    owner_id: UserId | None = None
    delegated_by: UserId | None = None
    status: TaskStatus | None = None
    due_before: AwareDatetime | None = None
    changed_since: AwareDatetime | None = None
    reminder_before: AwareDatetime | None = None
    order: Literal["due", "newest"] = "due"
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=50, ge=1, le=200)


class SettledReminder(Value):
    """A reminder that has been sent, with the time of the next one for the same task."""

    task_id: TaskId
    next_reminder: AwareDatetime | None = None


class SettleReminders(Command[Nothing], domain="storage", action="settle_reminders"):
    """Record reminders as sent for tasks whose next reminder is not after `until`; others keep theirs."""

    until: AwareDatetime
    items: tuple[SettledReminder, ...] = Field(min_length=1, max_length=200)
