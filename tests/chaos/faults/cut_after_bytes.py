"""Each connection is reset in the middle of a frame, after a random number of bytes."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_MOST_BYTES = 30_000
_LASTS_S = 4.0


async def inflict(bed: Testbed) -> int:
    before = sum(link.cuts for link in bed.links)
    for link in bed.links:
        link.cut_after(_MOST_BYTES)
    await bed.last(_LASTS_S)
    for link in bed.links:
        link.heal()
        # Some have little left of their last budget.
        link.reset()
    return sum(link.cuts for link in bed.links) - before


FAULT = Fault(inflict)
