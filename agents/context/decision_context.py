"""Circumstances of a decision on a notification: time, preferences, last message, simulated time."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.context.preferences import NotificationPreferences
from agents.sim.clock import SimulatedClock


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
