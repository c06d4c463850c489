"""The disk of the data folder has turned read-only; an operator stops the fleet, repairs it, starts all again."""

import signal

from mindbus.testing.wait import until
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed
from tests.small_disks import FailingDisk

_ENDED_WITHIN_S = 10.0


async def inflict(bed: Testbed) -> int:
    disk = bed.disk
    assert isinstance(disk, FailingDisk)
    disk.fail()
    try:
        await bed.told("lsm")
        await bed.mindbus("down")
    finally:
        bed.signal(signal.SIGKILL)
        await until(lambda: not bed.pids, _ENDED_WITHIN_S, "nobody has files open")
        disk.repair()
    await bed.up()
    return 1


FAULT = Fault(inflict, needs=("disk", "journal"))
