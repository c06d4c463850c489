"""Pointers to the things a result is based on or is about."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from bus_schema.messages import Value

KemId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,127}$")]


class Link(Value):
    """A pointer to an object by its id."""

    kind: Literal["message", "fragment", "task", "fact", "artifact", "notification"]
    id: Annotated[str, StringConstraints(pattern=r"^[a-z]+_[A-Za-z0-9_-]{1,64}$")]
