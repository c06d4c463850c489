"""A kind of fault: how it is inflicted and healed, what it needs, how it is noticed."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.chaos.testbed import Pace, Testbed

# A death or a reset is noticed at once, a silent link by its heartbeats, a frozen process by those of the workers.
Detection = Literal["at once", "link", "process"]
_COMES_BACK_WITHIN_S = 15.0


@dataclass(frozen=True)
class Fault:
    """`inflict` returns how often it did so, once all is as before; `needs` are parts of the testbed.

    With `heal`, the fault lasts until it is called: the fleet has to do its work all the same.
    """

    inflict: Callable[[Testbed], Awaitable[int]]
    heal: Callable[[Testbed], Awaitable[None]] | None = None
    needs: tuple[str, ...] = ()
    detection: Detection = "at once"
    has_own_fleet: bool = False

    def recovers_within_s(self, pace: Pace) -> float:
        """How long recovery may take after the fault is over."""
        noticed_s = {"at once": 0.0, "link": 2.0 * pace.amqp_heartbeat_s, "process": 3 * pace.heartbeat_s}
        return noticed_s[self.detection] + _COMES_BACK_WITHIN_S


def all_faults() -> dict[str, Fault]:
    """Faults by name, one of each module beside this one."""
    folder = Path(__file__).parent
    names = sorted(module.name for module in pkgutil.iter_modules([str(folder)]) if module.name != "fault")
    return {name: importlib.import_module(f"tests.chaos.faults.{name}").FAULT for name in names}
