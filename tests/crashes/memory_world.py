"""A world in memory."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from mindbus.bus.delivery import Carrier
from mindbus.folder_files import FolderFiles
from mindbus.sql.database import Database
from storage_service.blobs import Blobs
from storage_service.objects import ObjectStore
from storage_service.registration import Registrar, Registry
from storage_service.service import StorageService, open_storage
from tests.crashes.gates import Gates
from tests.crashes.invariants import Artifact, Invariants
from tests.crashes.memory_broker import MemoryBroker
from tests.crashes.memory_database import Connection, MemoryDatabase
from tests.crashes.memory_ledger import OutboxLedger
from tests.crashes.memory_objects import Bucket, MemoryObjects
from tests.crashes.memory_registry import MemoryRegistry
from tests.crashes.promoting import S3Blobs
from tests.crashes.schedules import Schedule
from tests.crashes.simulation import SimulatedLoop
from tests.crashes.storages import NOWHERE, ROOT_URL, Clock, Storage, Work, make_storage
from tests.crashes.uploads import Upload, stories


def a_registrar(registry: Registry, blobs: Blobs) -> Registrar:
    """The real one."""
    return Registrar(registry, blobs, ROOT_URL, 1024)


@dataclass(frozen=True, slots=True)
class Design:
    """What the processes are made of; a mutant replaces a part."""

    registrar: Callable[[Registry, Blobs], Registrar] = a_registrar
    registry: Callable[[Connection, Clock], MemoryRegistry] = MemoryRegistry
    blobs: Callable[[ObjectStore], Any] = S3Blobs
    ledger: Callable[[Connection], OutboxLedger] = OutboxLedger
    carrier: type[Carrier] = Carrier


AS_BUILT = Design()


class MemoryWorld:
    """Nothing in it takes time, so that whoever holds the gates decides what happens next."""

    def __init__(self, design: Design = AS_BUILT) -> None:
        self.design = design
        self.loop = SimulatedLoop()  # type: ignore[abstract]  # it has neither sockets nor signals nor subprocesses
        self.clock = Clock()
        self.gates = Gates(self.loop, self._look)
        self.bucket = Bucket(self.clock)
        self.database = MemoryDatabase()
        self.broker = MemoryBroker(self.gates)
        self.invariants = Invariants()
        self.broker.hear = self.invariants.hear

    def stage(self, upload: Upload) -> None:
        """As in World."""
        self.bucket.write(upload.key, upload.content)
        self.invariants.asked.add(upload.message_id)
        self.broker.waiting.append(upload.message)

    def start(self, name: str) -> Storage:
        """As in World."""
        connection = Connection(self.database, self.gates)
        registry = self.design.registry(connection, self.clock)
        blobs = self.design.blobs(MemoryObjects(self.bucket, self.gates))
        registrar = self.design.registrar(registry, blobs)
        storage = replace(_nowhere(), registry=registry, registrar=registrar, blobs=blobs, clock=self.clock)
        return make_storage(name, storage, self.design.ledger(connection), self.broker, self.design.carrier)

    def works(self, storage: Storage) -> Mapping[str, Work]:
        """As in World."""
        works: dict[str, Work] = {}
        if self.database.committed.outbox:
            works["relay"] = storage.relay
        if self.database.committed.spent:
            works["clean"] = storage.clean
        return works

    def require_quiet(self) -> None:
        """Have the invariants look for leftovers."""
        left: dict[str, Collection[Any]] = {
            "messages": [*self.broker.waiting, *self.broker.unsettled],
            "dead letters": self.broker.dead,
            "unpublished messages": self.database.committed.outbox,
            "spent uploads": self.database.committed.spent,
            "staged files": self.bucket.keys("staging/"),
            "orphans": self.bucket.keys("orphans/"),
        }
        self.invariants.require_quiet(left, self.bucket.keys("objects/"))

    def close(self) -> None:
        """Let nothing of an unfinished story linger."""
        self.gates.kill_all()
        self.loop.run_ready()

    def _look(self) -> None:
        rows = self.database.committed.manifests
        artifacts = {artifact_id: Artifact(row.object_key, row.manifest.sha256) for artifact_id, row in rows.items()}
        self.invariants.look(artifacts, self._content_of)

    def _content_of(self, key: str) -> bytes | None:
        kept = self.bucket.kept.get(key)
        return None if kept is None else kept.content


@cache
def _nowhere() -> StorageService:
    """Storage with all its parts, those that are not doubled over a database that nobody opens."""
    return open_storage(Database("sqlite+aiosqlite://", "storage"), FolderFiles(NOWHERE, NOWHERE.as_uri()), Clock())


def tell(seed: int, design: Design = AS_BUILT) -> Schedule:
    """Tell the story of a seed to its end. Raises Broken."""
    world = MemoryWorld(design)
    schedule = Schedule(seed, world, stories())
    try:
        while (move := schedule.next_move()) or world.loop.let_time_pass():
            if move:
                move()
            world.loop.run_ready()
        world.require_quiet()
        schedule.require_unbroken()
    finally:
        world.close()
    return schedule
