"""No byte passes between broker and participants, in either direction; all connections stay open."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    for link in bed.links:
        link.withhold()
    await bed.silence()
    for link in bed.links:
        link.heal()
    return 1


FAULT = Fault(inflict, detection="link")
