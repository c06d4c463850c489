"""Process Cards, from YAML."""

from collections.abc import Collection
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from agents.card_rules import BadCard, problems_of
from agents.located_yaml import Located
from agents.yaml_problems import Problem, read_document, said_by_schema
from bus_schema.process import Card, StartProcess

_MAX_BYTES = 256 * 1024


class UnknownCard(LookupError):
    """There is no such card; name a shipped one or give the path of a YAML file."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no card {name!r}; shipped are {', '.join(card_names())}, or give a YAML file")


def card_names() -> tuple[str, ...]:
    """The cards that come with MindBus."""
    files = (resources.files("config") / "cards").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


def shipped_card(name: str, roles: Collection[str]) -> Card:
    """A card that comes with MindBus. Raises UnknownCard, BadCard."""
    if name not in card_names():
        raise UnknownCard(name)
    file = resources.files("config") / "cards" / f"{name}.yaml"
    return parse_card(file.read_bytes(), f"config/cards/{name}.yaml", roles)


def card_of(command: StartProcess, roles: Collection[str]) -> Card:
    """The card that a start means: its own, or a shipped one. Raises UnknownCard, BadCard."""
    if command.card is None:
        return shipped_card(command.card_name or "", roles)
    require_runnable(command.card, roles)
    return command.card


def card_from_file(path: Path, roles: Collection[str]) -> Card:
    """A user's own card. Raises UnknownCard, BadCard."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise UnknownCard(str(path)) from None
    except OSError as unreadable:
        raise BadCard([Problem(str(path), 1, "file", f"cannot be read: {unreadable.strerror}")]) from unreadable
    return parse_card(text, str(path), roles)


def parse_card(text: bytes, source: str, roles: Collection[str]) -> Card:
    """Read a card from YAML; `source` is what its errors call it. Raises BadCard with every problem found."""
    document = _document(text, source)
    try:
        card = Card.model_validate(document.value)
    except ValidationError as invalid:
        raise BadCard(said_by_schema(invalid, source, document.line_of, Card)) from invalid
    require_runnable(card, roles, source, document)
    return card


def require_runnable(card: Card, roles: Collection[str], source: str = "card", document: Located | None = None) -> None:
    """Check what a schema cannot: that the steps fit together. Raises BadCard with every problem found."""
    wrong = [
        Problem(source, document.line_of(place) if document else None, place, message)
        for place, message in problems_of(card, roles)
    ]
    if wrong:
        raise BadCard(wrong)


def _document(text: bytes, source: str) -> Located:
    if len(text) > _MAX_BYTES:
        raise BadCard(
            [Problem(source, 1, "file", f"is larger than {_MAX_BYTES // 1024} KiB; a card is a page of text")]
        )
    document = read_document(text, source, BadCard)
    if not isinstance(document.value, dict):
        message = "a card is a mapping that starts with `name:`, `result:` and `steps:`"
        raise BadCard([Problem(source, 1, "file", message)])
    return document
