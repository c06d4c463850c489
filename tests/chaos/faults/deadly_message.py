"""A message that kills whoever handles it, until it is dead-lettered; those around it are innocent."""

from mindbus.runtime.provision import Administrator
from mindbus.testing.wait import until
from tests.chaos.bookkeeping import DEADLY, Book
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_BURIED_WITHIN_S = 180.0
_DEAD = "mb.q.booking.dead"
# Of twenty deaths most would be waiting: a worker that dies again and again comes back later each time.
_LIMIT = {"pattern": r"^mb\.q\.booking$", "definition": {"delivery-limit": 5}, "apply-to": "queues", "priority": 9}


async def inflict(bed: Testbed) -> int:
    administrator = Administrator.of_private_node(bed.settings)
    assert administrator is not None
    await administrator.management.put_policy("chaos", _LIMIT)
    async with await bed.management() as management:

        async def buried() -> int:
            queues = await management.queues()
            return queues[_DEAD].depth if _DEAD in queues else 0

        before = await buried()
        await bed.bus.send(Book(entry=DEADLY))

        async def is_buried() -> bool:
            return await buried() > before

        await until(is_buried, _BURIED_WITHIN_S, "the message is dead-lettered")
    return 1


FAULT = Fault(inflict, has_own_fleet=True)
