"""How somebody mostly sounds, as far as one has heard them."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from bus_schema.processing import Tone

# The weight of the newest tone in what is usual.
_NEWEST = 0.3
_SHARP = 0.6
_FEWEST_HEARD = 2
_FEWEST_EVIDENCE = 2


class MoodHistory(BaseModel):
    """What an agent remembers of one user's moods."""

    model_config = ConfigDict(frozen=True)
    usual: Tone = 0.0
    heard: int = Field(default=0, ge=0)
    is_turned: bool = False

    def is_sharp_turn(self, tone: float, evidence: int) -> bool:
        """Whether this is far from what is usual; one word makes no turn, nor does the first day."""
        return self.heard >= _FEWEST_HEARD and evidence >= _FEWEST_EVIDENCE and abs(tone - self.usual) >= _SHARP

    def having_heard(self, tone: float, is_sharp: bool) -> Self:
        """The history with one more tone in it."""
        usual = tone if not self.heard else self.usual + _NEWEST * (tone - self.usual)
        return self.model_copy(update={"usual": round(usual, 3), "heard": self.heard + 1, "is_turned": is_sharp})
