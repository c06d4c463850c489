"""State machine of a run: pure functions from a run and an event to the next run, orders and events."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.processes.constructs import notifications, settle
from agents.processes.control import controlled
from agents.processes.graph import plan_of
from agents.processes.orders import begin_steps, is_ordered, role_of
from agents.processes.parameters import with_defaults
from agents.processes.run_events import (
    OVER,
    ArtifactFound,
    CancelRequested,
    ClockHeld,
    ControlRequest,
    MembersConfirmed,
    MembersRefused,
    OrdersLost,
    RunEvent,
    StepEnding,
    TimePassed,
    Transition,
)
from agents.processes.steps import (
    as_not_sent,
    at_work,
    is_wanted_again,
    timeout_failure,
    to_be_made,
    with_artifact,
    with_cancellation,
    with_clock_held,
    with_failed_attempt,
    with_misbehaviour,
    with_missing_artifact,
    with_registered_artifact,
    with_step,
)
from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import Card
from bus_schema.identities import Identity
from bus_schema.messages import Event
from bus_schema.process import (
    ArtifactMissing,
    ModelMisbehaved,
    ProcessCancelled,
    ProcessCompleted,
    ProcessFailed,
    ProcessStarted,
    StartProcess,
    StepBegun,
    StepCompleted,
    StepFailed,
    StepPendingStorage,
    StepStarted,
)
from bus_schema.run_control import ProcessPaused
from bus_schema.runs import Run, RunStatus, Step, StepStatus

ORCHESTRATOR = "svc.orchestrator"
_AT_WORK = frozenset({StepStatus.PENDING, StepStatus.RUNNING, StepStatus.WAITING})
_OPEN = frozenset({StepStatus.PENDING, StepStatus.RUNNING, StepStatus.WAITING, StepStatus.PENDING_STORAGE})


def open_run(
    command: StartProcess, card: Card, started_by: Identity, now: datetime, *, is_budget_free: bool = False
) -> Run:
    """A run that waits for its members to be confirmed; nothing has been sent yet."""
    return Run(
        run_id=command.run_id,
        card_name=card.name,
        status=RunStatus.STARTING,
        started_by=started_by,
        started_at=now,
        inputs=command.inputs,
        params=with_defaults(card, command.params),
        retention=card.retention,
        is_budget_free=is_budget_free,
        steps=tuple(Step(step_id=step.id, role=step.worker, critical=step.critical) for step in card.steps),
    )


def fingerprint(command: StartProcess, started_by: Identity) -> str:
    """Tells a start that is repeated from another that uses the same run id."""
    said = json.dumps([started_by, command.model_dump(mode="json", exclude_defaults=True)], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def members_of(run: Run) -> tuple[Identity, ...]:
    """Readers of the run's artifacts: its roles, its starter, the orchestrator."""
    roles = {step.role for step in run.steps} - {ORCHESTRATOR.removeprefix("svc.")}
    return tuple(sorted({*(f"agent.{role}" for role in roles), run.started_by, ORCHESTRATOR}))


@dataclass(frozen=True)
class TokensLeft:
    """Tokens for today of a run's starter, and of the whole fleet; None where they are not bounded."""

    of_starter: int | None = None
    of_fleet: int | None = None


_UNBOUNDED = TokensLeft()
_FLEET_SPENT = "the tokens of the fleet for today are used up", "Resume it tomorrow (UTC), or once its quota is raised."


def advance(card: Card, run: Run, event: RunEvent, now: datetime, left: TokensLeft = _UNBOUNDED) -> Transition:
    """Apply an event; what is late, repeated or out of place leaves the run as it is.

    Raises Rejected where a person asks for what cannot be done with the run as it is.
    """
    if isinstance(event, ControlRequest):
        transition = controlled(card, run, event, now)
    elif run.status in OVER:
        return Transition(_with_artifact(run, event, now))
    elif isinstance(event, CancelRequested):
        return _cancel(run, event, now)
    elif run.status is RunStatus.STARTING:
        transition = _begin(run, event, now)
    else:
        transition = _take_in(card, run, event, now)
    if transition.run.status is not RunStatus.RUNNING:
        return transition
    return _go_on(card, transition, now, left)


