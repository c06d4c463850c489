"""Notification preferences: quiet hours, rate, gaps, from YAML."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agents.configuration.validation import InvalidFile, read_file
from agents.present import SimulatedClock
from bus_schema.identities import UserId
from config.shipped import config_file


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"there is no time zone {name!r}; write one like Europe/Moscow") from error
    return name


class NotificationPreferences(BaseModel):
    """One person's: quiet hours on their own clock, how many notifications an hour, how far apart.

    `pause_minutes` is how long a talk must rest before something unimportant may break into it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    quiet_from: time | None = time(22)
    quiet_until: time | None = time(8)
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    most_per_hour: int = Field(default=6, ge=1, le=60)
    gap_minutes: float = Field(default=2, ge=0, le=120)
    pause_minutes: float = Field(default=5, ge=0, le=120)

    @property
    def gap(self) -> timedelta:
        return timedelta(minutes=self.gap_minutes)

    @property
    def pause(self) -> timedelta:
        return timedelta(minutes=self.pause_minutes)

    def end_of_quiet(self, now: datetime) -> datetime | None:
        """End of the quiet hours that hold at `now`; None outside quiet hours."""
        if self.quiet_from is None or self.quiet_until is None or self.quiet_from == self.quiet_until:
            return None
        here = now.astimezone(ZoneInfo(self.zone))
        clock = here.time().replace(tzinfo=None)
        over_midnight = self.quiet_from > self.quiet_until
        if over_midnight:
            is_quiet = clock >= self.quiet_from or clock < self.quiet_until
        else:
            is_quiet = self.quiet_from <= clock < self.quiet_until
        if not is_quiet:
            return None
        day = here.date() + timedelta(days=over_midnight and clock >= self.quiet_from)
        return datetime.combine(day, self.quiet_until, tzinfo=ZoneInfo(self.zone))


class PreferencesFile(BaseModel):
    """Preferences by user, with a default."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    default: NotificationPreferences = NotificationPreferences()
    users: dict[UserId, NotificationPreferences] = {}

    def zone_of(self, user_id: str) -> str:
        """The zone of a user by this file alone."""
        return self.of(user_id).zone

    def of(self, user_id: str, zone: str | None = None) -> NotificationPreferences:
        """A user's own entry, else the default on the clock of their zone."""
        own = self.users.get(user_id)
        return own or (self.default.model_copy(update={"zone": zone}) if zone else self.default)


class InvalidPreferences(InvalidFile):
    """The habits cannot be kept; each line says where, what is wrong, what to do."""


def open_preferences(file: str | None) -> PreferencesFile:
    """Preferences from a YAML file, or those of `habits.yaml`, the operator's before the shipped one.

    Raises InvalidPreferences, OSError.
    """
    if file is not None:
        return parse_preferences(Path(file).read_bytes(), file)
    habits = config_file("", "habits")
    return parse_preferences(habits.content, habits.source)


def parse_preferences(text: bytes, source: str) -> PreferencesFile:
    """Read habits from YAML; errors name it `source`. Raises InvalidPreferences with every problem."""
    return read_file(text, source, PreferencesFile, InvalidPreferences)


@dataclass(frozen=True)
class DecisionContext:
    """Time of the decision, the user's preferences and their last message; the clock of a simulated user.

    All moments are real; quiet hours, gaps and rates of a simulated user are of simulated time.
    """

    now: datetime
    habits: NotificationPreferences
    last_activity: datetime | None = None
    simulation: SimulatedClock | None = None

    @property
    def end_of_quiet(self) -> datetime | None:
        """End of the quiet hours that hold now; None outside quiet hours."""
        if self.simulation is None:
            return self.habits.end_of_quiet(self.now)
        ends = self.habits.end_of_quiet(self.simulation.simulated(self.now))
        return self.simulation.real(ends) if ends else None

    def span(self, span: timedelta) -> timedelta:
        """Real length of a span of the user's time."""
        return self.simulation.real_span(span) if self.simulation else span
