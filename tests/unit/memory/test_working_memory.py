"""Units that agents share at once, before a global memory that may be away (spec 000 §4.3)."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from bus_schema.kem import Kem
from bus_schema.kem_query import KemQuery
from memory.errors import KemIdTaken, NoSuchKem, NotYoursToShare, NotYoursToWrite, SharedMemoryAway
from memory.swm.cache import CacheAway, EmbeddedCache
from memory.swm.subscriptions import KemEvent
from memory.swm.tables import WriteRow
from memory.swm.working_memory import GlmAway
from mindbus.sql.database import Database
from mindbus.sql.errors import DatabaseAway
from retrieval.cursors import PageKey
from tests.memory_kit import ANNA, CRITIC, RESEARCHER, Library, a_draft
from tests.postgres import DatabaseOf
from tests.swm_kit import INDEXED, Desk


@dataclass
class SwitchedCache(EmbeddedCache):
    """A cache that is away when a test says so."""

    is_away: bool = field(default=False)

    def __init__(self) -> None:
        super().__init__(10**6, INDEXED)
        self.is_away = False

    async def get(self, kem_id: str) -> Kem | None:
        self._require()
        return await super().get(kem_id)

    async def put(self, kem: Kem) -> None:
        self._require()
        await super().put(kem)

    async def drop(self, kem_id: str) -> bool:
        self._require()
        return await super().drop(kem_id)

    def ordered(self, query: KemQuery, after: PageKey | None = None) -> AsyncGenerator[Kem]:
        self._require()
        return super().ordered(query, after)

    def _require(self) -> None:
        if self.is_away:
            raise CacheAway(CacheAway.__doc__)


async def test_whoever_repeats_the_message_of_another_reads_nothing(desk: Desk) -> None:
    await desk.publish(id="kem_1", visibility="private", persist=True, message_id="m1")

    assert isinstance(await desk.try_to_publish(by=CRITIC, id="kem_1", persist=True, message_id="m1"), NoSuchKem)
    again = await desk.try_to_publish(id="kem_1", persist=True, message_id="m1")
    assert isinstance(again, KemEvent)


@pytest.fixture
def cache() -> SwitchedCache:
    return SwitchedCache()


@pytest.fixture
async def desk(sqlite_database_of: DatabaseOf, cache: SwitchedCache) -> AsyncIterator[Desk]:
    library = Library(Database(sqlite_database_of("glm"), "glm"))
    found = Desk(library, Database(sqlite_database_of("swm"), "swm"), cache)
    yield found
    await library.database.dispose()
    await found.database.dispose()


def another(desk: Desk) -> Desk:
    """The same after its process was killed: what was in memory is gone."""
    return Desk(desk.library, desk.database)


async def test_what_is_published_is_at_hand_at_once(desk: Desk) -> None:
    kem = await desk.publish(metadata={"type": "fact"})

    assert (kem.owner, kem.version) == ("agent.researcher", 1)
    assert await desk.found(CRITIC, metadata_filters={"type": "fact"}) == [kem.id]


async def test_published_again_it_is_an_update_that_keeps_its_beginning(desk: Desk) -> None:
    first = await desk.publish(id="kem_1", visibility="private")
    desk.library.clock.advance(seconds=1)
    outcome = await desk.try_to_publish("It is Saturday.", id="kem_1")

    assert isinstance(outcome, KemEvent)
    assert outcome.kem is not None
    assert outcome.event_type == "KEM_UPDATED"
    assert (outcome.kem.created_at, outcome.kem.version) == (first.created_at, 2)
    # Nothing was said of rights.
    assert outcome.kem.visibility == "private"


async def test_nobody_publishes_over_what_is_anothers(desk: Desk) -> None:
    await desk.publish(id="kem_1")
    await desk.library.store(id="kem_2", by=CRITIC, visibility="private")

    assert isinstance(await desk.try_to_publish(id="kem_1", by=CRITIC), KemIdTaken)
    # At hand or not.
    assert isinstance(await desk.try_to_publish(id="kem_2"), KemIdTaken)


async def test_a_writer_changes_content_but_not_rights(desk: Desk) -> None:
    await desk.publish(id="kem_1", writers=["agent.critic"])

    assert (await desk.publish("It is Sunday.", by=CRITIC, id="kem_1")).owner == "agent.researcher"
    refused = await desk.try_to_publish(id="kem_1", by=CRITIC, visibility="private")
    assert isinstance(refused, NotYoursToShare)


async def test_what_is_to_be_kept_takes_the_times_of_the_global_memory(desk: Desk) -> None:
    kem = await desk.publish(id="kem_1", persist=True)
    desk.library.clock.advance(seconds=3)
    await desk.carry()

    kept = await desk.library.queries.get("kem_1", RESEARCHER)
    (at_hand,) = (await desk.memory.query(KemQuery(), RESEARCHER, None, 50)).items
    assert kept.owner == "agent.researcher"
    assert at_hand.kem == kept
    assert kept.updated_at > kem.updated_at
    assert await desk.writes.count("glm") == 0


async def test_what_is_not_to_be_kept_stays_out_of_the_global_memory(desk: Desk) -> None:
    await desk.publish(id="kem_1")
    await desk.carry()

    assert await desk.library.found(ids=["kem_1"]) == []


async def test_a_newer_version_at_hand_is_not_overwritten_by_an_older_answer(desk: Desk) -> None:
    await desk.publish("first", id="kem_1", persist=True)
    writes = await desk.writes.next("glm")
    desk.library.clock.advance(seconds=1)
    await desk.publish("second", id="kem_1")
    assert len(writes) == 1
    await desk.carry()

    at_hand = await desk.cache.get("kem_1")
    assert at_hand is not None
    assert at_hand.content == "second"


async def test_while_the_global_memory_is_away_nothing_is_lost(desk: Desk) -> None:
    desk.glm.is_away = True
    for number in range(250):
        await desk.publish(f"fact {number}", id=f"kem_{number}", persist=True)
    await desk.carry()

    # Killed before it came back, twice.
    again = another(another(desk))
    again.glm.is_away = True
    await again.shelf.open()
    await again.cache_sync.refill()
    assert len(await again.found(order_by="id asc")) == 50
    again.glm.is_away = False
    await again.carry()

    assert await desk.library.queries.count(KemQuery(), RESEARCHER) == 250
    assert again.glm.stored == [f"kem_{number}" for number in range(250)]


async def test_a_queue_that_could_not_be_read_once_is_not_taken_for_empty(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def away(_: Database) -> AsyncIterator[AsyncSession]:
        raise DatabaseAway("no answer within 10 s")
        yield

    await desk.publish(id="kem_1", persist=True)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "reading", away)
        with pytest.raises(DatabaseAway):
            await desk.cache_sync.flush()
    await desk.cache_sync.flush()

    assert desk.glm.stored == ["kem_1"]


async def test_nobody_else_reads_what_may_be_private_until_somebody_can_say(desk: Desk) -> None:
    await desk.library.store(id="kem_1", visibility="private")
    desk.glm.is_away = True
    await desk.publish("new content", id="kem_1", persist=True)

    assert await desk.found(CRITIC) == []
    assert await desk.found(RESEARCHER) == ["kem_1"]
    desk.glm.is_away = False
    await desk.carry()
    kept = await desk.library.queries.get("kem_1", RESEARCHER)
    assert (kept.visibility, kept.content) == ("private", "new content")


async def test_what_the_global_memory_refuses_does_not_stay_at_hand(desk: Desk) -> None:
    await desk.library.store(content="Anna's", id="kem_1", by=ANNA, visibility="private")
    desk.glm.is_away = True
    await desk.publish(id="kem_1", persist=True)
    desk.glm.is_away = False
    happened = await desk.carry()

    assert [(each.event_type, each.kem_id) for each in happened] == [("KEM_EVICTED", "kem_1")]
    assert await desk.found(RESEARCHER) == []
    assert (await desk.library.queries.get("kem_1", ANNA)).content == "Anna's"
    assert await desk.writes.count("glm") == 0


async def test_a_write_that_nobody_can_read_does_not_keep_the_others(desk: Desk) -> None:
    desk.glm.is_away = True
    for number in range(3):
        await desk.publish(id=f"kem_{number}", persist=True)
    async with desk.database.transaction() as session:
        rows = (await session.scalars(select(WriteRow).order_by(WriteRow.seq))).all()
        rows[0].kem = {**(rows[0].kem or {}), "visibility": "whoever"}
        rows[1].given = []
    desk.glm.is_away = False
    await desk.carry()

    assert desk.glm.stored == ["kem_2"]
    async with desk.database.reading() as session:
        left = (await session.execute(select(WriteRow.kem_id, WriteRow.target).order_by(WriteRow.seq))).all()
    assert [tuple(row) for row in left] == [("kem_0", "broken"), ("kem_1", "broken")]
    assert (await desk.cache_sync.erase_user("anna"))[0] == {"kems at hand": 0, "kems under way": 0}
    assert (await desk.cache_sync.clear())["kems under way"] == 2


async def test_loading_brings_what_the_asker_may_read(desk: Desk) -> None:
    await desk.library.store(id="kem_1", metadata={"type": "a"})
    await desk.library.store(id="kem_2", metadata={"type": "a"}, visibility="private")
    query = KemQuery.model_validate({"metadata_filters": {"type": "a"}})

    kem_ids, happened = await desk.memory.load(query, CRITIC, 10)
    assert kem_ids == ["kem_1"]
    assert [each.event_type for each in happened] == ["KEM_PUBLISHED"]
    assert (await desk.memory.load(query, CRITIC, 10))[1] == []
    assert await desk.found(CRITIC) == ["kem_1"]
    desk.glm.is_away = True
    with pytest.raises(SharedMemoryAway):
        await desk.memory.load(query, CRITIC, 10)


async def test_what_changes_in_the_global_memory_is_fresh_at_hand(desk: Desk) -> None:
    await desk.publish(id="kem_1", persist=True)
    await desk.carry()
    desk.library.clock.advance(seconds=1)
    changed = await desk.library.update("kem_1", content="It is Monday.")
    happened = await desk.cache_sync.apply_change("kem_1", changed.version, changed.updated_at, is_new=False)

    assert [(each.event_type, each.kem, each.is_published) for each in happened] == [("KEM_UPDATED", changed, True)]
    assert await desk.cache.get("kem_1") == changed
    # What it knows already is no news.
    assert await desk.cache_sync.apply_change("kem_1", changed.version, changed.updated_at, is_new=False) == []


async def test_new_units_of_the_global_memory_are_not_fetched(desk: Desk) -> None:
    kem = await desk.library.store(id="kem_1")
    desk.glm.is_away = True

    assert await desk.cache_sync.apply_change("kem_1", kem.version, kem.updated_at, is_new=True) == []


async def test_what_is_deleted_goes_from_cache_and_queue(desk: Desk) -> None:
    desk.glm.is_away = True
    await desk.publish(id="kem_1", persist=True)
    happened = await desk.cache_sync.apply_deletion("kem_1")
    desk.glm.is_away = False
    await desk.carry()

    assert [each.event_type for each in happened] == ["KEM_DELETED"]
    assert await desk.found() == []
    assert desk.glm.stored == []


async def test_new_units_are_public_while_the_global_memory_is_away(desk: Desk) -> None:
    desk.glm.is_away = True
    await desk.publish(id="kem_said", visibility="public")
    batch = [("kem_minted", a_draft(id="kem_minted", is_new=True)), ("kem_known", a_draft(id="kem_known"))]
    await desk.memory.publish(batch, RESEARCHER, "m1", persist=False)

    assert sorted(await desk.found(CRITIC)) == ["kem_minted", "kem_said"]


async def test_what_was_held_private_for_want_of_an_answer_is_shared_once_there_is_one(desk: Desk) -> None:
    desk.glm.is_away = True
    await desk.publish(id="kem_1", persist=True)
    assert await desk.found(CRITIC) == []
    desk.glm.is_away = False
    happened = await desk.carry()

    assert await desk.found(CRITIC) == ["kem_1"]
    assert [(each.event_type, each.kem and each.kem.visibility) for each in happened] == [("KEM_PUBLISHED", "public")]


async def test_a_deleted_unit_is_neither_at_hand_nor_stored_later(desk: Desk) -> None:
    desk.glm.is_away = True
    await desk.publish(id="kem_1", visibility="public", persist=True)
    with pytest.raises(NotYoursToWrite):
        await desk.cache_sync.remove("kem_1", CRITIC)
    happened = await desk.cache_sync.remove("kem_1", RESEARCHER)
    desk.glm.is_away = False
    await desk.carry()

    assert [each.event_type for each in happened] == ["KEM_DELETED"]
    assert await desk.found() == desk.glm.stored == []
    with pytest.raises(NoSuchKem):
        await desk.cache_sync.remove("kem_1", RESEARCHER)


async def test_a_unit_whose_storing_may_be_under_way_is_not_said_to_be_deleted(desk: Desk) -> None:
    desk.glm.loses_answers = True
    await desk.publish(id="kem_1", persist=True)
    await desk.carry()

    with pytest.raises(SharedMemoryAway):
        await desk.cache_sync.remove("kem_1", RESEARCHER)


async def test_what_was_sent_before_a_crash_is_sent_again_as_it_was(desk: Desk) -> None:
    desk.glm.loses_answers = True
    await desk.publish(id="kem_1", persist=True)
    await desk.carry()
    await desk.publish(id="kem_2", persist=True)
    again = another(desk)
    await again.carry()

    assert again.glm.asked[0] == desk.glm.asked[0]
    assert [ids for _, ids in again.glm.asked] == [["kem_1"], ["kem_2"]]


async def test_what_has_no_room_is_told_as_evicted(desk: Desk) -> None:
    small = Desk(desk.library, desk.database, EmbeddedCache(7000, INDEXED))
    for number in range(4):
        await small.publish(id=f"kem_{number}")

    assert [each.kem_id for each in await small.cache_sync.evictions()] == ["kem_0"]
    assert await small.cache_sync.evictions() == []


async def test_while_the_cache_is_away_reads_fall_through_with_the_same_rights(
    desk: Desk, cache: SwitchedCache
) -> None:
    await desk.library.store(id="kem_1")
    await desk.library.store(id="kem_2", visibility="private")
    cache.is_away = True

    assert await desk.found(CRITIC) == ["kem_1"]
    desk.glm.is_away = True
    with pytest.raises(SharedMemoryAway):
        await desk.found(CRITIC)


async def test_while_the_cache_is_away_no_write_is_lost(desk: Desk, cache: SwitchedCache) -> None:
    await desk.publish("old", id="kem_0")
    cache.is_away = True
    await desk.publish("kept", id="kem_1", persist=True)
    await desk.publish("shared", id="kem_2")
    await desk.cache_sync.apply_deletion("kem_0")
    await desk.carry()
    assert await desk.found() == ["kem_1"]
    with pytest.raises(CacheAway):
        await desk.shelf.catch_up()

    cache.is_away = False
    await desk.shelf.catch_up()
    assert sorted(await desk.found()) == ["kem_1", "kem_2"]
    kept = await desk.cache.get("kem_1")
    assert kept == await desk.library.queries.get("kem_1", RESEARCHER)


async def test_until_the_cache_has_caught_up_it_is_not_believed(desk: Desk, cache: SwitchedCache) -> None:
    await desk.publish("old", id="kem_1", persist=True)
    await desk.carry()
    cache.is_away = True
    await desk.cache_sync.apply_deletion("kem_1")
    await desk.library.delete("kem_1")
    cache.is_away = False

    assert await desk.found() == []


async def test_what_has_expired_is_at_hand_no_more(desk: Desk) -> None:
    await desk.publish(id="kem_1", expires_at=desk.library.clock() + timedelta(minutes=5))
    assert await desk.found() == ["kem_1"]

    desk.library.clock.advance(minutes=5)

    assert await desk.found() == []


async def test_what_supersedes_another_holds_from_when_the_global_memory_says(desk: Desk) -> None:
    await desk.publish("It is Friday.", id="old", persist=True)
    await desk.carry()
    desk.library.clock.advance(days=1)
    await desk.publish("It is Monday.", id="new", supersedes=["old"], persist=True)
    await desk.carry()

    at_hand = await desk.cache.get("new")
    assert at_hand is not None
    assert at_hand == await desk.library.queries.get("new", RESEARCHER)
    assert at_hand.valid_from is not None
    assert await desk.found(as_of=desk.library.clock() - timedelta(hours=1)) == ["old"]


async def test_an_end_that_is_learnt_later_does_not_change_what_was_known(desk: Desk) -> None:
    await desk.publish(id="kem_1")
    end = desk.library.clock()
    desk.library.clock.advance(hours=2)
    before = desk.library.clock() - timedelta(hours=1)
    ended = await desk.publish(id="kem_1", valid_to=end)

    assert ended.end_learnt_at == desk.library.clock()
    assert await desk.found(known_at=before) == ["kem_1"]
    assert await desk.found(as_of=before) == []
    desk.library.clock.advance(hours=1)
    assert (await desk.publish("Again.", id="kem_1", valid_to=end)).end_learnt_at == ended.end_learnt_at
    assert (await desk.publish(id="kem_1")).end_learnt_at is None


async def test_forgetting_a_user_takes_what_is_theirs(desk: Desk) -> None:
    desk.glm.is_away = True
    await desk.publish(id="kem_1", by=ANNA, persist=True)
    await desk.publish(id="kem_2", metadata={"user_id": "anna"})
    await desk.publish(id="kem_3", persist=True)

    counts, events = await desk.cache_sync.erase_user("anna")
    assert counts == {"kems at hand": 2, "kems under way": 1}
    assert sorted((event.event_type, event.kem_id) for event in events) == [
        ("KEM_DELETED", "kem_1"),
        ("KEM_DELETED", "kem_2"),
    ]
    assert await desk.found() == ["kem_3"]
    assert await desk.cache_sync.clear() == {"kems at hand": 1, "kems under way": 1}


async def test_glm_away_is_said_so(desk: Desk) -> None:
    desk.glm.is_away = True
    with pytest.raises(GlmAway):
        await desk.cache_sync.apply_change("kem_1", 2, desk.library.clock(), is_new=False)


async def test_what_the_global_memory_did_unheard_is_recognised(desk: Desk) -> None:
    desk.glm.loses_answers = True
    await desk.publish(id="kem_1", persist=True)
    await desk.carry()
    await desk.publish(id="kem_2", persist=True)
    await desk.carry()
    desk.glm.loses_answers = False
    await desk.carry()

    (first, _), (second, _), (third, _), (other, _) = desk.glm.asked
    assert [kem_ids for _, kem_ids in desk.glm.asked] == [["kem_1"], ["kem_1"], ["kem_1"], ["kem_2"]]
    assert first == second == third != other


async def test_a_message_that_comes_again_publishes_nothing_twice(desk: Desk) -> None:
    """As after a kill between its writes and its acknowledgement, whether or not they were carried out meanwhile."""
    first = await desk.publish(id="kem_1", visibility="private", persist=True, message_id="m1")
    await desk.carry()
    after = another(desk)

    repeated = await after.try_to_publish(id="kem_1", persist=True, message_id="m1")
    changed = await after.try_to_publish("It is Sunday.", id="kem_1", persist=True, message_id="m2")
    late = await after.try_to_publish(id="kem_1", persist=True, message_id="m1")
    await after.carry()

    assert isinstance(repeated, KemEvent)
    assert repeated.kem is not None
    assert (repeated.event_type, repeated.kem.version, repeated.kem.content) == ("KEM_PUBLISHED", 1, first.content)
    assert isinstance(changed, KemEvent)
    # A late repetition neither brings an older content back nor counts.
    assert isinstance(late, KemEvent)
    assert late.kem is not None
    assert late.kem.content == "It is Sunday."
    assert after.glm.stored == ["kem_1"]
    assert desk.glm.stored == ["kem_1"]


async def test_what_a_repeated_message_published_and_others_deleted_stays_deleted(desk: Desk) -> None:
    await desk.publish(id="kem_1", visibility="private", persist=True, message_id="m1")
    await desk.carry()
    await desk.library.delete("kem_1", RESEARCHER)
    await desk.cache_sync.apply_deletion("kem_1")

    assert isinstance(await desk.try_to_publish(id="kem_1", persist=True, message_id="m1"), NoSuchKem)
    desk.glm.is_away = True
    with pytest.raises(SharedMemoryAway):
        await desk.try_to_publish(id="kem_1", persist=True, message_id="m1")


async def test_messages_that_no_longer_come_again_are_forgotten(desk: Desk) -> None:
    await desk.publish(id="kem_1", visibility="private", persist=True, message_id="m1")
    await desk.writes.forget_old()
    assert await desk.writes.published_by("m1", ["kem_1", "kem_2"]) == {"kem_1"}

    await desk.writes.forget_old(timedelta(0))
    assert await desk.writes.published_by("m1", ["kem_1", "kem_2"]) == set()
