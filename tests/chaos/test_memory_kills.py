"""Memory is killed in the middle of its writes: what was said to be stored is there, rows and vectors agree."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus_schema.glm import BatchStoreKems, CheckMemory, RetrieveKems
from bus_schema.ids import mint
from bus_schema.kem import KemRights
from bus_schema.kem_query import KemQuery
from config.settings import FleetSettings
from memory.glm.index_sync import VectorRelay
from memory.glm.tables import PRAGMAS
from memory.vectors.embedded import EmbeddedIndex
from mindbus import AgentSDK, Client, connect
from mindbus.sdk.swm_events import SwmEvent
from mindbus.sql.database import Database
from mindbus.tasks import end
from mindbus.testing.wait import until
from tests.fleets import settings_for
from tests.forked_workers import forked_workers_of
from tests.memory_kit import RESEARCHER, SPACE, Library, a_draft, a_vector
from tests.postgres import DatabaseOf

ROOT = Path(__file__).parents[2]
WRITERS, BATCH, ANSWERED_WITHIN_S = 4, 25, 120.0


def first_after_a_kill(url: str, index_file: Path, first: int, batches: int) -> int:
    """Have a process store so many batches, kill it with the next at hand; where what it said to be stored ends."""
    command = [sys.executable, "-m", "tests.memory_writer", url, str(index_file), str(first)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(batches)]
        writer.kill()
        return int([*said, *writer.stdout.read().split()][-1])


@pytest.mark.chaos
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.proof)])
async def test_what_was_stored_survives_kills(sqlite_database_of: DatabaseOf, tmp_path: Path, kills: int) -> None:
    url, index_file, chance = sqlite_database_of("glm"), tmp_path / "glm.vectors", random.Random(kills)
    stored = 1
    for _ in range(kills):
        stored = first_after_a_kill(url, index_file, stored, chance.randrange(1, 8))

    library = Library(Database(url, "glm", PRAGMAS))
    index = EmbeddedIndex(index_file, SPACE)
    relay = VectorRelay(library.database, index)
    await relay.open()
    await relay.reconcile()
    report = await relay.check()
    missing = [n for n in range(1, stored) if n % 97 == 0 and not await library.found(RESEARCHER, ids=[f"kem_{n}"])]

    assert report.is_clean
    assert report.kems == report.vectors >= stored
    assert missing == []
    await index.close()
    await library.database.dispose()


async def store_for_ever(bus: Client, acknowledged: list[str]) -> None:
    """Batch after batch; what is answered is held to have been stored."""
    while True:
        drafts = tuple(a_draft(id=mint("kem"), embeddings=a_vector(1, n, 0, 0)) for n in range(BATCH))
        report = await bus.request(BatchStoreKems(kems=drafts), timeout_s=ANSWERED_WITHIN_S)
        assert {item.status for item in report.items} == {"stored"}
        acknowledged += [item.kem_id for item in report.items]


async def missing_of(bus: Client, kem_ids: list[str]) -> list[str]:
    pages = [kem_ids[first : first + 200] for first in range(0, len(kem_ids), 200)]
    found = [
        item.kem.id
        for page in pages
        for item in (await bus.request(RetrieveKems(query=KemQuery(ids=tuple(page)), page_size=200))).items
    ]
    return sorted(set(kem_ids) - set(found))


async def is_clean(bus: Client) -> bool:
    return (await bus.request(CheckMemory(), timeout_s=ANSWERED_WITHIN_S)).is_clean


@pytest.mark.chaos
@pytest.mark.slow
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=[pytest.mark.proof, pytest.mark.timeout(1800)])])
async def test_what_the_worker_has_answered_survives_its_kills(vhost_url: str, tmp_path: Path, kills: int) -> None:
    settings = settings_for(vhost_url, tmp_path, embedding_model=SPACE.model, embedding_dim=SPACE.dim)
    acknowledged: list[str] = []
    chance = random.Random(kills)
    with forked_workers_of(settings) as workers:
        await workers.start("glm")
        async with connect("user.local", settings=settings) as bus:
            writing = [asyncio.create_task(store_for_ever(bus, acknowledged)) for _ in range(WRITERS)]
            for _ in range(kills):
                enough = len(acknowledged) + chance.randrange(1, 8) * BATCH
                await until(lambda enough=enough: len(acknowledged) >= enough, ANSWERED_WITHIN_S)  # type: ignore[misc]
                await workers.kill("glm")
            await end(*writing)
            await until(lambda: is_clean(bus), ANSWERED_WITHIN_S, "the last vectors have followed their rows")
            report = await bus.request(CheckMemory(), timeout_s=ANSWERED_WITHIN_S)
            assert report.kems >= len(acknowledged)
            assert await missing_of(bus, acknowledged) == []


def a_document(number: int) -> str:
    """Sections that are a unit each."""
    sections = (
        f"## Section {number}.{section}\n\n" + f"Fact {number}-{section} is true. " * 60 for section in range(12)
    )
    return f"# Report {number}\n\n" + "\n\n".join(sections)


@pytest.mark.chaos
@pytest.mark.slow
async def test_every_unit_of_an_import_is_heard_once_though_memory_is_killed(vhost_url: str, tmp_path: Path) -> None:
    # As shipped: as long as global memory is away, working memory tries again.
    settings = settings_for(vhost_url, tmp_path, retry_rungs=FleetSettings().retry_rungs)
    heard: list[str] = []

    async def hear(events: AsyncIterator[SwmEvent]) -> None:
        async for event in events:
            heard.append(event.kem_id)

    with forked_workers_of(settings) as workers:
        for name in ("glm", "swm", "kps"):
            await workers.start(name)
        async with (
            AgentSDK("agent.alice", settings=settings) as alice,
            AgentSDK("agent.bob", settings=settings) as bob,
            bob.handle_swm_events("event_type=KEM_PUBLISHED AND metadata.project_id=alpha", name="news") as events,
        ):
            listening = asyncio.create_task(hear(aiter(events)))
            importing = [
                asyncio.create_task(
                    alice.process_raw_data(
                        a_document(number),
                        content_type="text/markdown",
                        initial_metadata={"project_id": "alpha" if number else "beta"},
                        rights=KemRights(visibility="public"),
                    )
                )
                for number in range(5)
            ]
            await until(lambda: len(heard) >= 3, ANSWERED_WITHIN_S)
            await workers.kill("glm")
            imported = await asyncio.gather(*importing)
            wanted = sorted(kem_id for report in imported[1:] for kem_id in report.kem_ids)
            await until(lambda: set(heard) >= set(wanted), ANSWERED_WITHIN_S)
            await end(listening)

    assert len(wanted) > 20
    assert sorted(heard) == wanted
