"""Sub-cards: a step that is another card is written out as that card's steps, before anything runs."""

from collections.abc import Callable, Mapping
from typing import Any

from agents.processes.conditions import renamed
from bus_schema.cards import BRIEF, Card, CardStep

_DEEPEST = 5
Load = Callable[[str], Card]


def expanded(card: Card, load: Load, depth: int = 0) -> Card:
    """The card with the steps of its sub-cards in the place of each step that names one.

    The step that makes a sub-card's result has the name of the step that it stands for, the others that name before
    their own. Raises whatever `load` raises, ValueError where cards contain each other.
    """
    if all(step.card is None for step in card.steps):
        return card
    if depth == _DEEPEST:
        raise ValueError(f"cards are nested deeper than {_DEEPEST}; do they contain each other?")
    steps: list[CardStep] = []
    parameters = dict(card.parameters)
    for step in card.steps:
        if step.card is None:
            steps.append(step)
            continue
        inner = expanded(load(step.card), load, depth + 1)
        parameters = {**inner.parameters, **parameters} if card.parameters or inner.parameters else parameters
        steps += _written_out(step, inner)
    return card.model_copy(update={"steps": tuple(steps), "parameters": parameters})


def _written_out(outer: CardStep, inner: Card) -> list[CardStep]:
    names = {step.id: outer.id if step.id == inner.result else f"{outer.id}-{step.id}" for step in inner.steps}
    return [_renamed(step, outer, names, is_result=step.id == inner.result) for step in inner.steps]


def _renamed(step: CardStep, outer: CardStep, names: Mapping[str, str], *, is_result: bool) -> CardStep:
    inputs: dict[str, None] = {}
    for name in step.inputs:
        inputs |= dict.fromkeys(outer.inputs if name == BRIEF else (names[name],))
    conditions = [text for text in (outer.when, step.when and renamed(step.when, names)) if text]
    changes: dict[str, Any] = {
        "id": names[step.id],
        "inputs": tuple(inputs),
        "critical": step.critical and outer.critical,
        "when": " and ".join(f"({text})" for text in conditions)
        if len(conditions) > 1
        else next(iter(conditions), None),
    }
    if step.repeat is not None:
        back_to, until = names[step.repeat.back_to], renamed(step.repeat.until, names)
        changes["repeat"] = step.repeat.model_copy(update={"back_to": back_to, "until": until})
    if is_result and outer.repeat is not None:
        changes["repeat"] = outer.repeat
    if step.for_each is not None and step.for_each != BRIEF:
        changes["for_each"] = renamed(step.for_each, names)
    return step.model_copy(update=changes)
