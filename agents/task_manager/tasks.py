"""The tasks that are known."""

from datetime import datetime, tzinfo
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from agents.people import KnownPeople, Mention, same_name
from agents.task_manager.extraction import TaskCandidate
from agents.task_manager.patterns import ImpliedOwner
from agents.task_manager.task_lookup import same_task
from bus_schema.dialogue import DialogueMessage
from bus_schema.ids import derived
from bus_schema.processing import Task, TaskStatus, TaskUpdate
from language.dates.expressions import SpokenDate

_MOST_KEPT = 250
_STATUS = {"done": TaskStatus.DONE, "cancelled": TaskStatus.CANCELLED}


class TaskList(BaseModel):
    """An agent's memory of tasks; `reminded` are the reminders that have gone out, by what they were about."""

    model_config = ConfigDict(frozen=True)
    tasks: tuple[Task, ...] = ()
    reminded: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.status is TaskStatus.OPEN)

    def with_task(self, task: Task) -> Self:
        """The book with this task in the place of its former self; of too many, closed ones go first."""
        tasks = [each for each in self.tasks if each.task_id != task.task_id]
        tasks.append(task)
        tasks.sort(key=lambda each: each.found_at)
        while len(tasks) > _MOST_KEPT:
            tasks.remove(next((each for each in tasks if each.status is not TaskStatus.OPEN), tasks[0]))
        return self.model_copy(update={"tasks": tuple(tasks)})

    def without(self, user_id: str) -> Self:
        """The book without the tasks that a user spoke of; others' tasks for them keep the name that was said."""
        tasks = [task for task in self.tasks if task.asked_by != user_id]
        gone = {task.task_id for task in self.tasks if task.asked_by == user_id}
        left = [t.model_copy(update={"owner_id": None}) if t.owner_id == user_id else t for t in tasks]
        reminded = tuple(about for about in self.reminded if about.split(" ", 1)[0] not in gone)
        return self.model_copy(update={"tasks": tuple(left), "reminded": reminded})


class TaskRecorder:
    """Records tasks while a fragment is read; `updates` lists the changes."""

    def __init__(self, book: TaskList, people: KnownPeople, zone: tzinfo) -> None:
        self.book = book
        self.updates: list[TaskUpdate] = []
        self.people = people
        self._zone = zone

    def said_at(self, message: DialogueMessage) -> datetime:
        """The moment on the clock of those who speak."""
        return message.time.astimezone(self._zone)

    def record(self, draft: TaskCandidate, message: DialogueMessage) -> None:
        """A task is new, or it is an old one with another date."""
        owner, owner_id = self._owner(draft.doer, message.user_id)
        known = same_task(draft.text, owner, owner_id, self.book.open, self.people)
        if known:
            if draft.due and known.due != draft.due.at:
                self.move(known, draft.due, message)
            return
        ordinal = sum(message.message_id in task.message_ids for task in self.book.tasks)
        task = Task(
            task_id=f"task_{derived(message.message_id, 'task', ordinal)}",
            text=draft.text,
            owner=owner,
            owner_id=owner_id,
            asked_by=message.user_id,
            due=draft.due.at if draft.due else None,
            due_said=draft.due.text[:100] if draft.due else "",
            found_at=message.time,
            changed_at=message.time,
            message_ids=(message.message_id,),
        )
        self._note("found", task)

    def close(self, task: Task, as_what: Literal["done", "cancelled"], message: DialogueMessage) -> None:
        self._note(as_what, self._changed(task, message, status=_STATUS[as_what]))

    def move(self, task: Task, to: SpokenDate, message: DialogueMessage) -> None:
        self._note("moved", self._changed(task, message, due=to.at, due_said=to.text[:100]))

    def reassign(self, task: Task, to: Mention, message: DialogueMessage) -> None:
        if task.owner is None or not same_name(task.owner, to.name):
            self._note("reassigned", self._changed(task, message, owner=to.name, owner_id=to.user_id))

    def _owner(self, doer: Mention | ImpliedOwner, speaker: str) -> tuple[str | None, str | None]:
        if isinstance(doer, Mention):
            return doer.name, doer.user_id
        return (self.people.name_of(speaker), speaker) if doer is ImpliedOwner.SPEAKER else (None, None)

    def _changed(self, task: Task, message: DialogueMessage, **changes: object) -> Task:
        ids = dict.fromkeys((*task.message_ids, message.message_id))
        return task.model_copy(update={**changes, "changed_at": message.time, "message_ids": tuple(ids)})

    def _note(self, change: Literal["found", "done", "moved", "cancelled", "reassigned"], task: Task) -> None:
        self.book = self.book.with_task(task)
        self.updates.append(TaskUpdate(change=change, task=task))
