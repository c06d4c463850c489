"""Every connection is reset, again and again."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_TIMES = 4


async def inflict(bed: Testbed) -> int:
    for _ in range(_TIMES):
        for link in bed.links:
            link.reset()
        await bed.last(1)
    return _TIMES


FAULT = Fault(inflict)
