"""An operator closes every connection in RabbitMQ's screens."""

from contextlib import suppress

import httpx

from tests.chaos.faults.fault import Fault
from tests.chaos.testbed import Testbed


async def inflict(bed: Testbed) -> int:
    async with await bed.management() as management:
        found = await management.connections()
        for connection in found:
            # One may have gone by itself.
            with suppress(httpx.HTTPStatusError):
                await management.close_connection(connection.name, "closed by chaos")
    return len(found)


FAULT = Fault(inflict)
