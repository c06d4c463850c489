"""What makes a Process Card runnable, said so that its writer can put it right."""

from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter

from agents.located_yaml import Place
from agents.yaml_problems import BadFile, nearest
from bus_schema.process import BRIEF, Card, CardStep


class BadCard(BadFile):
    """The card cannot be run; each line says where, what is wrong, what to do."""


def problems_of(card: Card, roles: Collection[str]) -> Iterator[tuple[Place, str]]:
    """Everything that keeps a well-formed card from running, with its place."""
    ids = [step.id for step in card.steps]
    for number, step in enumerate(card.steps):
        for place, message in _step_problems(step, ids, roles):
            yield ("steps", number, *place), message
        if step.id in ids[:number]:
            yield ("steps", number, "id"), f"two steps are called {step.id!r}; rename one"
    yield from _result_problems(card, ids)
    yield from _cycles(card)


def _step_problems(step: CardStep, ids: Collection[str], roles: Collection[str]) -> Iterator[tuple[Place, str]]:
    if step.id == BRIEF:
        yield ("id",), f"{BRIEF!r} is the name of what the run was started with; call the step something else"
    if step.role not in roles:
        yield ("role",), f"there is no role {step.role!r}{nearest(step.role, roles)}"
    if not step.inputs:
        yield ("inputs",), f"names nothing to work on; leave the field out for [{BRIEF}]"
    known = {BRIEF, *ids}
    for number, name in enumerate(step.inputs):
        if name not in known:
            yield ("inputs", number), f"no step is called {name!r}{nearest(name, known)}"
        if name in step.inputs[:number]:
            yield ("inputs", number), f"{name!r} is listed twice; keep one"


def _result_problems(card: Card, ids: Collection[str]) -> Iterator[tuple[Place, str]]:
    if card.result not in ids:
        yield ("result",), f"no step is called {card.result!r}{nearest(card.result, ids)}"
    for number, step in enumerate(card.steps):
        if step.id == card.result and not step.critical:
            yield ("steps", number, "critical"), "this step makes the result, so it is critical; remove the field"


def _cycles(card: Card) -> Iterator[tuple[Place, str]]:
    ids = [step.id for step in card.steps]
    needs = {step.id: [name for name in step.inputs if name in ids] for step in card.steps}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as cycle:
        around = " → ".join(cycle.args[1])
        yield ("steps", ids.index(cycle.args[1][0]), "inputs"), f"these steps wait for each other: {around}; cut one"
