"""The disk of the data folder is full: databases, health files, logs."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LASTS_S = 4.0


async def inflict(bed: Testbed) -> int:
    assert bed.disk
    bed.disk.fill()
    try:
        await bed.last(_LASTS_S)
    finally:
        bed.disk.clear()
    return 1


FAULT = Fault(inflict, needs=("disk",))
