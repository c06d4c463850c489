"""Keeps track of who is to do what until when."""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo

from agents.fragments import Outcome, Utterance, linked, utterances
from agents.models.language_model import LanguageModel
from agents.people import People
from agents.task_manager.extraction import drafts_in
from agents.task_manager.matching import done_task, spoken_of
from agents.task_manager.model_extraction import read_by_model
from agents.task_manager.notifications import Notices
from agents.task_manager.status_reports import Report, reports_in
from agents.task_manager.tasks import Ledger, TaskBook
from bus_schema.dialogue import DialogueFragment, DialogueMessage
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import Task, TaskUpdate


def read_by_rules(messages: Iterable[DialogueMessage], ledger: Ledger) -> None:
    """Enter all that the messages say of tasks, in the order in which they say it."""
    for message in messages:
        for utterance in utterances(message.content or ""):
            _read(utterance, message, ledger)


def _read(utterance: Utterance, message: DialogueMessage, ledger: Ledger) -> None:
    said_at = ledger.said_at(message)
    tells_of_known = False
    for report in reports_in(utterance, said_at, ledger.people):
        find = done_task if report.change == "done" else spoken_of
        task = find(report.about, message.user_id, ledger.book.open, ledger.people)
        if task:
            _apply(report, task, message, ledger)
            tells_of_known = tells_of_known or report.change != "done"
    # "Let's move the demo to Monday" is news of a task that is known, not a task of its own.
    if not tells_of_known:
        for draft in drafts_in(utterance, said_at, ledger.people):
            ledger.enter(draft, message)


def _apply(report: Report, task: Task, message: DialogueMessage, ledger: Ledger) -> None:
    match report.change:
        case "done" | "cancelled":
            ledger.close(task, report.change, message)
        case "moved" if report.to:
            ledger.move(task, report.to, message)
        case "reassigned" if report.by:
            ledger.reassign(task, report.by, message)


NOBODY_KNOWN = People()


class TaskManager:
    """Reads fragments by rules, then once more with a language model, where there is one."""

    def __init__(self, model: LanguageModel, people: People = NOBODY_KNOWN, zone: tzinfo = UTC) -> None:
        self._model, self._people, self._zone = model, people, zone
        self._notices = Notices(people, zone)

    async def process(self, fragment: DialogueFragment, book: TaskBook) -> tuple[TaskBook, Outcome[TaskUpdate]]:
        """What a fragment says of tasks, with the book after it."""
        messages = fragment.heard
        ledger = Ledger(book, self._people, self._zone)
        read_by_rules(messages, ledger)
        await read_by_model(messages, ledger, self._model)
        outcome = Outcome[TaskUpdate](
            items=tuple(ledger.updates),
            notifications=self._notices.of_updates(ledger.updates, fragment.user_id),
            links=linked("message", (each for update in ledger.updates for each in update.task.message_ids)),
        )
        return ledger.book, outcome

    def remind(self, book: TaskBook, now: datetime) -> tuple[TaskBook, tuple[NotificationGenerated, ...]]:
        """What has become due; the book remembers that it was told."""
        return self._notices.of_time(book, now)
