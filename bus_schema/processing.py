"""Results of the processing agents: tasks, facts, moods."""

from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from bus_schema.dialogue import DialogueMessageId, FragmentId
from bus_schema.identities import ServiceName, UserId
from bus_schema.messages import Event, Link, Value

TaskId = Annotated[str, StringConstraints(pattern=r"^task_[A-Za-z0-9_-]{1,64}$")]
FactId = Annotated[str, StringConstraints(pattern=r"^fact_[A-Za-z0-9_-]{1,64}$")]
Tone = Annotated[float, Field(ge=-1, le=1)]


class TaskStatus(StrEnum):
    """Status of a task."""

    OPEN = "open"
    DONE = "done"
    CANCELLED = "cancelled"


class Task(Value):
    """A task; `owner` is the name as mentioned, `owner_id` the user behind it, where known.

    A due date without a time means the end of the day `due_on` where its user lives; `due_said` is how they put it.
    `remind_at` is when its owner asked to be reminded. A task that nobody has spoken of has no messages; it is not in
    any `tasks_found`, whose readers expect some.
    """

    task_id: TaskId
    text: str = Field(min_length=1, max_length=500)
    owner: str | None = Field(default=None, max_length=100)
    owner_id: UserId | None = None
    asked_by: UserId
    due: AwareDatetime | None = None
    due_said: str = Field(default="", max_length=100)
    due_on: date | None = None
    remind_at: AwareDatetime | None = None
    status: TaskStatus = TaskStatus.OPEN
    found_at: AwareDatetime
    changed_at: AwareDatetime
    message_ids: tuple[DialogueMessageId, ...] = ()


class TaskUpdate(Value):
    """A change of a task, with the task as it is now."""

    change: Literal["found", "done", "moved", "cancelled", "reassigned"]
    task: Task


class FactKind(StrEnum):
    """Kind of a fact."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    ROLE = "role"


class Fact(Value):
    """A fact in the words in which it was stated, valid until another fact supersedes it.

    It is for the speaker alone, unless its sentence names a project of theirs: members of `shared_with` may be told.
    """

    fact_id: FactId
    kind: FactKind
    text: str = Field(min_length=1, max_length=1000)
    said_by: UserId
    project: str | None = Field(default=None, max_length=100)
    said_at: AwareDatetime
    supersedes: FactId | None = None
    superseded_by: FactId | None = None
    message_ids: tuple[DialogueMessageId, ...] = Field(min_length=1)
    shared_with: str | None = Field(default=None, max_length=100)

    def is_shared_with(self, projects: Iterable[str]) -> bool:
        """Whether members of these projects may be told; names are compared without regard to case."""
        return self.shared_with is not None and self.shared_with.casefold() in map(str.casefold, projects)


class FactUpdate(Value):
    """A change of the facts; `confirmed` was known and is stated again, `superseded` is no longer valid."""

    change: Literal["found", "confirmed", "superseded"]
    fact: Fact


class Mood(Value):
    """Sentiment of a user from −1 to 1, relative to their usual one; `evidence` are quotes."""

    tone: Tone
    usual: Tone
    is_sharp_turn: bool = False
    evidence: tuple[str, ...] = ()
    assessed_at: AwareDatetime
    message_ids: tuple[DialogueMessageId, ...] = Field(min_length=1)


class Processed(Event):
    """Common fields of all results of processing agents: the source."""

    agent: ServiceName
    fragment_id: FragmentId
    user_id: UserId
    links: tuple[Link, ...] = ()


class TasksFound(Processed, topic="processed", name="tasks_found"):
    """Tasks, or changes of tasks, were found in a fragment."""

    items: tuple[TaskUpdate, ...] = Field(min_length=1)


class ContextUpdated(Processed, topic="processed", name="context_updated"):
    """Facts about the user or a project were found in a fragment."""

    items: tuple[FactUpdate, ...] = Field(min_length=1)


class MoodAssessed(Processed, topic="processed", name="mood_assessed"):
    """The user's mood in a fragment was assessed."""

    items: tuple[Mood, ...] = Field(min_length=1)
