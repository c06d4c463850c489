"""To which episode a turn belongs, as it is said."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus_schema.episodes import Layer
from memory.lsm.tables import EpisodeRow, TurnRow
from mindbus.settings import Settings


@dataclass(frozen=True, slots=True)
class Bounds:
    """After how long a silence, or from which size on, the next turn is another episode's."""

    gap: timedelta = timedelta(hours=3)
    turns: int = 50
    words: int = 1500

    @classmethod
    def of(cls, settings: Settings) -> "Bounds":
        """Those that the operator has set."""
        return cls(timedelta(minutes=settings.lsm_gap_minutes), settings.lsm_max_turns, settings.lsm_max_words)

    def place(self, turn: TurnRow, near: Sequence[EpisodeRow]) -> EpisodeRow | None:
        """The hot episode that has room for it nearest in time, if any; what is packed is closed."""
        fitting = [row for row in near if self._fits(turn, row)]
        return min(fitting, key=lambda row: (distance(turn.time, row), -row.ended_at.timestamp()), default=None)

    def before(self, turn: TurnRow, near: Sequence[EpisodeRow]) -> EpisodeRow | None:
        """The episode that a new one goes on from: the one that the turn would have been in, had it not been full."""
        full = [row for row in near if self._is_near(turn, row) and not self._has_room(turn, row)]
        return max(full, key=lambda row: row.ended_at, default=None)

    def _fits(self, turn: TurnRow, row: EpisodeRow) -> bool:
        return row.layer == Layer.HOT and self._is_near(turn, row) and self._has_room(turn, row)

    def _is_near(self, turn: TurnRow, row: EpisodeRow) -> bool:
        return distance(turn.time, row) <= self.gap

    def _has_room(self, turn: TurnRow, row: EpisodeRow) -> bool:
        return row.turns < self.turns and row.word_count + turn.word_count <= self.words


def distance(time: datetime, row: EpisodeRow) -> timedelta:
    """How far a moment lies outside of an episode."""
    return max(row.started_at - time, time - row.ended_at, timedelta(0))
