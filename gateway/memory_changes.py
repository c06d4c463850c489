"""Changes of memory, as far as the gateway's user may read the units."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from cachetools import LRUCache
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from bus_schema.envelope import Envelope
from bus_schema.glm import KemDeleted, KemStored, KemUpdated
from bus_schema.kem import Kem, KemNotice
from bus_schema.swm import KemEvicted, KemPublished
from gateway.event_feed import EventFeed, Listener, MissedEvents
from memory.filters import Filter, FilterSubject
from mindbus.logs import logger
from mindbus.tasks import end

ChangeKind = Literal["stored", "published", "updated", "evicted", "deleted"]
_Change = KemNotice | KemDeleted | KemEvicted
ReceivedChange = tuple[Envelope, _Change]

_REMEMBERED: Final = 10_000
# Many units are stored at once; they are asked for together.
_TOGETHER: Final = 100
_GATHER_S: Final = 0.1
_READ: Final[dict[str, tuple[ChangeKind, type[_Change]]]] = {
    KemStored.wire.type: ("stored", KemStored),
    KemPublished.wire.type: ("published", KemPublished),
    KemUpdated.wire.type: ("updated", KemUpdated),
    KemEvicted.wire.type: ("evicted", KemEvicted),
    KemDeleted.wire.type: ("deleted", KemDeleted),
}
_ENDS: Final = {"evicted": "KEM_EVICTED", "deleted": "KEM_DELETED"}


class KemChange(BaseModel):
    """A unit has changed; of one that is gone, or could not be read just now, there is no `kem`."""

    model_config = ConfigDict(frozen=True)
    event: ChangeKind
    kem_id: str
    at: datetime
    by: str
    version: int | None = None
    metadata: dict[str, JsonValue] = {}
    kem: Kem | None = None

    def meets(self, wanted: Filter) -> bool:
        """Whether a filter describes it, in the words of a subscriber to the working memory."""
        is_new = self.event != "updated" and self.version == 1
        kind = _ENDS.get(self.event, "KEM_PUBLISHED" if is_new else "KEM_UPDATED")
        return wanted.matches(FilterSubject(kind, self.kem_id, self.metadata))


@dataclass(frozen=True)
class ReadableKems:
    """The units that the user may read; not `is_all` where a part of memory was away."""

    kems: Mapping[str, Kem]
    is_all: bool = True


Fetch = Callable[[Collection[str]], Awaitable[ReadableKems]]


class MemoryChanges:
    """What one user is told: memory is asked for the units, so that its rights decide.

    Of a unit that is gone nobody can be asked any more who might read it: its end is told if the user has seen it.
    """

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._seen: LRUCache[str, dict[str, JsonValue]] = LRUCache(_REMEMBERED)
        self._followers: set[Listener[KemChange]] = set()

    def saw(self, *kems: Kem) -> None:
        """The user has read these, so that their end is told."""
        for kem in kems:
            self._seen[kem.id] = kem.metadata

    @contextmanager
    def listen(self) -> Iterator[Listener[KemChange]]:
        """Hear of every change from now on."""
        follower: Listener[KemChange] = Listener()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    async def take(self, told: Sequence[ReceivedChange], *, has_missed: bool) -> None:
        """Look at what was told, as far as anybody follows."""
        if has_missed:
            self._tell(MissedEvents())
        for first in range(0, len(told) if self._followers else 0, _TOGETHER):
            await self._look(told[first : first + _TOGETHER])

    async def _look(self, told: Sequence[ReceivedChange]) -> None:
        asked = {event.kem_id for _, event in told if isinstance(event, KemNotice)}
        found = await self._fetch(asked) if asked else ReadableKems({})
        for envelope, event in told:
            change = self._change(envelope, event, found)
            if change is not None:
                self._tell(change)

    def _change(self, envelope: Envelope, event: _Change, found: ReadableKems) -> KemChange | None:
        kem_id, kem = event.kem_id, found.kems.get(event.kem_id)
        about: dict[str, Any] = {"kem_id": kem_id, "at": envelope.time, "by": envelope.mbrequester}
        happened = _READ[envelope.type][0]
        if isinstance(event, KemNotice) and (kem is not None or event.visibility == "public"):
            self._seen[kem_id] = kem.metadata if kem is not None else event.metadata
            about |= {"version": event.version, "kem": kem}
        elif isinstance(event, KemNotice) and not found.is_all:
            return None
        elif isinstance(event, KemNotice):
            # What has been hidden from the user looks like what is gone.
            happened = "deleted"
        metadata = self._seen.get(kem_id)
        if happened == "deleted":
            self._seen.pop(kem_id, None)
        return None if metadata is None else KemChange(event=happened, metadata=metadata, **about)

    def _tell(self, item: KemChange | MissedEvents) -> None:
        for follower in tuple(self._followers):
            follower.tell(item)


class MemoryChangeListener:
    """Hears of changes once for all users."""

    def __init__(self, feed: EventFeed, everybody: Callable[[], Iterable[MemoryChanges]]) -> None:
        self._feed, self._everybody = feed, everybody
        self._hearing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Listen from now on."""
        self._hearing = asyncio.create_task(self._hear_for_ever(), name="memory changes")

    async def stop(self) -> None:
        """Listen no more."""
        if self._hearing is not None:
            await end(self._hearing)

    async def _hear_for_ever(self) -> None:
        with self._feed.listen() as news:
            while True:
                await news.some()
                await asyncio.sleep(_GATHER_S)
                heard = news.taken()
                told = [(item, event) for item in heard if isinstance(item, Envelope) and (event := _event(item))]
                has_missed = any(isinstance(item, MissedEvents) for item in heard)
                if told or has_missed:
                    await asyncio.gather(*(each.take(told, has_missed=has_missed) for each in self._everybody()))


def _event(envelope: Envelope) -> _Change | None:
    known = _READ.get(envelope.type)
    if known is None:
        return None
    try:
        return known[1].model_validate(envelope.data or {})
    except ValidationError as invalid:
        logger().warning("unreadable change", source=envelope.source, reason=str(invalid))
        return None
