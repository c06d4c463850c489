"""What workers say about themselves."""

from enum import StrEnum

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
