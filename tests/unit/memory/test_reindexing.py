"""Memory goes over to another model without a moment in which it answers worse."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from bus_schema.glm import ReindexProgress
from bus_schema.kem_query import KemQuery
from memory.glm.index_sync import VectorRelay
from memory.glm.migration import Reindexing
from memory.glm.search import KemSearch
from memory.glm.service import space_in_use
from memory.glm.tables import KemRow
from memory.vectors.embedded import EmbeddedIndex
from memory.vectors.index import IndexAway, VectorIndex, VectorPoint
from retrieval.embedding.embedder import EmbedderAway
from tests.hashing_embedder import HashingEmbedder
from tests.memory_kit import RESEARCHER, Library, a_draft

BATCH = 3
KEMS = 10


class Move:
    """From one model to another, with as many indexes."""

    def __init__(self, library: Library, folder: Path) -> None:
        self.library, self.folder = library, folder
        self.older, self.newer = HashingEmbedder("older"), HashingEmbedder("newer", 32)
        self.live = EmbeddedIndex(folder / "older.vectors", self.older.space)
        self.next: EmbeddedIndex = EmbeddedIndex(folder / "newer.vectors", self.newer.space)
        library.kems.space = self.older.space
        self.relay = VectorRelay(library.database, self.live)

    async def store(self, number: int, content: str | None = None) -> None:
        text = content or f"Unit number {number} says so."
        (vector,) = await self.older.passages([text])
        await self.library.store(a_draft(text, id=f"kem_{number}", embeddings=vector))

    async def run(self) -> list[ReindexProgress]:
        reindexing = Reindexing(self.library.database, self.newer, self.next, batch=BATCH)
        return [progress async for progress in reindexing.run()]

    async def near(self, text: str, embedder: HashingEmbedder, index: VectorIndex) -> str:
        vector = await embedder.query(text)
        nearness = KemSearch(self.library.queries, VectorRelay(self.library.database, index), None)
        return (await nearness.nearest(vector, KemQuery(), RESEARCHER, 1))[0].kem.id

    async def is_whole(self) -> bool:
        """Whether everything is in the new space: rows, index, what the two say."""
        relay = VectorRelay(self.library.database, self.next)
        await relay.reconcile()
        report = await relay.check()
        in_use = await space_in_use(self.library.database)
        return report.is_clean and in_use == self.newer.space and report.with_vector == report.kems == report.vectors


@pytest.fixture
async def move(library: Library, tmp_path: Path) -> AsyncIterator[Move]:
    found = Move(library, tmp_path)
    await found.relay.open()
    await found.next.open()
    for number in range(KEMS):
        await found.store(number)
    await found.relay.relay()
    yield found
    for each in (found.live, found.next, found.older, found.newer):
        await each.close()


async def test_all_units_get_a_vector_of_the_new_model(move: Move) -> None:
    before = await move.library.queries.get("kem_3", RESEARCHER)
    assert await space_in_use(move.library.database) is None

    steps = await move.run()

    assert [(step.model, step.done, step.total) for step in steps] == [("newer", n, 10) for n in (3, 6, 9, 10)]
    assert await move.is_whole()
    after = await move.library.queries.get("kem_3", RESEARCHER)
    assert after.embeddings is not None
    assert after.embeddings.model == "newer"
    assert after.model_copy(update={"embeddings": before.embeddings}) == before
    assert await move.near("number 3", move.newer, move.next) == "kem_3"


@pytest.mark.parametrize("batches", range(5))
async def test_wherever_it_is_interrupted_it_goes_on_from_there(move: Move, batches: int) -> None:
    move.newer.after = batches
    if batches < 4:
        with pytest.raises(EmbedderAway):
            await move.run()
        assert await space_in_use(move.library.database) is None
        assert await move.near("number 3", move.older, move.live) == "kem_3"
        assert (await move.relay.check()).is_clean
    move.newer.after, move.newer.away = None, False

    await move.run()

    assert move.newer.embedded == KEMS
    assert await move.is_whole()


@pytest.mark.parametrize("batches", range(1, 4))
async def test_what_changes_meanwhile_goes_over_as_it_is_then(move: Move, batches: int) -> None:
    move.newer.after = batches
    with pytest.raises(EmbedderAway):
        await move.run()
    await move.library.update("kem_0", content="Zebras, quite another matter")
    await move.library.delete("kem_1")
    await move.store(77)
    await move.library.store(a_draft("It never had a vector", id="bare"))
    await move.relay.relay()
    move.newer.after, move.newer.away = None, False

    await move.run()

    assert await move.is_whole()
    assert await move.near("zebra matters", move.newer, move.next) == "kem_0"
    assert await move.near("never a vector", move.newer, move.next) == "bare"


async def test_what_changes_at_the_last_moment_goes_over_too(move: Move) -> None:
    class Late(EmbeddedIndex):
        is_late = True

        async def write(self, points: Sequence[VectorPoint], gone: Sequence[str]) -> None:
            await super().write(points, gone)
            if self.is_late:
                self.is_late = False
                await move.library.delete("kem_0")
                await move.store(0, "Zebras under the older id")

    move.next, older = Late(move.folder / "late.vectors", move.newer.space), move.next
    await move.next.open()
    await older.close()

    await move.run()

    assert await move.is_whole()
    assert await move.near("zebras", move.newer, move.next) == "kem_0"


@pytest.mark.parametrize("is_written", [False, True])
async def test_an_index_that_goes_away_is_filled_the_next_time(move: Move, is_written: bool) -> None:
    class Failing(EmbeddedIndex):
        is_away = True

        async def write(self, points: Sequence[VectorPoint], gone: Sequence[str]) -> None:
            if is_written or not self.is_away:
                await super().write(points, gone)
            if self.is_away:
                raise IndexAway("out for lunch")

    failing = Failing(move.folder / "failing.vectors", move.newer.space)
    await failing.open()
    move.next, older = failing, move.next
    await older.close()
    with pytest.raises(IndexAway):
        await move.run()
    assert await space_in_use(move.library.database) is None
    assert await move.near("number 3", move.older, move.live) == "kem_3"

    failing.is_away = False
    await move.run()

    assert move.newer.embedded == KEMS
    assert await move.is_whole()


async def test_another_model_begins_anew(move: Move) -> None:
    move.newer.after = 2
    with pytest.raises(EmbedderAway):
        await move.run()
    third = HashingEmbedder("third", 32)
    index = EmbeddedIndex(move.folder / "third.vectors", third.space)
    await index.open()

    steps = [step async for step in Reindexing(move.library.database, third, index, batch=BATCH).run()]

    assert [step.done for step in steps] == [3, 6, 9, 10]
    assert await space_in_use(move.library.database) == third.space
    await index.close()
    await third.close()


async def test_what_says_nothing_by_itself_is_asked_for(move: Move) -> None:
    ref = {"artifact_id": "art_1", "version": 1, "sha256": "0" * 64, "size_bytes": 3, "content_type": "text/plain"}
    await move.library.update("kem_0", ref=ref)
    await move.library.update("kem_1", ref=ref | {"artifact_id": "art_2"})

    async def text_of(row: KemRow) -> str | None:
        if row.content is not None:
            return row.content.decode()
        return "Zebras of the artifact" if row.ref == ref else None

    reindexing = Reindexing(move.library.database, move.newer, move.next, text_of=text_of)
    steps = [step async for step in reindexing.run()]

    assert steps[-1].done == steps[-1].total == KEMS
    assert await move.near("zebra", move.newer, move.next) == "kem_0"
    assert (await move.library.queries.get("kem_1", RESEARCHER)).embeddings is None
