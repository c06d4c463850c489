"""Orders: what the steps that are due are sent, and with which inputs."""

from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from agents.processes.steps import next_attempt, with_step
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.process import ExecuteStep, NamedInput
from bus_schema.runs import Run, Step, StepStatus

# A step that may be missing holds nobody up: who needs it goes on with what is there.
_SETTLED = frozenset({StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.PENDING_STORAGE})


def begin_steps(card: Card, run: Run, now: datetime) -> tuple[Run, tuple[ExecuteStep, ...]]:
    """Begin every step whose inputs are there and whose pause is over."""
    orders = []
    for plan, step in zip(card.steps, run.steps, strict=True):
        if step.status is StepStatus.PENDING and _is_due(step, now) and _has_its_inputs(plan, run):
            attempt = next_attempt(step, plan, now)
            orders.append(_order(plan, run, attempt, now))
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


def _order(plan: CardStep, run: Run, step: Step, now: datetime) -> ExecuteStep:
    return ExecuteStep(
        run_id=run.run_id,
        step_id=plan.id,
        attempt=step.attempt,
        produces=plan.produces,
        instructions=plan.instructions,
        inputs=_inputs(plan, run),
        params=run.params,
        deadline=now + timedelta(seconds=plan.timeout_s),
        started_by=run.started_by,
        memory=plan.memory,
        language=plan.language,
        relevance=plan.relevance,
        **_anew(step),
    )


def _anew(step: Step) -> dict[str, Any]:
    """Fields of an order that makes an output anew; others are as they were, and understood by every worker."""
    given = {"round": step.round if step.round > 1 else None, "supersedes": step.before}
    return {name: value for name, value in given.items() if value is not None}


def _inputs(plan: CardStep, run: Run) -> tuple[NamedInput, ...]:
    brief = tuple(NamedInput(name=BRIEF, artifact=artifact) for artifact in run.inputs)
    made = {step.step_id: step.artifact for step in run.steps if step.status is StepStatus.COMPLETED}
    given = {name: (NamedInput(name=name, artifact=each),) for name, each in made.items() if each} | {BRIEF: brief}
    inputs = tuple(chain.from_iterable(given.get(name, ()) for name in plan.inputs))
    # A step whose every input may be missing still works from what the run was started with.
    return inputs or brief
