"""What processing agents have in common."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from bus_schema.links import Link
from bus_schema.notification import NotificationGenerated

ItemT = TypeVar("ItemT", bound=BaseModel)


class Outcome(BaseModel, Generic[ItemT]):
    """What an agent has got out of one fragment."""

    model_config = ConfigDict(frozen=True)
    items: tuple[ItemT, ...] = ()
    notifications: tuple[NotificationGenerated, ...] = ()
    links: tuple[Link, ...] = ()


def linked(kind: str, ids: Iterable[str]) -> tuple[Link, ...]:
    """Pointers to things of one kind, each once."""
    return tuple(Link.model_validate({"kind": kind, "id": each}) for each in dict.fromkeys(ids))
