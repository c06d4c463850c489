"""PostgreSQL breaks off in the middle of a COMMIT, or dies: whoever asks hears what is true, in the end."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from benchmarks.servers.postgres import PrivatePostgres
from bus_schema.envelope import Envelope
from bus_schema.storage import GetArtifact, RegisterArtifact, Registration
from mindbus import Client, ReplyError
from mindbus.bus.deadletters import DeadLetters
from mindbus.files.store import open_files
from mindbus.sql.database import Database
from mindbus.testing.wait import until
from tests.fleets import fleet_of, settings_for
from tests.installed import FLEET
from tests.postgres_proxy import CommitCutter, Fate, cutting
from tests.storage_kit import Depot
from tests.taps import DurableTap

pytestmark = pytest.mark.chaos

SEED = 20260314
AT_ONCE = 6
RESEARCHER = "agent.researcher"
# Whoever is cut off time after time is no bug to be put among the dead letters.
LONG_LADDER = "20ms,40ms,60ms,80ms,100ms,150ms,200ms,300ms"


class Errand:
    """Artifacts to be registered by an agent through the real worker; the depot is what we know without the bus."""

    def __init__(self, agent: Client, depot: Depot) -> None:
        self.agent, self.depot = agent, depot
        self.contents: dict[str, bytes] = {}

    async def register(self, number: int) -> Registration:
        """Whoever hears that storage is away says it again, as the SDK does. Every third has the bytes of another."""
        content = f"находка {number - number % 3}".encode()
        manifest = await asyncio.to_thread(self.depot.manifest, content, by=self.agent.identity)
        self.contents[manifest.id] = content
        while True:
            try:
                return await self.agent.request(RegisterArtifact(manifest=manifest), trace=manifest.trace_id)
            except ReplyError as failure:
                if not failure.retryable:
                    raise

    async def register_all(self, count: int) -> list[Registration]:
        """Some at a time."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> Registration:
            async with gate:
                return await self.register(number)

        return await asyncio.gather(*map(one, range(count)))

    async def require_all_is_well(self) -> None:
        """Every artifact is there with its bytes; nothing else is, nor will be."""

        async def is_settled() -> bool:
            rows = [await self.depot.rows(table) for table in ("outbox", "spent_uploads")]
            return not any(rows) and self.depot.staged_files() == []

        await until(is_settled, deadline_s=30)
        for artifact_id, content in self.contents.items():
            found = await self.agent.request(GetArtifact(artifact_id=artifact_id), trace="run_1")
            assert self.depot.content_of(found) == content
        assert await self.depot.rows("artifact_manifests") == len(self.contents)
        assert len(self.depot.object_files()) == len(set(self.contents.values()))
        assert self.depot.temporary_files() == []


@asynccontextmanager
async def an_errand(amqp_url: str, folder: Path, through: str, beside: str) -> AsyncIterator[Errand]:
    """The worker reaches the database by one URL, we by the other."""
    settings = settings_for(amqp_url, folder, database_url=through, retry_rungs=LONG_LADDER)
    database = Database(beside, "storage")
    async with fleet_of(FLEET["storage"], settings=settings) as fleet:
        yield Errand(fleet.bus.acting_as(RESEARCHER), Depot(folder, database, open_files(settings)))
    await database.dispose()


def replies_by_command(heard: list[Envelope]) -> dict[str | None, set[str]]:
    """What each command was answered, however often it was said."""
    answers: dict[str | None, set[str]] = defaultdict(set)
    for reply in heard:
        answers[reply.causationid].add(f"{reply.id} {reply.data}")
    return answers


@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.name.lower())
async def test_a_commit_of_unknown_outcome_loses_nothing_and_is_answered_once(
    vhost_url: str, tmp_path: Path, postgres_url: str, fate: Fate
) -> None:
    chance = random.Random(SEED)
    tap = DurableTap(vhost_url, "tap")

    def fate_of(commit: int) -> Fate | None:
        return fate if commit <= 60 and chance.random() < 0.3 else None

    async with (
        cutting(postgres_url, fate_of) as (through, cutter),
        an_errand(vhost_url, tmp_path, through, postgres_url) as errand,
    ):
        await tap.open(("mb.reply", "#"))
        registrations = await errand.register_all(24)
        await errand.require_all_is_well()
        require_cuts(cutter, fate)

    assert {each.artifact_id for each in registrations} == set(errand.contents)
    answers = replies_by_command(await tap.close())
    letters = await DeadLetters(vhost_url).look("storage")
    # Chance may cut one command off as often as it is tried. It was answered so, then said again; where the last of
    # these commits was done after all, its outcome follows from the outbox.
    cut_off = {letter.message_id for letter in letters}
    assert all(len(said) == 1 for command, said in answers.items() if command not in cut_off)
    assert {letter.code for letter in letters} <= {"unavailable"}


def require_cuts(cutter: CommitCutter, fate: Fate) -> None:
    assert len(cutter.cuts) >= 10
    assert set(cutter.cuts) == {fate}


async def test_what_was_being_registered_when_postgresql_was_killed_is_registered(
    vhost_url: str, tmp_path: Path, own_postgres: PrivatePostgres
) -> None:
    async with an_errand(vhost_url, tmp_path, own_postgres.url, own_postgres.url) as errand:
        working = asyncio.create_task(errand.register_all(40))
        for committed in (5, 15, 25):
            await until(lambda least=committed: len(errand.contents) > least, deadline_s=60)  # type: ignore[misc]
            await own_postgres.kill()
            await own_postgres.start()

        registrations = await working
        await errand.require_all_is_well()

    assert {each.artifact_id for each in registrations} == set(errand.contents)
