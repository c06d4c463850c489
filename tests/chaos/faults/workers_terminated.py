"""Every worker process is ended in good order, and comes back."""

import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    return bed.signal(signal.SIGTERM)


FAULT = Fault(inflict)
