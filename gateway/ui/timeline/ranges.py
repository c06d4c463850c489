"""The time that a timeline shows: so much up to now, or between two moments."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

RANGES: Final = {"5m": 300, "15m": 900, "1h": 3600, "6h": 21600, "24h": 86400, "7d": 604800, "30d": 2592000}
DEFAULT_RANGE: Final = "15m"
_SHORTEST = timedelta(seconds=1)


@dataclass(frozen=True)
class TimelineRange:
    """A span that ends now, or at `until`; `key` is empty for two moments."""

    key: str
    span: timedelta
    until: datetime | None = None

    @property
    def end(self) -> datetime:
        return self.until or datetime.now(UTC)

    @property
    def start(self) -> datetime:
        return self.end - self.span

    @classmethod
    def called(cls, key: str) -> Self:
        return cls(key, timedelta(seconds=RANGES[key]))

    @classmethod
    def between(cls, since: datetime, until: datetime) -> Self:
        return cls("", max(until - since, _SHORTEST), until)

    @classmethod
    def of_address(cls, query: Mapping[str, str]) -> Self | None:
        """That of a link; None where it names none that can be shown."""
        since, until = _moment(query.get("from", "")), _moment(query.get("to", ""))
        if since is not None and until is not None and since < until:
            return cls.between(since, until)
        key = query.get("range", "")
        return cls.called(key) if key in RANGES else None

    @classmethod
    def that_has(cls, moment: datetime | None) -> Self:
        """The shortest from the default on that reaches back to a moment; around it where none does."""
        if moment is None:
            return cls.called(DEFAULT_RANGE)
        age = datetime.now(UTC) - moment
        keys = list(RANGES)[list(RANGES).index(DEFAULT_RANGE) :]
        key = next((key for key in keys if age < timedelta(seconds=RANGES[key])), None)
        around = timedelta(hours=12)
        return cls.called(key) if key else cls.between(moment - around, moment + around)


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
