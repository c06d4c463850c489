"""Processes: commands to runs and their events."""

from typing import Self

from pydantic import AwareDatetime, Field, model_validator

from bus_schema.artifacts import AIContext, ArtifactRef, ArtifactType, StepId
from bus_schema.cards import Card, CardName, Relevance, StepLanguage
from bus_schema.identities import Identity, ServiceName
from bus_schema.messages import Command, Event, Nothing, Page, Query, Value
from bus_schema.runs import Misbehaviour, Run, RunId, RunStatus

# Documents that a run begins with.
MOST_INPUTS = 20


class Started(Value):
    """The run that was started, now or by an earlier delivery of the same command."""

    run_id: RunId


class StartProcess(Command[Started], domain="process", action="start", service="orchestrator"):
    """Start a run of a card; the caller mints the run id, so that inputs can be registered under it first."""

    run_id: RunId
    card: Card | None = None
    card_name: CardName | None = None
    inputs: tuple[ArtifactRef, ...] = Field(min_length=1, max_length=MOST_INPUTS)
    params: dict[str, str] = Field(default={}, max_length=50)

    @model_validator(mode="after")
    def _names_one_card(self) -> Self:
        if (self.card is None) == (self.card_name is None):
            raise ValueError("give either a card or the card_name of a shipped one")
        return self


class GetProcess(Query[Run], domain="process", action="get", service="orchestrator"):
    """Read one run with its steps."""

    run_id: RunId


class RunPage(Page[Run]):
    """Runs, newest first, with the cursor of the next page."""


class ListProcesses(Query[RunPage], domain="process", action="list", service="orchestrator"):
    """List runs, newest first."""

    status: RunStatus | None = None
    card: CardName | None = None
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=20, ge=1, le=100)


class CancelProcess(Command[Run], domain="process", action="cancel", service="orchestrator"):
    """Stop a run: no further steps are sent, late results are ignored."""

    run_id: RunId
    reason: str = Field(default="", max_length=1000)


class NamedInput(Value):
    """An input under its name in the card: `brief`, or the step that produced it."""

    name: StepId
    artifact: ArtifactRef


class ExecuteStep(Command[Nothing], domain="process", action="execute_step", service=None):
    """Execute one attempt of a step; its outcome is an event that repeats run, step and attempt.

    In a `round` after the first, the output is made again and `supersedes` the one before; `note` is what a person
    had to say about that one. `item` is what this part of the step is about. `values` names output values to report.
    The work may take `timeout_s` from its start, and starts at least that long before the `deadline`.
    """

    run_id: RunId
    step_id: StepId
    attempt: int = Field(ge=1)
    produces: ArtifactType
    instructions: str = Field(max_length=4000)
    inputs: tuple[NamedInput, ...]
    params: dict[str, str] = Field(default={}, max_length=50)
    deadline: AwareDatetime
    started_by: Identity | None = None
    memory: bool = True
    language: StepLanguage = "auto"
    relevance: Relevance | None = None
    round: int = Field(default=1, ge=1)
    supersedes: ArtifactRef | None = None
    note: str = Field(default="", max_length=2000)
    item: str = Field(default="", max_length=2000)
    values: tuple[str, ...] = Field(default=(), max_length=10)
    timeout_s: float | None = Field(default=None, gt=0)


class ProcessStarted(Event, topic="process", name="started"):
    """A run was started and its members are registered with storage."""

    run_id: RunId
    card_name: CardName
    members: tuple[Identity, ...]


class StepEvent(Event):
    """Base of events about one attempt of a step."""

    run_id: RunId
    step_id: StepId
    attempt: int


class StepStarted(StepEvent, topic="process", name="step_started"):
    """An attempt of a step was sent to its role."""

    role: ServiceName


class StepBegun(StepEvent, topic="process", name="step_begun"):
    """A role has been working on an attempt for a second; shorter attempts do not report this."""


class StepProgress(StepEvent, topic="process", name="step_progress"):
    """A role reports progress within its attempt."""

    note: str


class ModelMisbehaved(StepEvent, topic="process", name="model_misbehaved"):
    """A model has given an answer that is not a result."""

    misbehaviour: Misbehaviour


class StepCompleted(StepEvent, topic="process", name="step_completed"):
    """An attempt has ended with a registered artifact."""

    artifact: ArtifactRef
    context: AIContext


class StepFailed(StepEvent, topic="process", name="step_failed"):
    """An attempt has ended without an artifact; `quota_spent` if only a quota of the installation was in its way."""

    retryable: bool
    reason: str
    quota_spent: bool = False


class StepPendingStorage(StepEvent, topic="process", name="step_pending_storage"):
    """An attempt is done, but storage is unavailable: its artifact is in the role's durable buffer."""

    artifact: ArtifactRef
    context: AIContext


class ArtifactMissing(Event, topic="process", name="artifact_missing"):
    """Alert: the artifact of a critical step was not registered by the deadline, and so the step has failed."""

    run_id: RunId
    step_id: StepId
    artifact: ArtifactRef
    since: AwareDatetime


class ProcessCompleted(Event, topic="process", name="completed"):
    """Every step that the result needs has completed."""

    run_id: RunId
    result: ArtifactRef


class ProcessFailed(Event, topic="process", name="failed"):
    """A critical step has used up its attempts; if no step is named, the run could not be started."""

    run_id: RunId
    step_id: StepId | None = None
    reason: str


class ProcessCancelled(Event, topic="process", name="cancelled"):
    """The run was cancelled."""

    run_id: RunId
    reason: str
    cancelled_by: Identity
