"""Whatever passes takes two seconds."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LATENCY_S = 2.0
_LASTS_S = 6.0


async def inflict(bed: Testbed) -> int:
    for link in bed.links:
        link.latency_s = _LATENCY_S
    await bed.last(_LASTS_S)
    for link in bed.links:
        link.heal()
    return 1


FAULT = Fault(inflict)
