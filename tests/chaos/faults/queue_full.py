"""A queue of commands takes no more, since its worker is frozen."""

import json
import signal

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_MOST = 20
_LASTS_S = 4.0


async def inflict(bed: Testbed) -> int:
    await bed.node.ctl(
        "set_policy", "--apply-to", "queues", "chaos", "^mb.q.booking$", json.dumps({"max-length": _MOST})
    )
    bed.signal(signal.SIGSTOP, "booking")
    try:
        await bed.last(_LASTS_S)
    finally:
        bed.signal(signal.SIGCONT, "booking")
        await bed.node.ctl("clear_policy", "chaos")
    return 1


FAULT = Fault(inflict)
