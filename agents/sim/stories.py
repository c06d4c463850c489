"""What is being told in a simulation, what has been."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from agents.sim.profiles import Feeling, Profile
from agents.sim.scenarios import Trigger
from agents.sim.wording import Value

_REMEMBERED = 1000


@dataclass(frozen=True)
class SimMessage:
    """What somebody says, so long after the message before; `facts` are the sentences that tell something."""

    number: int
    user_id: str
    text: str
    after: timedelta
    trigger: str
    feeling: Feeling
    facts: tuple[str, ...]


@dataclass
class Story:
    """An event that has begun, with its names and figures; they stay the same while it unfolds."""

    trigger: Trigger
    values: Mapping[str, Value]
    teller: Profile
    stage: int = 0

    @property
    def is_over(self) -> bool:
        return self.stage >= len(self.trigger.stages)


@dataclass
class Said:
    """What was said lately, which is not to be said again."""

    texts: set[str] = field(default_factory=set)
    order: deque[str] = field(default_factory=deque)

    def add(self, text: str) -> None:
        self.texts.add(text)
        self.order.append(text)
        if len(self.order) > _REMEMBERED:
            self.texts.discard(self.order.popleft())
