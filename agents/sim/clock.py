"""The clock of a simulation: an affine map of real time, on which a simulated day begins in the morning."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

_MORNING = time(9)


@dataclass(frozen=True)
class SimulatedClock:
    """At the real moment `started_at` it shows `begins_at`, and then goes `speed` times as fast."""

    started_at: datetime
    begins_at: datetime
    speed: float

    @classmethod
    def of(cls, started_at: datetime, speed: float, begins_at: datetime | None, zone: str) -> "SimulatedClock":
        """Without `begins_at` it begins at nine in the morning of that day in the zone."""
        here = started_at.astimezone(ZoneInfo(zone))
        return cls(started_at, begins_at or datetime.combine(here.date(), _MORNING, here.tzinfo), speed)

    def simulated(self, moment: datetime) -> datetime:
        """Simulated time at a real moment."""
        return self.begins_at + (moment - self.started_at) * self.speed

    def real(self, moment: datetime) -> datetime:
        """Real moment of a simulated time."""
        return self.started_at + (moment - self.begins_at) / self.speed

    def real_span(self, span: timedelta) -> timedelta:
        """Real length of a simulated span."""
        return span / self.speed
