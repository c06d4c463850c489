"""Events in which workers report their state."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from bus_schema.identities import ServiceName
from bus_schema.messages import Event


class State(StrEnum):
    """State of a worker's consumers; `standing_by` becomes ready when the leading instance is gone."""

    READY = "ready"
    STANDING_BY = "standing_by"
    UNREADY = "unready"


class Heartbeat(Event, topic="fleet", name="heartbeat"):
    """A worker is alive; `ready` means that it consumes from all of its queues."""

    service: ServiceName
    instance: str
    ready: bool
    standing_by: bool = False
    version: str


class AgentActivityStarted(Event, topic="fleet", name="agent_activity_started"):
    """An agent has started working on the object with this id."""

    agent: ServiceName
    about: str = Field(max_length=256)


class AgentResult(Event, topic="fleet", name="agent_result"):
    """An agent has finished its work on an object; `nothing` means that it found nothing in it."""

    agent: ServiceName
    about: str = Field(max_length=256)
    outcome: Literal["found", "nothing", "failed"]
    took_ms: int = Field(ge=0)
