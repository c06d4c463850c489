"""Graph of a card: what each step needs, what depends on it, which steps a loop repeats; drawn as Mermaid."""

from collections.abc import Collection, Iterator, Mapping

from agents.processes.conditions import PARAMS, Condition
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.runs import Run, Step, StepStatus


def plan_of(card: Card, step: Step) -> CardStep:
    """The step of the card that a row of the run is."""
    name = step.of or step.step_id
    return next(plan for plan in card.steps if plan.id == name)


def asked_by(plan: CardStep, *, to_begin: bool = False) -> set[tuple[str, str]]:
    """Steps and values that a step asks about, apart from parameters; or those that it asks `to_begin`.

    Raises InvalidCondition.
    """
    texts = [plan.when, None if to_begin or plan.repeat is None else plan.repeat.until]
    found = {reference for text in texts if text for reference in Condition.parse(text).references}
    # Of another fan-out the parts are inputs.
    if plan.for_each is not None and plan.for_each.endswith(".items"):
        found.add((plan.for_each.removesuffix(".items"), "items"))
    return {(name, value) for name, value in found if name != PARAMS}


def values_asked(card: Card, step_id: str) -> tuple[str, ...]:
    """Values that a role has to tell with its output: those that the card asks about."""
    values = {value for plan in card.steps for name, value in asked_by(plan) if name == step_id}
    asked = {"items" if value == "count" else value for value in values} & {"satisfied", "items", "answer"}
    return tuple(sorted(asked))


def loops_of(card: Card) -> dict[str, set[str]]:
    """Steps of each loop, by the step that has `repeat`: those on a way from `back_to` to it, both ends included."""
    loops = {}
    for plan in card.steps:
        if plan.repeat is not None:
            start = plan.repeat.back_to
            reached = {start, *made_of(card, {start})}
            loops[plan.id] = {name for name in reached if name == plan.id or plan.id in made_of(card, {name})}
    return loops


def needs_of(card: Card, plan: CardStep) -> set[str]:
    """Steps that must be settled before a step begins; who uses a part of a loop waits for its end."""
    needed = {*plan.inputs} - {BRIEF}
    needed |= {name for name, _value in asked_by(plan, to_begin=True)}
    ends = {end for end, body in loops_of(card).items() if plan.id not in body and needed & body}
    return needed | ends


def made_of(card: Card, step_ids: Collection[str]) -> set[str]:
    """Steps whose making depends on the given ones, by inputs or by what they ask."""
    reached: set[str] = set()
    new = set(step_ids)
    while new:
        new = {plan.id for plan in card.steps if new & _direct(plan)} - reached
        reached |= new
    return reached


def _direct(plan: CardStep) -> set[str]:
    return {*plan.inputs, *(name for name, _value in asked_by(plan, to_begin=True))}


_SHAPES = {"approve": ('{{"', '"}}'), "wait": ('(["', '"])'), "for_each": ('[["', '"]]')}
_CLASSES = {
    StepStatus.COMPLETED: "done",
    StepStatus.RUNNING: "active",
    StepStatus.WAITING: "asks",
    StepStatus.PENDING_STORAGE: "asks",
    StepStatus.FAILED: "failed",
    StepStatus.CANCELLED: "off",
    StepStatus.SKIPPED: "off",
}


def as_mermaid(card: Card, run: Run | None = None) -> str:
    """The graph from left to right; a dotted edge is a condition, a thick one goes back to the beginning of a loop."""
    nodes = {step.id: f"s{number}" for number, step in enumerate(card.steps)} | {BRIEF: BRIEF}
    rows = {} if run is None else {step.step_id: step for step in run.steps}
    lines = ["graph LR", f'    {BRIEF}(["{BRIEF}"])']
    for step in card.steps:
        lines += (f"    {line}" for line in _step_lines(step, nodes, run, rows.get(step.id)))
    return "\n".join(lines) + "\n"


def _step_lines(step: CardStep, nodes: Mapping[str, str], run: Run | None, row: Step | None) -> Iterator[str]:
    node = nodes[step.id]
    kind = next((kind for kind in _SHAPES if getattr(step, kind) is not None), "")
    opening, closing = _SHAPES.get(kind, ('["', '"]'))
    yield f"{node}{opening}{_label(step, run, row)}{closing}"
    for name in step.inputs:
        yield f"{nodes[name]} --> {node}"
    for name in sorted({name for name, _value in asked_by(step, to_begin=True)} - {*step.inputs}):
        yield f"{nodes[name]} -.-> {node}"
    if step.repeat is not None:
        told = _escaped(f"until {step.repeat.until}, at most {step.repeat.max_rounds}")
        yield f'{node} ==>|"{told}"| {nodes[step.repeat.back_to]}'
    if row is not None and row.status in _CLASSES:
        yield f"class {node} mb-{_CLASSES[row.status]}"


def _label(step: CardStep, run: Run | None, row: Step | None) -> str:
    parts = [step.id, step.role if step.role != step.id else "", f"if {step.when}" if step.when else ""]
    parts.append(f"for each of {step.for_each}" if step.for_each else "")
    parts.append(f"wait {step.wait}" if step.wait else "")
    if row is not None and row.round > 1:
        parts.append(f"round {row.round}")
    if run is not None and step.for_each:
        of = [
            each for each in run.steps if each.of == step.id and row is not None and each.rounds_before == row.round - 1
        ]
        parts.append(f"{sum(each.status is StepStatus.COMPLETED for each in of)}/{len(of)}")
    return "<br>".join(_escaped(part) for part in parts if part)


def _escaped(text: str) -> str:
    """Text within quotes of Mermaid, which takes entities."""
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
