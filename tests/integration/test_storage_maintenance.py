"""The care of the store on a real RabbitMQ: what a run still needs stays, what nobody needs goes, which is told."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.ids import mint
from bus_schema.messages import Command
from bus_schema.process import ProcessCompleted
from bus_schema.replies import Code
from bus_schema.storage import GetArtifact, RegisterArtifact, SetTraceMembers
from bus_schema.storage_maintenance import (
    ArtifactExpired,
    ArtifactOrphaned,
    Audit,
    CollectGarbage,
    GetStorageStats,
    Rebuild,
)
from config.settings import FleetSettings
from mindbus import Client, ReplyError, Worker, WorkerContext
from mindbus.files.packs import PACKS
from mindbus.files.store import FileStore, open_files
from mindbus.testing.wait import until
from tests.command_line import Shell
from tests.fleets import Fleet, fleet_of, settings_for
from tests.installed import FLEET
from tests.passing_blobs import PassingBlobs
from workers.storage.worker import StorageWorker

RUN, CHAT = "run_1", "conv_ann"
CONTENT = "# Черновик\n".encode() * 100


class Clock:
    """Runs ahead of everybody else's, as far as a test wants."""

    ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class NoRoom(PassingBlobs):
    """A store that moves nothing any more."""

    async def move(self, key: str, target: str) -> bool:
        raise OSError(28, "no space left on device", target)


@dataclass
class House:
    """Storage on one data folder, however often it starts."""

    settings: FleetSettings
    clock: Clock

    @asynccontextmanager
    async def open(self, arrange: Callable[[StorageWorker], None] = lambda _worker: None) -> AsyncIterator[Fleet]:
        def storage(context: WorkerContext) -> Worker:
            worker = FLEET["storage"](replace(context, clock=self.clock))
            assert isinstance(worker, StorageWorker)
            arrange(worker)
            return worker

        storage.name = "storage"  # type: ignore[attr-defined]  # as a Worker class has one
        async with fleet_of(storage, settings=self.settings) as fleet:
            yield fleet

    @property
    def files(self) -> FileStore:
        return open_files(self.settings)

    @property
    def shell(self) -> Shell:
        return Shell(self.settings.data_dir, settings={"MINDBUS_AMQP_URL": str(self.settings.amqp_url)})


@pytest.fixture
def house(vhost_url: str, tmp_path: Path) -> House:
    return House(settings_for(vhost_url, tmp_path), Clock())


def stage(files: FileStore, content: bytes) -> str:
    key = f"staging/{datetime.now(UTC):%Y/%m/%d}/agent_researcher/{os.urandom(16).hex()}"
    files.put(key, content)
    return key


async def put(house: House, bus: Client, content: bytes = CONTENT, **changes: Any) -> str:
    fields: dict[str, Any] = {
        "id": mint("art"),
        "trace_id": RUN,
        "created_by": "agent.researcher",
        "created_at": datetime.now(UTC),
        "artifact_type": "draft",
        "content_type": "text/markdown; charset=utf-8",
        "uri": house.files.uri(stage(house.files, content)),
        "size_bytes": len(content),
        "checksum": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "owner": "agent.researcher",
    }
    manifest = Manifest.model_validate(fields | changes)
    await bus.acting_as("agent.researcher").request(RegisterArtifact(manifest=manifest), trace=manifest.trace_id)
    return manifest.id


async def test_a_run_that_is_still_active_keeps_what_others_lose(house: House) -> None:
    async with house.open() as fleet:
        bus, orchestrator = fleet.bus, fleet.bus.acting_as("svc.orchestrator")
        await orchestrator.request(SetTraceMembers(trace_id=RUN, members=("agent.researcher",), retention="2d"))
        ours = await put(house, bus, b"ours", retention="1d")
        chat = await put(house, bus, b"chat", retention="1d", trace_id=CHAT)
        abandoned = stage(house.files, b"abandoned")
        house.clock.ahead = timedelta(days=3)

        async with bus.subscribe(ArtifactExpired) as expired, bus.subscribe(ArtifactOrphaned) as orphaned:
            report = await bus.request(CollectGarbage())
            assert (report.expired.count, report.unused.count, report.unregistered.count) == (1, 1, 1)
            assert (await anext(aiter(expired))).artifact.artifact_id == chat
            reasons = {(await anext(aiter(orphaned))).reason for _ in range(2)}
        assert reasons == {"unused", "unregistered"}
        researcher = bus.acting_as("agent.researcher")
        assert (await researcher.request(GetArtifact(artifact_id=ours))).id == ours
        assert (house.settings.data_dir / "orphans").is_dir()
        with pytest.raises(FileNotFoundError):
            house.files.size_bytes(abandoned)

        result = (await researcher.request(GetArtifact(artifact_id=ours))).ref
        await orchestrator.publish(ProcessCompleted(run_id=RUN, result=result), trace=RUN)
        await until(lambda: _is_closed(bus))
        assert (await bus.request(CollectGarbage())).expired.count == 1
        with pytest.raises(ReplyError) as gone:
            await researcher.request(GetArtifact(artifact_id=ours))
        assert gone.value.code is Code.NOT_FOUND


