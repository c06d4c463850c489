"""A log of JSON records in shared memory, such as the items of a session."""

import secrets
import time
from collections.abc import Sequence
from typing import Any

from bus_schema.kem import Kem
from bus_schema.kem_query import OrderBy
from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.own_units import OwnUnits, label_of

_LOG = "record_log"


class RecordLog:
    """Records of one log of the identity of the bus, in the order in which they were appended, a unit each.

    All methods run in the thread of the bus.
    """

    def __init__(self, bus: BusThread, name: str) -> None:
        self._units = OwnUnits(bus)
        self._metadata = {_LOG: label_of(name)}

    async def append(self, records: Sequence[Any]) -> None:
        """Append records, one after the other: of a call that fails the first ones may be there."""
        # Ids sort as the records do.
        now = time.time_ns()
        for number, record in enumerate(records):
            await self._units.put(f"kem_{now:016x}{number:08x}{secrets.token_hex(4)}", record, self._metadata)

    async def units(self, limit: int | None = None) -> list[Kem]:
        """All records, or the last ones."""
        order: OrderBy = "id asc" if limit is None else "id desc"
        found: list[Kem] = []
        async for item in self._units.find(self._metadata, order=order):
            if limit is not None and len(found) >= limit:
                break
            found.append(item.kem)
        return found if limit is None else found[::-1]

    async def pop(self) -> Kem | None:
        """Remove the last record."""
        for kem in await self.units(1):
            await self._units.delete(kem.id)
            return kem
        return None

    async def clear(self) -> None:
        for kem in await self.units():
            await self._units.delete(kem.id)
