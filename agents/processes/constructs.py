"""Constructs of a card beyond plain steps: what is skipped, asked, waited for, fanned out, gathered, repeated.

Each is a move: a pure function from the run to the run after it. `settle` makes the first that is due until none is.
"""

from datetime import datetime, timedelta

from agents.processes.conditions import PARAMS, Condition, Lookup, Value
from agents.processes.graph import loops_of, needs_of, plan_of
from agents.processes.parameters import value_of
from agents.processes.steps import to_be_made, with_step
from bus_schema.artifacts import ArtifactRef
from bus_schema.cards import BRIEF, MOST_ITEMS, Card, CardStep
from bus_schema.identities import user_of
from bus_schema.ids import derived
from bus_schema.messages import Event, Link
from bus_schema.notification import NotificationGenerated
from bus_schema.run_control import ApprovalRequested
from bus_schema.runs import Run, Step, StepStatus

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_OVER = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED})
# A step that may be missing holds nobody up: who needs it goes on with what is there.
_SETTLED = _OVER | {StepStatus.FAILED, StepStatus.PENDING_STORAGE}

Move = tuple[Run, tuple[Event, ...]]


def settle(card: Card, run: Run, now: datetime) -> Move:
    """The run after every move that is due; of a card of plain steps it is as it was."""
    told: tuple[Event, ...] = ()
    if all(plan.is_plain for plan in card.steps):
        return run, told
    while (move := next((each for step in run.steps if (each := _move(card, run, step, now))), None)) is not None:
        run, told = move[0], (*told, *move[1])
    return run, told


def is_ready(card: Card, run: Run, step: Step, now: datetime) -> bool:
    """Whether a step may begin: nobody has begun it, its pause is over, what it needs is settled."""
    if step.status is not StepStatus.PENDING or (step.due_at is not None and step.due_at > now):
        return False
    needed = needs_of(card, plan_of(card, step))
    return all(_is_settled(each) for each in run.steps if each.step_id in needed)


def rounds_left(card: Card, step: Step) -> bool:
    """Whether a loop that ends with this step may go round once more."""
    repeat = plan_of(card, step).repeat
    return repeat is not None and step.round - step.rounds_before < repeat.max_rounds


def parts_of(run: Run, step: Step) -> list[Step]:
    """Steps that a fan-out has been made into, in its present round."""
    return [each for each in run.steps if each.of == step.step_id and each.rounds_before == step.round - 1]


def _is_settled(step: Step) -> bool:
    return step.status in (_OVER if step.critical else _SETTLED)


def _move(card: Card, run: Run, step: Step, now: datetime) -> Move | None:
    if step.of is not None:
        return None
    plan = plan_of(card, step)
    if step.status is StepStatus.COMPLETED and plan.repeat and rounds_left(card, step):
        is_done = Condition.parse(plan.repeat.until).holds(_lookup(card, run))
        return None if is_done else (_next_round(card, run, step), ())
    if step.status is StepStatus.RUNNING and plan.for_each and all(map(_is_settled, parts_of(run, step))):
        return with_step(run, _ended(step, StepStatus.COMPLETED, now)), ()
    return _beginning(card, run, step, now) if is_ready(card, run, step, now) else None


def _beginning(card: Card, run: Run, step: Step, now: datetime) -> Move | None:
    """The beginning of a step that is not merely sent to its role."""
    plan = plan_of(card, step)
    if plan.when and not Condition.parse(plan.when).holds(_lookup(card, run)):
        return with_step(run, _ended(step, StepStatus.SKIPPED, now, f"not so: {plan.when}")), ()
    if _has_lost_its_inputs(run, plan):
        return with_step(run, _ended(step, StepStatus.SKIPPED, now, "what it works on was skipped")), ()
    waiting = step.model_copy(update={"status": StepStatus.WAITING, "started_at": now})
    if plan.approve:
        asked = ApprovalRequested(
            run_id=run.run_id, step_id=step.step_id, question=plan.approve, artifacts=_outputs(run, plan)
        )
        context = f"The run {run.run_id} of {run.card_name} waits for an answer: approve or reject {step.step_id}."
        told = notifications(run, plan.approve, f"{step.step_id}/{step.round}", context, asked.artifacts)
        return with_step(run, waiting), (asked, *told)
    if plan.wait:
        return with_step(run, waiting.model_copy(update={"due_at": now + duration(plan.wait)})), ()
    return (_fanned_out(run, step, plan, now), ()) if plan.for_each else None


