"""What the broker sends does not arrive, confirms among it; it hears the participants all the time."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    for link in bed.links:
        link.withhold(to_server=False)
    await bed.silence()
    for link in bed.links:
        link.heal()
    return 1


FAULT = Fault(inflict, detection="link")
