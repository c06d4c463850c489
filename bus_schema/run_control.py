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
    """The card of a run, sub-cards written out, and its Mermaid graph with the progress of each step."""

    card: Card
    mermaid: str


class GetRunGraph(Query[RunGraph], domain="process", action="get_graph", service="orchestrator"):
    """Draw a run."""

    run_id: RunId


CostGroup = Literal["step", "run", "card", "user", "day"]


class CostLine(Value):
    """Cost of all runs, or of a step, with this key."""

    key: str
    runs: int
    spent: Spent


class Costs(Value):
    """Costs, highest first, and their sum; `is_all` unless there were more runs than are looked at."""

    lines: tuple[CostLine, ...]
    total: Spent
    is_all: bool = True


class GetCosts(Query[Costs], domain="process", action="get_costs", service="orchestrator"):
    """Add up what runs have cost: one, or those started since a time; for operators all, for others their own."""

    run_id: RunId | None = None
    since: AwareDatetime | None = None
    by: CostGroup = "run"


class PauseProcess(Command[Run], domain="process", action="pause", service="orchestrator"):
    """Send no further steps of a run; results of steps under way are still accepted."""

    run_id: RunId
    reason: str = Field(default="", max_length=1000)


class ResumeProcess(Command[Run], domain="process", action="resume", service="orchestrator"):
    """Continue a paused run."""

    run_id: RunId


class RetryProcess(Command[Run], domain="process", action="retry", service="orchestrator"):
    """Continue a run that is over from what has failed; existing outputs are reused.

    With `from_step`, that step is made again, and everything made from its output.
    """

    run_id: RunId
    from_step: StepId | None = None


class RerunProcess(Command[Started], domain="process", action="rerun", service="orchestrator"):
    """Start a new run, under an id that the caller mints, with the card and inputs of an earlier one.

    `params` are those of the earlier run, except the ones given here.
    """

    run_id: RunId
    of_run: RunId
    params: dict[str, str] = Field(default={}, max_length=50)


class ReplaceOutput(Command[Run], domain="process", action="replace_output", service="orchestrator"):
    """Replace a step's output with an artifact of your own, registered in the run's trace.

    Everything made from the previous output is made again.
    """

    run_id: RunId
    step_id: StepId
    artifact: ArtifactRef


class ApproveStep(Command[Run], domain="process", action="approve", service="orchestrator"):
    """Answer yes to the question of a step that waits for a person; the run continues."""

    run_id: RunId
    step_id: StepId
    note: str = Field(default="", max_length=2000)


class RejectStep(Command[Run], domain="process", action="reject", service="orchestrator"):
    """Answer no to the question of a step that waits for a person.

    If the step has `repeat`, what it asks about is made again, with the note; otherwise the step has failed.
    """

    run_id: RunId
    step_id: StepId
    note: str = Field(default="", max_length=2000)


class ApprovalRequested(Event, topic="process", name="approval_requested"):
    """A step waits for a person, without a time limit; the artifacts are what it asks about."""

    run_id: RunId
    step_id: StepId
    question: str
    artifacts: tuple[ArtifactRef, ...] = ()


class StepAnswered(Event, topic="process", name="step_answered"):
    """A person has approved or rejected a step."""

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
    """The run continues after a pause."""

    run_id: RunId
    resumed_by: Identity


class ProcessRetried(Event, topic="process", name="retried"):
    """The run continues: these steps are made, or made again."""

    run_id: RunId
    from_step: StepId | None = None
    steps: tuple[StepId, ...]
    retried_by: Identity


class OutputReplaced(Event, topic="process", name="output_replaced"):
    """A person has replaced a step's output with an artifact; these steps are made again."""

    run_id: RunId
    step_id: StepId
    artifact: ArtifactRef
    steps: tuple[StepId, ...]
    replaced_by: Identity
