"""Queues of commands, empty at that moment, are deleted under their consumers."""

from mindbus.testing.wait import until
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_QUEUES = ("mb.q.booking", "mb.q.lsm", "mb.q.orchestrator")
_EMPTY_WITHIN_S = 60.0


async def inflict(bed: Testbed) -> int:
    # What lies in a deleted queue is deleted, too.
    await bed.wave.pause()
    async with await bed.management() as management:
        await until(bed.is_idle, _EMPTY_WITHIN_S, "nothing is under way")
        for queue in _QUEUES:
            await management.delete_queue(queue)
    bed.wave.resume()
    return len(_QUEUES)


FAULT = Fault(inflict)
