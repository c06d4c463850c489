"""Memory units cached in the agent's own process (spec 000 §4.3.2)."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from copy import deepcopy

from cachetools import LRUCache
from pydantic import ValidationError

from bus_schema.envelope import Envelope
from bus_schema.glm import KemDeleted, KemStored, KemUpdated
from bus_schema.kem import Kem, KemNotice
from bus_schema.kem_matching import matches_query, sorted_kems
from bus_schema.kem_query import KemQuery
from mindbus.bus.client import Client, Subscription
from mindbus.logs import logger
from mindbus.sdk.errors import RankedQueryUnsupported
from mindbus.sdk.kem_cache import IndexedKems
from mindbus.tasks import end

MAX_BYTES = 64 * 1024**2
_REMEMBERED_CHANGES = 10_000


class LocalAgentMemory:
    """An LRU cache of units, indexed by metadata; units are copied in and out."""

    def __init__(self, indexed_keys: Iterable[str] = (), max_bytes: int = MAX_BYTES) -> None:
        self._kems = IndexedKems(max_bytes, indexed_keys)
        # A result that was requested before a change may be older than the change.
        self._changed: LRUCache[str, int] = LRUCache(_REMEMBERED_CHANGES)
        self._changes = 0
        self._cleared = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kems)

    def get(self, kem_id: str) -> Kem | None:
        """A copy of a unit, or None."""
        kem = self._kems.get(kem_id)
        return None if kem is None else _copy(kem)

    def peek(self, kem_id: str) -> Kem | None:
        """The unit itself, not counted as used, or None."""
        return self._kems.peek(kem_id)

    def query(self, query: KemQuery | None = None) -> list[Kem]:
        """Units that match a query, newest first unless it names an order. Raises RankedQueryUnsupported."""
        query = query or KemQuery()
        if query.is_ranked:
            raise RankedQueryUnsupported(RankedQueryUnsupported.__doc__)
        found = sorted_kems((kem for kem in self._kems.candidates(query) if matches_query(kem, query)), query)
        return [_copy(kem) for kem in found]

    def moment(self) -> int:
        """The count of changes: taken before a unit is requested, passed to `keep` with the result."""
        return self._changes

    def keep(self, kem: Kem, asked_at: int | None = None) -> None:
        """Store a unit in place of an older one; drop both where it changed after `asked_at`, when it was requested.

        Without `asked_at` the unit is the newest.
        """
        with self._lock:
            changed_at = max(self._changed.get(kem.id, 0), self._cleared)
            is_surely_newer = asked_at is None or changed_at <= asked_at or self._kems.peek(kem.id) == kem
            self._note(kem.id)
            if is_surely_newer:
                self._kems.keep(_copy(kem))
            else:
                self._kems.pop(kem.id)

    def drop(self, kem_id: str) -> None:
        """Remove a unit."""
        with self._lock:
            self._note(kem_id)
            self._kems.pop(kem_id)

    def clear(self) -> None:
        """Remove all units."""
        with self._lock:
            self._changes += 1
            self._cleared = self._changes
            self._kems.clear()

    def _note(self, kem_id: str) -> None:
        self._changes += 1
        self._changed[kem_id] = self._changes


def _copy(kem: Kem) -> Kem:
    """A copy; all but the metadata is frozen."""
    return kem.model_copy(update={"metadata": deepcopy(kem.metadata)})


_TOPIC = "kem.*"
_EVENTS = {kind.wire.type: kind for kind in (KemDeleted, KemStored, KemUpdated)}


@asynccontextmanager
async def dropping_stale(bus: Client, local_memory: LocalAgentMemory) -> AsyncIterator[None]:
    """While the block runs, drop the units that have changed elsewhere, subscribed to or not."""
    async with bus.subscribe(_TOPIC) as notices:
        dropping = asyncio.create_task(_drop_changed(notices, local_memory), name="notices of memory")
        try:
            yield
        finally:
            await end(dropping)


async def _drop_changed(notices: "Subscription[Envelope]", local_memory: LocalAgentMemory) -> None:
    async for envelope in notices:
        kind = _EVENTS.get(envelope.type)
        if kind is None:
            continue
        try:
            notice = kind.model_validate(envelope.data)
        except ValidationError:
            logger().warning("unreadable notice", type=envelope.type)
            continue
        if not _is_known(notice, local_memory):
            local_memory.drop(notice.kem_id)


def _is_known(notice: KemDeleted | KemNotice, local_memory: LocalAgentMemory) -> bool:
    if not isinstance(notice, KemNotice):
        return False
    known = local_memory.peek(notice.kem_id)
    if known is None:
        return False
    if isinstance(notice, KemStored):
        # The working memory stores a unit unchanged, but later.
        return known.version >= notice.version
    return (known.version, known.updated_at) == (notice.version, notice.updated_at)
