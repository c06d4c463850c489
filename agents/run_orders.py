"""Which steps of a run may begin, with what in their hands."""

from datetime import datetime, timedelta

from agents.run_steps import next_attempt, with_step
from bus_schema.process import BRIEF, Card, CardStep, ExecuteStep, NamedInput, Run, Step, StepStatus

_SETTLED_IF_CRITICAL = frozenset({StepStatus.COMPLETED})
# A step that may be missing holds nobody up: who needs it goes on with what is there.
_SETTLED_IF_NOT = frozenset({StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.PENDING_STORAGE})


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
    """The service that an order goes to."""
    return next(step.role for step in run.steps if step.step_id == order.step_id)


def _is_due(step: Step, now: datetime) -> bool:
    return step.due_at is None or step.due_at <= now


def _has_its_inputs(plan: CardStep, run: Run) -> bool:
    return all(
        step.status in (_SETTLED_IF_CRITICAL if step.critical else _SETTLED_IF_NOT)
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
    )


def _inputs(plan: CardStep, run: Run) -> tuple[NamedInput, ...]:
    brief = tuple(NamedInput(name=BRIEF, artifact=artifact) for artifact in run.inputs)
    made = {step.step_id: step.artifact for step in run.steps if step.status is StepStatus.COMPLETED}
    inputs: list[NamedInput] = []
    for name in plan.inputs:
        artifact = made.get(name)
        if name == BRIEF:
            inputs.extend(brief)
        elif artifact is not None:
            inputs.append(NamedInput(name=name, artifact=artifact))
    # A step whose every input may be missing still works from what the run was started with.
    return tuple(inputs) or brief
