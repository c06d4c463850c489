"""The asker's link carries no replies, then is reset: what was asked is done, and asked again."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_TIMES = 3


async def inflict(bed: Testbed) -> int:
    _, link = bed.links
    for _ in range(_TIMES):
        link.withhold(to_server=False)
        await bed.last(2)
        link.reset()
        link.heal()
        await bed.last(0.5)
    return _TIMES


FAULT = Fault(inflict)
