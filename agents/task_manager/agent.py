"""The task manager: tasks with owners and due dates found in conversations, and the news of them."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

from agents.fragments import ProcessingResult, links_to
from agents.models.language_model import LanguageModel
from agents.people import KnownPeople
from agents.task_manager.message_tasks import extract_by_rules
from agents.task_manager.model_extraction import extract_by_model
from agents.task_manager.tasks import TaskList, TaskRecorder
from bus_schema.dialogue import DialogueFragment
from bus_schema.ids import derived
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Task, TaskUpdate
from language.dates.expressions import date_text
from language.words import Language, language_of

NOBODY_KNOWN = KnownPeople()
AGENT = "task_manager"
_NEWS_LASTS = timedelta(days=3)
ZoneOf = Callable[[str], tzinfo]
_PHRASES = {
    Language.ENGLISH: {
        "found": "{who} has given you a task: “{task}”{by}.",
        "reassigned": "{who} has handed you a task: “{task}”{by}.",
        "moved": "{who} has moved “{task}” to {due}.",
        "cancelled": "{who} has called off “{task}”.",
        "done": "{who} says that “{task}” is done.",
        "by": ", due {due}",
    },
    Language.RUSSIAN: {
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

    def __init__(self, people: KnownPeople, zone_of: ZoneOf) -> None:
        self._people, self._zone_of = people, zone_of

    def of_updates(self, updates: Iterable[TaskUpdate], teller: str) -> tuple[NotificationGenerated, ...]:
        """News for those whom it concerns, except for whoever has told it."""
        return tuple(
            self._notice(update.change, update.task, reader, update.task.changed_at, teller)
            for update in updates
            for reader in _readers(update)
            if reader != teller
        )

    def _notice(self, kind: str, task: Task, reader: str, now: datetime, teller: str) -> NotificationGenerated:
        about = f"{_about(task)} {kind}"
        return NotificationGenerated(
            notification_id=f"ntf_{derived(about, reader, task.changed_at.isoformat())}",
            agent=AGENT,
            to_user=reader,
            message=self._message(kind, task, reader, now, teller),
            context=task.due_said and f"due: {task.due_said}",
            about=about,
            expires=now + _NEWS_LASTS,
            links=(*links_to("task", [task.task_id]), *links_to("message", task.message_ids)),
        )

    def _message(self, kind: str, task: Task, reader: str, now: datetime, teller: str) -> str:
        language = language_of(task.text)
        phrases = _PHRASES[language]
        zone = self._zone_of(reader)
        due = date_text(task.due.astimezone(zone), now.astimezone(zone), language) if task.due else ""
        by = phrases["by"].format(due=due) if due else ""
        return phrases[kind].format(task=task.text, due=due, by=by, who=self._people.name_of(teller))


class TaskManager:
    """Reads fragments by rules, then once more with a language model, where there is one."""

    def __init__(
        self,
        model: LanguageModel,
        people: KnownPeople = NOBODY_KNOWN,
        zone: tzinfo = UTC,
        zone_of: ZoneOf | None = None,
    ) -> None:
        """`zone` is that of the speaker, `zone_of` tells those of others."""
        self._model, self._people, self._zone = model, people, zone
        self._notices = TaskNotifications(people, zone_of or (lambda _user_id: zone))

    async def process(
        self, fragment: DialogueFragment, book: TaskList
    ) -> tuple[TaskList, ProcessingResult[TaskUpdate]]:
        """Task updates of a fragment, and the task list after it."""
        messages = fragment.heard
        recorder = TaskRecorder(book, self._people, self._zone)
        extract_by_rules(messages, recorder)
        await extract_by_model(messages, recorder, self._model)
        outcome = ProcessingResult[TaskUpdate](
            items=tuple(recorder.updates),
            notifications=self._notices.of_updates(recorder.updates, fragment.user_id),
            links=links_to("message", (each for update in recorder.updates for each in update.task.message_ids)),
        )
        return recorder.book, outcome


def _about(task: Task) -> str:
    return f"{task.task_id} {task.due.isoformat() if task.due else ''}".strip()


def _readers(update: TaskUpdate) -> Sequence[str]:
    task = update.task
    concerned = (task.owner_id,) if update.change in ("found", "reassigned") else (task.owner_id, task.asked_by)
    return tuple(dict.fromkeys(each for each in concerned if each))
