"""A world in memory."""

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from typing import Any, cast

from mindbus.files.store import FolderFiles
from mindbus.runtime.processor import Processor
from mindbus.sql.database import Database
from storage_service.blobs import Blobs
from storage_service.maintenance.manifest_copies import copy_key
from storage_service.maintenance.registry import RebuildRegistry
from storage_service.maintenance.service import MaintenanceService
from storage_service.object_store import Guarantees, ObjectStore
from storage_service.registration import ArtifactRegistrar
from storage_service.registry import Registry
from storage_service.s3_blobs import S3Blobs
from storage_service.service import StorageService, open_storage
from tests.crashes.gates import Gates
from tests.crashes.invariants import Artifact, Invariants
from tests.crashes.memory_broker import MemoryBroker
from tests.crashes.memory_database import Connection, MemoryDatabase
from tests.crashes.memory_inbox import OutboxInbox
from tests.crashes.memory_maintenance import MemoryCareRegistry
from tests.crashes.memory_objects import Bucket, MemoryObjects
from tests.crashes.memory_registry import MemoryRegistry
from tests.crashes.schedules import Schedule
from tests.crashes.simulation import SimulatedLoop
from tests.crashes.storages import NOWHERE, ROOT_URL, Clock, Storage, Work, make_storage
from tests.crashes.uploads import Upload, stories


def a_registrar(registry: Registry, blobs: Blobs) -> ArtifactRegistrar:
    """The real one."""
    return ArtifactRegistrar(registry, blobs, ROOT_URL, 1024)


@dataclass(frozen=True, slots=True)
class Design:
    """What the processes are made of; a mutant replaces a part."""

    registrar: Callable[[Registry, Blobs], ArtifactRegistrar] = a_registrar
    registry: Callable[[Connection, Clock], MemoryRegistry] = MemoryRegistry
    blobs: Callable[[ObjectStore, Guarantees, int], Blobs] = S3Blobs
    inbox: Callable[[Connection], OutboxInbox] = OutboxInbox
    processor: type[Processor] = Processor
    care: Callable[[Connection, Clock], MemoryCareRegistry] = MemoryCareRegistry


@dataclass(frozen=True, slots=True)
class Store:
    """An object store, how far its clock is ahead, up to which size storage reads bytes whole."""

    guarantees: Guarantees
    is_ahead: timedelta = timedelta()
    whole_bytes: int = 1024

    @classmethod
    def of(cls, chance: random.Random) -> "Store":
        """Any."""
        puts_once, copies_once, copies_what_was_seen, checks_sha256 = chance.choices((True, False), k=4)
        guarantees = Guarantees(
            puts_once=puts_once,
            copies_once=copies_once,
            copies_what_was_seen=copies_what_was_seen,
            checks_sha256=checks_sha256,
        )
        return cls(guarantees, timedelta(hours=chance.choice((0, 0, 60, -60))), chance.choice((0, 1024)))


AS_BUILT = Design()
A_GOOD_STORE = Store(Guarantees(puts_once=True, copies_once=True, copies_what_was_seen=True, checks_sha256=True))
# After an hour's pin and a day's grace what nobody needs goes to the orphans, after their week it is gone.
UNTIL_QUIET = (timedelta(hours=25, minutes=1), timedelta(days=8))


