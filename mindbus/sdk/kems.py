"""Memory units (KEMs) as agents read and write them."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypedDict, Unpack

from bus_schema.artifacts import ArtifactRef
from bus_schema.glm import (
    MAX_PAGE,
    BatchItem,
    BatchReport,
    BatchStoreKems,
    DeleteKem,
    KemChanges,
    KemPage,
    RetrieveKems,
    UpdateKem,
)
from bus_schema.kem import Kem, KemRights, Metadata
from bus_schema.kem_query import KemQuery
from bus_schema.kps import Chunking, ProcessedData, ProcessRawData
from bus_schema.messages import Command, Link
from bus_schema.replies import Code
from bus_schema.swm import DropKem, LoadKemsFromGlm, PublishKems, QuerySwm
from mindbus.errors import ReplyError
from mindbus.sdk.errors import MemoryAway
from mindbus.sdk.memory_link import Batch, NewKem, SdkPart, batches_of, without_vector

# Whoever reads can do without.
READ_WITHIN_S = 3.0

KemSource = type[QuerySwm] | type[RetrieveKems]


# Of the time of a read, what working memory may take, which is only a shortcut.
_SHORTCUT_SHARE = 1 / 3


class KemReader(SdkPart):
    """Reads units; what is found is kept in local memory.

    `timeout_s` is the time of a call with all the requests that it takes, repeated ones included.
    """

    async def get_kem(self, kem_id: str, *, force_remote: bool = False, timeout_s: float = READ_WITHIN_S) -> Kem | None:
        """A unit from local, else working, else global memory; `force_remote` asks the global one at once.

        None where the agent may read none. Raises MemoryAway.
        """
        if not force_remote and (cached := self.local_memory.get(kem_id)) is not None:
            return cached
        query = KemQuery(ids=(kem_id,))
        with self.link.within(timeout_s):
            kems = await (self._from_glm(query) if force_remote else self._from_nearest(query, timeout_s))
        return kems[0] if kems else None

    def query_local_memory(self, query: KemQuery | None = None) -> list[Kem]:
        """As LocalAgentMemory.query: no request is sent. Raises RankedQueryUnsupported."""
        return self.local_memory.query(query)

    async def query_swm(
        self,
        query: KemQuery,
        *,
        cursor: str | None = None,
        page_size: int = 50,
        with_vectors: bool = False,
        timeout_s: float = READ_WITHIN_S,
    ) -> KemPage:
        """A page of the units in working memory. Raises MemoryAway."""
        with self.link.within(timeout_s):
            return await self._page(QuerySwm(query=query, cursor=cursor, page_size=page_size), with_vectors)

    async def retrieve_kems(
        self,
        query: KemQuery,
        *,
        cursor: str | None = None,
        page_size: int = 50,
        explain: bool = False,
        with_vectors: bool = False,
        timeout_s: float = READ_WITHIN_S,
    ) -> KemPage:
        """A page of all units, nearest first where the query has a text or a vector. Raises MemoryAway."""
        question = RetrieveKems(query=query, cursor=cursor, page_size=page_size, explain=explain)
        with self.link.within(timeout_s):
            return await self._page(question, with_vectors)

    async def load_kems_to_lpa_from_swm(
        self, query: KemQuery, limit: int = 50, *, timeout_s: float = READ_WITHIN_S
    ) -> list[Kem]:
        """Load units from working memory into local memory. Raises MemoryAway."""
        with self.link.within(timeout_s):
            return await self._fetch_and_cache(lambda: self._all(QuerySwm, query, limit))

    async def prefetch(self, query: KemQuery, limit: int = 50, *, timeout_s: float = READ_WITHIN_S) -> list[Kem]:
        """Load what the global memory finds into working and local memory, at most 200 units.

        Without working memory, into local memory alone. Raises MemoryAway.
        """
        with self.link.within(timeout_s):
            return await self._prefetch(query, limit)

    async def _prefetch(self, query: KemQuery, limit: int) -> list[Kem]:
        command = LoadKemsFromGlm(query=query, limit=limit)

        async def load() -> list[Kem]:
            try:
                kem_ids = (await self.link.ask(command)).kem_ids
                kems = await self._all(QuerySwm, KemQuery(ids=kem_ids), limit) if kem_ids else []
            except MemoryAway:
                return await self._all(RetrieveKems, query, limit)
            if missing_ids := set(kem_ids) - {kem.id for kem in kems}:
                # Working memory has no room for so many.
                kems += await self._all(RetrieveKems, KemQuery(ids=tuple(missing_ids)), limit)
            return sorted(kems, key=lambda kem: kem_ids.index(kem.id))

        return await self._fetch_and_cache(load)

    async def _from_nearest(self, query: KemQuery, timeout_s: float) -> list[Kem]:
        try:
            at_hand = await self.load_kems_to_lpa_from_swm(query, 1, timeout_s=timeout_s * _SHORTCUT_SHARE)
        except MemoryAway:
            return await self._from_glm(query)
        return at_hand or await self._prefetch(query, 1)

    async def _from_glm(self, query: KemQuery) -> list[Kem]:
        return await self._fetch_and_cache(lambda: self._all(RetrieveKems, query, 1), query.ids)

    async def _page(self, question: QuerySwm | RetrieveKems, with_vectors: bool) -> KemPage:
        moment = self.local_memory.moment()
        page = await self.link.ask(question)
        plain = [item.model_copy(update={"kem": without_vector(item.kem)}) for item in page.items]
        self._keep([item.kem for item in plain], moment)
        return page if with_vectors else page.model_copy(update={"items": tuple(plain)})

    async def _all(self, place: KemSource, query: KemQuery, limit: int) -> list[Kem]:
        kems: list[Kem] = []
        cursor = None
        while True:
            page_size = min(limit - len(kems), MAX_PAGE)
            page = await self.link.ask(place(query=query, cursor=cursor, page_size=page_size))
            kems += [without_vector(item.kem) for item in page.items]
            cursor = page.next_cursor
            if cursor is None or len(kems) >= limit:
                return kems

    async def _fetch_and_cache(
        self, fetch: Callable[[], Awaitable[list[Kem]]], expected: Collection[str] = ()
    ) -> list[Kem]:
        """Keep what is found; drop the ids in `expected` that are not."""
        moment = self.local_memory.moment()
        kems = await fetch()
        self._keep(kems, moment, expected)
        return kems

    def _keep(self, kems: Sequence[Kem], moment: int, expected: Collection[str] = ()) -> None:
        for kem in kems:
            self.local_memory.keep(kem, moment)
        for missing_id in set(expected) - {kem.id for kem in kems}:
            self.local_memory.drop(missing_id)


# A batch of a thousand units with all their notifications takes some seconds.
WRITE_WITHIN_S = 30.0
# A document is parsed, split and embedded before the reply.
_PROCESSING_S = 120.0


class RawData(TypedDict, total=False):
    """Fields of the units made of a source; `trace` is that of an artifact."""

    content_type: str
    initial_metadata: Metadata
    rights: KemRights
    chunking: Chunking
    links: tuple[Link, ...]
    trace: str


class KemWriter(KemReader):
    """Writes units; what has been written is kept in local memory as it was stored."""

    async def store_kems(self, drafts: Iterable[NewKem], *, timeout_s: float = WRITE_WITHIN_S) -> BatchReport:
        """Store units in the global memory, with a report of each.

        Raises MemoryAway where no batch got a reply; MalformedKem.
        """
        with self.link.within(timeout_s):
            return await self._send(RetrieveKems, drafts, lambda some: BatchStoreKems(kems=some))

    async def publish_kems_to_swm_batch(
        self,
        drafts: Iterable[NewKem],
        *,
        persist_to_glm_if_new_or_updated: bool = False,
        timeout_s: float = WRITE_WITHIN_S,
    ) -> BatchReport:
        """Store units in working memory; those that are to persist reach the global memory later, for certain.

        Raises MemoryAway where no batch got a reply; MalformedKem.
        """
        persist = persist_to_glm_if_new_or_updated
        with self.link.within(timeout_s):
            return await self._send(
                QuerySwm, drafts, lambda some: PublishKems(kems=some, persist_to_glm_if_new_or_updated=persist)
            )

    async def update_kem(
        self,
        kem_id: str,
        changes: KemChanges,
        *,
        expected_version: int | None = None,
        timeout_s: float = WRITE_WITHIN_S,
    ) -> Kem:
        """Change fields of a unit of the global memory.

        Raises MemoryAway, ReplyError: `conflict` where somebody else has changed the version expected.
        """
        moment = self.local_memory.moment()
        command = UpdateKem(kem_id=kem_id, changes=changes, expected_version=expected_version)
        with self._dropping_stale(kem_id), self.link.within(timeout_s):
            kem = without_vector(await self.link.ask(command))
        self.local_memory.keep(kem, moment)
        return kem

    async def delete_kem(self, kem_id: str, *, timeout_s: float = WRITE_WITHIN_S) -> None:
        """Delete a unit from every memory, and what waits to be stored of it. Raises MemoryAway, ReplyError."""
        with self._dropping_stale(kem_id), self.link.within(timeout_s):
            was_shared = await self._drop_shared(kem_id)
            try:
                await self.link.ask(DeleteKem(kem_id=kem_id))
            except ReplyError as error:
                if error.code is not Code.NOT_FOUND or not was_shared:
                    raise
        self.local_memory.drop(kem_id)

    async def _drop_shared(self, kem_id: str) -> bool:
        """Delete it from working memory first: from there it would come back. Whether it was there."""
        try:
            await self.link.ask(DropKem(kem_id=kem_id))
        except ReplyError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            return False
        return True

    async def process_raw_data(self, source: str | ArtifactRef, **about: Unpack[RawData]) -> ProcessedData:
        """Make units of a short text or of an artifact; repeated with the same settings it makes none.

        Raises MemoryAway, ReplyError.
        """
        content = {"raw_content": source} if isinstance(source, str) else {"source": source}
        fields = {name: value for name, value in about.items() if name != "trace"}
        command = ProcessRawData.model_validate({"content_type": "text/plain"} | content | fields)
        return await self.link.ask(command, timeout_s=_PROCESSING_S, trace=about.get("trace"))

    async def _send(
        self, place: KemSource, drafts: Iterable[NewKem], command: Callable[[Batch], Command[BatchReport]]
    ) -> BatchReport:
        items: list[BatchItem] = []
        for some in batches_of(drafts):
            moment = self.local_memory.moment()
            try:
                done = (await self.link.ask(command(some))).items
            except MemoryAway as error:
                if not items:
                    raise
                # The outcome of the batches before must be reported.
                done = tuple(
                    BatchItem(kem_id=str(draft.id), status="failed", code=error.code, error=error.message)
                    for draft in some
                )
            items += done
            await self._refresh(place, [item.kem_id for item in done if item.version is not None], moment)
        return BatchReport(items=tuple(items))

    async def _refresh(self, place: KemSource, kem_ids: list[str], moment: int) -> None:
        """Read the units back: an id, an owner or a time may differ from the draft."""
        if not kem_ids:
            return
        try:
            kems = await self._all(place, KemQuery(ids=tuple(kem_ids)), len(kem_ids))
        except MemoryAway:
            kems = []
        self._keep(kems, moment, kem_ids)

    @contextmanager
    def _dropping_stale(self, kem_id: str) -> Iterator[None]:
        """Drop the local unit where memory rejects a request since it has another version, or none."""
        try:
            yield
        except ReplyError as error:
            if error.code in (Code.CONFLICT, Code.NOT_FOUND):
                self.local_memory.drop(kem_id)
            raise
