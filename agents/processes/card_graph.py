"""Cards drawn as Mermaid graphs: steps, gates, timers, loops; of a run also how far each has come."""

from collections.abc import Iterator, Mapping

from agents.processes.graph import asked_by
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.runs import Run, Step, StepStatus

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
