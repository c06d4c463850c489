"""No worker can open a file or a connection: the limit on descriptors is reached; what is open stays open."""

from resource import RLIMIT_NOFILE, prlimit

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

# Those of standard input, output and errors.
_LEFT = 3


async def inflict(bed: Testbed) -> int:
    before = {pid: prlimit(pid, RLIMIT_NOFILE) for pid in bed.pids.values()}
    for pid, (_, most) in before.items():
        prlimit(pid, RLIMIT_NOFILE, (_LEFT, most))
    try:
        await bed.told("history")
    finally:
        for pid in before.keys() & set(bed.pids.values()):
            prlimit(pid, RLIMIT_NOFILE, before[pid])
    return len(before)


FAULT = Fault(inflict)
