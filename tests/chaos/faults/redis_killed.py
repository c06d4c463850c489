"""Redis dies with all that it held, and is started again."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LASTS_S = 3.0


async def inflict(bed: Testbed) -> int:
    assert bed.redis
    await bed.redis.kill()
    await bed.last(_LASTS_S)
    await bed.redis.start()
    return 1


FAULT = Fault(inflict, needs=("redis",))
