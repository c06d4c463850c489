"""One step of a run, from attempt to attempt."""

from datetime import datetime, timedelta
from itertools import chain

from bus_schema.artifacts import ArtifactRef, Manifest
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.codes import Code
from bus_schema.process import ExecuteStep, NamedInput, StepCompleted, StepFailed, StepPendingStorage
from bus_schema.runs import Misbehaviour, Run, Step, StepStatus

_FIRST_PAUSE = timedelta(seconds=1)
_LONGEST_PAUSE = timedelta(seconds=60)
_MOST_MISBEHAVIOURS = 20
# A step that may be missing holds nobody up: who needs it goes on with what is there.
_SETTLED = frozenset({StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.PENDING_STORAGE})


def pause_after(attempt: int) -> timedelta:
    """Wait before the next attempt: 1 s, 2 s, 4 s, … at most a minute."""
    return min(_FIRST_PAUSE * (1 << (attempt - 1)), _LONGEST_PAUSE)


def _with(step: Step, **changes: object) -> Step:
    return step.model_copy(update=changes)


def next_attempt(step: Step, plan: CardStep, now: datetime) -> Step:
    """The step as its next attempt begins; from here on results of earlier attempts are ignored."""
    due_at = now + timedelta(seconds=plan.timeout_s)
    return _with(step, status=StepStatus.RUNNING, attempt=step.attempt + 1, started_at=now, due_at=due_at)


def with_artifact(
    step: Step, ending: StepCompleted | StepPendingStorage, now: datetime, missing_after: timedelta
) -> Step:
    """The step with its artifact, if the attempt that made it still counts."""
    if not _counts(step, ending):
        return step
    step = _with(step, artifact=ending.artifact, context=ending.context, reason="")
    if isinstance(ending, StepCompleted):
        return _with(step, status=StepStatus.COMPLETED, finished_at=now, due_at=None)
    due_at = now + missing_after if step.critical else None
    return _with(step, status=StepStatus.PENDING_STORAGE, due_at=due_at)


def with_failed_attempt(step: Step, plan: CardStep, failure: StepFailed, now: datetime) -> Step:
    """The step after an attempt without an artifact: to be tried again after a pause, or failed for good."""
    if step.status is not StepStatus.RUNNING or step.attempt != failure.attempt:
        return step
    if failure.retryable and step.attempt < plan.attempts:
        due_at = now + pause_after(step.attempt)
        return _with(step, status=StepStatus.PENDING, due_at=due_at, reason=failure.reason)
    return _with(step, status=StepStatus.FAILED, due_at=None, finished_at=now, reason=failure.reason)


def timeout_failure(run_id: str, step: Step, plan: CardStep) -> StepFailed:
    """The failure of an attempt that exceeded its time."""
    return StepFailed(
        run_id=run_id,
        step_id=step.step_id,
        attempt=step.attempt,
        retryable=step.attempt < plan.attempts,
        reason=f"no result within {plan.timeout_s:g} s",
    )


def with_registered_artifact(step: Step, artifact: ArtifactRef, now: datetime) -> Step:
    """The step once storage has the artifact that it waits for; same id with other bytes is not that artifact."""
    if step.status is not StepStatus.PENDING_STORAGE or not _same(step.artifact, artifact):
        return step
    return _with(step, status=StepStatus.COMPLETED, finished_at=now, due_at=None, reason="")


def with_missing_artifact(step: Step) -> Step:
    """The step after its alert: it still waits, but nobody is told again."""
    return _with(step, due_at=None, reason="its artifact is not registered yet")


def with_cancellation(step: Step, reason: str, now: datetime) -> Step:
    """The step of a run that needs it no more."""
    return _with(step, status=StepStatus.CANCELLED, due_at=None, finished_at=now, reason=reason)


def with_misbehaviour(step: Step, misbehaviour: Misbehaviour) -> Step:
    """The step with one more answer of its model that was no result; the latest twenty are kept."""
    return _with(step, misbehaviours=(*step.misbehaviours, misbehaviour)[-_MOST_MISBEHAVIOURS:])


