"""Workers of other packages die as by a power cut, each in its own process."""

import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import THIRD_PARTY, Testbed

_TIMES = 2


async def inflict(bed: Testbed) -> int:
    killed = 0
    for _ in range(_TIMES):
        await bed.last(1)
        killed += bed.signal(signal.SIGKILL, *THIRD_PARTY)
        await bed.well()
    return killed


FAULT = Fault(inflict)
