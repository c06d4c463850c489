"""The units that agents share at once (spec 000 §4.3)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from bus_schema.glm import FoundKem, KemPage
from bus_schema.kem import Kem, KemBody, KemDraft, KemRights
from bus_schema.kem_matching import matches_query, order_of, sorted_kems
from bus_schema.kem_query import KemQuery
from memory.errors import KemIdTaken, NotTheOwner, NotYoursToShare
from memory.glm.cursors import cursor_after, page_key_of
from memory.swm.cache import BufferedCache, CacheAway
from memory.swm.errors import SharedMemoryAway
from memory.swm.glm import Glm, GlmAway
from memory.swm.rights import is_readable, is_writable, owns
from memory.swm.subscriptions import KemEvent
from memory.swm.write_queue import QueuedWrite, WriteQueue
from mindbus.errors import Rejected
from mindbus.principal import Principal
from retrieval.cursors import PageKey

_ANY_TIME = datetime.min.replace(tzinfo=UTC)


def page_of(kems: Iterable[Kem], query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
    """Of these units, those that are meant, that the asker may read; cursors are those of the global memory.

    Raises InvalidCursor.
    """
    last = page_key_of(cursor, query)
    name, is_descending = order_of(query)

    def rank(place: PageKey) -> tuple[datetime, str]:
        # No two units have the same place.
        return (_ANY_TIME if name == "id" else place.time, place.id)

    def place_in(kem: Kem) -> PageKey:
        return PageKey(kem.updated_at if name == "updated_at" else kem.created_at, kem.id)

    found = sorted_kems((kem for kem in kems if is_readable(kem, principal) and matches_query(kem, query)), query)
    if last is not None:
        after = rank(last)
        found = [kem for kem in found if (place := rank(place_in(kem))) != after and (place < after) is is_descending]
    page = found[:page_size]
    next_cursor = cursor_after(place_in(page[-1]), query) if len(found) > page_size else None
    return KemPage(items=tuple(FoundKem(kem=kem) for kem in page), next_cursor=next_cursor)


_RIGHTS = set(KemRights.model_fields)


def new_kem(draft: KemDraft, kem_id: str, principal: Principal, now: datetime, *, is_known_new: bool) -> Kem:
    """A unit that is not at hand. Raises NotTheOwner.

    Where nobody can say whether the global memory has one of this id, its rights may be narrower: nobody else reads it.
    """
    owner = draft.owner or principal.owner
    if owner != principal.owner and not principal.is_trusted:
        raise NotTheOwner(owner=owner)
    says_who_reads = bool(_RIGHTS & draft.model_fields_set)
    rights = {} if is_known_new or says_who_reads else {"visibility": "private"}
    times = {"created_at": now, "updated_at": now}
    return Kem.model_validate(_body(draft) | rights | {"id": kem_id, "owner": owner, "version": 1} | times)


def next_version(draft: KemDraft, older: Kem, principal: Principal, now: datetime) -> Kem:
    """A unit in place of an older one. Raises KemIdTaken, NotTheOwner, NotYoursToShare."""
    if not is_writable(older, principal):
        raise KemIdTaken(is_denied=True, kem_id=older.id)
    if draft.owner not in (None, older.owner):
        raise NotTheOwner(owner=draft.owner)
    kept = {name: getattr(older, name) for name in _RIGHTS}
    body = _body(draft)
    if not _RIGHTS & draft.model_fields_set:
        body |= kept
    elif not owns(older, principal) and any(body[name] != right for name, right in kept.items()):
        raise NotYoursToShare(kem_id=older.id)
    stamp = {"id": older.id, "owner": older.owner, "created_at": older.created_at}
    return Kem.model_validate(body | stamp | {"updated_at": now, "version": older.version + 1})


def _body(draft: KemDraft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in KemBody.model_fields}


NamedDraft = tuple[str, KemDraft]


class WorkingMemory:
    """A shelf before the global memory; every read of it asks for the rights."""

    def __init__(self, shelf: BufferedCache, writes: WriteQueue, glm: Glm, clock: Callable[[], datetime]) -> None:
        self._shelf, self._writes, self._glm, self._clock = shelf, writes, glm, clock

    async def publish(
        self, drafts: Sequence[NamedDraft], principal: Principal, *, persist: bool
    ) -> list[KemEvent | Rejected]:
        """Each for itself; what is to be kept in the global memory is on its way there, whether it is up or not."""
        beyond, is_sure = await self._beyond(draft.id for _, draft in drafts if draft.id is not None)
        async with self._shelf.turn:
            outcomes = [await self._published(each, principal, beyond, is_sure=is_sure) for each in drafts]
            if persist:
                await self._writes.add(list(_persisting(drafts, outcomes, principal)))
        return outcomes

    async def query(self, query: KemQuery, principal: Principal, cursor: str | None, page_size: int) -> KemPage:
        """Page of cached units; of GLM units while the cache is away. Raises InvalidCursor, SharedMemoryAway."""
        try:
            page = page_of(await self._shelf.candidates(query), query, principal, cursor, page_size)
            await self._shelf.cache.used([item.kem.id for item in page.items])
        except CacheAway:
            return await self._page(query, principal, cursor, page_size)
        return page

    async def load(self, query: KemQuery, principal: Principal, limit: int) -> tuple[list[str], list[KemEvent]]:
        """Have at hand what the global memory finds: the ids, what is new of it. Raises SharedMemoryAway."""
        page = await self._page(query, principal, None, limit)
        kems = [item.kem for item in page.items]
        async with self._shelf.turn:
            # What is still on its way there is newer.
            pending = await self._writes.pending([kem.id for kem in kems])
            happened = [await self._loaded(kem) for kem in kems if kem.id not in pending]
        return [kem.id for kem in kems], [each for each in happened if each is not None]

    async def _published(
        self, each: NamedDraft, principal: Principal, beyond: dict[str, Kem], *, is_sure: bool
    ) -> KemEvent | Rejected:
        kem_id, draft = each
        at_hand = await self._shelf.find(kem_id)
        older = at_hand or beyond.get(kem_id)
        is_known_new = draft.id is None or is_sure
        try:
            if older is None:
                kem = new_kem(draft, kem_id, principal, self._clock(), is_known_new=is_known_new)
            else:
                kem = next_version(draft, older, principal, self._clock())
        except Rejected as no:
            return no
        await self._shelf.put(kem)
        return KemEvent("KEM_PUBLISHED" if at_hand is None else "KEM_UPDATED", kem_id, kem)

    async def _loaded(self, kem: Kem) -> KemEvent | None:
        at_hand = await self._shelf.find(kem.id)
        if at_hand is not None and (at_hand.version, at_hand.updated_at) == (kem.version, kem.updated_at):
            return None
        await self._shelf.put(kem)
        return KemEvent("KEM_PUBLISHED" if at_hand is None else "KEM_UPDATED", kem.id, kem)

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
            raise SharedMemoryAway(reason=str(away)) from away


def _persisting(
    drafts: Sequence[NamedDraft], outcomes: Sequence[KemEvent | Rejected], principal: Principal
) -> Iterator[QueuedWrite]:
    for (kem_id, draft), outcome in zip(drafts, outcomes, strict=True):
        if isinstance(outcome, KemEvent):
            yield QueuedWrite(
                "glm", kem_id, outcome.kem, principal.identity, tuple(sorted(draft.model_fields_set - {"id"}))
            )
