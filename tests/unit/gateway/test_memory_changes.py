"""What a user is told of changes: what memory lets them read, no more."""

from collections.abc import AsyncIterator, Collection
from typing import Any

import pytest

from bus_schema.envelope import Envelope
from bus_schema.glm import FoundKem, KemDeleted, KemStored, KemUpdated
from bus_schema.kem import Kem, KemNotice
from bus_schema.messages import Event
from bus_schema.swm import KemEvicted
from config.settings import FleetSettings
from gateway.api.memory import facets_of
from gateway.event_feed import EventFeed, Listener, MissedEvents
from gateway.shared_memory import KemChange, MemoryChangeListener, MemoryChanges, ReadableKems, SharedMemories
from mindbus import Client, connect
from mindbus.sdk.kem_filters import parse_filter
from mindbus.tasks import running
from mindbus.testing.wait import until
from tests.clocks import NOON, Clock


def a_kem(kem_id: str = "kem_1", version: int = 1, **fields: Any) -> Kem:
    known = {"id": kem_id, "owner": "agent.alice", "content": "Friday.", "created_at": NOON, "updated_at": NOON}
    return Kem.model_validate(known | {"version": version} | fields)


def a_notice() -> KemStored:
    return KemStored(kem_id="kem_2", version=1, updated_at=NOON, visibility="public")


def an_envelope() -> Envelope:
    about = {"source": "/mb/glm/1", "time": NOON, "mbrequester": "svc.glm", "mbtraceid": "t1", "correlationid": "e1"}
    return Envelope.model_validate(about | {"id": "e1", "type": KemStored.wire.type, "mbkind": "event"})


class Memory:
    """Units that the user may read; `asked` counts the questions."""

    def __init__(self) -> None:
        self.readable: dict[str, Kem] = {}
        self.is_away = False
        self.asked: list[set[str]] = []

    async def fetch(self, kem_ids: Collection[str]) -> ReadableKems:
        self.asked.append(set(kem_ids))
        if self.is_away:
            return ReadableKems({}, is_all=False)
        return ReadableKems({each: self.readable[each] for each in kem_ids if each in self.readable})


class Desk:
    """Tells, hears."""

    def __init__(self, bus: Client, memory: Memory, changes: MemoryChanges) -> None:
        self.bus, self.memory, self.changes = bus, memory, changes
        self.heard: list[KemChange | MissedEvents] = []

    async def tell(self, event: type[KemNotice], kem: Kem, *, readable: bool = True) -> None:
        self.memory.readable.pop(kem.id, None)
        if readable:
            self.memory.readable[kem.id] = kem
        told = {"kem_id": kem.id, "version": kem.version, "updated_at": kem.updated_at, "visibility": kem.visibility}
        public = {"metadata": kem.metadata} if kem.visibility == "public" else {}
        await self.say(event.model_validate(told | public))

    async def say(self, event: Event) -> None:
        await self.bus.publish(event)

    async def hears(self, news: Listener[KemChange], count: int) -> list[tuple[str, str]]:
        async def has_heard() -> bool:
            self.heard += news.take()
            return len(self.heard) >= count

        await until(has_heard)
        return [(each.event, each.kem_id) for each in self.heard if isinstance(each, KemChange)]


@pytest.fixture
async def desk(request: pytest.FixtureRequest) -> AsyncIterator[Desk]:
    async with connect(settings=FleetSettings(amqp_url=f"memory://{request.node.name}")) as bus:
        feed, memory = EventFeed(bus, 5, Clock()), Memory()
        changes = MemoryChanges(memory.fetch)
        ear = MemoryChangeListener(feed, lambda: [changes])
        async with feed.receiving(), running(ear.run(), "ear"):
            yield Desk(bus, memory, changes)


async def test_a_unit_is_told_whole_to_whoever_may_read_it(desk: Desk) -> None:
    with desk.changes.listen() as news:
        kem = a_kem(visibility="private", metadata={"kind": "plan"})
        await desk.tell(KemStored, kem)
        await desk.tell(KemUpdated, a_kem(version=2))
        assert await desk.hears(news, 2) == [("stored", "kem_1"), ("updated", "kem_1")]


