"""Who speaks: agents, people, services."""

import re
from typing import Annotated

from pydantic import StringConstraints

SERVICE_NAME = r"[a-z0-9][a-z0-9_-]{0,62}"
IDENTITY = rf"(?:agent\.{SERVICE_NAME}(?:\.[A-Za-z0-9_-]{{1,64}})?|user\.[A-Za-z0-9_@.-]{{1,64}}|svc\.{SERVICE_NAME})"

ServiceName = Annotated[str, StringConstraints(pattern=rf"^{SERVICE_NAME}$")]
Identity = Annotated[str, StringConstraints(pattern=rf"^{IDENTITY}$")]

_AGENT = re.compile(rf"agent\.{SERVICE_NAME}")


def owner_of(identity: str) -> str:
    """The identity without its instance: any instance of an agent owns what the others made."""
    agent = _AGENT.match(identity)
    return agent.group() if agent else identity
