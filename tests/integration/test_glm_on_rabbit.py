"""The global memory as agents meet it: on a real RabbitMQ, through the client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from bus_schema.embeddings import Embedding
from bus_schema.glm import (
    BatchStoreKems,
    CheckMemory,
    DeleteKem,
    KemDeleted,
    KemStored,
    KemUpdated,
    ReindexProgress,
    RetrieveKems,
    StoreKem,
)
from bus_schema.kem import KemDraft
from bus_schema.kem_query import KemQuery
from bus_schema.replies import Code
from config.settings import FleetSettings
from memory.glm.migration import ModelMigration
from mindbus import Client, ReplyError, WorkerContext
from mindbus.sdk.artifacts import open_artifacts
from retrieval.embedding.e5 import MODEL
from tests.fleets import Fleet, fleet_of, settings_for
from tests.installed import FLEET
from tests.memory_kit import SPACE, a_draft, a_vector
from workers.glm.worker import GlmWorker, KemTexts

EAST = a_vector(1, 0, 0, 0)


@pytest.fixture
def settings(vhost_url: str, tmp_path: Path) -> FleetSettings:
    return settings_for(vhost_url, tmp_path, embedding_model=SPACE.model, embedding_dim=SPACE.dim)


@pytest.fixture
async def fleet(settings: FleetSettings) -> AsyncIterator[Fleet]:
    async with fleet_of(FLEET["storage"], FLEET["glm"], settings=settings) as running:
        yield running


@pytest.fixture
def researcher(fleet: Fleet) -> Client:
    return fleet.bus.acting_as("agent.researcher")


@pytest.fixture
def critic(fleet: Fleet) -> Client:
    return fleet.bus.acting_as("agent.critic")


async def near(bus: Client, vector: Embedding = EAST) -> list[str]:
    page = await bus.request(RetrieveKems(query=KemQuery(embedding_query=vector)))
    return [item.kem.id for item in page.items]


async def refusal(bus: Client, command: Any, **where: Any) -> Code:
    with pytest.raises(ReplyError) as failure:
        await bus.request(command, **where)
    return failure.value.code


async def test_a_unit_is_found_at_once_by_whoever_may_read_it(fleet: Fleet, researcher: Client, critic: Client) -> None:
    async with fleet.bus.subscribe(KemStored) as stored, fleet.bus.subscribe(KemDeleted) as deleted:
        public = await researcher.request(StoreKem(kem=a_draft(embeddings=EAST)))
        private = await researcher.request(StoreKem(kem=a_draft("secret", embeddings=EAST, visibility="private")))

        assert sorted(await near(researcher)) == sorted([public.id, private.id])
        assert await near(critic) == [public.id]
        assert await refusal(critic, DeleteKem(kem_id=private.id)) is Code.NOT_FOUND
        await researcher.request(DeleteKem(kem_id=private.id))

        told = [await anext(aiter(stored)), await anext(aiter(stored))]
        assert [(event.kem_id, event.visibility) for event in told] == [(public.id, "public"), (private.id, "private")]
        assert (await anext(aiter(deleted))).kem_id == private.id
    assert await near(researcher) == [public.id]


async def test_a_large_batch_goes_by_pointer_under_the_rights_of_whoever_sends_it(
    fleet: Fleet, researcher: Client, critic: Client, settings: FleetSettings
) -> None:
    drafts = [a_draft(f"Заметка {n}", id=f"kem_{n}", embeddings=a_vector(1, n, 0, 0)) for n in range(300)]
    lines = "\n".join(draft.model_dump_json(exclude_unset=True) for draft in drafts).encode()
    async with open_artifacts(researcher, settings) as artifacts:
        put = await artifacts.put(
            lines, artifact_type="kems", trace="t1", content_type="application/jsonl", visibility="private"
        )

    by_pointer = BatchStoreKems(ref=put.ref)
    assert await refusal(critic, by_pointer, trace="t1") is Code.NOT_FOUND
    report = await researcher.request(by_pointer, trace="t1")

    assert [(item.kem_id, item.status) for item in report.items] == [(draft.id, "stored") for draft in drafts]
    again = await researcher.request(BatchStoreKems(kems=tuple(drafts)))
    assert {(item.status, item.version) for item in again.items} == {("replaced", 2)}
    checked = await fleet.bus.request(CheckMemory())
    assert (checked.kems, checked.vectors, checked.is_clean) == (300, 300, True)


async def test_a_unit_whose_words_are_an_artifact_goes_over_to_another_model(
    fleet: Fleet, researcher: Client, settings: FleetSettings
) -> None:
    contents = (("text/plain", "Релиз перенесли на пятницу.".encode()), ("image/png", b"\x89PNG"))
    async with open_artifacts(researcher, settings) as artifacts:
        for number, (kind, content) in enumerate(contents):
            put = await artifacts.put(
                content, artifact_type="note", trace="t1", visibility="private", content_type=kind
            )
            draft = KemDraft(id=f"kem_{number}", ref=put.ref, embeddings=EAST)
            await researcher.request(StoreKem(kem=draft))
    other = settings.model_copy(update={"embedding_model": MODEL, "embedding_dim": None})
    texts = KemTexts(WorkerContext(other, fleet.bus))
    moving = ModelMigration(fleet[GlmWorker].memory.database, other, texts.of)

    progress = await moving.advance(MODEL, within_s=60)
    await texts.close()
    page = await researcher.request(RetrieveKems(query=KemQuery(order_by="id asc")))

    assert progress == ReindexProgress(model=MODEL, done=2, total=2)
    assert [item.kem.embeddings and item.kem.embeddings.model for item in page.items] == [MODEL, None]


async def test_one_writes_while_another_stands_by_to_take_over(settings: FleetSettings) -> None:
    async with AsyncExitStack() as outliving, fleet_of(FLEET["storage"], settings=settings) as outer:
        async with fleet_of(FLEET["glm"], settings=settings) as first:
            kem = await first.bus.request(StoreKem(kem=a_draft(embeddings=EAST)))
            await outliving.enter_async_context(fleet_of(FLEET["glm"], settings=settings))

        assert await near(outer.bus) == [kem.id]
        second = await outer.bus.request(StoreKem(kem=a_draft(embeddings=EAST)))
        assert sorted(await near(outer.bus)) == sorted([kem.id, second.id])


async def test_whoever_listens_hears_that_a_unit_was_superseded(fleet: Fleet, researcher: Client) -> None:
    async with fleet.bus.subscribe(KemUpdated) as updated, asyncio.timeout(30):
        for number in (1, 2):
            await researcher.request(StoreKem(kem=a_draft(id=f"old_{number}")))
        newer = a_draft(id="new_1", supersedes=["old_1"])
        await researcher.request(StoreKem(kem=newer))
        assert (await anext(aiter(updated))).kem_id == "old_1"
        await researcher.request(BatchStoreKems(kems=(a_draft(id="new_2", supersedes=["old_2"]),)))
        assert (await anext(aiter(updated))).kem_id == "old_2"
