"""The clock of a worker goes five minutes behind."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_SKEW_S = -300


async def inflict(bed: Testbed) -> int:
    bed.set_clock(_SKEW_S)
    return 1


async def heal(bed: Testbed) -> None:
    bed.set_clock(0)


FAULT = Fault(inflict, heal)