def may_come_from(worker: str, event: RunEvent, run: Run) -> bool:
    """Whether a worker may tell an event of a run: the end of a step is its role's to tell."""
    if not isinstance(event, StepEnding | ModelMisbehaved | StepBegun):
        return True
    return worker in {step.role for step in run.steps if step.step_id == event.step_id}


def _begin(run: Run, event: RunEvent, now: datetime) -> Transition:
    match event:
        case MembersConfirmed():
            started = ProcessStarted(run_id=run.run_id, card_name=run.card_name, members=members_of(run))
            return Transition(run.model_copy(update={"status": RunStatus.RUNNING}), events=(started,))
        case MembersRefused(reason):
            return _fail(Transition(run), None, reason, now)
        case _:
            return Transition(run)


def _take_in(card: Card, run: Run, event: RunEvent, now: datetime) -> Transition:
    match event:
        case TimePassed():
            return _with_timers(card, run, now)
        case ArtifactFound():
            return Transition(_with_artifact(run, event, now))
        case ClockHeld() | OrdersLost():
            return Transition(_with_steps(card, run, event))
        case StepBegun() | ModelMisbehaved():
            return Transition(_in_attempt(card, run, event, now))
        case StepCompleted() | StepFailed() | StepPendingStorage():
            return _with_ending(card, run, event, now)
        case _:
            return Transition(run)


def _with_steps(card: Card, run: Run, event: ClockHeld | OrdersLost) -> Run:
    """The run after what all of its steps have in common."""
    if isinstance(event, ClockHeld):
        steps = tuple(with_clock_held(step, event.held) for step in run.steps)
    else:
        steps = tuple(as_not_sent(step) if is_ordered(plan_of(card, step), step) else step for step in run.steps)
    return run.model_copy(update={"steps": steps})


def _with_ending(card: Card, run: Run, ending: StepEnding, now: datetime) -> Transition:
    step = next((step for step in run.steps if step.step_id == ending.step_id), None)
    if step is None or ending.run_id != run.run_id:
        return Transition(run)
    if not isinstance(ending, StepFailed):
        missing_after = timedelta(seconds=card.artifact_deadline_s)
        return Transition(with_step(run, with_artifact(step, ending, now, missing_after)))
    ended = with_failed_attempt(step, plan_of(card, step), ending, now)
    if ended is step or not ending.quota_spent:
        return Transition(with_step(run, ended))
    waiting = Transition(with_step(run, to_be_made(step, is_anew=False)))
    return waiting if run.status is RunStatus.PAUSED else _out_of_budget(waiting, *_FLEET_SPENT)


def _in_attempt(card: Card, run: Run, event: StepBegun | ModelMisbehaved, now: datetime) -> Run:
    step = next((step for step in run.steps if step.step_id == event.step_id), None)
    if step is None:
        return run
    if isinstance(event, StepBegun):
        return with_step(run, at_work(step, plan_of(card, step), event.attempt, now))
    return with_step(run, with_misbehaviour(step, event.misbehaviour))


def _with_artifact(run: Run, event: RunEvent, now: datetime) -> Run:
    if not isinstance(event, ArtifactFound):
        return run
    return run.model_copy(
        update={"steps": tuple(with_registered_artifact(step, event.artifact, now) for step in run.steps)}
    )


def _with_timers(card: Card, run: Run, now: datetime) -> Transition:
    events: list[Event] = []
    for step in run.steps:
        if step.due_at is None or step.due_at > now:
            continue
        if step.status is StepStatus.WAITING:
            over = {"status": StepStatus.COMPLETED, "due_at": None, "finished_at": now}
            run = with_step(run, step.model_copy(update=over))
        elif step.status is StepStatus.RUNNING:
            plan = plan_of(card, step)
            late = timeout_failure(run.run_id, step, plan)
            events.append(late)
            run = with_step(run, with_failed_attempt(step, plan, late, now))
        elif step.status is StepStatus.PENDING_STORAGE and step.artifact is not None:
            alert = ArtifactMissing(run_id=run.run_id, step_id=step.step_id, artifact=step.artifact, since=step.due_at)
            events.append(alert)
            run = with_step(run, with_missing_artifact(step, card.artifact_deadline_s, now))
    return Transition(run, events=tuple(events))


