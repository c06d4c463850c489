"""Time that passes when a test says so."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)


@dataclass
class Clock:
    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)
