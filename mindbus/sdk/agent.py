"""Shared memory for agents: one object for all that they do with it (spec 000 §3.5)."""

from collections.abc import Iterable
from typing import Self

from mindbus.bus.client import Client
from mindbus.bus.connection import connect
from mindbus.sdk.coordination import CoordinationClient
from mindbus.sdk.errors import NotOpen
from mindbus.sdk.kems import KemWriter
from mindbus.sdk.local_memory import MAX_BYTES, LocalAgentMemory
from mindbus.sdk.memory_link import MemoryLink
from mindbus.sdk.retry import RetryPolicy
from mindbus.sdk.swm_events import SubscriptionClient
from mindbus.settings import Settings


class AgentSDK(KemWriter, CoordinationClient, SubscriptionClient):
    """`async with AgentSDK("agent.planner", lpa_indexed_keys=["topic"]) as memory`; within a worker, give it its bus.

    Requests are repeated until there is a reply and take effect once; MemoryAway is raised where there is none.
    """

    def __init__(
        self,
        agent_id: str = "user.local",
        *,
        lpa_indexed_keys: Iterable[str] = (),
        lpa_max_bytes: int = MAX_BYTES,
        bus: Client | None = None,
        settings: Settings | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> None:
        self._agent_id, self._settings, self._retries = agent_id, settings, retry_policy or RetryPolicy()
        self.local_memory = LocalAgentMemory(lpa_indexed_keys, lpa_max_bytes)
        self._own_bus: Client | None = None
        self._link = None if bus is None else MemoryLink(bus, self._retries)

    @property
    def agent_id(self) -> str:
        """The identity of its requests. Raises NotOpen."""
        return self.link.bus.owner

    @property
    def link(self) -> MemoryLink:
        """The connection to memory. Raises NotOpen."""
        if self._link is None:
            raise NotOpen(NotOpen.__doc__)
        return self._link

    async def __aenter__(self) -> Self:
        """Connect to the bus. Raises NoBroker."""
        if self._link is None:
            self._own_bus = connect(self._agent_id, settings=self._settings)
            self._link = MemoryLink(self._own_bus, self._retries)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Close a connection of its own."""
        await self.link.close()
        if self._own_bus is not None:
            await self._own_bus.close()
            self._own_bus = self._link = None
