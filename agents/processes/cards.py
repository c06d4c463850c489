"""Process Cards, from YAML; a step that is another card is written out as that card's steps."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from agents.configuration.validation import (
    InvalidFile,
    LocatedDocument,
    UnknownFile,
    YamlPath,
    YamlProblem,
    load_shipped,
    read_document,
    validate_document,
)
from agents.processes.card_checks import Roles, problems_of
from agents.processes.conditions import renamed
from bus_schema.cards import BRIEF, Card, CardHead, Cards, CardStep
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


def shipped_card(name: str, roles: Roles) -> Card:
    """A card that comes with MindBus, sub-cards written out. Raises UnknownCard, InvalidCard."""
    return load_shipped("cards", name, partial(parse_card, roles=roles), UnknownCard)


def card_heads(roles: Roles) -> Cards:
    """All cards that can be started by name, also those that cannot be read, with what is wrong."""
    return Cards(items=tuple(_head_of(name, roles) for name in card_names()))


def _head_of(name: str, roles: Roles) -> CardHead:
    try:
        card = shipped_card(name, roles)
    except (UnknownCard, InvalidCard) as problem:
        return CardHead(name=name, problem=str(problem))
    return CardHead(name=name, description=card.description, parameters=card.parameters, public=card.public)


def card_of(command: StartProcess, roles: Roles) -> Card:
    """The card that a start means: its own, or a shipped one. Raises UnknownCard, InvalidCard."""
    if command.card is None:
        return shipped_card(command.card_name or "", roles)
    return runnable(command.card, roles)


def card_from_file(path: Path, roles: Roles) -> Card:
    """A user's own card. Raises UnknownCard, InvalidCard."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise UnknownCard(str(path), card_names()) from None
    except OSError as error:
        raise InvalidCard([YamlProblem(str(path), 1, "file", f"cannot be read: {error.strerror}")]) from error
    return parse_card(text, str(path), roles)


def parse_card(text: bytes, source: str, roles: Roles) -> Card:
    """Read a card from YAML; errors name it `source`. Raises InvalidCard with every problem."""
    document = _document(text, source)
    return runnable(validate_document(document, source, Card, InvalidCard), roles, source, document)


def runnable(card: Card, roles: Roles, source: str = "card", document: LocatedDocument | None = None) -> Card:
    """The card with its sub-cards written out, once all that a schema cannot know is checked: that the steps fit.

    Raises InvalidCard with every problem found.
    """

    def refuse(problems: Iterable[tuple[YamlPath, str]]) -> None:
        wrong = [
            YamlProblem(source, document.line_of(place) if document else None, place, message)
            for place, message in problems
        ]
        if wrong:
            raise InvalidCard(wrong)

    refuse(problems_of(card, roles))
    try:
        whole = expanded(card, _unexpanded)
    except (UnknownFile, ValueError) as error:
        number = next(number for number, step in enumerate(card.steps) if step.card is not None)
        place = ("steps", number, "card")
        line = None if document is None else document.line_of(place)
        raise InvalidCard([YamlProblem(source, line, place, str(error))]) from error
    if whole is card:
        return card
    # There are more steps, and conditions are longer than they were.
    whole = validate_document(LocatedDocument(whole.model_dump(), {}), source, Card, InvalidCard)
    refuse((("steps",), message) for _place, message in problems_of(whole, roles))
    return whole


def _unexpanded(name: str) -> Card:
    """A card that another one contains, as it stands in its file."""

    def parse(text: bytes, where: str) -> Card:
        return validate_document(_document(text, where), where, Card, InvalidCard)

    return load_shipped("cards", name, parse, UnknownCard)


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


_DEEPEST = 5
_LONGEST_ID = 64
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
    if too_long := next((name for name in names.values() if len(name) > _LONGEST_ID), None):
        raise ValueError(f"its steps get names such as {too_long!r}, of over {_LONGEST_ID} characters; shorten the id")
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
        changes["for_each"] = names.get(step.for_each) or renamed(step.for_each, names)
    return step.model_copy(update=changes)
