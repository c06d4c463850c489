"""The broker that the supervisor keeps dies as by a power cut."""

import os
import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    (pid_file,) = (bed.settings.data_dir / "broker").glob("mnesia/*.pid")
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    return 1


FAULT = Fault(inflict, has_own_fleet=True)
