"""Every fifth COMMIT ends its connection: it never arrives, or is done unheard, or is done late."""

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed
from tests.postgres_proxy import Fate

_LASTS_S = 4.0
_EVERY = 5


async def inflict(bed: Testbed) -> int:
    assert bed.cutter
    cutter, fates = bed.cutter, list(Fate)
    before, passing = len(cutter.cuts), cutter.fate_of
    cutter.fate_of = lambda number: None if number % _EVERY else bed.chance.choice(fates)
    await bed.last(_LASTS_S)
    cutter.fate_of = passing
    return len(cutter.cuts) - before


FAULT = Fault(inflict, needs=("postgres",))
