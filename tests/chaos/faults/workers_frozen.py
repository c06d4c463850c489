"""Every worker process stops, as under a debugger or on a machine that swaps, then goes on."""

import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    frozen = bed.signal(signal.SIGSTOP)
    try:
        await bed.silence()
    finally:
        bed.signal(signal.SIGCONT)
    return frozen


FAULT = Fault(inflict, detection="process")
