"""Events in words, and as marks of the chart: commands, events, work with a duration, failures."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from bus_schema.dialogue import MessageReceived, MessageSent
from bus_schema.envelope import Envelope
from bus_schema.fleet import STATES, AgentActivityStarted, AgentResult
from bus_schema.process import ProcessStarted, StepCompleted, StepStarted
from bus_schema.sim import SimStarted
from bus_schema.subagent import SubagentCompletion, SubagentDelegation
from bus_schema.timeline import TimelineEvent, is_failure
from gateway.display_names import DisplayNames
from gateway.ui.i18n import Localizer, event_reason

_MAX_CHARACTERS: Final = 160
# The first of these that an event has says most about it.
_TEXT_FIELDS: Final = ("preview", "message", "reason", "note", "content", "task", "response", "status", "about")

_PEOPLE: Final = ("user_id", "to_user", "chat_id")
_OWNERS: Final = (*_PEOPLE, "step_id", "card_name")


def name_of(envelope: Envelope) -> str:
    """The event's name without its topic."""
    return envelope.type.split(".")[3]


def summary_of(i18n: Localizer, names: DisplayNames, envelope: Envelope) -> str:
    """Whom or what an event is about, people by their names, and its text or numbers."""
    data = envelope.data or {}
    key = next((key for key in _OWNERS if data.get(key)), "")
    owner = str(data.get(key, ""))
    owner = names.of(owner) if key in _PEOPLE else owner
    return " · ".join(part for part in (owner, _content(i18n, envelope, data)) if part)[:_MAX_CHARACTERS]


def _content(i18n: Localizer, envelope: Envelope, data: dict[str, Any]) -> str:
    for key in _TEXT_FIELDS:
        value = data.get(key)
        if isinstance(value, str) and value.strip():
            line = " ".join(value.split())
            return event_reason(i18n, envelope, line) if key == "reason" else line
    match data:
        case {"items": [_, *_] as items}:
            return i18n.count("summary.items", len(items))
        case {"message_ids": list(messages)}:
            return i18n.count("chat.messages", len(messages))
        case {"artifact": dict(artifact)}:
            return f"{artifact.get('artifact_id', '')} · {i18n.bytes(int(artifact.get('size_bytes') or 0))}"
        case _:
            return ""


TOPICS: Final = (
    "raw", "processed", "notification", "artifact", "process", "dialogue", "fleet", "sim", "kem", "episode",
    "subagent",
)  # fmt: skip
DOT, ASK, WORK, FAILURE = range(4)
# The lane of what is counted in a lane that is not drawn, and that of what has no trace.
FOLDED, NO_TRACE = -1, "–"
_ASKS: Final = {
    kind.wire.type
    for kind in (MessageReceived, ProcessStarted, StepStarted, SimStarted, AgentActivityStarted, SubagentDelegation)
}


def topic_number(topic: str) -> int:
    """Number of a topic in the chart; one of somebody else's making has the colour of the fleet."""
    return TOPICS.index(topic if topic in TOPICS else "fleet")


@dataclass(frozen=True)
class EventMark:
    """An event with its lane, shape and start."""

    event: TimelineEvent
    lane: str
    shape: int
    start: datetime
    label: str

    @property
    def took_s(self) -> float:
        """Duration of the work, in seconds."""
        return (self.event.time - self.start).total_seconds()

    @property
    def is_failure(self) -> bool:
        return self.shape == FAILURE

    def drawn(self, i18n: Localizer, names: DisplayNames, lanes: dict[str, int]) -> dict[str, Any]:
        """The mark as the chart's script takes it."""
        envelope = self.event.envelope
        return {
            "id": self.event.event_id,
            "t": self.start.timestamp() * 1000,
            "end": self.event.time.timestamp() * 1000,
            "lane": lanes[self.lane],
            "shape": self.shape,
            "topic": topic_number(self.event.topic),
            "name": name_of(envelope),
            "label": i18n.named("outcome", self.label) if self.shape == WORK else self.label,
            "about": summary_of(i18n, names, envelope),
            "clock": i18n.time(self.event.time),
        }


@dataclass
class TimelineMarks:
    """Turns events into marks, in lanes by service or by trace, and pairs starts with ends."""

    group: str = "service"
    marks: dict[str, EventMark] = field(default_factory=dict)
    _begun: dict[tuple[str, ...], datetime] = field(default_factory=dict)

    def read(self, events: Iterable[TimelineEvent]) -> list[EventMark]:
        """Marks of new events, without what is told every few seconds."""
        fresh = []
        for event in events:
            if event.event_id in self.marks or event.envelope.type in STATES:
                continue
            mark = self._mark(event)
            self.marks[event.event_id] = mark
            fresh.append(mark)
        return fresh

    def forget(self, before: datetime) -> None:
        self.marks = {name: mark for name, mark in self.marks.items() if mark.event.time >= before}
        self._begun = {key: at for key, at in self._begun.items() if at >= before}

    def trim(self, most: int) -> datetime | None:
        """Keep the latest; the time of the earliest that is kept, None where none was dropped."""
        if len(self.marks) <= most:
            return None
        times = sorted(mark.event.time for mark in self.marks.values())
        self.forget(times[-most])
        return times[-most]

    def _mark(self, event: TimelineEvent) -> EventMark:
        envelope = event.envelope
        data = envelope.data or {}
        start, label = self._beginning(envelope, data)
        shape = DOT
        if is_failure(envelope):
            shape = FAILURE
        elif start < event.time:
            shape = WORK
        elif envelope.type in _ASKS:
            shape = ASK
        lane = envelope.service if self.group == "service" else event.trace_id or NO_TRACE
        return EventMark(event, lane, shape, start if shape == WORK else event.time, label)

    def _beginning(self, envelope: Envelope, data: dict[str, Any]) -> tuple[datetime, str]:
        """Start and label of the work that an event ends; of another event its own time and name."""
        at = envelope.time
        if envelope.type == AgentResult.wire.type:
            return at - timedelta(milliseconds=int(data.get("took_ms") or 0)), str(data.get("outcome") or "")
        if envelope.type in _BEGINNINGS:
            self._begun[_key(data, *_BEGINNINGS[envelope.type])] = at
        if envelope.type not in _ENDS:
            return at, name_of(envelope)
        label, *key = _ENDS[envelope.type]
        return self._begun.get(_key(data, *key), at), str(data.get(label)) if label else "reply"


_ORDER: Final = {
    name: place
    for place, name in enumerate(
        (
            "dialogue", "task_manager", "context_manager", "mood_watcher", "context", "orchestrator", "importer",
            "researcher", "ideator", "critic", "pushkin", "editor", "storage", "sim",
        )
    )
}  # fmt: skip


def lane_order(lane: str) -> tuple[int, str]:
    """Sort key: the order of the work's flow, then the name."""
    return _ORDER.get(lane, len(_ORDER)), lane


# Fields of the key under which the start of a piece of work is found again at its end.
_BEGINNINGS: Final = {
    MessageReceived.wire.type: ("message_id",),
    StepStarted.wire.type: ("run_id", "step_id", "attempt"),
    SubagentDelegation.wire.type: ("delegation_id",),
}
# Field of the label, then those of the key.
_ENDS: Final = {
    MessageSent.wire.type: ("", "in_reply_to"),
    StepCompleted.wire.type: ("step_id", "run_id", "step_id", "attempt"),
    SubagentCompletion.wire.type: ("subagent", "delegation_id"),
}


def _key(data: dict[str, Any], *fields: str) -> tuple[str, ...]:
    return tuple(str(data.get(name)) for name in fields)
