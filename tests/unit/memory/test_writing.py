"""Units are stored, replaced, changed, forgotten by those who may."""

import asyncio

import pytest
from sqlalchemy import func, select, text

from memory.errors import (
    ChangesDoNotFit,
    KemIdTaken,
    KemVersionDiffers,
    NoSuchKem,
    NotTheOwner,
    NotYoursToShare,
    NotYoursToWrite,
)
from memory.glm.store import RejectedDraft, StoredKem
from memory.glm.tables import PRAGMAS, FacetRow, ReaderRow, VectorWriteRow
from mindbus.sql.database import Database
from retrieval.embedding.embedder import WrongVector
from tests.memory_kit import ANNA, CRITIC, RESEARCHER, Library, a_draft, a_vector
from tests.postgres import DatabaseOf


async def count(library: Library, table: type[FacetRow | ReaderRow | VectorWriteRow]) -> int | None:
    async with library.database.reading() as session:
        return await session.scalar(select(func.count()).select_from(table))


async def test_a_unit_comes_back_as_it_was_stored(library: Library) -> None:
    fields = {
        "metadata": {"автор": "Анна", "tags": ["релиз", 1, None], "deep": {"a": [1.5]}},
        "embeddings": a_vector(1, 2, 3, 4),
        "source": {"start": 1, "end": 5, "links": [{"kind": "message", "id": "msg_1"}]},
        "visibility": "readers",
        "readers": ["user.anna"],
        "writers": ["agent.editor"],
    }
    stored = await library.store(a_draft("Релиз в пятницу 🙂", **fields))

    assert stored.id.startswith("kem_")
    assert (stored.owner, stored.version) == ("agent.researcher", 1)
    assert stored.created_at == stored.updated_at == library.clock()
    assert await library.queries.get(stored.id, RESEARCHER) == stored
    assert stored.embeddings is not None
    assert list(stored.embeddings.floats) == [1, 2, 3, 4]


async def test_an_artifact_may_be_the_content(library: Library) -> None:
    ref = {"artifact_id": "art_1", "version": 1, "sha256": "a" * 64, "size_bytes": 3, "content_type": "image/png"}
    stored = await library.store(a_draft(content=None, ref=ref, content_type="image/png"))  # type: ignore[arg-type]

    assert (await library.queries.get(stored.id, CRITIC)).ref == stored.ref


async def test_a_replacement_keeps_when_it_was_created(library: Library) -> None:
    first = await library.store(id="kem_1", content="old", metadata={"a": 1, "b": 2})
    library.clock.advance(hours=1)
    second = await library.store(id="kem_1", content="new", metadata={"b": 3})

    assert (second.created_at, second.updated_at) == (first.created_at, library.clock())
    assert (second.version, second.content, second.metadata) == (2, "new", {"b": 3})
    assert await library.found(metadata_filters={"a": 1}) == []
    assert await library.found(metadata_filters={"b": 3}) == ["kem_1"]
    assert await count(library, FacetRow) == 1


async def test_a_replacement_that_says_nothing_of_rights_keeps_them(library: Library) -> None:
    await library.store(id="kem_1", visibility="private")
    await library.store(id="kem_1", content="new")

    assert await library.found(CRITIC) == []


async def test_a_writer_changes_content_but_no_rights(library: Library) -> None:
    await library.store(id="kem_1", visibility="private", writers=["agent.critic"])
    replaced = await library.store(by=CRITIC, id="kem_1", content="theirs")

    assert (replaced.owner, replaced.visibility, replaced.content) == ("agent.researcher", "private", "theirs")
    with pytest.raises(NotYoursToShare):
        await library.store(by=CRITIC, id="kem_1", visibility="public")
    with pytest.raises(NotYoursToShare):
        await library.update("kem_1", CRITIC, writers=["agent.critic", "user.anna"])
    with pytest.raises(NotTheOwner):
        await library.store(by=CRITIC, id="kem_1", owner="agent.critic")


async def test_nobody_stores_in_the_name_of_others(library: Library) -> None:
    with pytest.raises(NotTheOwner):
        await library.store(owner="user.anna")


