"""People of shipped teams who have spoken: agents recognise them from then on."""

import time

from agents.people_directory import PeopleDirectory
from bus_schema.agent_data import GetAgentData, PutAgentData
from mindbus.bus.client import Client
from mindbus.sdk.requests import items_of, request_in_scope

_NAMESPACE = "heard"
_TTL_S = 30.0


class HeardUsers:
    """Simulated users who have spoken, kept by storage for one agent; a user's entry goes with the user."""

    def __init__(self, bus: Client, agent: str, roster: PeopleDirectory) -> None:
        self._bus, self._agent, self._roster = bus, agent, roster
        self._heard: frozenset[str] = frozenset()
        self._read_at: float | None = None

    @property
    def known(self) -> frozenset[str]:
        """Those read last."""
        return self._heard

    async def including(self, user_id: str) -> frozenset[str]:
        """All of them, with this one if they are simulated."""
        now = time.monotonic()
        if self._read_at is None or now >= self._read_at + _TTL_S:
            query = GetAgentData(agent=self._agent, namespace=_NAMESPACE)
            self._heard = frozenset([datum.key async for datum in items_of(self._bus, query)])
            self._read_at = now
        if self._roster.is_simulated(user_id) and user_id not in self._heard:
            await self.add(user_id)
        return self._heard

    async def add(self, user_id: str) -> None:
        """Record that somebody has spoken."""
        await request_in_scope(
            self._bus, PutAgentData(agent=self._agent, namespace=_NAMESPACE, key=user_id, value=True)
        )
        self._heard |= {user_id}
