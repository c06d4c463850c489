"""The supervisor dies as by a power cut; somebody says `mindbus up -d` again."""

import os
import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    os.kill(bed.supervisor, signal.SIGKILL)
    await bed.up()
    return 1


FAULT = Fault(inflict)
