"""A session of the OpenAI Agents SDK over shared memory; it needs nothing of the SDK, whose sessions are a protocol."""

import json
from typing import Any

from bus_schema.kem import Kem
from mindbus.integrations.bus_thread import BusThread
from mindbus.integrations.record_log import RecordLog


class MindBusSession:
    """Items of one session of the identity of the bus, in their order."""

    session_settings: Any = None

    def __init__(self, bus: BusThread, session_id: str) -> None:
        self.session_id = session_id
        self._bus, self._log = bus, RecordLog(bus, f"openai:{session_id}")

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """All items, or the last `limit`."""
        limit = limit if limit is not None else getattr(self.session_settings, "limit", None)
        if limit is not None and limit <= 0:
            return []
        return [_item_of(kem) for kem in await self._bus.acall(self._log.units(limit))]

    async def add_items(self, items: list[Any]) -> None:
        await self._bus.acall(self._log.append(items))

    async def pop_item(self) -> Any | None:
        """Remove the last item and return it."""
        popped = await self._bus.acall(self._log.pop())
        return None if popped is None else _item_of(popped)

    async def clear_session(self) -> None:
        await self._bus.acall(self._log.clear())


def _item_of(kem: Kem) -> Any:
    return json.loads(kem.content or "null")
