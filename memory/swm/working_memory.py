"""Shared working memory: units that agents have in common (spec 000 §4.3)."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Protocol

from bus_schema.glm import BatchReport, FoundKem, KemPage
from bus_schema.identities import Principal
from bus_schema.kem import Kem, KemBody, KemDraft
from bus_schema.kem_match import matches_query, order_of
from bus_schema.kem_query import KemQuery
from memory.errors import NoSuchKem, SharedMemoryAway
from memory.glm.queries import cursor_after, page_key_of
from memory.glm.store import end_of_next
from memory.rights import RIGHTS, is_readable, owner_of_new, rights_of_replacement
from memory.swm.cache import BufferedCache, CacheAway
from memory.swm.subscriptions import KemEvent
from memory.swm.write_queue import KemWriteQueue, QueuedWrite
from mindbus.errors import Rejected, TemporaryFailure
from retrieval.cursors import PageKey


class GlmAway(TemporaryFailure):
    """The global memory does not answer; start the glm worker, or wait for it."""


class Glm(Protocol):
    """Requests are made in the name of the principal, whose rights it checks. All methods raise GlmAway."""

    async def fetch(self, kem_ids: Collection[str]) -> list[Kem]:
        """Those of these units that exist, whoever may read them."""

    async def page(self, query: KemQuery, principal: str, cursor: str | None, page_size: int) -> KemPage:
        """Raises Rejected."""

    async def store(self, drafts: Sequence[KemDraft], publisher: str, message_id: str) -> BatchReport:
        """Has effect once for one `message_id`."""


NamedDraft = tuple[str, KemDraft]
Ordered = Callable[[KemQuery, PageKey | None], AsyncGenerator[Kem]]

_ANY_TIME = datetime.min.replace(tzinfo=UTC)


class WorkingMemory:
    """Cache in front of the global memory; every read checks the rights."""

    def __init__(self, cache: BufferedCache, writes: KemWriteQueue, glm: Glm, clock: Callable[[], datetime]) -> None:
        self._cache, self._writes, self._glm, self._clock = cache, writes, glm, clock

    async def publish(
        self, drafts: Sequence[NamedDraft], principal: Principal, message_id: str, *, persist: bool
    ) -> list[KemEvent | Rejected]:
        """One outcome per draft; with `persist` they are queued for the global memory, which may be away.

        They are queued once for one `message_id`. Raises SharedMemoryAway where a repeated one finds nothing to answer.
        """
        named = (draft.id for _, draft in drafts if draft.id is not None and not draft.is_new)
        stored, is_complete = await self._read_stored(named)
        async with self._cache.lock:
            done = await self._writes.published_by(message_id, (id_ for id_, _ in drafts)) if persist else set()
            outcomes = [
                await self._published_before(draft[0], principal)
                if draft[0] in done
                else await self._publish(draft, principal, stored, is_complete=is_complete)
                for draft in drafts
            ]
            if persist:
                queued = _queued_writes(drafts, outcomes, principal)
                await self._writes.add([write for write in queued if write.kem_id not in done], message_id)
        return outcomes

    async def query(self, query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
        """Page of cached units; of GLM units while the cache is away. Raises InvalidCursor, SharedMemoryAway."""
        try:
            page = await page_of(self._current, query, principal, cursor, page_size)
            await self._cache.cache.touch([item.kem.id for item in page.items])
        except CacheAway:
            return await self._glm_page(query, principal, cursor, page_size)
        return page

    async def _current(self, query: KemQuery, after: PageKey | None) -> AsyncGenerator[Kem]:
        """Cached units but those whose time is over, which the global memory deletes if it has them."""
        now = self._clock()
        async with aclosing(self._cache.ordered(query, after)) as kems:
            async for kem in kems:
                if kem.expires_at is None or kem.expires_at > now:
                    yield kem

    async def load(self, query: KemQuery, principal: Principal, limit: int) -> tuple[list[str], list[KemEvent]]:
        """Cache what the global memory finds; returns the ids and the changes. Raises SharedMemoryAway."""
        page = await self._glm_page(query, principal, None, limit)
        kems = [item.kem for item in page.items]
        async with self._cache.lock:
            # Queued writes are newer than what the global memory has.
            pending = await self._writes.pending([kem.id for kem in kems])
            events = [await self._load(kem) for kem in kems if kem.id not in pending]
        return [kem.id for kem in kems], [event for event in events if event is not None]

    async def _publish(
        self, named: NamedDraft, principal: Principal, stored: dict[str, Kem], *, is_complete: bool
    ) -> KemEvent | Rejected:
        kem_id, draft = named
        cached = await self._cache.find(kem_id)
        older = cached or stored.get(kem_id)
        try:
            if older is None:
                is_known_new = draft.id is None or draft.is_new or is_complete
                kem = _new_kem(draft, kem_id, principal, self._clock(), is_known_new=is_known_new)
            else:
                kem = _next_version(draft, older, principal, self._clock())
        except Rejected as rejection:
            return rejection
        return await self._put(kem, cached)

    async def _published_before(self, kem_id: str, principal: Principal) -> KemEvent | Rejected:
        """The outcome for a unit that the same message has published, told again: it may not have been, or been lost.

        Raises SharedMemoryAway.
        """
        kem = await self._cache.find(kem_id)
        if kem is None:
            stored, is_complete = await self._read_stored([kem_id])
            if not is_complete:
                raise SharedMemoryAway(reason=f"{kem_id} was published before, and is not at hand")
            kem = stored.get(kem_id)
        # Whoever repeats the id of another's message learns nothing.
        if kem is None or not is_readable(kem, principal):
            return NoSuchKem(is_denied=kem is not None, kem_id=kem_id)
        return KemEvent("KEM_PUBLISHED" if kem.version == 1 else "KEM_UPDATED", kem_id, kem)

    async def _load(self, kem: Kem) -> KemEvent | None:
        cached = await self._cache.find(kem.id)
        if cached is not None and (cached.version, cached.updated_at) == (kem.version, kem.updated_at):
            return None
        return await self._put(kem, cached)

    async def _put(self, kem: Kem, cached: Kem | None) -> KemEvent:
        await self._cache.put(kem)
        return KemEvent("KEM_PUBLISHED" if cached is None else "KEM_UPDATED", kem.id, kem)

    async def _read_stored(self, kem_ids: Iterable[str]) -> tuple[dict[str, Kem], bool]:
        """Units of the global memory that are not cached, and whether it answered."""
        missing = [kem_id for kem_id in kem_ids if await self._cache.find(kem_id) is None]
        try:
            return ({kem.id: kem for kem in await self._glm.fetch(missing)} if missing else {}), True
        except GlmAway:
            return {}, False

    async def _glm_page(self, query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
        try:
            return await self._glm.page(query, principal.identity, cursor, page_size)
        except GlmAway as error:
            raise SharedMemoryAway(reason=str(error)) from error


async def page_of(
    ordered: Ordered, query: KemQuery, principal: Principal, cursor: str | None, page_size: int
) -> KemPage:
    """Page of those units that match the query and are readable, with cursors as the global memory's.

    Reads on until there is one more than a page holds. Raises InvalidCursor.
    """
    last = page_key_of(cursor, query)
    name, is_descending = order_of(query)

    def position(key: PageKey) -> tuple[datetime, str]:
        return (_ANY_TIME if name == "id" else key.time, key.id)

    def key_of(kem: Kem) -> PageKey:
        return PageKey(kem.updated_at if name == "updated_at" else kem.created_at, kem.id)

    def is_before(kem: Kem, end: tuple[datetime, str]) -> bool:
        place = position(key_of(kem))
        return place == end or (place < end) is not is_descending

    end = None if last is None else position(last)
    page: list[Kem] = []
    async with aclosing(ordered(query, last)) as kems:
        async for kem in kems:
            if not is_readable(kem, principal) or not matches_query(kem, query) or (end and is_before(kem, end)):
                continue
            if len(page) == page_size:
                return KemPage(items=_found(page), next_cursor=cursor_after(key_of(page[-1]), query))
            page.append(kem)
    return KemPage(items=_found(page))


def _found(kems: Iterable[Kem]) -> tuple[FoundKem, ...]:
    return tuple(FoundKem(kem=kem) for kem in kems)


def _new_kem(draft: KemDraft, kem_id: str, principal: Principal, now: datetime, *, is_known_new: bool) -> Kem:
    """A unit that is not cached; private if the global memory may have one of this id with narrower rights.

    Raises NotTheOwner.
    """
    owner = owner_of_new(draft, principal)
    rights = {} if is_known_new or RIGHTS & draft.model_fields_set else {"visibility": "private"}
    times = {"created_at": now, "updated_at": now}
    return Kem.model_validate(_body(draft) | rights | {"id": kem_id, "owner": owner, "version": 1} | times)


def _next_version(draft: KemDraft, older: Kem, principal: Principal, now: datetime) -> Kem:
    """A unit in place of an older one. Raises KemIdTaken, NotTheOwner, NotYoursToShare."""
    body = _body(draft)
    body |= rights_of_replacement(body, draft, older, principal)
    stamp = {"id": older.id, "owner": older.owner, "created_at": older.created_at}
    stamp |= end_of_next(older, draft.valid_to, now)
    return Kem.model_validate(body | stamp | {"updated_at": now, "version": older.version + 1})


def _body(draft: KemDraft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in KemBody.model_fields}


def _queued_writes(
    drafts: Sequence[NamedDraft], outcomes: Sequence[KemEvent | Rejected], principal: Principal
) -> Iterator[QueuedWrite]:
    for (kem_id, draft), outcome in zip(drafts, outcomes, strict=True):
        if isinstance(outcome, KemEvent):
            fields = tuple(sorted(draft.model_fields_set - {"id", "is_new"}))
            yield QueuedWrite("glm", kem_id, outcome.kem, principal.identity, fields)
