"""Somebody starts a second fleet on the data folder of a running one; it has to leave the first alone."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import CommandFailed, Testbed

_TIMES = 2


async def inflict(bed: Testbed) -> int:
    first = bed.supervisor, bed.pids
    await bed.up()
    code, output = await bed.try_mindbus("up", "-d", "--clear", "--yes", "--workers", ",".join(bed.workers))
    if code == 0 or (bed.supervisor, bed.pids) != first:
        raise CommandFailed(f"a second fleet has started on one folder:\n{output}")
    return _TIMES


FAULT = Fault(inflict)
