"""Power that fails at a chosen moment."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


class PowerCut(BaseException):
    """Nothing may catch this: the process is gone."""


@dataclass
class Power:
    """Counts the moments before and after each effect, then fails at one of them."""

    fails_at: int | None = None
    moments: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def effect(self, name: str) -> AsyncIterator[None]:
        self._pass(f"before {name}")
        yield
        self._pass(f"after {name}")

    def _pass(self, moment: str) -> None:
        self.moments.append(moment)
        if len(self.moments) - 1 == self.fails_at:
            raise PowerCut(moment)
