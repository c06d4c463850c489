"""The broker has too little memory, and blocks whoever publishes."""

from mindbus_fleet.node.folder import MEMORY_LIMIT_BYTES
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LASTS_S = 4.0


async def inflict(bed: Testbed) -> int:
    await bed.node.ctl("set_vm_memory_high_watermark", "absolute", "1000000")
    await bed.last(_LASTS_S)
    await bed.node.ctl("set_vm_memory_high_watermark", "absolute", str(MEMORY_LIMIT_BYTES))
    return 1


FAULT = Fault(inflict)
