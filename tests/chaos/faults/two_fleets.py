"""Somebody starts a second fleet on the data folder of a running one; it has to refuse."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import CommandFailed, Testbed

_TIMES = 2


async def inflict(bed: Testbed) -> int:
    for _ in range(_TIMES):
        code, output = await bed.try_mindbus("up", "-d", "--workers", ",".join(bed.workers))
        if code == 0:
            raise CommandFailed(f"a second fleet has started on one folder:\n{output}")
    return _TIMES


FAULT = Fault(inflict)
