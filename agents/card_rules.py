"""What makes a Process Card runnable, said so that its writer can put it right."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agents.located_yaml import Place
from bus_schema.process import BRIEF, Card, CardStep

_OUT_OF_RANGE = "{given!r} is out of range; {said}"
_PLAINLY = {
    "missing": "is missing; add it",
    "string_type": "must be text, not {given!r}; put it in quotes",
    "string_pattern_mismatch": "{given!r} has characters that do not fit here; it must match {pattern}",
    "greater_than": _OUT_OF_RANGE,
    "greater_than_equal": _OUT_OF_RANGE,
    "less_than_equal": _OUT_OF_RANGE,
    "finite_number": _OUT_OF_RANGE,
    "too_short": "is empty; list at least one",
    "string_too_short": "is empty; say something",
    "bool_parsing": "must be true or false, not {given!r}",
    "bool_type": "must be true or false, not {given!r}",
    "float_parsing": "must be a number, not {given!r}",
    "float_type": "must be a number, not {given!r}",
    "int_parsing": "must be a whole number, not {given!r}",
    "int_type": "must be a whole number, not {given!r}",
    "int_from_float": "must be a whole number, not {given!r}",
    "tuple_type": "must be a list; write [name, …] or one `- …` a line",
    "model_type": "must be a mapping of fields such as `id:`, `role:`, `instructions:`",
    "model_attributes_type": "must be a mapping of fields such as `id:`, `role:`, `instructions:`",
}


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong; a card that came by message has no lines."""

    source: str
    line: int | None
    place: Place | str
    message: str

    @property
    def field(self) -> str:
        """The field's path, such as `steps[2].inputs[0]`."""
        if isinstance(self.place, str):
            return self.place
        named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.place)
        return named.removeprefix(".") or "card"

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{where}: {self.field}: {self.message}"


class BadCard(ValueError):
    """The card cannot be run; each line says where, what is wrong, what to do."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


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


def said_by_schema(invalid: ValidationError, source: str, line_of: Callable[[Place], int]) -> list[Problem]:
    """The schema's own complaints, in words for people who write cards."""
    return [
        Problem(source, line_of(error["loc"]), error["loc"], _plainly(error))
        for error in invalid.errors(include_url=False)
        # A list whose only items are wrong also counts as too short; its items have been named already.
        if not (error["type"] == "too_short" and error["input"])
    ]


def _step_problems(step: CardStep, ids: Collection[str], roles: Collection[str]) -> Iterator[tuple[Place, str]]:
    if step.id == BRIEF:
        yield ("id",), f"{BRIEF!r} is the name of what the run was started with; call the step something else"
    if step.role not in roles:
        yield ("role",), f"there is no role {step.role!r}{_nearest(step.role, roles)}"
    if not step.inputs:
        yield ("inputs",), f"names nothing to work on; leave the field out for [{BRIEF}]"
    known = {BRIEF, *ids}
    for number, name in enumerate(step.inputs):
        if name not in known:
            yield ("inputs", number), f"no step is called {name!r}{_nearest(name, known)}"
        if name in step.inputs[:number]:
            yield ("inputs", number), f"{name!r} is listed twice; keep one"


def _result_problems(card: Card, ids: Collection[str]) -> Iterator[tuple[Place, str]]:
    if card.result not in ids:
        yield ("result",), f"no step is called {card.result!r}{_nearest(card.result, ids)}"
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


def _nearest(word: str, known: Collection[str]) -> str:
    near = get_close_matches(word, known, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ";"
    return f"{meant} known: {', '.join(sorted(set(known)))}"


def _plainly(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        return f"there is no such field{_nearest(str(error['loc'][-1]), _model_at(error['loc']).model_fields)}"
    said = error["msg"].removeprefix("Input ").removeprefix("Value error, ").lower()
    pattern = error.get("ctx", {}).get("pattern")
    return _PLAINLY.get(error["type"], "{said}").format(given=error["input"], said=said, pattern=pattern)


def _model_at(place: tuple[Any, ...]) -> type[BaseModel]:
    return CardStep if len(place) > 2 and place[0] == "steps" else Card
