"""Commands that every data-owning service takes: clear everything, delete one user's data."""

from collections.abc import Mapping
from typing import Literal, Self

from bus_schema.identities import UserId
from bus_schema.messages import Command, Value


class Removed(Value):
    """Number of removed items by kind."""

    counts: dict[str, int]

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Self:
        """Build it from counts, leaving out zeros."""
        return cls(counts={kind: count for kind, count in counts.items() if count})


class ClearData(Command[Removed], domain="data", action="clear", service=None):
    """Delete all data of the service permanently."""

    confirm: Literal[True]


class DeleteUser(Command[Removed], domain="data", action="delete_user", service=None):
    """Delete everything that the service knows about a user, permanently."""

    user_id: UserId
