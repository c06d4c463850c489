"""Annotation of one message by the rules of the processing agents: tasks, facts, mood, changes of known tasks."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from agents.context_manager.extraction import extract_facts
from agents.context_manager.knowledge import FactBase, FactRecorder
from agents.mood_watcher import message_mood
from agents.people import KnownPeople
from agents.task_manager.agent import extract_by_rules
from agents.task_manager.tasks import TaskList, TaskRecorder
from bus_schema.dialogue import DialogueMessage
from bus_schema.identities import UserId
from bus_schema.processing import FactKind, Task, TaskUpdate, Tone
from language.dates.expressions import END_OF_DAY
from language.words import Language

_NOBODY = KnownPeople()
_JUST_BEFORE = timedelta(minutes=1)
_SAID = "msg_said"


def _sayable(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; say something")
    return text


class SpokenMessage(BaseModel):
    """A message to annotate: speaker, moment with its zone, what was said just before it; other keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    text: Annotated[str, AfterValidator(_sayable)]
    user: UserId
    at: AwareDatetime
    context: str | None = None


class AnnotatedTask(BaseModel):
    """A task; `owner` is `me` for the speaker, `due` a date or a minute on the speaker's clock."""

    text: str
    owner: str | None
    due: str | None


class AnnotatedFact(BaseModel):
    """A fact in the words in which it was stated."""

    text: str
    kind: FactKind


class TaskChange(BaseModel):
    """A change of the known task `of`; `due` is its new date."""

    of: str
    change: Literal["done", "moved", "cancelled"]
    due: str | None


class Annotation(BaseModel):
    """Everything that the rules find in a message."""

    tasks: list[AnnotatedTask] = Field(default_factory=list)
    facts: list[AnnotatedFact] = Field(default_factory=list)
    mood: Tone = 0.0
    changes: list[TaskChange] = Field(default_factory=list)


def annotate(message: SpokenMessage, people: KnownPeople = _NOBODY, language: Language | None = None) -> Annotation:
    """Annotation of a message by the same rules that the agents apply to fragments of a dialogue."""
    tasks = TaskRecorder(TaskList(), people, _zone(message))
    if message.context and message.context.strip():
        extract_by_rules([_as_heard(message, message.context, "msg_before", _JUST_BEFORE)], tasks, language)
        tasks.updates.clear()
    heard = _as_heard(message, message.text, _SAID)
    extract_by_rules([heard], tasks, language)
    facts = FactRecorder(FactBase(), _zone(message))
    extract_facts([heard], facts, people, language)
    return Annotation(
        tasks=[_task(each.task, message.user) for each in _found(tasks)],
        facts=[AnnotatedFact(text=each.text, kind=each.kind) for each in facts.knowledge.facts],
        mood=message_mood(message.text, language).value,
        changes=list(_changes(tasks)),
    )


def _found(tasks: TaskRecorder) -> Iterator[TaskUpdate]:
    """Tasks of the message itself, not those of what was said before it."""
    for update in tasks.updates:
        if update.change in ("found", "reassigned") and update.task.message_ids[0] == _SAID:
            yield update


def _zone(message: SpokenMessage) -> tzinfo:
    return message.at.tzinfo or UTC


def _as_heard(message: SpokenMessage, text: str, message_id: str, before: timedelta = timedelta()) -> DialogueMessage:
    return DialogueMessage(
        message_id=message_id, user_id=message.user, role="user", content=text, time=message.at - before
    )


def _task(task: Task, speaker: str) -> AnnotatedTask:
    return AnnotatedTask(text=task.text, owner="me" if task.owner_id == speaker else task.owner, due=_written(task.due))


def _changes(tasks: TaskRecorder) -> Iterator[TaskChange]:
    for update in tasks.updates:
        if update.change in ("done", "moved", "cancelled"):
            due = _written(update.task.due) if update.change == "moved" else None
            yield TaskChange.model_validate({"of": update.task.text, "change": update.change, "due": due})


def _written(due: datetime | None) -> str | None:
    """A date, or a minute where a time was named."""
    if due is None:
        return None
    return due.date().isoformat() if due.time() == END_OF_DAY else due.isoformat(timespec="minutes")[:16]
