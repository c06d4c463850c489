"""Commands of storage: the timeline of everything that has happened, in order."""

from datetime import timedelta
from typing import Annotated, Any, Final, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from bus_schema.artifacts import TraceId
from bus_schema.envelope import Envelope, MessageId
from bus_schema.identities import UserId, is_user_id
from bus_schema.messages import Command, Page, Query, Value
from bus_schema.process import ProcessFailed, StepFailed

Topic = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]

# The names of spec 004 §10.2, of spec 001; whatever is not among them goes by topic and name.
_NAMES = {
    "dialogue.message_received": "message_received",
    "dialogue.message_sent": "message_sent",
    "raw.dialogue_fragment": "dialogue_fragment_published",
    "fleet.agent_activity_started": "agent_activity_start",
    "fleet.agent_result": "agent_result",
    "notification.generated": "notification_generated",
    "notification.sent": "notification_sent",
    "subagent.subagent_delegation": "subagent_delegation",
    "subagent.subagent_assistant_with_tools": "subagent_assistant_with_tools",
    "subagent.subagent_tool_result": "subagent_tool_result",
    "subagent.subagent_completion": "subagent_completion",
    "subagent.subagent_tool": "subagent_tool",
    "sim.started": "sim_start",
    "sim.stopped": "sim_stop",
}

_SHORTEST: Final = timedelta(milliseconds=1)
_FAILURES: Final = frozenset({StepFailed.wire.type, ProcessFailed.wire.type})


def is_failure(envelope: Envelope) -> bool:
    """True for a failed step or run, and for an event whose `outcome` or `is_error` says so."""
    data = envelope.data or {}
    return envelope.type in _FAILURES or data.get("outcome") == "failed" or data.get("is_error") is True


class TimelineEvent(Value):
    """An event from the bus with its envelope; storage assigns its sequence number."""

    event_id: MessageId
    name: str = Field(max_length=128)
    topic: Topic
    time: AwareDatetime
    user_id: UserId | None = None
    trace_id: TraceId | None = None
    envelope: Envelope
    sequence: int | None = Field(default=None, ge=1)

    @classmethod
    def of(cls, envelope: Envelope) -> Self:
        """Build it from an envelope, of a known type or not."""
        _, _, topic, name, _ = envelope.type.split(".")
        spoken = f"{topic}.{name}"
        return cls(
            event_id=envelope.id,
            name=_NAMES.get(spoken, spoken),
            topic=topic,
            time=envelope.time,
            user_id=_user_of(envelope.data or {}),
            trace_id=envelope.mbtraceid,
            envelope=envelope,
        )


class EventsSaved(Value):
    """Number of events that were new."""

    count: int


class SaveEvents(Command[EventsSaved], domain="storage", action="save_events"):
    """Append events to the timeline; an event that is there already stays as it is."""

    events: tuple[TimelineEvent, ...] = Field(min_length=1, max_length=500)


class TimelinePage(Page[TimelineEvent]):
    """Events in the order in which they were recorded, with the cursor of the next page.

    The last page has a cursor, too: later events come after it.
    """


class GetTimeline(Query[TimelinePage], domain="storage", action="get_timeline"):
    """Read the timeline from its beginning or from a cursor, conditions combined with AND.

    With `newest_first`, it is read backwards from its end; the last of these pages has no cursor.
    """

    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    user_id: UserId | None = None
    trace_id: TraceId | None = None
    topics: tuple[Topic, ...] = Field(default=(), max_length=20)
    cursor: str | None = Field(default=None, max_length=256)
    limit: int = Field(default=100, ge=1, le=500)
    newest_first: bool = False
    event_id: MessageId | None = None
    failures_only: bool = False


class TimelineSeries(Value):
    """Numbers of events of one service and topic per bucket, and of failures among them, shape (buckets,)."""

    service: str
    topic: Topic
    events: tuple[int, ...]
    failures: tuple[int, ...]


class TimelineBuckets(Value):
    """Series of the services and topics that have events."""

    series: tuple[TimelineSeries, ...]


class GetTimelineBuckets(Query[TimelineBuckets], domain="storage", action="get_timeline_buckets"):
    """Count events by service, topic and time, in buckets of equal width; conditions are combined with AND.

    `through` is the sequence number of the last event counted.
    """

    since: AwareDatetime
    until: AwareDatetime
    buckets: int = Field(default=120, ge=1, le=500)
    user_id: UserId | None = None
    trace_id: TraceId | None = None
    topics: tuple[Topic, ...] = Field(default=(), max_length=20)
    through: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _require_time(self) -> Self:
        if self.until - self.since < _SHORTEST:
            raise ValueError("until must be later than since")
        return self


def _user_of(data: dict[str, Any]) -> str | None:
    # An event of somebody else's making may mean anything by these names, and belongs on the timeline all the same.
    return next((data[name] for name in ("user_id", "to_user", "chat_id") if is_user_id(data.get(name))), None)
