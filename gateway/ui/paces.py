"""How busy each service has been lately, from what it told."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bus_schema.dialogue import MessageReceived, MessageSent
from bus_schema.envelope import Envelope
from bus_schema.fleet import AgentResult
from bus_schema.process import StepCompleted
from gateway.feed import Missed

_SECONDS: Final = 60
_OVER_S: Final = 5
_TOOK: Final = 200
_MOST_OPEN: Final = 500


@dataclass(frozen=True)
class Pace:
    """How much a service says per second, how long its work takes."""

    rates: tuple[float, ...] = ()
    p50_s: float | None = None
    p99_s: float | None = None


class Paces:
    """Counts second by second."""

    def __init__(self) -> None:
        self._counts: dict[str, deque[int]] = {}
        self._took: dict[str, deque[float]] = {}
        self._asked: dict[str, Envelope] = {}

    def tick(self) -> None:
        """A second has passed."""
        for counts in self._counts.values():
            counts.append(0)

    def hear(self, items: Iterable[Envelope | Missed]) -> int:
        """What was told since; how much."""
        heard = 0
        for item in items:
            if isinstance(item, Missed):
                continue
            heard += 1
            if item.service not in self._counts:
                self._counts[item.service] = deque([0] * _SECONDS, maxlen=_SECONDS)
            self._counts[item.service][-1] += 1
            took = self._time_of(item)
            if took is not None:
                self._took.setdefault(item.service, deque(maxlen=_TOOK)).append(took)
        return heard

    def now(self) -> dict[str, Pace]:
        """Of every service that has said anything."""
        return {service: self._pace(service, list(counts)) for service, counts in self._counts.items()}

    def _pace(self, service: str, counts: list[int]) -> Pace:
        rates = tuple(sum(counts[end - _OVER_S : end]) / _OVER_S for end in range(_OVER_S, len(counts) + 1))
        took = sorted(self._took.get(service, ()))
        if not took:
            return Pace(rates)
        return Pace(rates, took[len(took) // 2], took[min(len(took) - 1, len(took) * 99 // 100)])

    def _time_of(self, envelope: Envelope) -> float | None:
        data = envelope.data or {}
        if envelope.type == AgentResult.wire.type:
            return float(data.get("took_ms", 0)) / 1000
        if envelope.type == StepCompleted.wire.type:
            milliseconds = (data.get("context") or {}).get("execution_time_ms")
            return None if milliseconds is None else float(milliseconds) / 1000
        if envelope.type == MessageReceived.wire.type:
            self._asked[str(data.get("message_id"))] = envelope
            while len(self._asked) > _MOST_OPEN:
                self._asked.pop(next(iter(self._asked)))
        elif envelope.type == MessageSent.wire.type:
            asked = self._asked.pop(str(data.get("in_reply_to")), None)
            return (envelope.time - asked.time).total_seconds() if asked else None
        return None
