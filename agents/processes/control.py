"""Control of a run by people: pause, resume, retry, outputs put in place; each a pure function of the run."""

from collections.abc import Collection
from datetime import datetime

from agents.processes.run_events import (
    OVER,
    ControlRequest,
    OutputGiven,
    PauseRequested,
    ResumeRequested,
    RetryRequested,
    Transition,
)
from agents.processes.steps import to_be_made, with_output_of, with_step
from bus_schema.cards import Card
from bus_schema.replies import Code
from bus_schema.run_control import OutputReplaced, ProcessPaused, ProcessResumed, ProcessRetried
from bus_schema.runs import Run, RunStatus, StepStatus
from mindbus.errors import Rejected

_GIVEN_UP = frozenset({StepStatus.FAILED, StepStatus.CANCELLED})


def controlled(card: Card, run: Run, request: ControlRequest, now: datetime) -> Transition:
    """The run as a person wants it. Raises Rejected where that cannot be."""
    if run.status is RunStatus.STARTING:
        raise Rejected(Code.CONFLICT, f"{run.run_id} has not begun yet; try again in a moment, or cancel it")
    match request:
        case PauseRequested():
            return _paused(run, request)
        case ResumeRequested():
            return _resumed(run, request)
        case RetryRequested():
            return _retried(card, run, request)
        case OutputGiven():
            return _with_output(card, run, request, now)


def made_of(card: Card, step_ids: Collection[str]) -> set[str]:
    """Ids of the steps whose outputs depend on those of the given ones, which are not among them but for a loop."""
    reached: set[str] = set()
    new = set(step_ids)
    while new:
        new = {step.id for step in card.steps if new & set(step.inputs)} - reached
        reached |= new
    return reached


def _paused(run: Run, request: PauseRequested) -> Transition:
    if run.status is RunStatus.PAUSED:
        return Transition(run)
    if run.status is not RunStatus.RUNNING:
        raise Rejected(Code.CONFLICT, f"{run.run_id} is {run.status.value}; only a run that goes on can be paused")
    event = ProcessPaused(run_id=run.run_id, reason=request.reason, paused_by=request.by)
    return Transition(_with(run, status=RunStatus.PAUSED, reason=request.reason), events=(event,))


def _resumed(run: Run, request: ResumeRequested) -> Transition:
    if run.status is RunStatus.RUNNING:
        return Transition(run)
    if run.status is not RunStatus.PAUSED:
        raise Rejected(Code.CONFLICT, f"{run.run_id} is {run.status.value}; a run that is over is retried")
    event = ProcessResumed(run_id=run.run_id, resumed_by=request.by)
    return Transition(_going_on(run), events=(event,))


def _retried(card: Card, run: Run, request: RetryRequested) -> Transition:
    anew: set[str] = set()
    if request.from_step is not None:
        _require_step(card, request.from_step)
        anew = {request.from_step, *made_of(card, {request.from_step})}
    retried, steps = _made_again(run, anew)
    if not steps:
        raise Rejected(Code.CONFLICT, f"{run.run_id} is {run.status.value}, and nothing has failed; name a step")
    event = ProcessRetried(run_id=run.run_id, from_step=request.from_step, steps=steps, retried_by=request.by)
    return Transition(_going_on(retried), events=(event,))


def _with_output(card: Card, run: Run, request: OutputGiven, now: datetime) -> Transition:
    _require_step(card, request.step_id)
    step = next(step for step in run.steps if step.step_id == request.step_id)
    if step.artifact == request.artifact and step.status is StepStatus.COMPLETED:
        return Transition(run)
    placed = with_step(run, with_output_of(step, request.artifact, request.by, now))
    changed, steps = _made_again(placed, made_of(card, {request.step_id}) - {request.step_id})
    event = OutputReplaced(
        run_id=run.run_id,
        step_id=request.step_id,
        artifact=request.artifact,
        steps=steps,
        replaced_by=request.by,
    )
    return Transition(changed if run.status is RunStatus.PAUSED else _going_on(changed), events=(event,))


def _made_again(run: Run, step_ids: Collection[str]) -> tuple[Run, tuple[str, ...]]:
    """The run with these steps to be made anew, as far as they were begun, and, if it is over, with what it gave up."""
    again = [
        step.step_id
        for step in run.steps
        if (step.step_id in step_ids and step.attempt) or (run.status in OVER and step.status in _GIVEN_UP)
    ]
    steps = tuple(to_be_made(step) if step.step_id in again else step for step in run.steps)
    return _with(run, steps=steps), tuple(again)


def _going_on(run: Run) -> Run:
    return _with(run, status=RunStatus.RUNNING, finished_at=None, result=None, reason="")


def _require_step(card: Card, step_id: str) -> None:
    ids = [step.id for step in card.steps]
    if step_id not in ids:
        raise Rejected(Code.INVALID, f"{card.name} has no step {step_id!r}; it has {', '.join(ids)}")


def _with(run: Run, **changes: object) -> Run:
    return run.model_copy(update=changes)
