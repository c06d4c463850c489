"""The global memory over the bus."""

from collections.abc import Awaitable, Collection, Sequence

from bus_schema.glm import MAX_PAGE, BatchItem, BatchReport, BatchStoreKems, KemPage, RetrieveKems
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from memory.swm.glm import GlmAway
from mindbus.bus.client import Client, ResultT
from mindbus.errors import BusUnavailable, Rejected, ReplyError

_WITHIN_S = 10.0


class GlmLink:
    """Fetches in its own name, for its caller looks at the rights; asks, stores in the name of whoever wants it."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus

    async def fetch(self, kem_ids: Collection[str]) -> list[Kem]:
        """As in Glm."""
        ids = sorted(kem_ids)
        found: list[Kem] = []
        for first in range(0, len(ids), MAX_PAGE):
            query = RetrieveKems(query=KemQuery(ids=tuple(ids[first : first + MAX_PAGE])), page_size=MAX_PAGE)
            found += [item.kem for item in (await _answer(self._bus.request(query, timeout_s=_WITHIN_S))).items]
        return found

    async def page(self, query: KemQuery, principal: str, cursor: str | None, page_size: int) -> KemPage:
        """As in Glm."""
        question = RetrieveKems(query=query, cursor=cursor, page_size=page_size)
        return await _answer(self._bus.acting_as(principal).request(question, timeout_s=_WITHIN_S))

    async def store(self, drafts: Sequence[KemDraft], publisher: str) -> BatchReport:
        """As in Glm; a batch that is refused as a whole is stored unit by unit.

        So is one that the global memory has failed over: it lies among its dead letters, as does the unit that is to
        blame, by itself, with the reason; the others go on.
        """
        batch = BatchStoreKems(kems=tuple(drafts))
        try:
            asking = self._bus.acting_as(publisher).request(batch, timeout_s=_WITHIN_S)
            return await _answer(asking, passing=(Code.UNAVAILABLE,))
        except Rejected as no:
            if len(drafts) == 1:
                item = BatchItem(kem_id=str(drafts[0].id), status="refused", code=no.code, error=str(no))
                return BatchReport(items=(item,))
        reports = [await self.store([draft], publisher) for draft in drafts]
        return BatchReport(items=tuple(item for report in reports for item in report.items))


async def _answer(asked: Awaitable[ResultT], passing: Collection[Code] = (Code.UNAVAILABLE, Code.INTERNAL)) -> ResultT:
    """Raises Rejected, GlmAway; `passing` are the failures that somebody else sees to."""
    try:
        return await asked
    except BusUnavailable as away:
        raise GlmAway(str(away)) from away
    except ReplyError as failed:
        if failed.code in passing:
            raise GlmAway(str(failed)) from failed
        raise Rejected(failed.code, failed.message, failed.details) from failed
