"""The broker stops answering while all connections stay open, then goes on."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    bed.node.freeze()
    try:
        await bed.silence()
    finally:
        bed.node.thaw()
    return 1


FAULT = Fault(inflict, detection="link")
