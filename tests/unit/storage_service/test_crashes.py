"""The power fails before and after every effect of a registration; a redelivery makes it whole."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import pytest

from bus_schema.artifacts import Manifest
from bus_schema.storage import RegisterArtifact, SearchArtifacts
from mindbus.bus.inbox import Outcomes, UnitOfWork
from mindbus.bus.transport import Outgoing, Transport
from mindbus.sql.inbox import SqlInbox
from storage_service.blobs import Blobs, ContentGeneration, Declared, Labels
from storage_service.registry import CommitFailure, Prepared, SqlRegistry
from storage_service.service import StorageService
from tests.passing_blobs import PassingBlobs
from tests.power_cuts import Power, PowerCut
from tests.storage_kit import ON_FILES, RESEARCHER, Depot, OpenDepot

pytestmark = pytest.mark.slow

CONTENT = "# Отчёт\nfindings\n".encode() * 100


@dataclass(frozen=True)
class PoweredRegistry(SqlRegistry):
    power: Power

    async def pin(self, sha256s: Collection[str]) -> Mapping[str, ContentGeneration]:
        async with self.power.effect("pin"):
            return await super().pin(sha256s)

    async def commit(self, prepared: Sequence[Prepared]) -> Sequence[Manifest | CommitFailure]:
        async with self.power.effect("insert"):
            return await super().commit(prepared)

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        async with self.power.effect("forget"):
            await super().forget_uploads(uploads)


@dataclass
class PoweredBlobs(PassingBlobs):
    power: Power

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        async with self.power.effect("promote"):
            await self.blobs.promote(upload, key, declared, labels)

    async def write(self, key: str, content: bytes) -> None:
        async with self.power.effect("copy"):
            await self.blobs.write(key, content)

    async def discard(self, upload: str) -> None:
        async with self.power.effect("discard"):
            await self.blobs.discard(upload)


@dataclass
class PoweredUnit:
    unit: UnitOfWork
    power: Power

    async def record(self, outcomes: Outcomes) -> None:
        async with self.power.effect("record"):
            await self.unit.record(outcomes)

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        await self.unit.publish(outgoing)


@dataclass
class PoweredInbox:
    """The commit itself is an effect, too."""

    inbox: SqlInbox
    power: Power
    publishes: bool = True
    trouble: str = ""
    note: str = ""
    damage: str = ""

    async def outcomes_of(self, consumer: str, message_ids: Sequence[str]) -> Outcomes:
        return await self.inbox.outcomes_of(consumer, message_ids)

    @asynccontextmanager
    async def unit_of_work(self, consumer: str) -> AsyncIterator[UnitOfWork]:
        async with self.power.effect("commit"), self.inbox.unit_of_work(consumer) as unit:
            yield PoweredUnit(unit, self.power)

    def mark_published(self, consumer: str, message_id: str) -> None:
        self.inbox.mark_published(consumer, message_id)

    async def postpone(self, consumer: str, message_id: str, outgoing: Sequence[Outgoing]) -> None:
        await self.inbox.postpone(consumer, message_id, outgoing)

    async def start(self, transport: Transport) -> None:
        await self.inbox.start(transport)

    async def stop(self) -> None:
        await self.inbox.stop()


def on(power: Power) -> Callable[[StorageService], StorageService]:
    def arrange(storage: StorageService) -> StorageService:
        registry = PoweredRegistry(storage.database, storage.clock, power)
        blobs = PoweredBlobs(storage.blobs, power)
        registrar = dataclasses.replace(storage.registrar, registry=registry, blobs=blobs)
        return dataclasses.replace(storage, registry=registry, registrar=registrar, blobs=blobs)

    return arrange


def powered(open_depot: OpenDepot, power: Power) -> Depot:
    depot = open_depot(arrange=on(power))
    depot.worker.inbox = PoweredInbox(SqlInbox(depot.database), power)
    return depot


async def deliver(depot: Depot, manifest: Manifest) -> None:
    await depot.handle(RegisterArtifact(manifest=manifest), RESEARCHER, message_id="msg_1")
    await depot.worker.maintenance.clean()


async def test_effects_come_in_the_order_that_loses_nothing(open_depot: OpenDepot) -> None:
    power = Power()
    depot = powered(open_depot, power)

    await deliver(depot, depot.manifest(CONTENT))

    assert [moment.removeprefix("after ") for moment in power.moments if moment.startswith("after ")] == [
        *("pin", "promote", "insert", "record", "commit"),
        *("copy", "discard", "forget"),
    ]


@pytest.mark.parametrize("second", [None, 3, 8, 11])
async def test_a_crash_anywhere_leaves_nothing_that_a_redelivery_does_not_mend(
    open_depot: OpenDepot, second: int | None
) -> None:
    counting = Power()
    rehearsal = powered(open_depot, counting)
    await deliver(rehearsal, rehearsal.manifest(b"rehearsal"))
    assert len(counting.moments) == 16

    # An object store takes its time: there, a sample.
    cuts = range(0, 16, 1 if rehearsal.files.local_root else 5)
    for number, first in enumerate(cuts, start=1):
        content = CONTENT + b"%d" % first
        manifest = rehearsal.manifest(content)
        for power in (Power(first), Power(second), Power()):
            depot = powered(open_depot, power)
            try:
                await depot.handle(RegisterArtifact(manifest=manifest), RESEARCHER, message_id=manifest.id)
                await depot.worker.maintenance.clean()
            except PowerCut:
                await require_bytes_of_every_manifest(depot)

        assert rehearsal.content_of(await rehearsal.get(manifest.id)) == content
        assert rehearsal.staged_files() == rehearsal.temporary_files() == []
        assert await rehearsal.rows("spent_uploads") == 0
        # The rehearsal's, then one for each first crash so far.
        for table in ("artifact_manifests", "inbox", "blobs"):
            assert await rehearsal.rows(table) == 1 + number, (table, counting.moments[first])


async def require_bytes_of_every_manifest(depot: Depot) -> None:
    page = await depot.handle(SearchArtifacts(limit=200))
    for manifest in page.items:
        assert len(depot.content_of(manifest)) == manifest.size_bytes


class Stalling(PassingBlobs):
    """Stands still before it promotes, until it is let go."""

    def __init__(self, blobs: Blobs) -> None:
        super().__init__(blobs)
        self.stalled, self.go = asyncio.Event(), asyncio.Event()

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        self.stalled.set()
        await self.go.wait()
        await self.blobs.promote(upload, key, declared, labels)


def stalled_depot(open_depot: OpenDepot) -> tuple[Depot, Stalling]:
    stalling: list[Stalling] = []

    def arrange(storage: StorageService) -> StorageService:
        stalling.append(Stalling(storage.blobs))
        return dataclasses.replace(storage, registrar=dataclasses.replace(storage.registrar, blobs=stalling[0]))

    return open_depot(arrange=arrange), stalling[0]


async def test_a_delivery_that_wakes_after_its_twin_has_cleaned_says_already_exists(open_depot: OpenDepot) -> None:
    slow, stalling = stalled_depot(open_depot)
    quick = open_depot()
    manifest = quick.manifest(CONTENT)
    late = asyncio.create_task(slow.register(manifest))
    await stalling.stalled.wait()

    await quick.register(manifest)
    await quick.worker.maintenance.clean()
    assert quick.staged_files() == []
    stalling.go.set()

    assert (await late).outcome == "already_exists"
    assert await quick.rows("artifact_manifests") == 1


async def test_a_delivery_that_wakes_after_its_twin_has_committed_says_already_exists(open_depot: OpenDepot) -> None:
    slow, stalling = stalled_depot(open_depot)
    quick = open_depot()
    manifest = quick.manifest(CONTENT)
    late = asyncio.create_task(slow.register(manifest))
    await stalling.stalled.wait()

    await quick.register(manifest)
    stalling.go.set()

    assert (await late).outcome == "already_exists"
    await quick.worker.maintenance.clean()
    assert quick.staged_files() == []


@ON_FILES
async def test_what_a_dead_process_left_half_copied_is_swept_at_a_later_start(depot: Depot) -> None:
    await depot.put(CONTENT)
    half = depot.folder / "artifacts/objects/.tmp/half"
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_bytes(b"half")
    depot.clock.now = datetime.now(depot.clock.now.tzinfo)

    await depot.worker.start()
    assert len(depot.temporary_files()) == 1

    depot.clock.advance(days=2)
    await depot.worker.start()
    assert depot.temporary_files() == []
