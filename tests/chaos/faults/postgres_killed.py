"""PostgreSQL dies as by a power cut, and is started again."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_LASTS_S = 3.0


async def inflict(bed: Testbed) -> int:
    assert bed.postgres
    await bed.postgres.kill()
    await bed.last(_LASTS_S)
    await bed.postgres.start()
    return 1


FAULT = Fault(inflict, needs=("postgres",))
