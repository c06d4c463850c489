"""Large chat indexes are saved, mapped at the next start, and never outlive what they were made of."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from bus_schema.lsm_search import SearchEpisodes
from config.settings import FleetSettings
from memory.lsm.search.index_cache import ChatIndexCache
from memory.lsm.search.index_snapshots import IndexSnapshots, SavedIndex
from memory.lsm.search.ranking import DEFAULT_WEIGHTS, compare
from memory.lsm.search.search import EpisodeSearch
from memory.lsm.search.turn_search import ChatResult, choose_turns, match_query, rank_turns
from mindbus.sql.database import Database
from tests.clocks import NOON
from tests.hashing_embedder import HashingEmbedder
from tests.lsm_kit import ANNA, Archive, talk
from tests.postgres import DatabaseOf

HOUR = timedelta(hours=1)
LINES = [
    f"{name} {what} number {day} of the year" for day in range(40) for name in ("Rex", "Mia") for what in ("ate", "ran")
]
QUESTIONS = ("Who ran on number 17?", "Rex ate number 3", "what did Mia do in the year", "Sindbad", "paint")


class Shop:
    """An archive with embedded turns and caches that begin anew, as after a restart."""

    snapshots = IndexSnapshots

    def __init__(self, database: Database, folder: Path) -> None:
        self.archive = Archive(database, FleetSettings(lsm_max_turns=50, data_dir=folder))
        self.embedder = HashingEmbedder()
        self.search = EpisodeSearch(self.archive.memory, self.archive.settings, self.open_embedder)
        self.folder = folder / "indexes"
        self.indexes = self.restarted()

    async def open_embedder(self) -> HashingEmbedder:
        return self.embedder

    def restarted(self) -> ChatIndexCache:
        snapshots = self.snapshots(self.archive.database, self.folder, 10)
        self.indexes = ChatIndexCache(self.archive.database, HOUR, 2**30, snapshots, self.archive.memory.texts)
        self.archive.memory.listeners.add(self.indexes)
        return self.indexes

    async def embed(self) -> None:
        while (await self.archive.stats()).waiting_for_vectors:
            await self.search.embed()

    async def ask(self, question: str, indexes: ChatIndexCache | None = None) -> ChatResult:
        vector = (await self.embedder.query(question)).raw
        query = SearchEpisodes(query=question, chat_id=ANNA, budget_words=60)
        async with (indexes or self.indexes).index(ANNA, self.embedder.space.model) as index:
            matches = match_query(index, query, NOON, None)
            if matches is None:
                return ChatResult((), (), "nothing")
            ranking = rank_turns(index, query, matches, compare(index, vector), DEFAULT_WEIGHTS)
            return choose_turns(index, query, matches, ranking, DEFAULT_WEIGHTS)

    async def answers(self) -> list[ChatResult]:
        return [await self.ask(question) for question in QUESTIONS]

    def files(self) -> list[Path]:
        return list(self.folder.glob("*"))


@pytest.fixture
async def shop(sqlite_database_of: DatabaseOf, tmp_path: Path) -> AsyncIterator[Shop]:
    database = Database(sqlite_database_of("lsm"), "lsm")
    shop = Shop(database, tmp_path)
    await shop.archive.record(*talk(*LINES))
    await shop.embed()
    yield shop
    await shop.search.close()
    await database.dispose()


async def test_an_index_is_mapped_from_its_snapshot_and_answers_the_same(shop: Shop) -> None:
    built = await shop.answers()
    await shop.indexes.save()
    mapped = await shop.answers()
    shop.restarted()

    assert await shop.answers() == mapped == built
    assert len(shop.files()) == 1
    async with shop.indexes.index(ANNA, None) as index:
        assert index.size_bytes < 100_000
        assert index.vectors.count == len(LINES)


async def test_turns_and_vectors_that_came_after_a_snapshot_are_added(shop: Shop) -> None:
    await shop.archive.record(*talk("We painted the kitchen", begins=NOON + HOUR * 24))
    await shop.ask("paint")
    await shop.indexes.save()
    await shop.embed()
    await shop.archive.record(*talk("Sindbad sailed away", "Rex ran to the paint", begins=NOON + HOUR * 48))
    await shop.embed()
    shop.restarted()
    from_snapshot = await shop.answers()

    built = ChatIndexCache(
        shop.archive.database,
        HOUR,
        2**30,
        IndexSnapshots(shop.archive.database, shop.folder / "none"),
        shop.archive.memory.texts,
    )
    for question, found in zip(QUESTIONS, from_snapshot, strict=True):
        expected = await shop.ask(question, built)
        assert {each.raw_log_id for each in found.hits[:3]} == {each.raw_log_id for each in expected.hits[:3]}, question
    async with shop.indexes.index(ANNA, shop.embedder.space.model) as index:
        assert index.vectors.count == len(LINES) + 3


async def test_a_snapshot_is_written_anew_when_the_index_has_grown_by_a_quarter(shop: Shop) -> None:
    await shop.ask("paint")
    await shop.indexes.save()
    first = shop.files()[0].stat().st_mtime_ns
    await shop.archive.record(*talk("a little more", begins=NOON + HOUR * 24))
    await shop.ask("paint")
    await shop.indexes.save()
    assert shop.files()[0].stat().st_mtime_ns == first

    await shop.archive.record(*talk(*LINES[:60], begins=NOON + HOUR * 48))
    await shop.ask("paint")
    await shop.indexes.save()

    assert shop.files()[0].stat().st_mtime_ns > first


async def test_an_erased_chat_leaves_no_snapshot(shop: Shop) -> None:
    await shop.ask("paint")
    await shop.indexes.save()

    await shop.archive.work(lambda: shop.archive.memory.erasure.erase(ANNA))

    assert not shop.files()
    assert not (await shop.ask("Rex")).hits


async def test_a_chat_erased_while_its_snapshot_is_written_leaves_none(shop: Shop) -> None:
    class ErasedMeanwhile(IndexSnapshots):
        """The erasure's own deletion comes before the file does."""

        def write(self, chat_id: str, saved: SavedIndex) -> None:
            shop.indexes.on_erased(chat_id)
            super().write(chat_id, saved)

    shop.snapshots = ErasedMeanwhile
    shop.restarted()
    await shop.ask("paint")
    await shop.indexes.save()

    assert not shop.files()


async def test_a_snapshot_that_does_not_fit_the_log_is_swept_away(shop: Shop) -> None:
    await shop.ask("paint")
    await shop.indexes.save()
    kept = shop.files()[0].read_bytes()
    await shop.archive.work(lambda: shop.archive.memory.erasure.erase(ANNA))
    # A process was killed between the erasure's commit and the deletion; another one while it wrote.
    path = shop.indexes.snapshots._path(ANNA)
    path.write_bytes(kept)
    path.with_name(f"{path.name}.new").write_bytes(kept[:1000])

    await shop.indexes.snapshots.sweep()

    assert not shop.files()


@pytest.mark.parametrize("kept", [slice(-9), slice(5000), slice(0), slice(4096, None)], ids=str)
async def test_a_damaged_snapshot_is_deleted_and_the_index_built_anew(shop: Shop, kept: slice) -> None:
    built = await shop.answers()
    await shop.indexes.save()
    path = shop.files()[0]
    path.write_bytes(path.read_bytes()[kept])
    shop.restarted()

    assert await shop.answers() == built
    assert not shop.files()
