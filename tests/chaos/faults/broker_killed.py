"""The broker dies as by a power cut, and is started again."""

from tests.brokers import registered
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    await registered(bed.node, "mb.q.booking")
    await bed.node.kill()
    await bed.node.start()
    return 1


FAULT = Fault(inflict)
