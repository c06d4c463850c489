"""The broker is stopped in good order, and started again."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    await bed.node.stop()
    await bed.node.start()
    return 1


FAULT = Fault(inflict)
