"""A message kills whoever handles it until it is dead-lettered, and again once replayed; the others are innocent."""

from mindbus.bus.deadletters import DeadLetters
from mindbus.runtime.provision import Administrator
from mindbus.testing.wait import until
from tests.chaos.bookkeeping import DEADLY, Book
from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed

_DEAD_WITHIN_S = 180.0
# Of twenty deaths most would be waiting: a worker that dies again and again comes back later each time.
_LIMIT = {"pattern": r"^mb\.q\.booking$", "definition": {"delivery-limit": 2}, "apply-to": "queues", "priority": 9}


async def inflict(bed: Testbed) -> int:
    administrator = Administrator.of_private_node(bed.settings)
    assert administrator is not None
    await administrator.management.put_policy("chaos", _LIMIT)
    letters = DeadLetters(administrator.amqp_url)
    sent = await bed.bus.send(Book(entry=DEADLY))

    async def is_dead_for_good() -> bool:
        found = await letters.look("booking")
        return any(letter.message_id == sent and letter.replayed_by for letter in found)

    await until(is_dead_for_good, _DEAD_WITHIN_S, "the message has died of its replay, too")
    return 1


FAULT = Fault(inflict, has_own_fleet=True)
