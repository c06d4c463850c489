"""What workers say about themselves."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from bus_schema.identities import ServiceName
from bus_schema.messages import Event


class State(StrEnum):
    """Whether a worker consumes from its queues; one that stands by does so once the instance that leads is gone."""

    READY = "ready"
    STANDING_BY = "standing_by"
    UNREADY = "unready"


class Heartbeat(Event, topic="fleet", name="heartbeat"):
    """A worker is alive; `ready` says whether it consumes from its queues just now."""

    service: ServiceName
    instance: str
    ready: bool
    standing_by: bool = False
    version: str


class AgentActivityStarted(Event, topic="fleet", name="agent_activity_started"):
    """An agent has begun to work on something, named by its id."""

    agent: ServiceName
    about: str = Field(max_length=256)


class AgentResult(Event, topic="fleet", name="agent_result"):
    """An agent has done with something; `nothing` means that there was nothing in it."""

    agent: ServiceName
    about: str = Field(max_length=256)
    outcome: Literal["found", "nothing", "failed"]
    took_ms: int = Field(ge=0)
