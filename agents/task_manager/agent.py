"""Keeps track of who is to do what until when."""

from datetime import UTC, datetime, tzinfo

from agents.models.language_model import LanguageModel
from agents.people import People
from agents.processing import Outcome, linked
from agents.task_manager.book import TaskBook
from agents.task_manager.ledger import Ledger
from agents.task_manager.notices import Notices
from agents.task_manager.reading import read_by_rules
from agents.task_manager.second_reading import read_by_model
from bus_schema.dialogue import DialogueFragment
from bus_schema.notification import NotificationGenerated
from bus_schema.processing import TaskUpdate

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