async def test_a_collection_that_the_store_interrupts_is_ended_after_a_restart(house: House) -> None:
    def without_room(worker: StorageWorker) -> None:
        worker.storage.maintenance.blobs = NoRoom(worker.storage.maintenance.blobs)

    async with house.open(without_room) as fleet:
        await put(house, fleet.bus, retention="1d")
        await until(lambda: _is_cleaned(house))
        stage(house.files, b"abandoned")
        house.clock.ahead = timedelta(days=3)
        assert (await fleet.bus.request(CollectGarbage())).pending == 2
        assert (await fleet.bus.request(GetStorageStats())).removals == 2

    async with house.open() as fleet:
        report = await fleet.bus.request(CollectGarbage())
        assert (report.resumed, report.unused.count, report.unregistered.count) == (2, 0, 0)
        stats = await fleet.bus.request(GetStorageStats())
        assert (stats.removals, stats.orphans.count, stats.staging.count) == (0, 2, 0)
        assert set(stats.by_state) == {"gone"}


async def test_a_lost_database_comes_back_over_the_bus(house: House) -> None:
    async with house.open() as fleet:
        mine = await put(house, fleet.bus)
        await until(lambda: _is_cleaned(house))
    for file in house.settings.data_dir.glob("storage.db*"):
        file.unlink()

    async with house.open() as fleet:
        restored = 0
        cursor: str | None = None
        while True:
            page = await fleet.bus.request(Rebuild(cursor=cursor))
            restored, cursor = restored + page.restored, page.next_cursor
            if cursor is None:
                break
        assert restored == 1
        assert (await fleet.bus.acting_as("agent.researcher").request(GetArtifact(artifact_id=mine))).id == mine
        assert (await fleet.bus.request(Audit())).missing == ()


async def test_only_people_and_services_look_after_the_store(house: House) -> None:
    async with house.open() as fleet:
        commands: list[Command[Any]] = [CollectGarbage(), Audit(), Rebuild(), GetStorageStats()]
        for command in commands:
            with pytest.raises(ReplyError, match="operators") as no:
                await fleet.bus.acting_as("agent.critic").request(command)
            assert no.value.code is Code.UNAUTHORIZED


async def test_the_command_line_says_what_is_garbage_what_is_missing_what_there_is(house: House) -> None:
    async with house.open() as fleet:
        shell = house.shell
        mine = await put(house, fleet.bus, trace_id=CHAT)
        await until(lambda: _is_cleaned(house))
        stage(house.files, b"abandoned")
        house.clock.ahead = timedelta(days=3)

        seen = await asyncio.to_thread(shell.json, "storage", "gc", "--dry-run")
        assert (seen["dry_run"], seen["unregistered"]["count"], seen["unused"]["count"]) == (True, 1, 0)
        told = await asyncio.to_thread(shell.ok, "storage", "gc")
        assert "uploads that never became an artifact" in told
        refused = await asyncio.to_thread(shell.run, "storage", "gc", "--as", "agent.critic")
        assert (refused.returncode, "operators" in refused.stderr) == (1, True)

        assert (await asyncio.to_thread(shell.json, "storage", "audit"))["checked"] == 1
        assert "1 manifests were there" in await asyncio.to_thread(shell.ok, "storage", "rebuild", "--dry-run")
        stats = await asyncio.to_thread(shell.json, "storage", "stats")
        assert (stats["artifacts"]["count"], stats["orphans"]["count"]) == (1, 1)
        assert "research" in await asyncio.to_thread(shell.ok, "storage", "stats")

        manifest = await fleet.bus.acting_as("agent.researcher").request(GetArtifact(artifact_id=mine, presigned=True))
        assert manifest.packed is not None
        house.files.delete(f"{PACKS}/{manifest.packed.pack}")
        audited = await asyncio.to_thread(shell.run, "storage", "audit")
        assert (audited.returncode, mine in audited.stdout) == (1, True)


async def test_a_refused_collection_says_the_numbers(vhost_url: str, tmp_path: Path) -> None:
    house = House(settings_for(vhost_url, tmp_path, gc_max_objects=0), Clock())
    async with house.open():
        stage(house.files, b"abandoned")
        house.clock.ahead = timedelta(days=3)

        refused = await asyncio.to_thread(house.shell.run, "storage", "gc")

        assert refused.returncode == 1
        assert "unregistered 1" in refused.stderr
        assert "max_objects" in refused.stderr


async def _is_closed(bus: Client) -> bool:
    return (await bus.request(GetStorageStats())).open_traces == 0


async def _is_cleaned(house: House) -> bool:
    copies = list((house.settings.data_dir / "artifacts" / "manifests").rglob("*.json"))
    staged = list((house.settings.data_dir / "artifacts" / "staging").rglob("*/agent_researcher/*"))
    return bool(copies) and not staged
