"""Rows are the truth: whatever breaks, the index of vectors comes to say what they say."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import delete, insert

from bus_schema.embeddings import Embedding
from bus_schema.kem_query import KemQuery
from memory.glm.index_sync import IndexGone, VectorRelay
from memory.glm.search import KemSearch
from memory.glm.tables import KemRow, VectorWriteRow
from memory.vectors.embedded import EmbeddedIndex
from memory.vectors.index import IndexAway, VectorPoint
from retrieval.embedding.embedder import WrongVector
from tests.memory_kit import ANNA, CRITIC, RESEARCHER, SPACE, Library, a_draft, a_vector


class FailingIndex(EmbeddedIndex):
    """Does not answer while it is `away`; dies in the middle when it is to `die_after` some writes."""

    away = False
    die_after: int | None = None

    async def write(self, points: Sequence[VectorPoint], gone: Sequence[str]) -> None:
        if self.away:
            raise IndexAway("out for lunch")
        await super().write(points, gone)
        if self.die_after is not None:
            self.die_after -= 1
            if self.die_after < 0:
                raise IndexAway("died having written")


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[FailingIndex]:
    found = FailingIndex(tmp_path / "glm.vectors", SPACE)
    yield found
    await found.close()


@pytest.fixture
async def relay(library: Library, index: FailingIndex) -> VectorRelay:
    found = VectorRelay(library.database, index, batch=2)
    await found.open()
    return found


async def near(library: Library, relay: VectorRelay, limit: int = 10, **query: object) -> list[str]:
    nearness = KemSearch(library.queries, relay, None)
    wanted = KemQuery.model_validate(query)
    return [found.kem.id for found in await nearness.nearest(a_vector(1, 0, 0, 0), wanted, RESEARCHER, limit)]


async def test_what_is_stored_is_found_by_nearness(library: Library, relay: VectorRelay) -> None:
    await library.store(id="near", embeddings=a_vector(9, 1, 0, 0))
    await library.store(id="far", embeddings=a_vector(0, 1, 0, 0))
    await library.store(id="none")

    assert await relay.relay() == 2
    assert await near(library, relay) == ["near", "far"]
    report = await relay.check()
    assert report.is_clean
    assert (report.kems, report.with_vector, report.vectors) == (3, 2, 2)


async def test_changes_and_deletes_reach_the_index(library: Library, relay: VectorRelay) -> None:
    for name in ("changed", "dropped", "deleted"):
        await library.store(id=name, embeddings=a_vector(1, 0, 0, 0), metadata={"n": 1})
    await relay.relay()
    await library.update("changed", metadata={"n": 2})
    await library.update("dropped", content="other words")
    await library.delete("deleted")
    assert (await relay.check()).waiting == 3
    await relay.relay()

    assert (await relay.check()).is_clean
    assert await near(library, relay) == ["changed"]
    assert await near(library, relay, metadata_filters={"n": 2}) == ["changed"]


async def test_while_the_index_is_away_nothing_is_lost(
    library: Library, relay: VectorRelay, index: FailingIndex
) -> None:
    index.away = True
    for number in range(5):
        await library.store(id=f"kem_{number}", embeddings=a_vector(1, number, 0, 0))
    with pytest.raises(IndexAway):
        await relay.relay()
    assert (await relay.check()).waiting == 5

    index.away = False
    await relay.relay()

    assert (await relay.check()).is_clean
    assert len(await near(library, relay)) == 5


async def test_what_was_written_without_its_note_going_is_written_again(
    library: Library, relay: VectorRelay, index: FailingIndex
) -> None:
    for number in range(5):
        await library.store(id=f"kem_{number}", embeddings=a_vector(1, number, 0, 0))
    index.die_after = 1
    with pytest.raises(IndexAway):
        await relay.relay()
    index.die_after = None

    assert await relay.relay() == 3
    assert (await relay.check()).is_clean


async def test_a_change_during_a_write_is_carried_too(library: Library, relay: VectorRelay) -> None:
    await library.store(id="kem_1", embeddings=a_vector(1, 0, 0, 0))

    async def change() -> None:
        for number in range(10):
            await library.update("kem_1", metadata={"n": number})

    await asyncio.gather(change(), *(relay.relay() for _ in range(10)))
    await relay.relay()

    assert (await relay.check()).is_clean
    assert await near(library, relay, metadata_filters={"n": 9}) == ["kem_1"]


async def test_a_check_names_what_differs_a_reconciliation_repairs_it(
    library: Library, relay: VectorRelay, index: FailingIndex
) -> None:
    for name in ("missing", "stale", "surplus", "right"):
        await library.store(id=name, embeddings=a_vector(1, 0, 0, 0))
    await relay.relay()
    await index.write([], ["missing"])
    async with library.database.transaction() as session:
        await session.execute(delete(KemRow).where(KemRow.id == "surplus"))
    await library.update("stale", content="new", embeddings=Embedding.of("tiny", [0, 1, 0, 0]))
    async with library.database.transaction() as session:
        await session.execute(delete(VectorWriteRow))

    report = await relay.reconcile()

    assert (report.missing, report.stale, report.surplus) == (("missing",), ("stale",), ("surplus",))
    assert (await relay.check()).is_clean
    assert await near(library, relay) == ["missing", "right", "stale"]


async def test_a_standby_makes_its_own_index_from_the_rows(
    library: Library, relay: VectorRelay, tmp_path: Path
) -> None:
    await library.store(id="kem_1", embeddings=a_vector(1, 0, 0, 0))
    await relay.relay()
    standby = VectorRelay(library.database, EmbeddedIndex(tmp_path / "standby" / "glm.vectors", SPACE))

    await standby.open()
    assert (await standby.reconcile()).missing == ("kem_1",)

    assert await near(library, standby) == ["kem_1"]
    await standby.index.close()


async def test_without_an_index_that_all_share_memory_does_not_start_until_it_is_rebuilt(
    library: Library, relay: VectorRelay, tmp_path: Path
) -> None:
    class SharedIndex(EmbeddedIndex):
        is_shared = True

    await library.store(id="kem_1", embeddings=a_vector(1, 0, 0, 0))
    await relay.relay()
    elsewhere = SharedIndex(tmp_path / "elsewhere" / "glm.vectors", SPACE)
    bereft = VectorRelay(library.database, elsewhere)

    for _ in range(2):
        with pytest.raises(IndexGone, match="rebuild"):
            await bereft.open()
    assert await bereft.rebuild() == 1

    assert (await bereft.check()).is_clean
    assert await near(library, bereft) == ["kem_1"]
    await elsewhere.close()


async def test_rows_decide_what_a_lagging_index_may_show(library: Library, relay: VectorRelay) -> None:
    await library.store(id="kem_1", embeddings=a_vector(1, 0, 0, 0))
    await relay.relay()
    await library.update("kem_1", visibility="private")
    nearness = KemSearch(library.queries, relay, None)

    for principal in (CRITIC, ANNA):
        assert await nearness.nearest(a_vector(1, 0, 0, 0), KemQuery(), principal, 10) == []
    assert [found.kem.id for found in await nearness.nearest(a_vector(1, 0, 0, 0), KemQuery(), RESEARCHER, 1)] == [
        "kem_1"
    ]


async def test_times_are_kept_to_more_than_the_index_knows(library: Library, relay: VectorRelay) -> None:
    for number in range(30):
        library.clock.advance(microseconds=1)
        await library.store(id=f"kem_{number:02}", embeddings=a_vector(30 - number, number, 0, 0))
    await relay.relay()

    assert await near(library, relay, limit=1, created_at_start=library.clock()) == ["kem_29"]


async def test_a_question_in_another_space_is_refused(library: Library, relay: VectorRelay) -> None:
    nearness = KemSearch(library.queries, relay, None)

    with pytest.raises(WrongVector):
        await nearness.nearest(Embedding.of("other", [1, 0, 0, 0]), KemQuery(), RESEARCHER, 1)


async def test_a_note_about_what_never_was_does_no_harm(library: Library, relay: VectorRelay) -> None:
    async with library.database.transaction() as session:
        await session.execute(insert(VectorWriteRow), [{"kem_id": "never"}])

    assert await relay.relay() == 1
    assert (await relay.check()).is_clean


async def test_a_large_batch_is_stored_at_once(library: Library, relay: VectorRelay) -> None:
    drafts = [a_draft(id=f"kem_{n:04}", embeddings=a_vector(1, n, 0, 0), metadata={"n": n}) for n in range(1000)]
    await library.store_all(*drafts)

    await VectorRelay(library.database, relay.index).relay()

    assert (await relay.check()).vectors == 1000
    assert await near(library, relay, limit=2, metadata_filters={"n": {"gte": 500}}) == ["kem_0500", "kem_0501"]
