"""Statistics and invariants of a simulation, computed from the events on the bus."""

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Final

from bus_schema.conversations import MessageStored
from bus_schema.dialogue import DialogueFragment, MessageReceived, MessageSent
from bus_schema.envelope import Envelope
from bus_schema.notification import NotificationGenerated, NotificationSent
from gateway.activity import quantile
from gateway.ui.i18n import Localizer

_POINTS: Final = 300
_RECENT_EVENTS: Final = 12
_CURVE: Final = 60
_EVENT_TOPICS: Final = {"processed", "notification", "raw", "dialogue"}
# The same thing is told twice: once for the timeline, once with its words.
_NOT_NEWS: Final = {MessageReceived.wire.type, MessageSent.wire.type}


@dataclass
class SimStatistics:
    """Statistics of one simulation."""

    received: Counter[str] = field(default_factory=Counter)
    answered: set[str] = field(default_factory=set)
    fragments: Counter[str] = field(default_factory=Counter)
    stored: Counter[str] = field(default_factory=Counter)
    processed: int = 0
    read_fragments: dict[str, set[str]] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    by_user: Counter[str] = field(default_factory=Counter)
    seconds: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_POINTS))
    news: deque[Envelope] = field(default_factory=lambda: deque(maxlen=_RECENT_EVENTS))
    curves: dict[str, deque[int]] = field(default_factory=dict)
    _pending: dict[str, datetime] = field(default_factory=dict)
    _ids: set[str] = field(default_factory=set)

    def receive(self, envelopes: Iterable[Envelope]) -> None:
        for envelope in envelopes:
            if envelope.id in self._ids:
                continue
            self._ids.add(envelope.id)
            self._count(envelope)
            topic = envelope.type.split(".")[2]
            if topic in _EVENT_TOPICS and envelope.type not in _NOT_NEWS:
                self.news.append(envelope)

    def tick(self) -> None:
        for name, value in self.totals.items():
            self.curves.setdefault(name, deque(maxlen=_CURVE)).append(value)

    @property
    def totals(self) -> dict[str, int]:
        return {
            "answers": len(self.answered),
            "fragments": len(self.fragments),
            "processed": self.processed,
            "notifications": len(self.sent),
        }

    def curve(self, name: str) -> list[float]:
        """Increase of a total in each of the last seconds."""
        return [float(later - earlier) for earlier, later in pairwise(self.curves.get(name, ()))]

    @property
    def p99_s(self) -> float | None:
        """99th percentile of the answer times, in seconds."""
        return quantile((seconds for _, seconds in self.seconds), 99)

    def _count(self, envelope: Envelope) -> None:
        data = envelope.data or {}
        match envelope.type:
            case MessageReceived.wire.type:
                self._receive(envelope, str(data.get("message_id")), data)
            case MessageSent.wire.type:
                self._answer(envelope, str(data.get("in_reply_to")))
            case MessageStored.wire.type:
                self.stored[str(data.get("message_id"))] += 1
            case DialogueFragment.wire.type:
                self.fragments[str(data.get("fragment_id"))] += 1
            case NotificationGenerated.wire.type:
                self.wanted.add(str(data.get("notification_id")))
            case NotificationSent.wire.type:
                self.sent.add(str(data.get("notification_id")))
            case _ if envelope.type.startswith("mb.evt.processed."):
                self.processed += 1
                self.read_fragments.setdefault(str(data.get("fragment_id")), set()).add(envelope.service)
            case _:
                pass

    def _receive(self, envelope: Envelope, message_id: str, data: dict[str, object]) -> None:
        if data.get("kind") == "hidden":
            return
        self.received[message_id] += 1
        self.by_user[str(data.get("user_id"))] += 1
        self._pending[message_id] = envelope.time

    def _answer(self, envelope: Envelope, message_id: str) -> None:
        if message_id in self._pending:
            self.answered.add(message_id)
            self.seconds.append((len(self.answered), (envelope.time - self._pending.pop(message_id)).total_seconds()))


_SLOW_S = 5.0


@dataclass(frozen=True)
class SimCheck:
    """An invariant with its counts."""

    says: str
    counted: str
    holds: bool
    target: str = "/timeline"


def checks_of(i18n: Localizer, counting: SimStatistics, dead: int) -> list[SimCheck]:
    stored = {message: counting.stored[message] for message in counting.received}
    doubled = sum(times > 1 for times in counting.stored.values()) + sum(n > 1 for n in counting.received.values())
    lost = [message for message in counting.answered if counting.received and not counting.stored.get(message)]
    repeated = sum(times > 1 for times in counting.fragments.values())
    slowest = counting.p99_s
    rows = sum(times > 0 for times in stored.values())
    answered, received, fragments = len(counting.answered), len(counting.received), len(counting.fragments)

    def check(name: str, counted: str, topics: str, *, holds: bool) -> SimCheck:
        return SimCheck(i18n(f"check.{name}"), counted, holds, f"/timeline?topics={topics}")

    stored_count = i18n("check.stored_count", sent=len(stored), rows=rows, doubled=doubled)
    fragment_count = i18n("check.fragments_count", n=fragments, doubled=repeated)
    answer_count = i18n("check.answered_count", n=answered, of=received)
    p99 = f"p99 {i18n.seconds(slowest)}" if slowest is not None else "–"
    is_quick = slowest is None or slowest <= _SLOW_S
    return [
        check("stored", stored_count, "dialogue", holds=not doubled and not lost),
        check("fragments", fragment_count, "raw", holds=not repeated),
        check("answered", answer_count, "dialogue", holds=answered <= received),
        SimCheck(i18n("check.dead"), i18n("check.dead_count", n=dead), not dead, "/fleet"),
        SimCheck(i18n("check.quick", s=i18n.seconds(_SLOW_S)), p99, is_quick, "/timeline?topics=dialogue"),
    ]
