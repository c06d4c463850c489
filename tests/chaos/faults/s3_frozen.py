"""The object store stops answering while all connections stay open, then goes on."""

import os
import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LASTS_S = 4.0


async def inflict(bed: Testbed) -> int:
    assert bed.seaweed
    os.kill(bed.seaweed.pid, signal.SIGSTOP)
    try:
        await bed.last(_LASTS_S)
    finally:
        os.kill(bed.seaweed.pid, signal.SIGCONT)
    return 1


FAULT = Fault(inflict, needs=("s3",))
