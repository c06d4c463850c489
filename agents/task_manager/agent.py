"""The task manager: tasks with owners and due dates, found in conversations."""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo

from agents.fragments import MessageSentence, ProcessingResult, links_to, message_sentences
from agents.models.language_model import LanguageModel
from agents.people import KnownPeople
from agents.task_manager.extraction import find_tasks
from agents.task_manager.model_extraction import extract_by_model
from agents.task_manager.notifications import TaskNotifications
from agents.task_manager.status_reports import StatusReport, find_reports
from agents.task_manager.task_lookup import done_task, spoken_of
from agents.task_manager.tasks import TaskList, TaskRecorder
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Task, TaskUpdate

NOBODY_KNOWN = KnownPeople()


class TaskManager:
    """Reads fragments by rules, then once more with a language model, where there is one."""

    def __init__(self, model: LanguageModel, people: KnownPeople = NOBODY_KNOWN, zone: tzinfo = UTC) -> None:
        self._model, self._people, self._zone = model, people, zone
        self._notices = TaskNotifications(people, zone)

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

    def remind(self, book: TaskList, now: datetime) -> tuple[TaskList, tuple[NotificationGenerated, ...]]:
        """Reminders that are due, and the task list that remembers them."""
        return self._notices.of_time(book, now)


def extract_by_rules(messages: Iterable[DialogueMessage], recorder: TaskRecorder) -> None:
    """Enter all that the messages say of tasks, in the order in which they say it."""
    for message in messages:
        for sentence in message_sentences(message.content or ""):
            _read(sentence, message, recorder)


def _read(sentence: MessageSentence, message: DialogueMessage, recorder: TaskRecorder) -> None:
    said_at = recorder.said_at(message)
    tells_of_known = False
    for report in find_reports(sentence, said_at, recorder.people):
        find = done_task if report.change == "done" else spoken_of
        task = find(report.about, message.user_id, recorder.book.open, recorder.people)
        if task:
            _apply(report, task, message, recorder)
            tells_of_known = tells_of_known or report.change != "done"
    # "Let's move the demo to Monday" is news of a task that is known, not a task of its own.
    if not tells_of_known:
        for draft in find_tasks(sentence, said_at, recorder.people):
            recorder.record(draft, message)


def _apply(report: StatusReport, task: Task, message: DialogueMessage, recorder: TaskRecorder) -> None:
    match report.change:
        case "done" | "cancelled":
            recorder.close(task, report.change, message)
        case "moved" if report.to:
            recorder.move(task, report.to, message)
        case "reassigned" if report.by:
            recorder.reassign(task, report.by, message)