async def test_of_a_hidden_unit_there_is_no_word_of_its_end_neither(desk: Desk) -> None:
    with desk.changes.listen() as news:
        await desk.tell(KemStored, a_kem("kem_hidden", visibility="private"), readable=False)
        await desk.say(KemEvicted(kem_id="kem_hidden"))
        await desk.say(KemDeleted(kem_id="kem_hidden"))
        await desk.tell(KemStored, a_kem("kem_2"))
        assert await desk.hears(news, 1) == [("stored", "kem_2")]


async def test_a_unit_that_was_seen_is_told_as_gone_once_it_is_hidden(desk: Desk) -> None:
    desk.changes.mark_seen(a_kem(), a_kem("kem_2"))
    with desk.changes.listen() as news:
        await desk.tell(KemUpdated, a_kem(version=2, visibility="private"), readable=False)
        await desk.say(KemDeleted(kem_id="kem_1"))
        await desk.say(KemEvicted(kem_id="kem_2"))
        await desk.say(KemDeleted(kem_id="kem_2"))
        assert await desk.hears(news, 3) == [("deleted", "kem_1"), ("evicted", "kem_2"), ("deleted", "kem_2")]


async def test_while_memory_is_away_only_what_is_public_is_told(desk: Desk) -> None:
    desk.changes.mark_seen(a_kem("kem_seen"))
    desk.memory.is_away = True
    with desk.changes.listen() as news:
        await desk.tell(KemUpdated, a_kem("kem_seen", version=2, visibility="private"))
        await desk.tell(KemStored, a_kem("kem_public", metadata={"kind": "plan"}))
        assert await desk.hears(news, 1) == [("stored", "kem_public")]
    (change,) = desk.heard
    assert isinstance(change, KemChange)
    assert (change.kem, change.metadata) == (None, {"kind": "plan"})


async def test_nobody_asks_memory_while_nobody_follows(desk: Desk) -> None:
    with desk.changes.listen() as news:
        await desk.tell(KemStored, a_kem())
        await desk.hears(news, 1)
    await desk.changes.process(
        [(an_envelope(), KemEvicted(kem_id="kem_1")), (an_envelope(), a_notice())], has_missed=True
    )

    assert desk.memory.asked == [{"kem_1"}]


@pytest.mark.parametrize(
    ("wanted", "is_met"),
    [
        ("", True),
        ("metadata.kind=plan AND KEM_UPDATED", True),
        ("kem_id=kem_1", True),
        ("KEM_PUBLISHED", False),
        ("metadata.kind=fact", False),
    ],
)
def test_a_filter_describes_a_change(wanted: str, is_met: bool) -> None:
    change = KemChange(event="updated", kem_id="kem_1", at=NOON, by="svc.glm", version=2, metadata={"kind": "plan"})

    assert change.meets(parse_filter(wanted)) is is_met


def test_facets_count_units_not_mentions() -> None:
    kems = [
        a_kem("kem_1", metadata={"tags": ["a", "a", "b"], "done": True, "n": 1}),
        a_kem("kem_2", metadata={"tags": ["a"], "n": 1, "deep": {"er": 1}}, content_type="text/markdown"),
    ]
    facets = facets_of((FoundKem(kem=kem) for kem in kems), is_all=False)

    assert (facets.counted, facets.is_all) == (2, False)
    assert {key: [(each.value, each.count) for each in values] for key, values in facets.metadata.items()} == {
        "done": [(True, 1)],
        "n": [(1, 2)],
        "tags": [("a", 2), ("b", 1)],
    }
    assert [each.value for each in facets.content_types] == ["text/markdown", "text/plain"]


async def test_each_user_has_one_memory_as_long_as_it_is_used() -> None:
    async with connect(settings=FleetSettings(amqp_url="memory://memories")) as bus:
        memories = SharedMemories(bus)
        anna = memories.of("anna")
        for number in range(100):
            memories.of(f"user{number}")

        assert memories.of("anna") is anna
        assert len(memories.changes()) < 100
