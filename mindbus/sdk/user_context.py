"""The items to keep in mind when talking with a user: written by the context manager, read by other agents."""

from collections.abc import AsyncIterator, Iterable

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from bus_schema.agent_data import GetAgentData, PutAgentData
from mindbus.bus.client import Client
from mindbus.sdk.requests import pages_of, scoped_request

_AGENT, _NAMESPACE = "context_manager", "pictures"


class ContextItem(BaseModel):
    """Something worth keeping in mind; `id` names its source."""

    model_config = ConfigDict(frozen=True)
    id: str
    text: str = Field(max_length=1000)


_ITEMS = TypeAdapter(tuple[ContextItem, ...])


class UserContexts:
    """Context items by user, kept by storage. Raises Rejected, TemporaryFailure, BusUnavailable."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus

    async def of(self, user_id: str) -> tuple[ContextItem, ...]:
        """A user's items, the most important first."""
        page = await scoped_request(self._bus, GetAgentData(agent=_AGENT, namespace=_NAMESPACE, key=user_id))
        return _ITEMS.validate_python(page.items[0].value) if page.items else ()

    async def users(self) -> AsyncIterator[str]:
        """Every user who has items."""
        query = GetAgentData(agent=_AGENT, namespace=_NAMESPACE)
        async for page in pages_of(self._bus, query):
            for datum in page.items:
                yield datum.key

    async def replace(self, user_id: str, items: Iterable[ContextItem]) -> None:
        """Replace a user's items."""
        value = _ITEMS.dump_python(tuple(items), mode="json")
        await scoped_request(self._bus, PutAgentData(agent=_AGENT, namespace=_NAMESPACE, key=user_id, value=value))