class MemoryWorld:
    """Nothing in it takes time, so that whoever holds the gates decides what happens next."""

    def __init__(self, design: Design = AS_BUILT, store: Store = A_GOOD_STORE) -> None:
        self.design, self.store = design, store
        self.loop = SimulatedLoop()  # type: ignore[abstract]  # it has neither sockets nor signals nor subprocesses
        self.clock = Clock()
        self.gates = Gates(self.loop, self._look)
        self.bucket = Bucket(lambda: self.clock.now + store.is_ahead, store.guarantees)
        self.database = MemoryDatabase()
        self.broker = MemoryBroker(self.gates)
        self.invariants = Invariants()
        self.broker.hear = self.invariants.hear

    def stage(self, upload: Upload) -> None:
        """As in World."""
        for part in upload.parts:
            self.bucket.write(part.key, part.content)
        self.invariants.asked[upload.message_id] = upload
        self.broker.pending.append(upload.message)

    def start(self, name: str) -> Storage:
        """As in World."""
        connection = Connection(self.database, self.gates)
        registry = self.design.registry(connection, self.clock)
        blobs = self.design.blobs(MemoryObjects(self.bucket, self.gates), self.store.guarantees, self.store.whole_bytes)
        registrar = self.design.registrar(registry, blobs)
        care = MaintenanceService(
            registry=cast("RebuildRegistry", self.design.care(connection, self.clock)),  # Nothing is rebuilt here.
            manifests=registry,
            blobs=blobs,
            statistics=_nowhere().maintenance.statistics,
            clock=self.clock,
        )
        service = replace(
            _nowhere(), registry=registry, registrar=registrar, blobs=blobs, maintenance=care, clock=self.clock
        )
        return make_storage(name, service, self.design.inbox(connection), self.broker, self.design.processor)

    def works(self, storage: Storage) -> Mapping[str, Work]:
        """As in World."""
        works: dict[str, Work] = {}
        if self.database.committed.outbox or self.database.committed.unpublished:
            works["relay"] = storage.relay
        if self.database.committed.spent:
            works["clean"] = storage.clean
        if self.database.committed.notices:
            works["tell"] = storage.tell
        return works

    def require_quiet(self) -> None:
        """Have the invariants look for leftovers."""
        tables = self.database.committed
        left: dict[str, Collection[Any]] = {
            "messages": [*self.broker.pending, *self.broker.unsettled],
            "dead letters": self.broker.dead,
            "unpublished messages": [*self.database.committed.outbox, *self.database.committed.unpublished],
            "spent uploads": self.database.committed.spent,
            "staged files": self.bucket.keys("staging/"),
            "untold events": self.database.committed.notices,
            "removals": self.database.committed.removals,
            "half-written objects": self.bucket.keys("objects/.tmp/"),
            "orphans": self.bucket.keys("orphans/"),
        }
        left["copies that are of no manifest"] = set(self.bucket.keys("manifests/")) - set(
            map(copy_key, tables.manifests)
        )
        left["manifests without a copy"] = [each for each in tables.manifests if not self._is_copied(each)]
        self.invariants.require_quiet(left, self.bucket.keys("objects/sha256/"))

    def tidy_up(self, storage: Storage) -> None:
        """Collect, tell what was collected, audit: each to its end, undisturbed."""
        for name in ("collect", "tell", "relay", "clean", "audit"):
            self.gates.start(name, storage.process, getattr(storage, name)())
            self.loop.run_ready()
            while self.gates.waiting:
                self.gates.let_on(self.gates.waiting[0])
                self.loop.run_ready()

    def drop_what_is_committed(self) -> None:
        """From now on the broker drops what a process loses once it is committed, as for its delivery limit."""
        self.broker.drops = lambda message: message.properties.message_id in self.database.committed.inbox

    def close(self) -> None:
        """Let nothing of an unfinished story linger."""
        self.gates.kill_all()
        self.loop.run_ready()

    def _look(self) -> None:
        tables, artifacts, expired = self.database.committed, {}, set()
        for artifact_id, row in tables.manifests.items():
            if row.expired_at is None:
                artifacts[artifact_id] = Artifact(row.object_key, row.manifest.sha256)
            elif row.retention_until is not None and row.retention_until <= self.clock.now:
                expired.add(artifact_id)
        self.invariants.look(artifacts, self._content_of, expired)
        self.invariants.swept.update(key for key in tables.removals if key in self.bucket.kept)

    def _is_copied(self, artifact_id: str) -> bool:
        """Who stalled for longer than the artifact lived may have copied it as it was: it would expire once more."""
        row = self.database.committed.manifests[artifact_id]
        copied = self._content_of(copy_key(artifact_id))
        return copied in (row.copy.to_bytes(), replace(row, expired_at=None).copy.to_bytes())

    def _content_of(self, key: str) -> bytes | None:
        kept = self.bucket.kept.get(key)
        return None if kept is None else kept.content


@cache
def _nowhere() -> StorageService:
    """Storage with all its parts, those that are not doubled over a database that nobody opens."""
    return open_storage(Database("sqlite+aiosqlite://", "storage"), FolderFiles(NOWHERE, NOWHERE.as_uri()), Clock())


def tell(seed: int, design: Design = AS_BUILT) -> Schedule:
    """Tell the story of a seed to its end, then see that nothing is left. Raises Broken."""
    world = MemoryWorld(design, Store.of(random.Random(f"store of {seed}")))
    schedule = Schedule(seed, world, stories())
    if seed % 2:
        world.drop_what_is_committed()
    try:
        while (move := schedule.next_move()) or world.loop.let_time_pass():
            if move:
                move()
            world.loop.run_ready()
        for passes in UNTIL_QUIET:
            world.clock.now += passes + max(world.store.is_ahead, timedelta())
            world.tidy_up(schedule.storages[0])
        world.require_quiet()
        schedule.require_unbroken()
    finally:
        world.close()
    return schedule
