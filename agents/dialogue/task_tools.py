"""Tools of the dialogue for the user's tasks: their schemas, the task that is meant, results in words."""

import json
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.due import NoDate, parse_due
from agents.models.explicit_calls import ADD, CANCEL, COMPLETE, LIST, MOVE, NOT_FOUND
from agents.models.language_model import Tool, ToolCall
from agents.people import KnownPeople
from agents.task_manager.task_lookup import Subject, subject
from bus_schema.processing import Task
from language.dates.expressions import date_text
from language.words import Language

_NOBODY = KnownPeople()
_MOST_LISTED = 30
_MEANT = 0.5
# Shorter ones may be the name of a task as well.
_SHORTEST_RESULT = 20
_PHRASES = {
    Language.ENGLISH: {
        "none": "No open tasks.",
        "none_overdue": "Nothing is overdue.",
        "none_today": "Nothing is due today.",
        "none_on": "Nothing is due on that day: {day}.",
        "none_tomorrow": "Nothing is due by the end of tomorrow.",
        "none_week": "Nothing is due within seven days.",
        "listed": "Open tasks: {n}.",
        "more": "… and {n} more.",
        "late": "overdue",
        "added": "Task added: {task}.",
        "reminder": "I will remind you: {task}.",
        "done": "Done: {task}.",
        "moved": "Moved: {task}.",
        "cancelled": "Cancelled: {task}.",
        "missing": f"{NOT_FOUND[Language.ENGLISH]} “{{words}}”.",
        "several": "Several tasks fit “{words}”; which one is meant?",
        "failed": "That did not work: {why}",
        "repeated": "That is no task, but what a tool has answered. Answer the user.",
        "quote": "“{text}”",
    },
    Language.RUSSIAN: {
        "none": "Открытых задач нет.",
        "none_overdue": "Просроченных задач нет.",
        "none_today": "На сегодня задач нет.",
        "none_on": "На этот день задач нет: {day}.",
        "none_tomorrow": "На сегодня и завтра задач нет.",
        "none_week": "На ближайшие семь дней задач нет.",
        "listed": "Открытых задач: {n}.",
        "more": "… и ещё {n}.",
        "late": "просрочено",
        "added": "Задача добавлена: {task}.",
        "reminder": "Напомню: {task}.",
        "done": "Выполнено: {task}.",
        "moved": "Перенесено: {task}.",
        "cancelled": "Отменено: {task}.",
        "missing": f"{NOT_FOUND[Language.RUSSIAN]}, подходящей к «{{words}}».",
        "several": "К «{words}» подходит несколько задач; какая имеется в виду?",
        "failed": "Не получилось: {why}",
        "repeated": "Это не задача, а ответ инструмента. Ответьте пользователю.",
        "quote": "«{text}»",
    },
}


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="ignore")


class ListArguments(_Arguments):
    """List the user's open tasks: call it for any question about their tasks, plans, deadlines, what is due."""

    due: Literal["overdue", "today", "tomorrow", "week", "all"] | date = Field(
        default="all",
        description="Overdue; due by the end of today, of tomorrow, of seven days; on one day, as 2026-11-26; or all.",
    )


class AddArguments(_Arguments):
    """Add a task or a reminder for the user, only where they ask for one or say what they have to do."""

    text: str = Field(min_length=1, max_length=500, description="What is to be done, without the date.")
    due: str | None = Field(
        default=None,
        max_length=100,
        description="When, in the user's words or as ISO, such as 'tomorrow at 9'.",
    )
    owner: str | None = Field(default=None, max_length=100, description="Who is to do it; without it the user.")
    remind: bool = Field(default=False, description="True where the user asks to be reminded at that minute.")


class TaskArguments(_Arguments):
    """The task that is meant."""

    task: str = Field(min_length=1, max_length=500, description="The task's words, or its id from list_tasks.")


class MoveArguments(TaskArguments):
    """Move one of the user's tasks to another date."""

    due: str = Field(min_length=1, max_length=100, description="The new date, in the user's words or ISO.")


_ABOUT: dict[str, tuple[type[_Arguments], str]] = {
    LIST: (ListArguments, str(ListArguments.__doc__)),
    ADD: (AddArguments, f"{AddArguments.__doc__} What they want kept in mind is remembered without it."),
    COMPLETE: (TaskArguments, "Mark one of the user's tasks as done, when they say that they have done it."),
    MOVE: (MoveArguments, str(MoveArguments.__doc__)),
    CANCEL: (TaskArguments, "Cancel one of the user's tasks, when they ask for it."),
}
TASK_TOOLS: tuple[Tool, ...] = tuple(Tool.of(name, about, arguments) for name, (arguments, about) in _ABOUT.items())


def repeats_result(call: ToolCall, results: Sequence[str]) -> bool:
    """Whether a call names as its task what a tool has answered before, as small models do without end."""
    task = _task_of(call)
    return any(result in task for result in results if len(result) >= _SHORTEST_RESULT)


def _task_of(call: ToolCall) -> str:
    try:
        about = arguments_of(call)
    except BadArguments:
        return ""
    return about.task if isinstance(about, TaskArguments) else about.text if isinstance(about, AddArguments) else ""


