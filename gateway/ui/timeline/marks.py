"""Events as marks of the chart: commands, events, work with a duration, failures."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from bus_schema.dialogue import MessageReceived, MessageSent
from bus_schema.envelope import Envelope
from bus_schema.fleet import AgentActivityStarted, AgentResult, Heartbeat
from bus_schema.process import ProcessFailed, ProcessStarted, StepCompleted, StepFailed, StepStarted
from bus_schema.sim import SimStarted
from bus_schema.subagent import SubagentCompletion, SubagentDelegation
from bus_schema.timeline import TimelineEvent
from gateway.ui.event_summary import name_of, summary_of
from gateway.ui.i18n import Localizer

TOPICS: Final = (
    "raw", "processed", "notification", "artifact", "process", "dialogue", "fleet", "sim", "kem", "episode",
    "subagent",
)  # fmt: skip
DOT, ASK, WORK, FAILURE = range(4)
_ASKS: Final = {
    kind.wire.type
    for kind in (MessageReceived, ProcessStarted, StepStarted, SimStarted, AgentActivityStarted, SubagentDelegation)
}
_FAILURES: Final = {StepFailed.wire.type, ProcessFailed.wire.type}


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

    def drawn(self, i18n: Localizer, lanes: dict[str, int]) -> dict[str, Any]:
        """The mark as the chart's script takes it."""
        envelope = self.event.envelope
        return {
            "id": self.event.event_id,
            "t": self.start.timestamp() * 1000,
            "end": self.event.time.timestamp() * 1000,
            "lane": lanes[self.lane],
            "shape": self.shape,
            "topic": TOPICS.index(self.event.topic) if self.event.topic in TOPICS else TOPICS.index("fleet"),
            "name": name_of(envelope),
            "label": self.label,
            "about": summary_of(i18n, envelope),
            "clock": i18n.time(self.event.time),
        }


@dataclass
class TimelineMarks:
    """Turns events into marks and pairs starts with ends."""

    marks: dict[str, EventMark] = field(default_factory=dict)
    _begun: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def read(self, events: Iterable[TimelineEvent]) -> list[EventMark]:
        """Marks of new events, without heartbeats."""
        fresh = []
        for event in events:
            if event.event_id in self.marks or event.envelope.type == Heartbeat.wire.type:
                continue
            mark = self._mark(event)
            self.marks[event.event_id] = mark
            fresh.append(mark)
        return fresh

    def forget(self, before: datetime) -> None:
        self.marks = {name: mark for name, mark in self.marks.items() if mark.event.time >= before}

    def lanes(self) -> list[str]:
        """Services in the order of the work's flow."""
        seen = {mark.lane for mark in self.marks.values()}
        return sorted(seen, key=lambda lane: (_ORDER.get(lane, len(_ORDER)), lane))

    def _mark(self, event: TimelineEvent) -> EventMark:
        envelope = event.envelope
        data = envelope.data or {}
        start, label = self._beginning(envelope, data)
        shape = DOT
        if envelope.type in _FAILURES or data.get("outcome") == "failed" or data.get("is_error"):
            shape = FAILURE
        elif start < event.time:
            shape = WORK
        elif envelope.type in _ASKS:
            shape = ASK
        return EventMark(event, envelope.service, shape, start if shape == WORK else event.time, label)

    def _beginning(self, envelope: Envelope, data: dict[str, Any]) -> tuple[datetime, str]:
        at = envelope.time
        match envelope.type:
            case MessageReceived.wire.type:
                self._begun["message", str(data.get("message_id"))] = at
            case MessageSent.wire.type:
                return self._begun.get(("message", str(data.get("in_reply_to"))), at), "reply"
            case StepStarted.wire.type:
                self._begun["step", _attempt(data)] = at
            case StepCompleted.wire.type:
                return self._begun.get(("step", _attempt(data)), at), str(data.get("step_id"))
            case AgentResult.wire.type:
                took = timedelta(milliseconds=int(data.get("took_ms") or 0))
                return at - took, str(data.get("outcome") or "")
            case SubagentDelegation.wire.type:
                self._begun["delegation", str(data.get("delegation_id"))] = at
            case SubagentCompletion.wire.type:
                return self._begun.get(("delegation", str(data.get("delegation_id"))), at), str(data.get("subagent"))
            case _:
                pass
        return at, name_of(envelope)


_ORDER: Final = {
    name: place
    for place, name in enumerate(
        (
            "dialogue", "task_manager", "context_manager", "mood_watcher", "context", "orchestrator", "researcher",
            "ideator", "critic", "pushkin", "editor", "storage", "sim",
        )
    )
}  # fmt: skip


def _attempt(data: dict[str, Any]) -> str:
    return f"{data.get('run_id')}/{data.get('step_id')}/{data.get('attempt')}"