async def test_in_a_batch_each_unit_is_for_itself(library: Library) -> None:
    await library.store(by=ANNA, id="kem_hers", content="hers", visibility="private")
    await library.store(id="kem_mine", content="old", embeddings=a_vector(1, 0, 0, 0))
    outcomes = await library.store_all(
        a_draft(id="kem_new"),
        a_draft("other", id="kem_hers"),
        a_draft("new", id="kem_mine"),
        a_draft("bad", id="kem_new", embeddings=a_vector(1, 2)),
        a_draft("later", id="kem_new"),
    )

    kinds = [type(each.rejection) if isinstance(each, RejectedDraft) else each.is_new for each in outcomes]
    assert kinds == [True, KemIdTaken, False, WrongVector, False]
    assert (await library.queries.get("kem_hers", ANNA)).content == "hers"
    assert (await library.queries.get("kem_new", ANNA)).content == "later"
    assert (await library.queries.get("kem_new", ANNA)).version == 2


async def test_a_refused_replacement_leaves_the_older_one_whole(library: Library) -> None:
    older = await library.store(id="kem_1", embeddings=a_vector(1, 0, 0, 0), metadata={"a": 1})

    with pytest.raises(WrongVector) as refused:
        await library.store(id="kem_1", content="new", embeddings=a_vector(1, 2, 3))

    assert refused.value.details == {"given": {"model": "tiny", "dim": 3}, "expected": {"model": "tiny", "dim": 4}}
    assert await library.queries.get("kem_1", RESEARCHER) == older
    assert await library.found(metadata_filters={"a": 1}) == ["kem_1"]


async def test_two_that_take_one_id_at_once_do_not_both_get_it(library: Library) -> None:
    async def take(by: str) -> StoredKem | RejectedDraft:
        principal = ANNA if by == "anna" else CRITIC
        return (await library.store_all(a_draft(by, id="kem_1"), by=principal))[0]

    outcomes = await asyncio.gather(take("anna"), take("critic"))

    assert sorted(isinstance(each, RejectedDraft) for each in outcomes) == [False, True]


async def test_an_update_changes_what_it_names(library: Library) -> None:
    await library.store(id="kem_1", content="old", metadata={"a": 1}, embeddings=a_vector(1, 0, 0, 0))
    library.clock.advance(minutes=5)
    updated = await library.update("kem_1", metadata={"a": 2})

    assert updated == await library.queries.get("kem_1", RESEARCHER)
    assert (updated.content, updated.metadata, updated.version) == ("old", {"a": 2}, 2)
    assert updated.updated_at == library.clock() > updated.created_at
    assert updated.embeddings is not None


async def test_new_content_without_a_vector_has_none(library: Library) -> None:
    await library.store(id="kem_1", embeddings=a_vector(1, 0, 0, 0))

    assert (await library.update("kem_1", content="other words")).embeddings is None


async def test_of_two_who_read_the_same_version_one_updates(library: Library) -> None:
    await library.store(id="kem_1")
    await library.update("kem_1", expected=1, content="first")

    with pytest.raises(KemVersionDiffers) as refused:
        await library.update("kem_1", expected=1, content="second")

    assert refused.value.details == {"expected_version": 1, "version": 2}


async def test_changes_that_do_not_fit_are_refused(library: Library) -> None:
    await library.store(id="kem_1")

    with pytest.raises(ChangesDoNotFit) as refused:
        await library.update("kem_1", readers=["user.anna"])

    assert "where the visibility is readers" in str(refused.value.details["reason"])


async def test_only_who_may_write_updates_or_deletes(library: Library) -> None:
    await library.store(id="kem_public")
    await library.store(id="kem_private", visibility="private")

    with pytest.raises(NotYoursToWrite):
        await library.update("kem_public", CRITIC, content="theirs")
    with pytest.raises(NotYoursToWrite):
        await library.delete("kem_public", CRITIC)
    with pytest.raises(NoSuchKem):
        await library.update("kem_private", CRITIC, content="theirs")
    with pytest.raises(NoSuchKem):
        await library.delete("kem_private", CRITIC)
    with pytest.raises(NoSuchKem):
        await library.delete("kem_absent", CRITIC)


async def test_what_is_deleted_leaves_nothing(library: Library) -> None:
    await library.store(id="kem_1", metadata={"a": 1}, visibility="readers", readers=["user.anna"])
    await library.delete("kem_1")

    assert await library.found() == []
    assert await count(library, FacetRow) == await count(library, ReaderRow) == 0
    assert await count(library, VectorWriteRow) == 1, "the index has yet to hear of it"


async def test_the_pragmas_are_those_of_the_specification(sqlite_database_of: DatabaseOf) -> None:
    database = Database(sqlite_database_of("glm"), "glm", PRAGMAS)
    async with database.reading() as session:
        values = [await session.scalar(text(f"PRAGMA {name}")) for name in PRAGMAS]
    await database.dispose()

    assert values == ["wal", 1, 1, 7500]
