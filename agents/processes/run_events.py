"""Events of a run: what happens to it, and the transition that comes of it."""

from dataclasses import dataclass
from datetime import timedelta

from bus_schema.artifacts import AIContext, ArtifactRef
from bus_schema.identities import Identity
from bus_schema.messages import Event
from bus_schema.process import ExecuteStep, ModelMisbehaved, StepBegun, StepCompleted, StepFailed, StepPendingStorage
from bus_schema.runs import Run, RunStatus

OVER = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


@dataclass(frozen=True)
class MembersConfirmed:
    """Storage knows who takes part, so that what the first step reads or makes is theirs alone."""


@dataclass(frozen=True)
class MembersRefused:
    """Storage will not have these members, however often it is asked."""

    reason: str


@dataclass(frozen=True)
class TimePassed:
    """Some step's time has come: its attempt is over, may be repeated, or its artifact is missed."""


@dataclass(frozen=True)
class ClockHeld:
    """Storage was away for so long, in which no limit ran."""

    held: timedelta


@dataclass(frozen=True)
class OrdersLost:
    """The broker has lost its queues, or is another one: nobody works at what was ordered."""


@dataclass(frozen=True)
class CancelRequested:
    """A requester wants the run to stop."""

    reason: str
    by: Identity


@dataclass(frozen=True)
class PauseRequested:
    """A requester wants no further step to be sent."""

    reason: str
    by: Identity


@dataclass(frozen=True)
class ResumeRequested:
    """A requester wants the run to go on; an operator, whatever the budget of its starter for the day."""

    by: Identity
    is_operator: bool = False


@dataclass(frozen=True)
class RetryRequested:
    """A requester wants what has failed to be tried again, or a step, and all that was made of it, to be made anew."""

    from_step: str | None
    by: Identity


@dataclass(frozen=True)
class OutputGiven:
    """A requester has an artifact of their own in place of a step's output."""

    step_id: str
    artifact: ArtifactRef
    by: Identity
    context: AIContext | None = None


@dataclass(frozen=True)
class ApprovalGiven:
    """A person has answered the question of a step."""

    step_id: str
    approved: bool
    note: str
    by: Identity


@dataclass(frozen=True)
class ArtifactFound:
    """Storage has an artifact by now."""

    artifact: ArtifactRef


StepEnding = StepCompleted | StepFailed | StepPendingStorage
ControlRequest = PauseRequested | ResumeRequested | RetryRequested | OutputGiven | ApprovalGiven
RunEvent = (
    MembersConfirmed
    | MembersRefused
    | TimePassed
    | CancelRequested
    | ControlRequest
    | ArtifactFound
    | ClockHeld
    | OrdersLost
    | StepBegun
    | StepEnding
    | ModelMisbehaved
)


@dataclass(frozen=True)
class Transition:
    """Result of an event: the run after it, orders for the roles, events to publish."""

    run: Run
    orders: tuple[ExecuteStep, ...] = ()
    events: tuple[Event, ...] = ()
