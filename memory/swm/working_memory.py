"""The units that agents share at once (spec 000 §4.3)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from bus_schema.glm import KemPage
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import KemQuery
from memory.swm.cache import CacheAway
from memory.swm.glm import Glm, GlmAway
from memory.swm.happenings import Happening
from memory.swm.matching import page_of
from memory.swm.publishing import first, following
from memory.swm.refusals import MemoryAway
from memory.swm.shelf import Shelf
from memory.swm.writes import Write, Writes
from mindbus.errors import Rejected
from mindbus.principal import Principal

NamedDraft = tuple[str, KemDraft]


class WorkingMemory:
    """A shelf before the global memory; every read of it asks for the rights."""

    def __init__(self, shelf: Shelf, writes: Writes, glm: Glm, clock: Callable[[], datetime]) -> None:
        self._shelf, self._writes, self._glm, self._clock = shelf, writes, glm, clock

    async def publish(
        self, drafts: Sequence[NamedDraft], principal: Principal, *, persist: bool
    ) -> list[Happening | Rejected]:
        """Each for itself; what is to be kept in the global memory is on its way there, whether it is up or not."""
        beyond, is_sure = await self._beyond(draft.id for _, draft in drafts if draft.id is not None)
        async with self._shelf.turn:
            outcomes = [await self._published(each, principal, beyond, is_sure=is_sure) for each in drafts]
            if persist:
                await self._writes.add(list(_persisting(drafts, outcomes, principal)))
        return outcomes

    async def query(self, query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
        """Among the units at hand; while the cache is away, in the global memory. Raises InvalidCursor, MemoryAway."""
        try:
            page = page_of(await self._shelf.candidates(query), query, principal, cursor, page_size)
            await self._shelf.cache.used([item.kem.id for item in page.items])
        except CacheAway:
            return await self._page(query, principal, cursor, page_size)
        return page

    async def load(self, query: KemQuery, principal: Principal, limit: int) -> tuple[list[str], list[Happening]]:
        """Have at hand what the global memory finds: the ids, what is new of it. Raises MemoryAway."""
        page = await self._page(query, principal, None, limit)
        kems = [item.kem for item in page.items]
        async with self._shelf.turn:
            # What is still on its way there is newer.
            pending = await self._writes.pending([kem.id for kem in kems])
            happened = [await self._loaded(kem) for kem in kems if kem.id not in pending]
        return [kem.id for kem in kems], [each for each in happened if each is not None]

    async def _published(
        self, each: NamedDraft, principal: Principal, beyond: dict[str, Kem], *, is_sure: bool
    ) -> Happening | Rejected:
        kem_id, draft = each
        at_hand = await self._shelf.find(kem_id)
        older = at_hand or beyond.get(kem_id)
        is_known_new = draft.id is None or is_sure
        try:
            if older is None:
                kem = first(draft, kem_id, principal, self._clock(), is_known_new=is_known_new)
            else:
                kem = following(draft, older, principal, self._clock())
        except Rejected as no:
            return no
        await self._shelf.put(kem)
        return Happening("KEM_PUBLISHED" if at_hand is None else "KEM_UPDATED", kem_id, kem)

    async def _loaded(self, kem: Kem) -> Happening | None:
        at_hand = await self._shelf.find(kem.id)
        if at_hand is not None and (at_hand.version, at_hand.updated_at) == (kem.version, kem.updated_at):
            return None
        await self._shelf.put(kem)
        return Happening("KEM_PUBLISHED" if at_hand is None else "KEM_UPDATED", kem.id, kem)

    async def _beyond(self, kem_ids: Iterable[str]) -> tuple[dict[str, Kem], bool]:
        """Those of these units that are not at hand but in the global memory, and whether it was there to be asked."""
        missing = [kem_id for kem_id in kem_ids if await self._shelf.find(kem_id) is None]
        try:
            return ({kem.id: kem for kem in await self._glm.fetch(missing)} if missing else {}), True
        except GlmAway:
            return {}, False

    async def _page(self, query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
        try:
            return await self._glm.page(query, principal.identity, cursor, page_size)
        except GlmAway as away:
            raise MemoryAway(reason=str(away)) from away


def _persisting(
    drafts: Sequence[NamedDraft], outcomes: Sequence[Happening | Rejected], principal: Principal
) -> Iterator[Write]:
    for (kem_id, draft), outcome in zip(drafts, outcomes, strict=True):
        if isinstance(outcome, Happening):
            yield Write("glm", kem_id, outcome.kem, principal.identity, tuple(sorted(draft.model_fields_set - {"id"})))
