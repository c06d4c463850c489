"""Events in which workers report their state."""

from typing import Literal

from pydantic import Field

from bus_schema.codes import State as State
from bus_schema.identities import ServiceName
from bus_schema.messages import Event

NOTE_CHARS = 500
# As a message must not become a claim.
MAX_METRICS_CHARS = 48_000


class Heartbeat(Event, topic="fleet", name="heartbeat"):
    """A worker is alive; `ready` means that it consumes from all of its queues.

    `note` says why it is not well or, if it is, what still needs a look.
    """

    service: ServiceName
    instance: str
    ready: bool
    standing_by: bool = False
    version: str
    note: str = Field(default="", max_length=NOTE_CHARS)


class ProcessMetrics(Event, topic="fleet", name="metrics"):
    """Metrics of a process, `WORKER@HOST.PID`, in Prometheus's text format, deflated (zlib), in base64."""

    process: str = Field(max_length=200)
    exposition: str = Field(max_length=MAX_METRICS_CHARS)


# Types of events that every process tells every few seconds: no history keeps them.
STATES = frozenset({Heartbeat.wire.type, ProcessMetrics.wire.type})


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
