"""Tasks as a language model finds them, as far as the messages bear them out."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.configuration.prompts import shipped_guide
from agents.fragment_reader import FragmentReader, ReadingPart
from agents.fragments import is_supported, quoted_message
from agents.keywords import most_relevant
from agents.models.explicit_delegation import is_delegation
from agents.models.prompt import Material
from agents.people import Mention, same_name
from agents.present import Present
from agents.sentence_kinds import may_give_work
from agents.syntax.clauses import ImpliedOwner
from agents.task_manager.extraction import TaskCandidate
from agents.task_manager.tasks import TaskRecorder
from agents.task_requests import find_requests
from bus_schema.dialogue import DialogueMessage
from bus_schema.processing import Task
from language.dates.expressions import SpokenDate, dates_in
from language.words import language_of

_ME = frozenset({"me", "i", "я"})


class ReadTask(BaseModel):
    """One thing that the model has read."""

    model_config = ConfigDict(extra="forbid")
    change: Literal["found", "done", "moved", "cancelled", "reassigned"]
    message_id: str
    quote: str
    task_id: str | None
    text: str
    owner: str | None
    due_said: str | None


class ReadTasks(BaseModel):
    """The model's answer: all tasks and changes that it found."""

    model_config = ConfigDict(extra="forbid")
    items: list[ReadTask] = Field(max_length=40)


READING = "tasks"
_MOST_RELATED, _MOST_RECENT = 40, 20


async def extract_by_model(
    messages: Sequence[DialogueMessage], recorder: TaskRecorder, reader: FragmentReader, present: Present | None = None
) -> None:
    """Enter what the rules have missed; what no message says is dropped."""
    if not messages:
        return
    spoken = " ".join(each.content or "" for each in messages)
    guide = shipped_guide("task_manager", language_of(spoken))
    known = shown_tasks(recorder.book.open, spoken, messages[0].user_id)
    part = ReadingPart(READING, guide, "Report the tasks as JSON.", ReadTasks, [_known(known)])
    read = await reader.read(part, messages, present)
    for item in read.items if read else ():
        message = quoted_message(item.quote, messages, item.message_id)
        if message and not is_delegation(message.content or ""):
            _enter(item, message, recorder)


def shown_tasks(tasks: Sequence[Task], spoken: str, user_id: str) -> list[Task]:
    """Open tasks that a model is shown: those that share most with what was said, then the user's newest ones.

    A task that the messages name by any of its words is among them, unless forty others share more. "It is done"
    names none: it means one that was spoken of last.
    """
    newest = sorted(tasks, key=lambda task: task.changed_at, reverse=True)
    related, others = most_relevant(newest, lambda task: f"{task.text} {task.owner or ''}", spoken, _MOST_RELATED)
    own = [task for task in others if user_id in (task.asked_by, task.owner_id)]
    return [*related, *own[:_MOST_RECENT]]


def _known(known: Sequence[Task]) -> Material:
    tasks = "\n".join(
        f"{task.task_id}: {task.text} ({task.owner or 'nobody'}, {task.due_said or 'no date'})" for task in known
    )
    return Material("open", "tasks", tasks or "none")


def _enter(item: ReadTask, message: DialogueMessage, recorder: TaskRecorder) -> None:
    if item.change == "found":
        # A quote that the rules have read as well would make a second task of the same words, a request of the
        # assistant's has made one if it was to.
        is_new = not _is_read(item, message, recorder) and not find_requests(item.quote, recorder.said_at(message))
        if is_new and is_supported(item.text, item.quote) and may_give_work(message):
            recorder.record(
                TaskCandidate(
                    item.text[:200], _doer(item, message, recorder), _due(item, message, recorder), item.quote
                ),
                message,
            )
        return
    task = next((each for each in recorder.book.open if each.task_id == item.task_id), None)
    # What has just been given is not done by the same words.
    if task and message.message_id not in task.message_ids:
        _change(item, task, message, recorder)


def _change(item: ReadTask, task: Task, message: DialogueMessage, recorder: TaskRecorder) -> None:
    due, heir = _due(item, message, recorder), _doer(item, message, recorder)
    match item.change:
        case "done" | "cancelled":
            recorder.close(task, item.change, message)
        case "moved" if due and due.at != task.due:
            recorder.move(task, due, message)
        case "reassigned" if isinstance(heir, Mention):
            recorder.reassign(task, heir, message)


def _is_read(item: ReadTask, message: DialogueMessage, recorder: TaskRecorder) -> bool:
    return any(
        message.message_id in update.task.message_ids and (is_supported(update.task.text, item.quote))
        for update in recorder.updates
    )


def _doer(item: ReadTask, message: DialogueMessage, recorder: TaskRecorder) -> Mention | ImpliedOwner:
    if item.owner is None:
        return ImpliedOwner.NOBODY
    if item.owner.lower() in _ME:
        return ImpliedOwner.SPEAKER
    named = recorder.people.mentions(message.content or "")
    return next((each for each in named if same_name(each.name, item.owner)), ImpliedOwner.NOBODY)


def _due(item: ReadTask, message: DialogueMessage, recorder: TaskRecorder) -> SpokenDate | None:
    """The model says where the date stands; what day that is, the calendar says."""
    if not item.due_said or item.due_said.lower() not in (message.content or "").lower():
        return None
    return next(iter(dates_in(item.due_said, recorder.said_at(message))), None)
