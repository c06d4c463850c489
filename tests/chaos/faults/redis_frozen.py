"""Redis stops answering while all connections stay open, then goes on."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LASTS_S = 4.0


async def inflict(bed: Testbed) -> int:
    assert bed.redis
    bed.redis.freeze()
    try:
        await bed.last(_LASTS_S)
    finally:
        bed.redis.thaw()
    return 1


FAULT = Fault(inflict, needs=("redis",))
