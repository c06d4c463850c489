"""Process Cards, from YAML."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from agents.configuration.validation import (
    InvalidFile,
    LocatedDocument,
    UnknownFile,
    YamlPath,
    YamlProblem,
    load_shipped,
    read_document,
    suggestion,
    validate_document,
)
from bus_schema.cards import BRIEF, Card, CardStep
from bus_schema.process import StartProcess
from config.shipped import shipped_names
from mindbus.errors import Rejected

_MAX_BYTES = 256 * 1024


class UnknownCard(UnknownFile):
    """There is no such card; name a shipped one or give the path of a YAML file."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        Rejected.__init__(
            self, message=f"there is no card {name!r}; shipped are {', '.join(known)}, or give a YAML file"
        )


card_names = partial(shipped_names, "cards")


def shipped_card(name: str, roles: Collection[str]) -> Card:
    """A card that comes with MindBus. Raises UnknownCard, InvalidCard."""
    return load_shipped("cards", name, partial(parse_card, roles=roles), UnknownCard)


def card_of(command: StartProcess, roles: Collection[str]) -> Card:
    """The card that a start means: its own, or a shipped one. Raises UnknownCard, InvalidCard."""
    if command.card is None:
        return shipped_card(command.card_name or "", roles)
    require_runnable(command.card, roles)
    return command.card


def card_from_file(path: Path, roles: Collection[str]) -> Card:
    """A user's own card. Raises UnknownCard, InvalidCard."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise UnknownCard(str(path), card_names()) from None
    except OSError as error:
        raise InvalidCard([YamlProblem(str(path), 1, "file", f"cannot be read: {error.strerror}")]) from error
    return parse_card(text, str(path), roles)


def parse_card(text: bytes, source: str, roles: Collection[str]) -> Card:
    """Read a card from YAML; errors name it `source`. Raises InvalidCard with every problem."""
    document = _document(text, source)
    card = validate_document(document, source, Card, InvalidCard)
    require_runnable(card, roles, source, document)
    return card


def require_runnable(
    card: Card, roles: Collection[str], source: str = "card", document: LocatedDocument | None = None
) -> None:
    """Check what a schema cannot: that the steps fit together. Raises InvalidCard with every problem found."""
    wrong = [
        YamlProblem(source, document.line_of(place) if document else None, place, message)
        for place, message in problems_of(card, roles)
    ]
    if wrong:
        raise InvalidCard(wrong)


def _document(text: bytes, source: str) -> LocatedDocument:
    if len(text) > _MAX_BYTES:
        raise InvalidCard(
            [YamlProblem(source, 1, "file", f"is larger than {_MAX_BYTES // 1024} KiB; a card is a page of text")]
        )
    document = read_document(text, source, InvalidCard)
    if not isinstance(document.value, dict):
        message = "a card is a mapping that starts with `name:`, `result:` and `steps:`"
        raise InvalidCard([YamlProblem(source, 1, "file", message)])
    return document


class InvalidCard(InvalidFile):
    """The card cannot be run; each line says where, what is wrong, what to do."""


def problems_of(card: Card, roles: Collection[str]) -> Iterator[tuple[YamlPath, str]]:
    """Everything that keeps a well-formed card from running, with its place."""
    ids = [step.id for step in card.steps]
    for number, step in enumerate(card.steps):
        for place, message in _step_problems(step, ids, roles):
            yield ("steps", number, *place), message
        if step.id in ids[:number]:
            yield ("steps", number, "id"), f"two steps are called {step.id!r}; rename one"
    yield from _result_problems(card, ids)
    yield from _cycles(card)


def _step_problems(step: CardStep, ids: Collection[str], roles: Collection[str]) -> Iterator[tuple[YamlPath, str]]:
    if step.id == BRIEF:
        yield ("id",), f"{BRIEF!r} is the name of what the run was started with; call the step something else"
    if step.role not in roles:
        yield ("role",), f"there is no role {step.role!r}{suggestion(step.role, roles)}"
    if not step.inputs:
        yield ("inputs",), f"names nothing to work on; leave the field out for [{BRIEF}]"
    known = {BRIEF, *ids}
    for number, name in enumerate(step.inputs):
        if name not in known:
            yield ("inputs", number), f"no step is called {name!r}{suggestion(name, known)}"
        if name in step.inputs[:number]:
            yield ("inputs", number), f"{name!r} is listed twice; keep one"


def _result_problems(card: Card, ids: Collection[str]) -> Iterator[tuple[YamlPath, str]]:
    if card.result not in ids:
        yield ("result",), f"no step is called {card.result!r}{suggestion(card.result, ids)}"
    for number, step in enumerate(card.steps):
        if step.id == card.result and not step.critical:
            yield ("steps", number, "critical"), "this step makes the result, so it is critical; remove the field"


def _cycles(card: Card) -> Iterator[tuple[YamlPath, str]]:
    ids = [step.id for step in card.steps]
    needs = {step.id: [name for name in step.inputs if name in ids] for step in card.steps}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        around = " → ".join(error.args[1])
        yield ("steps", ids.index(error.args[1][0]), "inputs"), f"these steps wait for each other: {around}; cut one"
