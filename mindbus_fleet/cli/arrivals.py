"""Tells of each worker when it is ready: when its queues consume."""

import asyncio
from collections.abc import Collection

from mindbus.cli.console import errors
from mindbus.health import HealthFolder
from mindbus.settings import Settings

_LOOKS_S = 0.1


class Arrivals:
    """What the workers themselves report, for whoever watches a fleet come up."""

    def __init__(self, settings: Settings, workers: Collection[str], *, is_silent: bool) -> None:
        self._health = HealthFolder(settings)
        self._awaited = set() if is_silent else set(workers)

    def look(self) -> None:
        """Say who has come since the last look, in the order in which they came."""
        well = [each for each in self._health.all_here() if each.name in self._awaited]
        for health in sorted(well, key=lambda each: each.time):
            if self._health.trouble(health) is None and health.name in self._awaited:
                self._awaited.remove(health.name)
                errors().print(f"  {health.name:<16} {health.state.replace('_', ' ')}", markup=False)

    async def keep_looking(self) -> None:
        """Until cancelled."""
        while self._awaited:
            self.look()
            await asyncio.sleep(_LOOKS_S)
