"""Raw turns of cold episodes in artifacts: found and read as before, whatever fails on the way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from bus_schema.artifacts import Manifest
from bus_schema.lsm_search import FoundEpisodes, SearchEpisodes
from config.settings import FleetSettings
from memory.errors import MessageDiffers, NoSuchEpisode, RawTurnsGone
from memory.lsm.rows import lock_chat
from memory.lsm.search.questions import parse_question
from memory.lsm.search.search import EpisodeSearch
from memory.lsm.service import LongTermMemory
from memory.lsm.tables import ArchiveRow
from mindbus.errors import TemporaryFailure
from mindbus.sdk.errors import StorageAway
from mindbus.sql.database import Database
from mindbus.testing.wait import until
from tests.clocks import NOON
from tests.hashing_embedder import HashingEmbedder
from tests.lsm_kit import ANNA, Archive, said, talk
from tests.postgres import DatabaseOf
from tests.sdk_kit import Bench, FakeStorage, PartingStorage

DAY = timedelta(days=1)
COLD_DAYS = 30
TURNS = [
    f"Chapter {number}: the ferry to Korčula leaves at {number} past noon, said Vesna, "
    "for whom neighbourliness and thoughtfulness are extraordinarily straightforward characteristics of Mediterranean "
    "archipelagos and their administrations."
    for number in range(40)
]
NAMED = said("Das Passwort der Bücherei ist Zwetschge.", NOON + timedelta(minutes=45), message_id="msg_1")


class Attic(Archive):
    """An archive whose raw turns move out when their episode has been cold for thirty days."""

    bench: Bench
    search: EpisodeSearch

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Attic"]:
        async with self.bench.artifacts() as artifacts:
            self.memory = LongTermMemory(self.database, self.settings, self.clock, artifacts)
            self.open_search("hashing")
            yield self
            await self.search.close()

    def open_search(self, model: str) -> None:
        """As after a restart: nothing is in memory."""

        async def opening() -> HashingEmbedder:
            return HashingEmbedder(model)

        self.memory.texts.on_erased(None)
        self.search = EpisodeSearch(self.memory, self.settings, opening)

    async def embed(self) -> None:
        await self.search.embed()
        while (await self.stats()).waiting_for_vectors:
            await self.search.embed()

    async def settle(self) -> None:
        while await self.work(lambda: self.memory.segmentation.step(NOON + 300 * DAY)) is not None:
            pass

    async def cool(self, *turns: str) -> str:
        """The cold episode of all turns; it has been so for long."""
        await self.record(*talk(*(turns or TURNS)), NAMED)
        await self.embed()
        await self.settle()
        (row,) = await self.episodes()
        for _layer in range(2):
            await self.pack(row.id, NOON + 100 * DAY)
        self.clock.now = NOON + (100 + COLD_DAYS) * DAY
        return row.id

    async def archive(self) -> int:
        return await self.memory.archives.step(self.clock())

    async def found(self, query: str, **fields: Any) -> FoundEpisodes:
        wanted = SearchEpisodes(query=query, chat_id=ANNA, **fields)
        return await self.search.find(wanted, self.clock(), "srch_1", "user.anna")

    async def explained(self, episode_id: str) -> tuple[list[str], str]:
        found = await self.memory.queries.explain(episode_id, self.clock())
        return [turn.content for turn in found.turns], found.raw_turns


@pytest.fixture
async def attic(database_of: DatabaseOf, tmp_path: Path) -> AsyncIterator[Attic]:
    settings = FleetSettings(lsm_max_turns=50, lsm_raw_days=COLD_DAYS, data_dir=tmp_path)
    found = Attic(Database(database_of("lsm"), "lsm"), settings)
    found.bench = Bench(tmp_path)
    async with found.opened():
        yield found
    await found.database.dispose()


def texts(found: FoundEpisodes) -> list[str]:
    return [turn.content for each in found.episodes for turn in each.turns]


ALL = [*TURNS, NAMED.content]
QUESTIONS = ("When does ferry 7 leave?", "Passwort der Bücherei", "What did we discuss about the ferry?")


async def test_an_archived_episode_is_found_read_and_unpacked_as_before(attic: Attic) -> None:
    episode_id = await attic.cool()
    before = [await attic.found(question) for question in QUESTIONS]
    attic.clock.now -= timedelta(seconds=1)
    assert await attic.archive() == 0
    attic.clock.now += timedelta(seconds=1)

    assert await attic.archive() == 1
    assert await attic.archive() == 0
    assert set(await attic.log()) == {""}
    (manifest,) = attic.bench.storage.manifests.values()
    assert (manifest.artifact_type, manifest.trace_id, manifest.step_id) == ("episode_turns", "conv_anna", episode_id)
    assert (manifest.visibility, manifest.retention) == ("private", "infinite")
    sizes = await attic.memory.statistics.sizes(ANNA, 0, 0)
    assert (sizes.texts, sizes.archives) == (0, manifest.size_bytes)
    assert sizes.archived_texts == sum(len(each.encode()) for each in ALL) > manifest.size_bytes
    attic.open_search("hashing")
    await attic.embed()
    assert [await attic.found(question) for question in QUESTIONS] == before


async def test_an_archived_episode_is_embedded_recorded_and_unpacked_as_others(attic: Attic) -> None:
    episode_id = await attic.cool()
    assert await attic.archive() == 1
    attic.open_search("another")
    await attic.embed()
    assert NAMED.content in texts(await attic.found("Passwort der Bücherei"))
    assert await attic.explained(episode_id) == (ALL, "artifact")
    assert (await attic.record(NAMED)).new == 0
    with pytest.raises(MessageDiffers):
        await attic.record(said("Something else.", NAMED.time, message_id="msg_1"))

    content, _event = await attic.unpack(episode_id, attic.clock())
    assert [turn.content for turn in content.raw_messages] == await attic.log() == ALL
    assert await attic.explained(episode_id) == (ALL, "log")
    assert (await attic.memory.statistics.sizes(None, 0, 0)).archived_texts == 0
    for _layer in range(2):
        await attic.pack(episode_id, attic.clock())
    attic.clock.advance(days=COLD_DAYS)
    assert await attic.archive() == 1
    assert len(attic.bench.storage.manifests) == 1
    await attic.anchor(episode_id, is_anchor=True)
    assert await attic.log() == ALL


async def test_texts_stay_in_the_log_until_storage_has_them(attic: Attic) -> None:
    episode_id = await attic.cool()
    storage = attic.bench.storage
    storage.is_away = True
    with pytest.raises(StorageAway):
        await attic.archive()
    assert await attic.log() == ALL
    with pytest.raises(TemporaryFailure):
        # Its bytes wait in the buffer: whoever is forgotten now would come back.
        await attic.memory.archives.require_idle(ANNA)
    await attic.memory.archives.require_idle("boris")

    (artifact_id,) = attic.bench.waiting()
    storage.is_away, storage.refuses = False, {artifact_id}
    for _day in range(2):
        # It pauses after a refusal, and nobody can register the copy by hand.
        assert await attic.archive() == 0
        assert (await attic.log(), storage.manifests) == (ALL, {})
        assert not [path for path in attic.bench.buffer.glob("failed/*") if path.is_file()]
        await attic.memory.archives.require_idle(None)
        asked = len(storage.asked)
        assert (await attic.archive(), len(storage.asked)) == (0, asked)
        attic.clock.advance(days=1)
    storage.refuses = set()
    assert await attic.archive() == 1
    assert list(storage.manifests) == [artifact_id]
    assert await attic.explained(episode_id) == (ALL, "artifact")


async def test_a_crash_before_the_commit_leaves_one_artifact(attic: Attic) -> None:
    episode_id = await attic.cool()
    attic.bench.storage = PartingStorage(attic.bench.files)
    async with attic.opened():
        with pytest.raises(StorageAway):
            await attic.archive()
        # It has the artifact; nobody has heard of that.
        (artifact_id,) = attic.bench.storage.manifests
        assert await attic.log() == ALL
    manifests, attic.bench.storage = attic.bench.storage.manifests, FakeStorage(attic.bench.files)
    attic.bench.storage.manifests = manifests

    async def is_archived() -> bool:
        # What waits in the buffer may be on its way at this moment.
        with suppress(StorageAway):
            return await attic.archive() == 1
        return False

    async with attic.opened():
        await until(is_archived)
        assert list(attic.bench.storage.manifests) == [artifact_id]
        assert await attic.explained(episode_id) == (ALL, "artifact")


async def test_raw_turns_that_are_gone_are_said_to_be_and_nothing_else_fails(attic: Attic) -> None:
    episode_id = await attic.cool()
    await attic.record(*talk("The ferry of today is late.", begins=attic.clock()))
    await attic.embed()
    await attic.archive()
    assert texts(await attic.found("ferry to Korčula"))
    attic.memory.texts.on_erased(None)
    # It comes first: once storage has been away, searches do not ask it for some seconds.
    storage = attic.bench.storage
    storage.manifests, kept = {}, storage.manifests
    gone = await attic.found("ferry to Korčula")
    storage.manifests, storage.is_away = kept, True
    with pytest.raises(StorageAway):
        await attic.unpack(episode_id)
    away = await attic.found("ferry to Korčula")
    storage.manifests, storage.is_away = {}, False

    for found in (away, gone):
        assert texts(found) == ["The ferry of today is late."]
        assert found.unreadable > 0
    with pytest.raises(RawTurnsGone):
        await attic.unpack(episode_id)
    with pytest.raises(RawTurnsGone):
        await attic.anchor(episode_id, is_anchor=True)
    assert await attic.explained(episode_id) == ([], "gone")
    attic.open_search("another")
    await attic.search.embed()
    assert texts(await attic.found("ferry of today"))


async def test_texts_that_come_back_while_they_are_looked_for_are_found(attic: Attic) -> None:
    episode_id = await attic.cool()
    await attic.archive()
    (row,) = [each for each in await attic.episodes() if each.id == episode_id]
    ids = (await attic.episode(row.id)).raw_log_ids
    await attic.unpack(episode_id)
    assert [(await attic.memory.texts.of(ids))[each] for each in ids] == ALL


async def test_an_index_without_all_texts_is_not_saved_and_is_built_again(
    attic: Attic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await attic.cool()
    await attic.archive()
    attic.open_search("hashing")
    await attic.embed()
    indexes, storage = attic.search.indexes, attic.bench.storage
    indexes.snapshots.least_turns = 1
    manifests = dict(storage.manifests)
    storage.manifests.clear()

    async def with_zwetschge() -> int:
        async with indexes.index(ANNA, attic.search.embeddings.model) as index:
            stems = parse_question("Zwetschge", (), NOON).stems
            return sum(len(index.postings.positions(stem)) for stem in stems)

    assert await with_zwetschge() == 0
    await indexes.save()
    assert indexes.snapshots.size_bytes(ANNA) == 0

    storage.manifests.update(manifests)
    assert await with_zwetschge() == 0
    monkeypatch.setattr("memory.lsm.search.index_cache._REREAD_S", 0.0)
    storage.is_away = True
    attic.memory.texts.on_erased(None)
    # It goes on without them.
    assert await with_zwetschge() == 0
    storage.is_away = False
    assert await with_zwetschge() == 1
    await indexes.save()
    assert indexes.snapshots.size_bytes(ANNA) > 0


async def test_without_storage_overviews_warm_episodes_and_their_links_go_on(attic: Attic) -> None:
    await attic.cool()
    await attic.archive()
    before = NOON - 10 * DAY
    await attic.record(*talk("The ferry: we decided to take the blue one.", "Good.", begins=before))
    await attic.embed()
    await attic.settle()
    (warm, _cold) = await attic.episodes()
    await attic.pack(warm.id, attic.clock())
    await attic.found("ferry")
    attic.memory.texts.on_erased(None)
    attic.memory.segmentation.on_erased(None)
    attic.bench.storage.is_away = True

    assert (await attic.episode(warm.id)).layer == "warm"
    assert (await attic.memory.queries.explain(warm.id, attic.clock())).raw_turns == "log"
    found = await attic.found("What did we discuss about the ferry?", depth="summary")
    assert warm.id in [each.episode_id for each in found.episodes]
    await attic.record(*talk("Another ferry leaves today.", begins=NOON + 200 * DAY))
    await attic.embed()
    await attic.settle()
    assert all(each.is_settled for each in await attic.episodes())


async def test_a_search_asks_storage_that_does_not_answer_once_and_for_a_second(attic: Attic) -> None:
    await attic.cool()
    await attic.archive()
    await attic.found("ferry")
    attic.memory.texts.on_erased(None)
    asked: list[str | None] = []

    async def silence(artifact_ids: Any, trace: str | None) -> tuple[Manifest, ...]:
        asked.append(trace)
        await asyncio.Event().wait()
        return ()

    attic.bench.storage.manifests_of = silence  # type: ignore[method-assign]
    async with asyncio.timeout(5):
        for _search in range(2):
            assert (await attic.found("ferry")).unreadable
    assert asked == ["conv_anna"]


async def test_who_is_being_forgotten_is_not_archived(attic: Attic) -> None:
    await attic.cool()
    due = await attic.memory.archives._due(attic.clock(), attic.clock())
    archive = await attic.memory.archives._archive_of(due[1][0])
    await attic.work(lambda: attic.memory.erasure.erase(ANNA))

    assert await attic.memory.archives._begin(ANNA, [archive], attic.clock()) == {}


async def test_an_erasure_does_not_wait_for_an_archiver_that_waits_for_it(
    attic: Attic, monkeypatch: pytest.MonkeyPatch
) -> None:
    await attic.cool()
    archives, begins = attic.memory.archives, asyncio.Event()
    begin = archives._begin

    async def beginning(*args: Any) -> Any:
        begins.set()
        return await begin(*args)

    monkeypatch.setattr(archives, "_begin", beginning)
    async with attic.database.at_hand():
        await attic.memory.erasure.erase(ANNA)
        archiving = asyncio.create_task(attic.archive())
        await begins.wait()
        await archives.require_idle(ANNA)
    await archiving
    assert attic.bench.storage.manifests == {}


async def test_whoever_moves_texts_waits_for_the_chat_before_the_episode(attic: Attic) -> None:
    episode_id = await attic.cool()
    if attic.database.is_sqlite:
        pytest.skip("SQLite has one writer")
    assert await attic.archive() == 1

    async def is_waited_for() -> bool:
        waiting = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        async with attic.database.reading() as session:
            return bool(await session.scalar(waiting))

    async with attic.database.at_hand():
        await attic.database.session.run_sync(lock_chat, ANNA)
        unpacking = asyncio.create_task(attic.unpack(episode_id))
        await until(is_waited_for)
        await attic.memory.erasure.erase(ANNA)
    with pytest.raises(NoSuchEpisode):
        await unpacking


async def test_an_episode_that_would_save_too_little_stays_in_the_log(attic: Attic) -> None:
    episode_id = await attic.cool(*(f"Word {number} of {number} said nothing of substance." for number in range(45)))
    assert (await attic.archive(), await attic.archive()) == (1, 0)
    assert attic.bench.storage.manifests == {}
    assert (await attic.explained(episode_id))[1] == "log"
    await attic.unpack(episode_id)
    assert await attic.count(ArchiveRow) == 0
