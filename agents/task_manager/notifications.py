"""Notifications about tasks."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo

from agents.fragments import links_to
from agents.people import KnownPeople
from agents.task_manager.tasks import TaskList
from bus_schema.ids import derived
from bus_schema.notification import NotificationGenerated, Urgency
from bus_schema.processing import Task, TaskUpdate
from language.dates.expressions import date_text
from language.words import Language, language_of

AGENT = "task_manager"
_SOON = timedelta(hours=24)
_NEWS_LASTS = timedelta(days=3)
_MOST_REMINDED = 1000

_PHRASES = {
    Language.ENGLISH: {
        "due_soon": "“{task}” is due {due}.",
        "overdue": "“{task}” was due {due} and is still open.",
        "found": "{who} has given you a task: “{task}”{by}.",
        "reassigned": "{who} has handed you a task: “{task}”{by}.",
        "moved": "{who} has moved “{task}” to {due}.",
        "cancelled": "{who} has called off “{task}”.",
        "done": "{who} says that “{task}” is done.",
        "by": ", due {due}",
    },
    Language.RUSSIAN: {
        "due_soon": "Срок задачи «{task}» — {due}.",
        "overdue": "Срок задачи «{task}» прошёл {due}, она ещё открыта.",
        "found": "{who}: для вас есть задача «{task}»{by}.",
        "reassigned": "{who}: теперь ваша задача — «{task}»{by}.",
        "moved": "{who}: срок задачи «{task}» теперь {due}.",
        "cancelled": "{who}: задача «{task}» отменена.",
        "done": "{who}: задача «{task}» выполнена.",
        "by": ", срок — {due}",
    },
}


class TaskNotifications:
    """Words for the news of tasks, on the clock of those who read them."""

    def __init__(self, people: KnownPeople, zone: tzinfo) -> None:
        self._people, self._zone = people, zone

    def of_updates(self, updates: Iterable[TaskUpdate], teller: str) -> tuple[NotificationGenerated, ...]:
        """News for those whom it concerns, except for whoever has told it."""
        return tuple(
            self._notice(update.change, update.task, reader, update.task.changed_at, teller)
            for update in updates
            for reader in _readers(update)
            if reader != teller
        )

    def of_time(self, book: TaskList, now: datetime) -> tuple[TaskList, tuple[NotificationGenerated, ...]]:
        """Reminders of what is due within a day, or overdue; each once per due date."""
        told = []
        for task in book.open:
            kind = _pressing(task, now)
            if kind and f"{_about(task)} {kind}" not in book.reminded:
                told.append(self._notice(kind, task, task.owner_id or task.asked_by, now, task.asked_by))
        abouts = (*book.reminded, *(each.about for each in told))[-_MOST_REMINDED:]
        return book.model_copy(update={"reminded": abouts}), tuple(told)

    def _notice(self, kind: str, task: Task, reader: str, now: datetime, teller: str) -> NotificationGenerated:
        about = f"{_about(task)} {kind}"
        return NotificationGenerated(
            notification_id=f"ntf_{derived(about, reader, task.changed_at.isoformat())}",
            agent=AGENT,
            to_user=reader,
            message=self._message(kind, task, now, teller),
            context=task.due_said and f"due: {task.due_said}",
            about=about,
            urgency=Urgency.HIGH if kind == "overdue" else Urgency.NORMAL,
            expires=task.due if kind == "due_soon" else now + _NEWS_LASTS,
            links=(*links_to("task", [task.task_id]), *links_to("message", task.message_ids)),
        )

    def _message(self, kind: str, task: Task, now: datetime, teller: str) -> str:
        language = language_of(task.text)
        phrases = _PHRASES[language]
        due = date_text(task.due.astimezone(self._zone), now.astimezone(self._zone), language) if task.due else ""
        by = phrases["by"].format(due=due) if due else ""
        return phrases[kind].format(task=task.text, due=due, by=by, who=self._people.name_of(teller))


def _pressing(task: Task, now: datetime) -> str | None:
    if task.due is None or task.due - now > _SOON:
        return None
    return "overdue" if task.due <= now else "due_soon"


def _about(task: Task) -> str:
    return f"{task.task_id} {task.due.isoformat() if task.due else ''}".strip()


def _readers(update: TaskUpdate) -> Sequence[str]:
    task = update.task
    concerned = (task.owner_id,) if update.change in ("found", "reassigned") else (task.owner_id, task.asked_by)
    return tuple(dict.fromkeys(each for each in concerned if each))
