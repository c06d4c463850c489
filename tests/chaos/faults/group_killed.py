"""Each process of MindBus's own workers dies as by a power cut, one after the other."""

import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import THIRD_PARTY, Testbed


async def inflict(bed: Testbed) -> int:
    groups = [name for name in bed.pids if name not in THIRD_PARTY]
    for group in groups:
        bed.signal(signal.SIGKILL, group)
        await bed.last(1)
    return len(groups)


FAULT = Fault(inflict)
