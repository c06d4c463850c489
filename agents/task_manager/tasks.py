"""The tasks that are known."""

from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, tzinfo
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from agents.due import NoDate, parse_due
from agents.people import KnownPeople, Mention, same_name
from agents.status_reports import StatusReport
from agents.syntax.clauses import ImpliedOwner, capitalised
from agents.task_manager.extraction import TaskCandidate
from agents.task_manager.task_lookup import is_within, same_task
from agents.task_requests import TaskRequest
from bus_schema.dialogue import DialogueMessage
from bus_schema.ids import derived
from bus_schema.processing import Task, TaskStatus, TaskUpdate
from language.dates.expressions import SpokenDate

_STATUS = {"done": TaskStatus.DONE, "cancelled": TaskStatus.CANCELLED}


class TaskList(BaseModel):
    """Tasks that a fragment may be about: open ones, and those that were closed after it began."""

    model_config = ConfigDict(frozen=True)
    tasks: tuple[Task, ...] = ()

    @property
    def open(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.status is TaskStatus.OPEN)

    def with_task(self, task: Task) -> Self:
        """The book with this task in the place of its former self."""
        tasks = [each for each in self.tasks if each.task_id != task.task_id]
        tasks.append(task)
        tasks.sort(key=lambda each: each.found_at)
        return self.model_copy(update={"tasks": tuple(tasks)})


class TaskRecorder:
    """Records tasks while a fragment is read; `updates` lists the changes."""

    def __init__(self, book: TaskList, people: KnownPeople, zone: tzinfo) -> None:
        self.book = book
        self.updates: list[TaskUpdate] = []
        self.people = people
        # What was said of days ahead without anything to do: tasks once it changes.
        self.plans: list[tuple[TaskCandidate, DialogueMessage]] = []
        self._zone = zone

    def said_at(self, message: DialogueMessage) -> datetime:
        """The moment on the clock of those who speak."""
        return message.time.astimezone(self._zone)

    def record(self, draft: TaskCandidate, message: DialogueMessage) -> Task:
        """A task is new, or it is an old one with another date."""
        owner, owner_id = self._owner(draft.doer, message.user_id)
        early = self._early(draft, message)
        if early:
            self._note("found", early)
            return early
        known = same_task(draft.text, owner, owner_id, self._current(message), self.people)
        if known:
            if draft.due and known.due != draft.due.at and known.status is TaskStatus.OPEN:
                self.move(known, draft.due, message)
            return known
        ordinal = sum(message.message_id in task.message_ids for task in self.book.tasks)
        task = Task(
            task_id=f"task_{derived(message.message_id, 'task', ordinal)}",
            text=draft.text,
            owner=owner,
            owner_id=owner_id,
            asked_by=message.user_id,
            due=draft.due.at if draft.due else None,
            due_said=draft.due.text[:100] if draft.due else "",
            due_on=_day(draft.due) if draft.due else None,
            found_at=message.time,
            changed_at=message.time,
            message_ids=(message.message_id,),
        )
        self._note("found", task)
        return task

    def record_request(self, request: TaskRequest, said: str, message: DialogueMessage) -> Task:
        """The task that the assistant is asked to note, which is the one that it has noted already, if it has."""
        due = None
        if request.due:
            # One that cannot be read alone costs its date, not the task.
            with suppress(NoDate):
                due = parse_due(request.due, self.said_at(message))
        date = SpokenDate(due.start, due.end, due.said, due.at, has_time=due.on is None) if due else None
        return self.record(TaskCandidate(capitalised(request.text), ImpliedOwner.SPEAKER, date, said), message)

    def close(self, task: Task, as_what: Literal["done", "cancelled"], message: DialogueMessage) -> None:
        self._note(as_what, self._changed(task, message, status=_STATUS[as_what]))

    def move(self, task: Task, to: SpokenDate, message: DialogueMessage) -> None:
        """A time alone is one of the day that the task was due, a day alone keeps the time that the task has."""
        if task.due and not to.has_day:
            day = task.due.astimezone(self._zone)
            to = replace(to, at=day.replace(hour=to.at.hour, minute=to.at.minute, second=to.at.second))
        elif task.due and not task.due_on and not to.has_time:
            clock = task.due.astimezone(self._zone).time()
            to = replace(to, at=datetime.combine(to.at.date(), clock, tzinfo=to.at.tzinfo), has_time=True)
        if to.at == task.due:
            return
        remind_at = to.at if task.remind_at and to.has_time else None
        changes = {"due": to.at, "due_said": to.text[:100], "due_on": _day(to), "remind_at": remind_at}
        self._note("moved", self._changed(task, message, **changes))

    def reassign(self, task: Task, to: Mention, message: DialogueMessage) -> None:
        if task.owner is None or not same_name(task.owner, to.name):
            self._note("reassigned", self._changed(task, message, owner=to.name, owner_id=to.user_id))

    def _current(self, message: DialogueMessage) -> list[Task]:
        """Open tasks, and those that have been closed since the message: it does not open them again."""
        return [task for task in self.book.tasks if task.status is TaskStatus.OPEN or task.changed_at >= message.time]

    def _early(self, draft: TaskCandidate, message: DialogueMessage) -> Task | None:
        """The task that was made of these very words when the message came, a reminder or one on request."""
        noted = {update.task.task_id for update in self.updates}
        for task in self.book.tasks:
            if message.message_id not in task.message_ids[:1] or task.task_id in noted:
                continue
            is_same_moment = draft.due is not None and draft.due.at == task.due
            if is_same_moment or is_within(draft.text, task.text, self.people):
                return task
        return None

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


def _day(due: SpokenDate) -> date | None:
    """The day of a date without a time."""
    return None if due.has_time else due.at.date()


def has_change(task: Task, report: StatusReport, message: DialogueMessage) -> bool:
    """Whether a task has been changed, since the message, to what a report in it says."""
    if task.changed_at < message.time or message.message_id in task.message_ids:
        return False
    match report.change:
        case "done" | "cancelled":
            return task.status is _STATUS[report.change]
        case "moved":
            return report.to is not None and task.due is not None and task.due.date() == report.to.at.date()
    return False
