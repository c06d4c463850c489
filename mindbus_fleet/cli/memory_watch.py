"""Changes of the units that a reader may see, as they happen."""

from collections.abc import AsyncIterator
from typing import Any

from cachetools import LRUCache

from bus_schema.envelope import Envelope
from bus_schema.glm import KemDeleted, KemUpdated, RetrieveKems
from bus_schema.kem import KemNotice
from bus_schema.kem_query import KemQuery
from bus_schema.messages import Event, UnknownType, message_class
from mindbus.bus.client import Client
from mindbus.sdk.kem_filters import Filter, FilterSubject

_REMEMBERED = 10_000


class Watch:
    """Changes of the units that match a filter; units hidden from the requester are left out."""

    def __init__(self, bus: Client, wanted: Filter) -> None:
        self._bus, self._wanted = bus, wanted
        self._known: LRUCache[str, dict[str, Any]] = LRUCache(_REMEMBERED)

    async def changes(self) -> AsyncIterator[dict[str, Any]]:
        async with self._bus.subscribe("kem.*") as events:
            async for envelope in events:
                change = await self._look(envelope)
                if change is not None:
                    yield change

    async def _look(self, envelope: Envelope) -> dict[str, Any] | None:
        name = envelope.type.split(".")[3]
        event = _event(envelope)
        kem_id = getattr(event, "kem_id", None)
        if kem_id is None:
            return None
        told = {"event": name, "kem_id": kem_id, "at": envelope.time.isoformat(), "by": envelope.mbrequester}
        if isinstance(event, KemNotice):
            metadata = await self._readable(event)
            told |= {"version": event.version, "metadata": metadata}
        else:
            # Of what is gone nobody can be asked any more who might read it: whoever heard of it before may know.
            metadata = self._known.get(kem_id)
        if metadata is None:
            self._known.pop(kem_id, None)
            return None
        self._known[kem_id] = metadata
        return told if self._wanted.matches(FilterSubject(_kind(event), kem_id, metadata)) else None

    async def _readable(self, notice: KemNotice) -> dict[str, Any] | None:
        if notice.visibility == "public":
            return notice.metadata
        page = await self._bus.request(RetrieveKems(query=KemQuery(ids=(notice.kem_id,)), page_size=1))
        return page.items[0].kem.metadata if page.items else None


def _event(envelope: Envelope) -> Event | None:
    try:
        kind = message_class(envelope.type)
    except UnknownType:
        return None
    return kind.model_validate(envelope.data) if issubclass(kind, Event) else None


def _kind(event: Event | None) -> str:
    if isinstance(event, KemNotice):
        return "KEM_UPDATED" if isinstance(event, KemUpdated) or event.version > 1 else "KEM_PUBLISHED"
    return "KEM_DELETED" if isinstance(event, KemDeleted) else "KEM_EVICTED"
