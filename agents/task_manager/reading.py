"""Tasks as the rules find them, message by message."""

from collections.abc import Iterable

from agents.task_manager.changes import Report, reports_in
from agents.task_manager.drafts import drafts_in
from agents.task_manager.ledger import Ledger
from agents.task_manager.subjects import done_task, spoken_of
from agents.utterances import Utterance, utterances
from bus_schema.dialogue import DialogueMessage
from bus_schema.processing import Task


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
