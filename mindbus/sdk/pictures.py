"""The big picture of each user: what to keep in mind when talking with them."""

import secrets
from collections.abc import AsyncIterator, Iterable

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from bus_schema.agent_data import AgentDataPage, GetAgentData, PutAgentData
from mindbus.bus.client import Client
from mindbus.sdk.aside import aside
from mindbus.sdk.asking import ask

_PAINTER, _NAMESPACE = "context_manager", "pictures"


class Known(BaseModel):
    """Something worth keeping in mind; `id` says where it is from."""

    model_config = ConfigDict(frozen=True)
    id: str
    text: str = Field(max_length=1000)


_PICTURE = TypeAdapter(tuple[Known, ...])


class Pictures:
    """One agent paints them, others look at them. Raises Rejected, TemporaryFailure, BusUnavailable."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus

    async def of(self, user_id: str) -> tuple[Known, ...]:
        """What is to be kept in mind, the most important first."""
        query = GetAgentData(agent=_PAINTER, namespace=_NAMESPACE, key=user_id)
        found = await self._ask(query)
        return _PICTURE.validate_python(found.items[0].value) if found.items else ()

    async def users(self) -> AsyncIterator[str]:
        """Everybody who has one."""
        wanted = GetAgentData(agent=_PAINTER, namespace=_NAMESPACE)
        while True:
            found = await self._ask(wanted)
            for datum in found.items:
                yield datum.key
            if found.next_cursor is None:
                return
            wanted = wanted.model_copy(update={"cursor": found.next_cursor})

    async def paint(self, user_id: str, known: Iterable[Known]) -> None:
        """Put this in the place of the picture that there was."""
        value = _PICTURE.dump_python(tuple(known), mode="json")
        command = PutAgentData(agent=_PAINTER, namespace=_NAMESPACE, key=user_id, value=value)
        await aside(secrets.token_hex(8), lambda: ask(self._bus, command))

    async def _ask(self, query: GetAgentData) -> AgentDataPage:
        return await aside(secrets.token_hex(8), lambda: ask(self._bus, query))