def notifications(
    run: Run, message: str, about: str, context: str = "", artifacts: tuple[ArtifactRef, ...] = ()
) -> tuple[Event, ...]:
    """A message to whoever has started the run, where that is a person."""
    person = user_of(run.started_by)
    if person is None:
        return ()
    told = NotificationGenerated(
        notification_id=f"ntf_{derived(run.run_id, about)}",
        agent="orchestrator",
        to_user=person,
        message=message,
        context=context,
        about=f"{run.run_id}/{about}",
        links=tuple(Link(kind="artifact", id=artifact.artifact_id) for artifact in artifacts),
    )
    return (told,)


def duration(text: str) -> timedelta:
    """A time such as `10m`."""
    return timedelta(**{_UNITS[text[-1]]: int(text[:-1])})


def _fanned_out(run: Run, step: Step, plan: CardStep, now: datetime) -> Run:
    """The run with a part of the step for each item; a part of a later round has that in its id."""
    items = _items(run, plan)
    if len(items) > MOST_ITEMS:
        too_many = f"{plan.for_each} has more than {MOST_ITEMS} items; ask for fewer"
        return with_step(run, _ended(step, StepStatus.FAILED, now, too_many))
    making = f"{step.round}-" if step.round > 1 else ""
    parts = tuple(
        Step(
            step_id=f"{step.step_id}-{making}{number}",
            role=step.role,
            critical=step.critical,
            of=step.step_id,
            item=item,
            round=step.round,
            rounds_before=step.round - 1,
        )
        for number, item in enumerate(items, 1)
    )
    begun = with_step(run, step.model_copy(update={"status": StepStatus.RUNNING, "started_at": now}))
    return begun.model_copy(update={"steps": (*begun.steps, *parts)})


def _items(run: Run, plan: CardStep) -> tuple[str, ...]:
    """Items of a fan-out; an input of the run, or an output of another fan-out's part, is named by its artifact."""
    if plan.for_each == BRIEF:
        return tuple(artifact.artifact_id for artifact in run.inputs)
    source = next(step for step in run.steps if plan.for_each in (step.step_id, f"{step.step_id}.items"))
    if source.step_id == plan.for_each:
        made = (part for part in parts_of(run, source) if part.status is StepStatus.COMPLETED)
        return tuple(part.artifact.artifact_id for part in made if part.artifact is not None)
    items = source.context.values.get("items", ()) if source.context else ()
    return items if isinstance(items, tuple) else ()


def _next_round(card: Card, run: Run, end: Step) -> Run:
    body = loops_of(card)[end.step_id]
    steps = tuple(to_be_made(step, is_anew=True, in_loop=True) if step.step_id in body else step for step in run.steps)
    return run.model_copy(update={"steps": steps})


def _ended(step: Step, status: StepStatus, now: datetime, reason: str = "") -> Step:
    return step.model_copy(update={"status": status, "finished_at": now, "due_at": None, "reason": reason})


def _has_lost_its_inputs(run: Run, plan: CardStep) -> bool:
    of_inputs = [step.status for step in run.steps if step.step_id in plan.inputs]
    return BRIEF not in plan.inputs and bool(of_inputs) and set(of_inputs) == {StepStatus.SKIPPED}


def _outputs(run: Run, plan: CardStep) -> tuple[ArtifactRef, ...]:
    inputs = (step.artifact for step in run.steps if step.step_id in plan.inputs)
    return tuple(artifact for artifact in inputs if artifact is not None)


def _lookup(card: Card, run: Run) -> Lookup:
    steps = {step.step_id: step for step in run.steps}

    def look(name: str, value: str) -> Value:
        if name == PARAMS:
            return value_of(card, run.params, value)
        step = steps[name]
        match value:
            case "approved":
                return step.approved
            case "made":
                return step.status is StepStatus.COMPLETED
            case "count":
                return len(_value(step, "items") or ())  # type: ignore[arg-type]  # a list
            case _:
                return _value(step, value)

    return look


def _value(step: Step, name: str) -> Value:
    if step.status is not StepStatus.COMPLETED or step.context is None:
        return None
    return step.context.values.get(name)
