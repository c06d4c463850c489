"""Units of memory as agents read them: from the nearest place that has them."""

from collections.abc import Awaitable, Callable, Collection

from bus_schema.glm import MAX_PAGE, KemPage, RetrieveKems
from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from bus_schema.swm import LoadKemsFromGlm, QuerySwm
from mindbus.sdk.memory_failures import MemoryAway
from mindbus.sdk.memory_link import OnMemory

Place = type[QuerySwm] | type[RetrieveKems]


class Lookup(OnMemory):
    """The part of the SDK that reads; what it finds is at hand in local memory from then on."""

    async def get_kem(self, kem_id: str, *, force_remote: bool = False) -> Kem | None:
        """From local memory, else from the working memory, else from the global one; `force_remote` asks that at once.

        None where there is none that the agent may read. Raises MemoryAway.
        """
        if not force_remote and (known := self.local_memory.get(kem_id)) is not None:
            return known
        query = KemQuery(ids=(kem_id,))
        found = await (self._from_glm(query) if force_remote else self._from_nearest(query))
        return found[0] if found else None

    def query_local_memory(self, query: KemQuery | None = None) -> list[Kem]:
        """As LocalAgentMemory.query, which asks nobody. Raises NotAtHand."""
        return self.local_memory.query(query)

    async def query_swm(self, query: KemQuery, *, cursor: str | None = None, page_size: int = 50) -> KemPage:
        """A page of the units that agents have at hand. Raises MemoryAway."""
        return await self._page(QuerySwm(query=query, cursor=cursor, page_size=page_size))

    async def retrieve_kems(
        self, query: KemQuery, *, cursor: str | None = None, page_size: int = 50, explain: bool = False
    ) -> KemPage:
        """A page of all that there are, the nearest first where the question has a text or a vector.

        Raises MemoryAway.
        """
        return await self._page(RetrieveKems(query=query, cursor=cursor, page_size=page_size, explain=explain))

    async def load_kems_to_lpa_from_swm(self, query: KemQuery, limit: int = 50) -> list[Kem]:
        """Have in local memory what agents have at hand. Raises MemoryAway."""
        return await self._kept(lambda: self._all(QuerySwm, query, limit))

    async def prefetch(self, query: KemQuery, limit: int = 50) -> list[Kem]:
        """Have at hand, here as well as for all agents, what the global memory finds; at most 200 units.

        Without the working memory, here alone. Raises MemoryAway.
        """
        command = LoadKemsFromGlm(query=query, limit=limit)

        async def loaded() -> list[Kem]:
            try:
                kem_ids = (await self.link.ask(command)).kem_ids
                found = await self._all(QuerySwm, KemQuery(ids=kem_ids), limit) if kem_ids else []
            except MemoryAway:
                return await self._all(RetrieveKems, query, limit)
            if gone := set(kem_ids) - {kem.id for kem in found}:
                # It has no room for so many.
                found += await self._all(RetrieveKems, KemQuery(ids=tuple(gone)), limit)
            return sorted(found, key=lambda kem: kem_ids.index(kem.id))

        return await self._kept(loaded)

    async def _from_nearest(self, query: KemQuery) -> list[Kem]:
        try:
            at_hand = await self.load_kems_to_lpa_from_swm(query, 1)
        except MemoryAway:
            # It is a short cut, no more.
            return await self._from_glm(query)
        return at_hand or await self.prefetch(query, 1)

    async def _from_glm(self, query: KemQuery) -> list[Kem]:
        return await self._kept(lambda: self._all(RetrieveKems, query, 1), query.ids)

    async def _page(self, question: QuerySwm | RetrieveKems) -> KemPage:
        moment = self.local_memory.moment()
        page = await self.link.ask(question)
        for item in page.items:
            self.local_memory.keep(item.kem, moment)
        return page

    async def _all(self, place: Place, query: KemQuery, limit: int) -> list[Kem]:
        found: list[Kem] = []
        cursor = None
        while True:
            page_size = min(limit - len(found), MAX_PAGE)
            page = await self.link.ask(place(query=query, cursor=cursor, page_size=page_size))
            found += [item.kem for item in page.items]
            cursor = page.next_cursor
            if cursor is None or len(found) >= limit:
                return found

    async def _kept(self, asking: Callable[[], Awaitable[list[Kem]]], wanted: Collection[str] = ()) -> list[Kem]:
        """Of those that are wanted by their id, what is not found is no longer at hand here either."""
        moment = self.local_memory.moment()
        kems = await asking()
        for kem in kems:
            self.local_memory.keep(kem, moment)
        for gone in set(wanted) - {kem.id for kem in kems}:
            self.local_memory.drop(gone)
        return kems
