"""A world with a real database and a real place for bytes."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Row, func, select

from mindbus.bus.transport import Outgoing, RawCopy
from mindbus.files.store import FileStore
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from storage_service.blobs import Blobs
from storage_service.rows import PLACED_MANIFESTS, placed_content
from storage_service.s3_blobs import S3Blobs
from storage_service.service import open_storage
from storage_service.tables import ManifestRow, NotificationRow, RemovalRow, SpentUploadRow, inbox_tables
from tests.crashes.gated_blobs import GatedBlobs, GatedObjects
from tests.crashes.gated_database import GatedDatabase, Turn
from tests.crashes.gates import Gates
from tests.crashes.invariants import Artifact, Invariants
from tests.crashes.memory_broker import MemoryBroker
from tests.crashes.memory_world import UNTIL_QUIET
from tests.crashes.schedules import Schedule
from tests.crashes.storages import Clock, Storage, Work, make_storage
from tests.crashes.uploads import Upload, stories

_WAITING: dict[str, Any] = {
    "relay": inbox_tables.outbox,
    "clean": SpentUploadRow,
    "tell": NotificationRow,
    "removals": RemovalRow,
}
_UNMARKED = select(func.count()).select_from(inbox_tables.inbox).where(~inbox_tables.inbox.c.published)


class LookingBroker(MemoryBroker):
    """Whoever hears of an artifact has looked for it just before: a commit may be a while under way."""

    async def publish(self, message: Outgoing | RawCopy) -> None:
        """As in Transport."""
        await self.gates.look_closely()
        await super().publish(message)


class RealWorld:
    """Only the queue is a double; `suffix` tells this story's artifacts from those of the stories before it."""

    def __init__(self, database_url: str, files: FileStore, blobs: Blobs, suffix: str) -> None:
        self.url, self.files, self.blobs, self.suffix = database_url, files, blobs, suffix
        # Files have the times of the real clock.
        self.clock = Clock(datetime.now(UTC))
        self.gates = Gates(asyncio.get_running_loop(), lambda: None, self._look)
        self.broker = LookingBroker(self.gates)
        self.invariants = Invariants()
        self.broker.hear = self.invariants.hear
        self._observer = Database(database_url, "storage")
        self._databases: list[Database] = [self._observer]
        self._turn, self._looking = Turn(), asyncio.Lock()
        self._waiting: dict[str, int] = {}

    def stage(self, upload: Upload) -> None:
        """As in World."""
        for part in upload.parts:
            self.files.put(part.key, part.content)
        self.invariants.asked[upload.message_id] = upload
        self.broker.pending.append(upload.message)

    def start(self, name: str) -> Storage:
        """As in World."""
        database = GatedDatabase(self.url, self.gates, self._turn)
        self._databases.append(database)
        service = open_storage(database, self.files, self.clock)
        blobs = self._gated()
        service.maintenance.blobs = blobs
        service = replace(service, blobs=blobs, registrar=replace(service.registrar, blobs=blobs))
        return make_storage(name, service, SqlInbox(database), self.broker)

    def works(self, storage: Storage) -> Mapping[str, Work]:
        """As in World."""
        works = {"relay": storage.relay, "clean": storage.clean, "tell": storage.tell}
        return {name: work for name, work in works.items() if self._waiting.get(name)}

    async def tidy_up(self, storage: Storage) -> None:
        """Collect, tell what was collected, audit: each to its end, undisturbed."""
        for name in ("collect", "tell", "relay", "clean", "audit"):
            self.gates.start(name, storage.process, getattr(storage, name)())
            while await self.gates.wait_for_somebody():
                self.gates.let_on(self.gates.waiting[0])

    async def require_quiet(self) -> None:
        """Have the invariants look for leftovers."""
        await self._look()
        found = {folder: [each.key async for each in self.blobs.listing(folder)] for folder in _FOLDERS}
        left: dict[str, Any] = {
            "messages": [*self.broker.pending, *self.broker.unsettled],
            "dead letters": self.broker.dead,
            **{f"rows for {name}": [rows] * rows for name, rows in self._waiting.items()},
            **{folder: found[folder] for folder in ("staging", "objects/.tmp", "orphans")},
        }
        self.invariants.require_quiet(left, set(found["objects/sha256"]) - await self._keys_of_others())

    async def close(self) -> None:
        """Let nothing of this story linger."""
        self.gates.kill_all()
        await self.gates.settle()
        for database in self._databases:
            await database.dispose()

    def _gated(self) -> Blobs:
        if isinstance(self.blobs, S3Blobs):
            return S3Blobs(GatedObjects(self.blobs.objects, self.gates), self.blobs.guarantees)
        return GatedBlobs(self.blobs, self.gates)

    async def _look(self) -> None:
        # One after the other: who read the rows first must not be the last to tell.
        async with self._looking:
            await self._look_around()

    async def _look_around(self) -> None:
        async with self._observer.reading() as session:
            rows = (await session.execute(PLACED_MANIFESTS.where(ManifestRow.id.endswith(self.suffix)))).all()
            removals = list(await session.scalars(select(RemovalRow.key)))
            for name, table in _WAITING.items():
                self._waiting[name] = await session.scalar(select(func.count()).select_from(table)) or 0
            self._waiting["relay"] += await session.scalar(_UNMARKED) or 0
        artifacts = {row.id: Artifact(_key_of(row), row.sha256) for row in rows if row.expired_at is None}
        expired = {row.id for row in rows if row.retention_until is not None and row.retention_until <= self.clock.now}
        contents = {each.object_key: await self._content_of(each.object_key) for each in artifacts.values()}
        self.invariants.look(artifacts, contents.get, expired)
        self.invariants.swept.update([key for key in removals if await self.blobs.size_bytes(key) is not None])

    async def _keys_of_others(self) -> set[str]:
        others = PLACED_MANIFESTS.where(~ManifestRow.id.endswith(self.suffix), ManifestRow.expired_at.is_(None))
        async with self._observer.reading() as session:
            return {_key_of(row) for row in await session.execute(others)}

    async def _content_of(self, key: str) -> bytes | None:
        try:
            return await self.blobs.read(key)
        except FileNotFoundError:
            return None


_FOLDERS = ("staging", "objects/.tmp", "orphans", "objects/sha256")


def _key_of(row: Row[Any]) -> str:
    return placed_content(row).key


async def tell_really(seed: int, database_url: str, files: FileStore, blobs: Blobs) -> Schedule:
    """Tell the story of a seed in a real world. Raises Broken."""
    suffix = f"_{seed}"
    world = RealWorld(database_url, files, blobs, suffix)
    schedule = Schedule(seed, world, stories(suffix))
    try:
        while (move := schedule.next_move()) or await world.gates.wait_for_somebody():
            if move:
                move()
            await world.gates.settle()
        for passes in UNTIL_QUIET:
            world.clock.now += passes
            await world.tidy_up(schedule.storages[0])
        await world.require_quiet()
        schedule.require_unbroken()
    finally:
        await world.close()
    return schedule
