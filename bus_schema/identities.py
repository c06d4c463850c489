"""Identities of agents, people and services."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

SERVICE_NAME = r"[a-z0-9][a-z0-9_-]{0,62}"
IDENTITY = rf"(?:agent\.{SERVICE_NAME}(?:\.[A-Za-z0-9_-]{{1,64}})?|user\.[A-Za-z0-9_@.-]{{1,64}}|svc\.{SERVICE_NAME})"

ServiceName = Annotated[str, StringConstraints(pattern=rf"^{SERVICE_NAME}$")]
Identity = Annotated[str, StringConstraints(pattern=rf"^{IDENTITY}$")]

_USER_ID = r"[A-Za-z0-9][A-Za-z0-9_@.-]{0,63}"
_A_USER_ID = re.compile(_USER_ID)


def is_operator(identity: str) -> bool:
    """Whether an identity is a person or a service, which may administer data; agents may not."""
    return identity.startswith(("svc.", "user."))


def user_of(identity: str) -> str | None:
    """Id of the person; None for an agent or a service."""
    return identity.removeprefix("user.") if identity.startswith("user.") else None


def worker_of(identity: str) -> str | None:
    """Name of the agent or service, without instance; None for a person."""
    kind, _, name = owner_of(identity).partition(".")
    return name if kind in ("agent", "svc") else None


def is_user_id(text: object) -> bool:
    """Whether a text is a valid user id."""
    return isinstance(text, str) and _A_USER_ID.fullmatch(text) is not None


def _user_id(text: str) -> str:
    if not is_user_id(text):
        raise ValueError("a user id has 1 to 64 characters: Latin letters, digits and _ @ . -, no sign at its start")
    return text


# As the identity of a person is written, without its prefix; it is a part of URLs, so `..` is none.
UserId = Annotated[str, Field(json_schema_extra={"pattern": f"^{_USER_ID}$"}), AfterValidator(_user_id)]

_AGENT = re.compile(rf"agent\.{SERVICE_NAME}")


def owner_of(identity: str) -> str:
    """The identity without its instance: all instances of an agent own the same things."""
    agent = _AGENT.match(identity)
    return agent.group() if agent else identity


@dataclass(frozen=True, slots=True)
class Principal:
    """An agent, a person or a service, with the trace it asks within.

    `is_trusted` marks a service that keeps to the same rights itself, such as working memory before global memory;
    `is_guest` whoever is neither a worker of the fleet nor an operator.
    """

    identity: str
    trace_id: str | None = None
    is_trusted: bool = False
    is_guest: bool = False

    @property
    def owner(self) -> str:
        """The identity without its instance: what one instance made or knows is every instance's."""
        return owner_of(self.identity)

    @property
    def is_service(self) -> bool:
        return self.identity.startswith("svc.")

    @property
    def is_operator(self) -> bool:
        """Whether a service or a person asks, who may look after what others keep."""
        return is_operator(self.identity)


KemId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]{0,127}$")]