def _go_on(card: Card, transition: Transition, now: datetime, left: TokensLeft) -> Transition:
    settled, told = settle(card, transition.run, now)
    transition = Transition(settled, events=(*transition.events, *told))
    run = transition.run
    for step in run.steps:
        if step.critical and step.status is StepStatus.FAILED:
            return _fail(transition, step.step_id, step.reason, now)
    result = next(step for step in run.steps if step.step_id == card.result)
    # Who has asked for steps again waits for all that are open.
    awaited = _AT_WORK if any(map(is_wanted_again, run.steps)) else frozenset[StepStatus]()
    is_open = any(step.status in (_OPEN if step.critical else awaited) for step in run.steps)
    if result.artifact is not None and result.status is StepStatus.COMPLETED and not is_open:
        return _complete(transition, result.artifact, now)
    if result.status is StepStatus.SKIPPED:
        return _fail(transition, result.step_id, result.reason, now)
    begun, orders = begin_steps(card, run, now)
    if orders and (budget := _spent_budget(card, run, left)):
        return _out_of_budget(transition, *budget)
    events = (
        StepStarted(run_id=run.run_id, step_id=order.step_id, attempt=order.attempt, role=role_of(run, order))
        for order in orders
    )
    return Transition(begun, orders, (*transition.events, *events))


def _spent_budget(card: Card, run: Run, left: TokensLeft) -> tuple[str, str] | None:
    """The budget that is spent, if one is, with what lets the run go on."""
    used = run.spent.tokens - run.budget_from
    if card.budget_tokens and used >= card.budget_tokens:
        reason = f"its models have used {used} tokens, of a budget of {card.budget_tokens}"
        return reason, "Resume it to let it use as many again."
    if left.of_fleet is not None and left.of_fleet <= 0:
        return _FLEET_SPENT
    if left.of_starter is not None and left.of_starter <= 0 and not run.is_budget_free:
        reason = f"the tokens of {run.started_by} for today are used up"
        return reason, "An operator may resume it now, its starter tomorrow (UTC)."
    return None


def _out_of_budget(transition: Transition, reason: str, remedy: str) -> Transition:
    """The run paused until a person lets it go on; what is under way is taken in."""
    run = transition.run
    paused = ProcessPaused(run_id=run.run_id, reason=reason, paused_by=ORCHESTRATOR)
    question = f"The run {run.run_id} of {run.card_name} is paused: {reason}. {remedy}"
    told = notifications(run, question, f"budget/{run.spent.tokens}")
    changes = {"status": RunStatus.PAUSED, "reason": reason}
    return Transition(run.model_copy(update=changes), events=(*transition.events, paused, *told))


def _complete(transition: Transition, result: ArtifactRef, now: datetime) -> Transition:
    completed = ProcessCompleted(run_id=transition.run.run_id, result=result)
    # What lies in a buffer will still be registered; whoever is still working need not go on.
    kept = {StepStatus.PENDING_STORAGE}
    run = _ended(transition.run, RunStatus.COMPLETED, "", now, "the run was complete without it", kept)
    return Transition(run.model_copy(update={"result": result}), events=(*transition.events, completed))


def _fail(transition: Transition, step_id: str | None, reason: str, now: datetime) -> Transition:
    failed = ProcessFailed(run_id=transition.run.run_id, step_id=step_id, reason=reason)
    why = f"step {step_id} failed: {reason}" if step_id else reason
    return Transition(
        _ended(transition.run, RunStatus.FAILED, why, now, "the run failed"), events=(*transition.events, failed)
    )


def _cancel(run: Run, request: CancelRequested, now: datetime) -> Transition:
    event = ProcessCancelled(run_id=run.run_id, reason=request.reason, cancelled_by=request.by)
    return Transition(_ended(run, RunStatus.CANCELLED, request.reason, now, "the run was cancelled"), events=(event,))


def _ended(
    run: Run, status: RunStatus, reason: str, now: datetime, why_steps: str, kept: set[StepStatus] | None = None
) -> Run:
    closing = _OPEN - (kept or set())
    steps = tuple(with_cancellation(step, why_steps, now) if step.status in closing else step for step in run.steps)
    return run.model_copy(update={"status": status, "reason": reason, "finished_at": now, "steps": steps})
