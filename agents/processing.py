"""What processing agents have in common: whom they listen to, what they make of it."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from bus_schema.dialogue import DialogueFragment, DialogueMessage, MessageKind
from bus_schema.links import Link
from bus_schema.notification import NotificationGenerated

ItemT = TypeVar("ItemT", bound=BaseModel)

_MOST_KEPT = 8


class Outcome(BaseModel, Generic[ItemT]):
    """What an agent has got out of one fragment."""

    model_config = ConfigDict(frozen=True)
    fragment_id: str
    items: tuple[ItemT, ...] = ()
    notifications: tuple[NotificationGenerated, ...] = ()
    links: tuple[Link, ...] = ()


def heard(fragment: DialogueFragment) -> tuple[DialogueMessage, ...]:
    """What the user said of their own accord: no instructions, no notifications, nothing that an agent has said."""
    return tuple(
        message
        for message in fragment.messages
        if message.role == "user" and message.kind in (MessageKind.NATIVE, MessageKind.RESPONSE) and message.content
    )


def outcome_of(fragment: DialogueFragment, outcomes: Iterable[Outcome[ItemT]]) -> Outcome[ItemT] | None:
    """What was made of a fragment that has come before: it is told again, not thought again."""
    return next((each for each in outcomes if each.fragment_id == fragment.fragment_id), None)


def remembered(outcomes: tuple[Outcome[ItemT], ...], latest: Outcome[ItemT]) -> tuple[Outcome[ItemT], ...]:
    """The last few outcomes, in case that one of their fragments is delivered again."""
    return (*outcomes, latest)[-_MOST_KEPT:]


def linked(kind: str, ids: Iterable[str]) -> tuple[Link, ...]:
    """Pointers to things of one kind, each once."""
    return tuple(Link.model_validate({"kind": kind, "id": each}) for each in dict.fromkeys(ids))