class BadArguments(ValueError):
    """The arguments of a call do not fit its tool."""


def arguments_of(call: ToolCall) -> ListArguments | AddArguments | TaskArguments:
    """The arguments of a call of a task tool. Raises BadArguments."""
    kind, _about = _ABOUT[call.name]
    try:
        read = kind.model_validate(json.loads(call.arguments or "{}"))
    except ValidationError as error:
        flaws = "; ".join(f"{'.'.join(map(str, flaw['loc']))}: {flaw['msg']}" for flaw in error.errors())
        raise BadArguments(flaws) from error
    except ValueError as error:
        raise BadArguments(f"the arguments are no JSON ({error})") from error
    assert isinstance(read, ListArguments | AddArguments | TaskArguments)
    return read


def matching_tasks(words: str, tasks: Sequence[Task], *, is_done: bool = False) -> list[Task]:
    """The tasks that words or an id may mean: one where it is clear. What `is_done` was the task's own work."""
    by_id = [task for task in tasks if task.task_id in words]
    if by_id:
        return by_id
    said = subject(words, _NOBODY)
    scored = [
        (_share(said.stems, known.stems), task) for task in tasks if _fits(said, known := _subject(task), is_done)
    ]
    best = max((score for score, _ in scored), default=0.0)
    return [task for score, task in scored if score == best] if best >= _MEANT else []


def _subject(task: Task) -> Subject:
    return subject(task.text, _NOBODY)


def _fits(said: Subject, known: Subject, is_done: bool) -> bool:
    """ "I called mom" is not "Call dad", nor has "sent the invoice" paid it."""
    has_object = not said.objects or bool(set(said.objects) & known.stems)
    # Alone, "report" may be a verb.
    is_work = said.may_mean(known) or bool(said.verbs & set(known.objects))
    return has_object and not said.is_of_others(known) and (is_work or not is_done)


def _share(wanted: frozenset[str], known: frozenset[str]) -> float:
    """Share of the words said that a task has, more where it says nothing else."""
    return len(wanted & known) / len(wanted) + (wanted == known) if wanted else 0.0


class TaskWords:
    """Results of the tools in the user's language, on their clock."""

    def __init__(self, language: Language, now: datetime, zone: str) -> None:
        self._language, self._zone = language, ZoneInfo(zone)
        self._now = now.astimezone(self._zone)

    def due_before(self, due: str | date) -> datetime | None:
        """The end of the days that a listing is about."""
        if due == "overdue":
            return self._now
        midnight = self._now.replace(hour=0, minute=0, second=0, microsecond=0)
        if isinstance(due, date):
            return midnight + timedelta(days=(due - midnight.date()).days + 1)
        days = {"today": 1, "tomorrow": 2, "week": 7}.get(due)
        return None if days is None else midnight + timedelta(days=days)

    def listed(self, tasks: Sequence[Task], due: str | date) -> str:
        """Open tasks of a listing; of one day those that are due on it alone."""
        if isinstance(due, date):
            tasks = [task for task in tasks if self._day_of(task) == due]
            if not tasks:
                evening = datetime(due.year, due.month, due.day, 23, 59, 59, tzinfo=self._zone)
                return self.phrase("none_on", day=date_text(evening, self._now, self._language))
        if not tasks:
            return self.phrase("none" if due == "all" else f"none_{due}")
        lines = [self.phrase("listed", n=len(tasks))]
        lines += [f"- {self.task(task)} [{task.task_id}]" for task in tasks[:_MOST_LISTED]]
        if len(tasks) > _MOST_LISTED:
            lines.append(self.phrase("more", n=len(tasks) - _MOST_LISTED))
        return "\n".join(lines)

    def _day_of(self, task: Task) -> date | None:
        return task.due_on or (task.due.astimezone(self._zone).date() if task.due else None)

    def task(self, task: Task) -> str:
        """A task with its due date."""
        text = self.phrase("quote", text=task.text)
        if task.due is None:
            return text
        # A day is the same day wherever its reader is.
        due = (
            task.due
            if task.due_on is None
            else datetime(task.due_on.year, task.due_on.month, task.due_on.day, 23, 59, 59, tzinfo=self._zone)
        )
        late = f" ({self.phrase('late')})" if due < self._now else ""
        return f"{text} — {date_text(due.astimezone(self._zone), self._now, self._language)}{late}"

    def same_time_on(self, day: str, task: Task) -> datetime | None:
        """The time that a task has, on another day; None where it has none, or the words name one or no day."""
        if task.due is None or task.due_on is not None:
            return None
        try:
            to = parse_due(day, self._now)
        except NoDate:
            return None
        return datetime.combine(to.on, task.due.astimezone(self._zone).time(), tzinfo=self._zone) if to.on else None

    def candidates(self, words: str, tasks: Sequence[Task]) -> str:
        """The answer where no task is meant, or several are."""
        head = self.phrase("several" if tasks else "missing", words=words)
        return "\n".join([head, *(f"- {self.task(task)} [{task.task_id}]" for task in tasks[:_MOST_LISTED])])

    def phrase(self, key: str, **values: object) -> str:
        return _PHRASES[self._language][key].format(**values)
