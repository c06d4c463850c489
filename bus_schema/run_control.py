"""Control of runs by people: commands, and events of what they did."""

from typing import Literal

from pydantic import AwareDatetime, Field

from bus_schema.artifacts import ArtifactRef, StepId
from bus_schema.cards import Card
from bus_schema.identities import Identity
from bus_schema.messages import Command, Event, Query, Value
from bus_schema.process import Started
from bus_schema.runs import Run, RunId, Spent


class RunGraph(Value):
    """The card of a run, sub-cards written out, and its Mermaid graph with how far each step has come."""

    card: Card
    mermaid: str


class GetRunGraph(Query[RunGraph], domain="process", action="get_graph", service="orchestrator"):
    """Draw a run."""

    run_id: RunId


CostGroup = Literal["step", "run", "card", "user", "day"]


class CostLine(Value):
    """Cost of all runs, or of a step, that have this key."""

    key: str
    runs: int
    spent: Spent


class Costs(Value):
    """Costs, the dearest first, and their sum; `is_all` unless there were more runs than are looked at."""

    lines: tuple[CostLine, ...]
    total: Spent
    is_all: bool = True


class GetCosts(Query[Costs], domain="process", action="get_costs", service="orchestrator"):
    """Add up what runs have cost: of one, or of those started since; for operators all, for others their own."""

    run_id: RunId | None = None
    since: AwareDatetime | None = None
    by: CostGroup = "run"


class PauseProcess(Command[Run], domain="process", action="pause", service="orchestrator"):
    """Send no further step of a run; results of those under way are taken in."""

    run_id: RunId
    reason: str = Field(default="", max_length=1000)


class ResumeProcess(Command[Run], domain="process", action="resume", service="orchestrator"):
    """Go on with a paused run."""

    run_id: RunId


class RetryProcess(Command[Run], domain="process", action="retry", service="orchestrator"):
    """Go on with a run that is over, from what has failed; outputs that are there are used.

    With `from_step` that step is made anew, and all that was made of it.
    """

    run_id: RunId
    from_step: StepId | None = None


class RerunProcess(Command[Started], domain="process", action="rerun", service="orchestrator"):
    """Start a new run, under the id that the caller mints, with card and inputs of an earlier one.

    `params` are those of the earlier run but for the ones that are given here.
    """

    run_id: RunId
    of_run: RunId
    params: dict[str, str] = Field(default={}, max_length=50)


class ReplaceOutput(Command[Run], domain="process", action="replace_output", service="orchestrator"):
    """Put an artifact of one's own, registered in the run's trace, in place of a step's output.

    All that was made of the output before is made anew.
    """

    run_id: RunId
    step_id: StepId
    artifact: ArtifactRef


class ApproveStep(Command[Run], domain="process", action="approve", service="orchestrator"):
    """Answer the question of a step that waits for a person: yes, and the run goes on."""

    run_id: RunId
    step_id: StepId
    note: str = Field(default="", max_length=2000)


class RejectStep(Command[Run], domain="process", action="reject", service="orchestrator"):
    """Answer the question of a step that waits for a person: no.

    Where the step has `repeat`, what it asks about is made anew, with the note; else the step has failed.
    """

    run_id: RunId
    step_id: StepId
    note: str = Field(default="", max_length=2000)


class ApprovalRequested(Event, topic="process", name="approval_requested"):
    """A step waits for a person, without a clock; the artifacts are what it asks about."""

    run_id: RunId
    step_id: StepId
    question: str
    artifacts: tuple[ArtifactRef, ...] = ()


class StepAnswered(Event, topic="process", name="step_answered"):
    """A person has approved or rejected."""

    run_id: RunId
    step_id: StepId
    approved: bool
    note: str
    answered_by: Identity


class ProcessPaused(Event, topic="process", name="paused"):
    """The run was paused."""

    run_id: RunId
    reason: str
    paused_by: Identity


class ProcessResumed(Event, topic="process", name="resumed"):
    """The run goes on after a pause."""

    run_id: RunId
    resumed_by: Identity


class ProcessRetried(Event, topic="process", name="retried"):
    """The run goes on: these steps are made, or made anew."""

    run_id: RunId
    from_step: StepId | None = None
    steps: tuple[StepId, ...]
    retried_by: Identity


class OutputReplaced(Event, topic="process", name="output_replaced"):
    """A person has put an artifact in place of a step's output; these steps are made anew."""

    run_id: RunId
    step_id: StepId
    artifact: ArtifactRef
    steps: tuple[StepId, ...]
    replaced_by: Identity
