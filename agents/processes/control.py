"""Control of a run by people: pause, resume, retry, outputs put in place; each a pure function of the run."""

from collections.abc import Collection
from datetime import datetime

from agents.processes.constructs import parts_of, rounds_left
from agents.processes.graph import made_of, plan_of
from agents.processes.orders import is_ordered
from agents.processes.run_events import (
    OVER,
    ApprovalGiven,
    ControlRequest,
    OutputGiven,
    PauseRequested,
    ResumeRequested,
    RetryRequested,
    Transition,
)
from agents.processes.steps import to_be_made, with_output_of, with_step, without_result
from bus_schema.cards import Card
from bus_schema.replies import Code
from bus_schema.run_control import OutputReplaced, ProcessPaused, ProcessResumed, ProcessRetried, StepAnswered
from bus_schema.runs import Run, RunStatus, Step, StepStatus
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
        case ApprovalGiven():
            return _answered(card, run, request, now)


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
    is_free = run.is_budget_free or request.is_operator
    return Transition(_with(_going_on(run), is_budget_free=is_free), events=(event,))


def _retried(card: Card, run: Run, request: RetryRequested) -> Transition:
    anew: set[str] = set()
    if request.from_step is not None:
        _require_step(card, request.from_step)
        anew = {request.from_step, *made_of(card, {request.from_step})}
    retried, steps = _made_again(run, anew)
    if not steps and not _has_come_late(card, run):
        raise Rejected(Code.CONFLICT, f"{run.run_id} is {run.status.value}, and nothing has failed; name a step")
    event = ProcessRetried(run_id=run.run_id, from_step=request.from_step, steps=steps, retried_by=request.by)
    return Transition(_going_on(retried), events=(event,))


def _with_output(card: Card, run: Run, request: OutputGiven, now: datetime) -> Transition:
    _require_step(card, request.step_id)
    step = next(step for step in run.steps if step.step_id == request.step_id)
    if not is_ordered(plan_of(card, step), step):
        raise Rejected(Code.INVALID, f"{request.step_id} has no output of its own that could be replaced")
    if step.artifact == request.artifact and step.status is StepStatus.COMPLETED:
        return Transition(run)
    placed = with_step(run, with_output_of(step, request.artifact, request.context, request.by, now))
    changed, steps = _made_again(placed, made_of(card, {request.step_id}) - {request.step_id})
    event = OutputReplaced(
        run_id=run.run_id,
        step_id=request.step_id,
        artifact=request.artifact,
        steps=steps,
        replaced_by=request.by,
    )
    return Transition(changed if run.status is RunStatus.PAUSED else _going_on(changed), events=(event,))


def _answered(card: Card, run: Run, request: ApprovalGiven, now: datetime) -> Transition:
    _require_step(card, request.step_id)
    step = next(step for step in run.steps if step.step_id == request.step_id)
    if step.status is not StepStatus.WAITING or step.due_at is not None:
        raise Rejected(Code.CONFLICT, f"{request.step_id} of {run.run_id} is {step.status.value} and asks nobody")
    is_settled = request.approved or rounds_left(card, step)
    changes = {"approved": request.approved, "by": request.by, "note": request.note, "finished_at": now}
    why = f"rejected by {request.by}" + (f": {request.note}" if request.note else "")
    changes |= {"status": StepStatus.COMPLETED} if is_settled else {"status": StepStatus.FAILED, "reason": why}
    event = StepAnswered(
        run_id=run.run_id,
        step_id=request.step_id,
        approved=request.approved,
        note=request.note,
        answered_by=request.by,
    )
    return Transition(with_step(run, step.model_copy(update=changes)), events=(event,))


def _has_come_late(card: Card, run: Run) -> bool:
    """Whether the result of a run that has failed is there after all."""
    result = next(step for step in run.steps if step.step_id == card.result)
    return run.status is RunStatus.FAILED and result.status is StepStatus.COMPLETED and result.artifact is not None


def _is_current(run: Run, part: Step) -> bool:
    """Whether a part of a fan-out is of its present round."""
    return any(part in parts_of(run, step) for step in run.steps if step.step_id == part.of)


def _made_again(run: Run, step_ids: Collection[str]) -> tuple[Run, tuple[str, ...]]:
    """The run with these steps to be made anew, as far as they were begun, and, if it is over, with what it gave up."""
    anew = {step.step_id for step in run.steps if step.step_id in step_ids and _is_begun(step)}
    earlier = {step.step_id for step in run.steps if step.of is not None and not _is_current(run, step)}
    given_up = {step.step_id for step in run.steps if run.status in OVER and step.status in _GIVEN_UP} - earlier
    fans = {step.of for step in run.steps if step.of is not None and _is_current(run, step)}

    def again(step: Step) -> Step:
        if step.of in anew:
            return without_result(step)
        if step.step_id in anew or (step.step_id in given_up and step.step_id not in fans):
            return to_be_made(step, is_anew=step.step_id in anew)
        # The parts of a fan-out are made, each for itself.
        return _gathering(step) if step.step_id in given_up else step

    return _with(run, steps=tuple(map(again, run.steps))), tuple(
        step.step_id for step in run.steps if step.step_id in anew | given_up and step.of not in anew
    )


def _gathering(step: Step) -> Step:
    return step.model_copy(update={"status": StepStatus.RUNNING, "finished_at": None, "reason": ""})


def _is_begun(step: Step) -> bool:
    return step.attempt > step.attempts_before or step.status is not StepStatus.PENDING


def _going_on(run: Run) -> Run:
    # Whoever lets a run go on lets it spend.
    return _with(run, status=RunStatus.RUNNING, finished_at=None, result=None, reason="", budget_from=run.spent.tokens)


def _require_step(card: Card, step_id: str) -> None:
    ids = [step.id for step in card.steps]
    if step_id not in ids:
        raise Rejected(Code.INVALID, f"{card.name} has no step {step_id!r}; it has {', '.join(ids)}")


def _with(run: Run, **changes: object) -> Run:
    return run.model_copy(update=changes)
