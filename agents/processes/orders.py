"""Orders: what the steps that are due are sent, and with which inputs."""

from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from agents.processes.constructs import is_ready, parts_of
from agents.processes.graph import plan_of, values_asked
from agents.processes.steps import next_attempt, with_step
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.process import ExecuteStep, NamedInput
from bus_schema.runs import Run, Step, StepStatus


def begin_steps(card: Card, run: Run, now: datetime) -> tuple[Run, tuple[ExecuteStep, ...]]:
    """Begin every step of a role whose inputs are there and whose pause is over."""
    orders = []
    for step in run.steps:
        plan = plan_of(card, step)
        if not is_ordered(plan, step) or not is_ready(card, run, step, now):
            continue
        attempt = next_attempt(step, plan, now)
        orders.append(_order(card, plan, run, attempt, now))
        run = with_step(run, attempt)
    return run, tuple(orders)


def is_ordered(plan: CardStep, step: Step) -> bool:
    """Whether a step is a role's to do: gates, timers and what fans out are not."""
    return plan.role is not None and not (plan.for_each and step.of is None)


def role_of(run: Run, order: ExecuteStep) -> str:
    return next(step.role for step in run.steps if step.step_id == order.step_id)


def _order(card: Card, plan: CardStep, run: Run, step: Step, now: datetime) -> ExecuteStep:
    return ExecuteStep(
        run_id=run.run_id,
        step_id=step.step_id,
        attempt=step.attempt,
        produces=plan.produces or "",
        instructions=plan.instructions,
        inputs=(*_inputs(plan, run, step), *_last_round(card, plan, run)),
        params=run.params,
        deadline=now + timedelta(seconds=plan.queue_timeout_s + plan.timeout_s),
        timeout_s=plan.timeout_s,
        started_by=run.started_by,
        memory=plan.memory,
        language=plan.language,
        relevance=plan.relevance,
        **_besides(card, plan, run, step),
    )


def _besides(card: Card, plan: CardStep, run: Run, step: Step) -> dict[str, Any]:
    """Fields that orders of plain steps do not have, so that every worker understands those."""
    end = _loop_end(card, plan, run)
    given = {
        "round": step.round if step.round > 1 else None,
        "supersedes": step.before,
        "note": end.note if end else "",
        "item": step.item if (plan.for_each or "").endswith(".items") else "",
        "values": () if all(each.is_plain for each in card.steps) else values_asked(card, plan.id),
    }
    return {name: value for name, value in given.items() if value}


def _inputs(plan: CardStep, run: Run, step: Step) -> tuple[NamedInput, ...]:
    def given(name: str) -> tuple[NamedInput, ...]:
        """Inputs of this name; of those that the step fans out over, its part's alone."""
        brief = (NamedInput(name=BRIEF, artifact=each) for each in run.inputs)
        known = tuple(brief) if name == BRIEF else _made(run, name)
        is_one = step.of is not None and name == plan.for_each
        return tuple(each for each in known if not is_one or each.artifact.artifact_id == step.item)

    # A step whose every input may be missing still works from what the run was started with.
    return tuple(chain.from_iterable(map(given, plan.inputs))) or given(BRIEF)


def _made(run: Run, name: str) -> tuple[NamedInput, ...]:
    """The output of a step, or the outputs of its parts."""
    step = next(step for step in run.steps if step.step_id == name)
    made = [each.artifact for each in (step, *parts_of(run, step)) if each.status is StepStatus.COMPLETED]
    return tuple(NamedInput(name=name, artifact=artifact) for artifact in made if artifact is not None)


def _last_round(card: Card, plan: CardStep, run: Run) -> tuple[NamedInput, ...]:
    """For the step that a loop goes back to: its last output, and what was found in it."""
    end = _loop_end(card, plan, run)
    if end is None:
        return ()
    steps = (step for step in run.steps if step.step_id in (plan.id, end.step_id))
    return tuple(NamedInput(name=step.step_id, artifact=step.before) for step in steps if step.before is not None)


def _loop_end(card: Card, plan: CardStep, run: Run) -> Step | None:
    """The step that has sent a loop back to this one, if it is not the first time."""
    ends = [each.id for each in card.steps if each.repeat is not None and each.repeat.back_to == plan.id]
    again = (step for step in run.steps if step.step_id in ends and step.round - step.rounds_before > 1)
    return next(again, None)