def with_step(run: Run, changed: Step) -> Run:
    """The run with one of its steps as it is now."""
    steps = tuple(changed if step.step_id == changed.step_id else step for step in run.steps)
    return run.model_copy(update={"steps": steps})


def _counts(step: Step, ending: StepCompleted | StepPendingStorage) -> bool:
    if step.attempt != ending.attempt:
        return False
    if step.status is StepStatus.PENDING_STORAGE:
        return isinstance(ending, StepCompleted) and _same(step.artifact, ending.artifact)
    # While a step pauses before its next attempt, the last one may still deliver: nobody else works on it.
    return step.status in (StepStatus.RUNNING, StepStatus.PENDING)


def checked_ending(ending: StepCompleted, found: Manifest | Code) -> StepCompleted | StepPendingStorage | StepFailed:
    """The end of an attempt by what storage has under its artifact's id: the same bytes of this run.

    While storage cannot say, the step waits for its artifact.
    """
    artifact = ending.artifact
    if isinstance(found, Manifest):
        is_of_step = found.trace_id == ending.run_id and found.step_id in (None, ending.step_id)
        if is_of_step and _same(found.ref, artifact):
            return ending
        reason = f"{artifact.artifact_id} is not the result of this step"
    elif found is Code.NOT_FOUND:
        reason = f"storage has no {artifact.artifact_id}"
    else:
        return StepPendingStorage.model_validate(ending.model_dump())
    attempt = ending.model_dump(include={"run_id", "step_id", "attempt"})
    return StepFailed(**attempt, retryable=True, reason=reason)


def _same(expected: ArtifactRef | None, artifact: ArtifactRef) -> bool:
    return expected is not None and (expected.artifact_id, expected.sha256) == (artifact.artifact_id, artifact.sha256)


def begin_steps(card: Card, run: Run, now: datetime) -> tuple[Run, tuple[ExecuteStep, ...]]:
    """Begin every step whose inputs are there and whose pause is over."""
    orders = []
    for plan, step in zip(card.steps, run.steps, strict=True):
        if step.status is StepStatus.PENDING and _is_due(step, now) and _has_its_inputs(plan, run):
            attempt = next_attempt(step, plan, now)
            orders.append(_order(plan, run, attempt.attempt, now))
            run = with_step(run, attempt)
    return run, tuple(orders)


def role_of(run: Run, order: ExecuteStep) -> str:
    return next(step.role for step in run.steps if step.step_id == order.step_id)


def _is_due(step: Step, now: datetime) -> bool:
    return step.due_at is None or step.due_at <= now


def _has_its_inputs(plan: CardStep, run: Run) -> bool:
    return all(
        step.status in ((StepStatus.COMPLETED,) if step.critical else _SETTLED)
        for step in run.steps
        if step.step_id in plan.inputs
    )


def _order(plan: CardStep, run: Run, attempt: int, now: datetime) -> ExecuteStep:
    return ExecuteStep(
        run_id=run.run_id,
        step_id=plan.id,
        attempt=attempt,
        produces=plan.produces,
        instructions=plan.instructions,
        inputs=_inputs(plan, run),
        params=run.params,
        deadline=now + timedelta(seconds=plan.timeout_s),
        started_by=run.started_by,
        memory=plan.memory,
        language=plan.language,
        relevance=plan.relevance,
    )


def _inputs(plan: CardStep, run: Run) -> tuple[NamedInput, ...]:
    brief = tuple(NamedInput(name=BRIEF, artifact=artifact) for artifact in run.inputs)
    made = {step.step_id: step.artifact for step in run.steps if step.status is StepStatus.COMPLETED}
    given = {name: (NamedInput(name=name, artifact=each),) for name, each in made.items() if each} | {BRIEF: brief}
    inputs = tuple(chain.from_iterable(given.get(name, ()) for name in plan.inputs))
    # A step whose every input may be missing still works from what the run was started with.
    return inputs or brief
