"""One step of a run, from attempt to attempt."""

from datetime import datetime, timedelta

from bus_schema.artifacts import AIContext, ArtifactRef, Manifest
from bus_schema.cards import CardStep
from bus_schema.codes import Code
from bus_schema.identities import Identity
from bus_schema.process import StepCompleted, StepFailed, StepPendingStorage
from bus_schema.runs import Misbehaviour, Run, Step, StepStatus

_FIRST_PAUSE = timedelta(seconds=1)
_LONGEST_PAUSE = timedelta(seconds=60)
_MOST_MISBEHAVIOURS = 20


def pause_after(attempt: int) -> timedelta:
    """Wait before the next attempt: 1 s, 2 s, 4 s, … at most a minute."""
    return min(_FIRST_PAUSE * (1 << (attempt - 1)), _LONGEST_PAUSE)


def _with(step: Step, **changes: object) -> Step:
    return step.model_copy(update=changes)


def next_attempt(step: Step, plan: CardStep, now: datetime) -> Step:
    """The step as its next attempt begins; from here on results of earlier attempts are ignored."""
    due_at = now + timedelta(seconds=plan.queue_timeout_s + plan.timeout_s)
    return _with(step, status=StepStatus.RUNNING, attempt=step.attempt + 1, started_at=now, due_at=due_at)


def as_not_sent(step: Step) -> Step:
    """The step as before its attempt, if one is under way: its order is sent again as the same attempt."""
    if step.status is not StepStatus.RUNNING:
        return step
    return _with(step, status=StepStatus.PENDING, attempt=step.attempt - 1, due_at=None)


def with_artifact(
    step: Step, ending: StepCompleted | StepPendingStorage, now: datetime, missing_after: timedelta
) -> Step:
    """The step with its artifact, if the attempt that made it still counts."""
    if not _counts(step, ending):
        return step
    step = _with(step, artifact=ending.artifact, context=ending.context, by=None, reason="")
    if isinstance(ending, StepCompleted):
        return _with(step, status=StepStatus.COMPLETED, finished_at=now, due_at=None)
    due_at = now + missing_after if step.critical else None
    return _with(step, status=StepStatus.PENDING_STORAGE, due_at=due_at)


def with_failed_attempt(step: Step, plan: CardStep, failure: StepFailed, now: datetime) -> Step:
    """The step after an attempt without an artifact: to be tried again after a pause, or failed for good."""
    if step.status is not StepStatus.RUNNING or step.attempt != failure.attempt:
        return step
    if failure.retryable and _attempts_now(step) < plan.attempts:
        due_at = now + pause_after(_attempts_now(step))
        return _with(step, status=StepStatus.PENDING, due_at=due_at, reason=failure.reason)
    return _with(step, status=StepStatus.FAILED, due_at=None, finished_at=now, reason=failure.reason)


def at_work(step: Step, plan: CardStep, attempt: int, now: datetime) -> Step:
    """The step whose role has begun to work: from now on its own limit counts."""
    if step.status is not StepStatus.RUNNING or step.attempt != attempt:
        return step
    return _with(step, due_at=now + timedelta(seconds=plan.timeout_s))


def with_clock_held(step: Step, held: timedelta) -> Step:
    """The step after a time in which its clock stood still."""
    is_timed = step.status in (StepStatus.RUNNING, StepStatus.PENDING_STORAGE)
    return _with(step, due_at=step.due_at + held) if is_timed and step.due_at is not None else step


def timeout_failure(run_id: str, step: Step, plan: CardStep) -> StepFailed:
    """The failure of an attempt that exceeded its time."""
    return StepFailed(
        run_id=run_id,
        step_id=step.step_id,
        attempt=step.attempt,
        retryable=_attempts_now(step) < plan.attempts,
        reason=f"no result within {plan.timeout_s:g} s of work",
    )


def with_registered_artifact(step: Step, artifact: ArtifactRef, now: datetime) -> Step:
    """The step once storage has the artifact that it waits for, or that came too late for it.

    The same id with other bytes is not that artifact.
    """
    if step.status not in (StepStatus.PENDING_STORAGE, StepStatus.FAILED) or not _same(step.artifact, artifact):
        return step
    return _with(step, status=StepStatus.COMPLETED, finished_at=now, due_at=None, reason="")


def with_missing_artifact(step: Step, missing_after_s: float, now: datetime) -> Step:
    """The step whose artifact has not come: failed, until the artifact comes after all, or the step is tried again."""
    reason = f"its artifact was not registered within {missing_after_s:g} s"
    return _with(step, status=StepStatus.FAILED, due_at=None, finished_at=now, reason=reason)


def to_be_made(step: Step, *, is_anew: bool, in_loop: bool = False) -> Step:
    """The step before its next attempt, which has all its tries; made anew, it supersedes the output that there is."""
    is_made = step.status is StepStatus.COMPLETED
    # A gate that is asked once more asks another question; one that was cancelled has asked, too.
    has_asked = step.approved is not None or (step.attempt == 0 and step.started_at is not None)
    is_anew = is_anew or step.artifact is not None or has_asked
    return _with(
        step,
        status=StepStatus.PENDING,
        attempts_before=step.attempt,
        round=step.round + is_anew,
        # Those of a loop are counted from when a person has wanted it.
        rounds_before=step.round if is_anew and not in_loop and step.of is None else step.rounds_before,
        before=(step.artifact or step.before) if is_made else step.before,
        started_at=None,
        artifact=None,
        context=None,
        spent_before=step.spent,
        by=None,
        approved=None,
        due_at=None,
        finished_at=None,
        reason="",
    )


def is_wanted_again(step: Step) -> bool:
    """Whether a person has once asked for this step to be made again; a loop goes round without being asked."""
    if step.of is not None:
        return step.attempts_before > 0
    return (step.attempts_before > 0 and step.round == step.rounds_before + 1) or step.rounds_before > 0


def without_result(step: Step) -> Step:
    """A part of a fan-out that is made anew with other parts: no attempt counts any more."""
    counts = step.status in (StepStatus.PENDING, StepStatus.RUNNING, StepStatus.PENDING_STORAGE, StepStatus.FAILED)
    status = StepStatus.CANCELLED if counts else step.status
    return _with(step, status=status, attempts_before=step.attempt, due_at=None)


def with_output_of(step: Step, artifact: ArtifactRef, context: AIContext | None, by: Identity, now: datetime) -> Step:
    """The step with an output that a person has put in its place; no attempt counts any more."""
    changes = {"status": StepStatus.COMPLETED, "attempts_before": step.attempt, "artifact": artifact, "by": by}
    return _with(step, **changes, context=context, spent_before=step.spent, due_at=None, finished_at=now, reason="")


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
    if step.attempt != ending.attempt or ending.attempt <= step.attempts_before:
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


def _attempts_now(step: Step) -> int:
    return step.attempt - step.attempts_before


def _same(expected: ArtifactRef | None, artifact: ArtifactRef) -> bool:
    return expected is not None and (expected.artifact_id, expected.sha256) == (artifact.artifact_id, artifact.sha256)
