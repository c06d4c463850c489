"""The global memory over the bus."""

from collections.abc import Awaitable, Collection, Sequence

from bus_schema.glm import MAX_PAGE, BatchItem, BatchReport, BatchStoreKems, KemPage, RetrieveKems
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from memory.swm.working_memory import GlmAway
from mindbus.bus.client import Client, ResultT
from mindbus.errors import BusUnavailable, Rejected, ReplyError

_WITHIN_S = 10.0


class GlmLink:
    """Fetches in its own name, since its caller checks the rights; queries and stores in the name of the requester."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus

    async def fetch(self, kem_ids: Collection[str]) -> list[Kem]:
        ids = sorted(kem_ids)
        kems: list[Kem] = []
        for first in range(0, len(ids), MAX_PAGE):
            query = RetrieveKems(query=KemQuery(ids=tuple(ids[first : first + MAX_PAGE])), page_size=MAX_PAGE)
            kems += [item.kem for item in (await _answer(self._bus.request(query, timeout_s=_WITHIN_S))).items]
        return kems

    async def page(self, query: KemQuery, principal: str, cursor: str | None, page_size: int) -> KemPage:
        retrieval = RetrieveKems(query=query, cursor=cursor, page_size=page_size)
        return await _answer(self._bus.acting_as(principal).request(retrieval, timeout_s=_WITHIN_S))

    async def store(self, drafts: Sequence[KemDraft], publisher: str) -> BatchReport:
        """Store a batch; one that is rejected as a whole, or that made the global memory fail, is stored unit by unit.

        After such a failure the batch and the unit that caused it are dead letters; the others are stored.
        """
        batch = BatchStoreKems(kems=tuple(drafts))
        try:
            asking = self._bus.acting_as(publisher).request(batch, timeout_s=_WITHIN_S)
            return await _answer(asking, passing=(Code.UNAVAILABLE,))
        except Rejected as error:
            if len(drafts) == 1:
                item = BatchItem(kem_id=str(drafts[0].id), status="refused", code=error.code, error=str(error))
                return BatchReport(items=(item,))
        reports = [await self.store([draft], publisher) for draft in drafts]
        return BatchReport(items=tuple(item for report in reports for item in report.items))


async def _answer(asked: Awaitable[ResultT], passing: Collection[Code] = (Code.UNAVAILABLE, Code.INTERNAL)) -> ResultT:
    """Raises Rejected, GlmAway; `passing` are the codes of failures that may pass."""
    try:
        return await asked
    except BusUnavailable as error:
        raise GlmAway(str(error)) from error
    except ReplyError as error:
        if error.code in passing:
            raise GlmAway(str(error)) from error
        raise Rejected(error.code, error.message, error.details) from error
