"""No worker can open a file or a connection, as after a leak, until another process has taken its place."""

from resource import RLIMIT_NOFILE, prlimit

from mindbus.testing.wait import until
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

# Those of standard input, output and errors.
_LEFT = 3
_REPLACED_WITHIN_S = 60.0


async def inflict(bed: Testbed) -> int:
    spent = set(bed.pids.values())
    for pid in spent:
        _, most = prlimit(pid, RLIMIT_NOFILE)
        prlimit(pid, RLIMIT_NOFILE, (_LEFT, most))
    await until(lambda: not spent & set(bed.pids.values()), _REPLACED_WITHIN_S, "other processes are there")
    return len(spent)


FAULT = Fault(inflict)
