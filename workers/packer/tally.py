"""What a run has done so far."""

from dataclasses import dataclass, field

from bus_schema.episodes import Layer
from bus_schema.packer import Packed, PackRun


@dataclass
class Tally:
    """Counts layers: an episode that went down two of them counts in both."""

    done: PackRun = field(default_factory=PackRun)

    @property
    def packed(self) -> int:
        return self.done.warm + self.done.cold

    def count(self, packed: Packed, words_before: int, words_after: int) -> None:
        """Of one episode, one layer down, or not."""
        done = self.done
        if packed.outcome != "packed":
            self._add(refused=done.refused + (packed.outcome == "refused"))
            return
        self._add(
            warm=done.warm + (packed.layer is Layer.WARM),
            cold=done.cold + (packed.layer is Layer.COLD),
            words_before=done.words_before + words_before,
            words_after=done.words_after + words_after,
            put_back=done.put_back + len(packed.put_back),
            struck_out=done.struck_out + len(packed.struck_out),
        )

    def _add(self, **counts: int) -> None:
        self.done = self.done.model_copy(update=counts)
