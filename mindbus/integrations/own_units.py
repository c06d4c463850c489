"""Private units of shared memory that hold a framework's records as JSON."""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from bus_schema.glm import MAX_PAGE, DeleteKem, FoundKem, RetrieveKems, StoreKem
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import MAX_FILTER_CHARS, KemQuery, OrderBy
from bus_schema.replies import Code
from mindbus.errors import ReplyError
from mindbus.integrations.bus_thread import BusThread

OWNER = "record_owner"


def label_of(text: str) -> str:
    """A text as filters can look for it: a long one is its digest."""
    return text if len(text) <= MAX_FILTER_CHARS else hashlib.sha256(text.encode()).hexdigest()


class OwnUnits:
    """Records of one kind that belong to the identity of the bus; nobody else sees them.

    All methods run in the thread of the bus.
    """

    def __init__(self, bus: BusThread) -> None:
        self._bus = bus

    @property
    def owner(self) -> str:
        return self._bus.client.owner

    async def put(self, kem_id: str, record: Any, metadata: Mapping[str, Any]) -> Kem:
        """Store a record in place of the one of this id. Raises ReplyError, of more than 64 KiB too; NoReply."""
        content = json.dumps(record, ensure_ascii=False, allow_nan=False)
        draft = KemDraft(
            id=kem_id,
            content_type="application/json",
            content=content,
            metadata={**metadata, OWNER: self.owner},
            visibility="private",
        )
        return await self._bus.client.request(StoreKem(kem=draft))

    async def get(self, kem_id: str) -> Kem | None:
        page = await self._bus.client.request(RetrieveKems(query=KemQuery(ids=(kem_id,)), page_size=1))
        return page.items[0].kem if page.items else None

    async def delete(self, kem_id: str) -> None:
        """Delete a record, if it is there."""
        try:
            await self._bus.client.request(DeleteKem(kem_id=kem_id))
        except ReplyError as error:
            if error.code is not Code.NOT_FOUND:
                raise

    async def find(
        self, metadata: Mapping[str, Any], *, text: str | None = None, order: OrderBy | None = None
    ) -> AsyncIterator[FoundKem]:
        """Records with these metadata, all of them: those nearest to a text first, or in an order."""
        own = {**metadata, OWNER: self.owner}
        query = KemQuery(metadata_filters=own, text_query=text, order_by=order)
        if text is not None:
            query = query.model_copy(update={"hides_unrelated": False})
        cursor = None
        while True:
            page = await self._bus.client.request(RetrieveKems(query=query, cursor=cursor, page_size=MAX_PAGE))
            for item in page.items:
                yield item
            if (cursor := page.next_cursor) is None:
                return
