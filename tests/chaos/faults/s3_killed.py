"""The object store dies as by a power cut, and is started again."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LASTS_S = 2.0


async def inflict(bed: Testbed) -> int:
    assert bed.seaweed
    await bed.seaweed.kill()
    await bed.last(_LASTS_S)
    await bed.seaweed.start()
    return 1


FAULT = Fault(inflict, needs=("s3",))
