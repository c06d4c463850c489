"""What is said to every owner of data, so that each clears its own."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict

from bus_schema.identities import UserId
from bus_schema.messages import Command


class Removed(BaseModel):
    """What is gone, counted by kind of thing."""

    model_config = ConfigDict(frozen=True)
    counts: dict[str, int]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Self:
        """What there was none of is not mentioned."""
        return cls(counts={kind: count for kind, count in counts.items() if count})


class ClearData(Command[Removed], domain="data", action="clear", service=None):
    """Remove all data of the service, for good."""

    confirm: Literal[True]


class DeleteUser(Command[Removed], domain="data", action="delete_user", service=None):
    """Remove all that the service knows of a user, for good."""

    user_id: UserId
