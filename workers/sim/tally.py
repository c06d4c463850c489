"""What a simulation has come to."""

from dataclasses import dataclass, field

from bus_schema.sim import SimCounts


@dataclass
class Tally:
    """Messages by their numbers from 1 on: all up to `done` have been seen to, some beyond it as well."""

    begun: int = 0
    done: int = 0
    beyond: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)

    def begin(self, number: int) -> None:
        """It is being said."""
        self.begun = max(self.begun, number)

    def settle(self, number: int, *, is_answered: bool) -> None:
        """It was answered, or could not be."""
        if not is_answered:
            self.failed.add(number)
        self.beyond.add(number)
        while self.done + 1 in self.beyond:
            self.done += 1
            self.beyond.remove(self.done)

    def counts(self, sim_id: str) -> SimCounts:
        """As others are told."""
        settled = self.done + len(self.beyond)
        return SimCounts(sim_id=sim_id, sent=self.begun, answered=settled - len(self.failed), failed=len(self.failed))
