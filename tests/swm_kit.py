"""The working memory over real stores, before a global memory that may be away."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from bus_schema.glm import BatchItem, BatchReport, KemPage
from bus_schema.identities import Principal
from bus_schema.ids import mint
from bus_schema.kem import Kem, KemDraft
from bus_schema.kem_query import KemQuery
from memory.glm.store import StoredKem
from memory.glm.tables import as_kem
from memory.swm.cache import BufferedCache, EmbeddedCache, KemCache
from memory.swm.cache_sync import CacheSync
from memory.swm.subscriptions import KemEvent
from memory.swm.working_memory import GlmAway, WorkingMemory
from memory.swm.write_queue import KemWriteQueue
from mindbus.errors import Rejected
from mindbus.sql.database import Database
from tests.memory_kit import RESEARCHER, Library, a_draft

INDEXED = ("type", "topic")


def a_kem(library: Library, kem_id: str = "kem_1", **fields: Any) -> Kem:
    """A unit as it is at hand."""
    now = library.clock()
    stamp = {"owner": RESEARCHER.owner, "created_at": now, "updated_at": now, "version": 1}
    return Kem.model_validate({"id": kem_id, "content": "It is Friday."} | stamp | fields)


@dataclass
class LibraryGlm:
    """The real global memory, without a bus before it."""

    library: Library
    is_away: bool = False
    loses_answers: bool = False
    stored: list[str] = field(default_factory=list)
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    async def fetch(self, kem_ids: Collection[str]) -> list[Kem]:
        trusted = Principal("svc.swm", is_trusted=True)
        return [item.kem for item in (await self._there().page(trusted, ids=tuple(kem_ids))).items]

    async def page(self, query: KemQuery, principal: str, cursor: str | None, page_size: int) -> KemPage:
        return await self._there().queries.page(query, Principal(principal), cursor, page_size)

    async def store(self, drafts: Sequence[KemDraft], publisher: str, message_id: str) -> BatchReport:
        self.asked.append((message_id, [str(draft.id) for draft in drafts]))
        outcomes = await self._there().store_all(*drafts, by=Principal(publisher))
        self.stored += [str(draft.id) for draft in drafts]
        items = []
        for outcome in outcomes:
            if isinstance(outcome, StoredKem):
                kem = as_kem(outcome.row)
                times = {"created_at": kem.created_at, "updated_at": kem.updated_at, "version": kem.version}
                items.append(BatchItem.model_validate({"kem_id": kem.id, "status": "stored"} | times))
            else:
                no = outcome.rejection
                items.append(BatchItem(kem_id=outcome.kem_id, status="refused", code=no.code, error=str(no)))
        if self.loses_answers:
            raise GlmAway(GlmAway.__doc__)
        return BatchReport(items=tuple(items))

    def _there(self) -> Library:
        if self.is_away:
            raise GlmAway(GlmAway.__doc__)
        return self.library


@dataclass
class Desk:
    """Publishes, asks, carries: as the worker does."""

    library: Library
    database: Database
    cache: KemCache = field(default_factory=lambda: EmbeddedCache(10**6, INDEXED))

    def __post_init__(self) -> None:
        self.glm = LibraryGlm(self.library)
        self.writes = KemWriteQueue(self.database)
        self.shelf = BufferedCache(self.cache, self.writes)
        self.memory = WorkingMemory(self.shelf, self.writes, self.glm, self.library.clock)
        self.cache_sync = CacheSync(self.shelf, self.writes, self.glm)

    async def try_to_publish(
        self,
        content: str = "It is Friday.",
        by: Principal = RESEARCHER,
        persist: bool = False,
        message_id: str | None = None,
        **fields: Any,
    ) -> KemEvent | Rejected:
        draft = a_draft(content, **fields)
        named = [(draft.id or mint("kem"), draft)]
        (outcome,) = await self.memory.publish(named, by, message_id or mint("msg"), persist=persist)
        return outcome

    async def carry(self) -> list[KemEvent]:
        """As often as it takes, while the global memory is there."""
        happened: list[KemEvent] = []
        with suppress(GlmAway):
            while await self.writes.count("glm"):
                happened += await self.cache_sync.flush()
        return happened

    async def publish(self, content: str = "It is Friday.", by: Principal = RESEARCHER, **fields: Any) -> Kem:
        outcome = await self.try_to_publish(content, by, **fields)
        if isinstance(outcome, Rejected):
            raise outcome
        assert outcome.kem is not None
        return outcome.kem

    async def found(self, by: Principal = RESEARCHER, **query: Any) -> list[str]:
        page = await self.memory.query(KemQuery.model_validate(query), by, None, 50)
        return [item.kem.id for item in page.items]
