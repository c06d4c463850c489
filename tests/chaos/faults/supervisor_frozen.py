"""The supervisor stops while a worker dies, then goes on."""

import os
import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LASTS_S = 4.0


async def inflict(bed: Testbed) -> int:
    supervisor = bed.supervisor
    os.kill(supervisor, signal.SIGSTOP)
    try:
        bed.signal(signal.SIGKILL, "audit")
        await bed.last(_LASTS_S)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    return 1


FAULT = Fault(inflict)
