"""What workers say about themselves."""

from bus_schema.identities import ServiceName
from bus_schema.messages import Event


class Heartbeat(Event, topic="fleet", name="heartbeat"):
    """A worker is alive; `ready` says whether it consumes from its queues just now."""

    service: ServiceName
    instance: str
    ready: bool
    version: str
