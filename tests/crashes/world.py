"""A storage fleet in memory: what outlives its processes, how they are started and what they are given to do."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from bus_schema.artifacts import Manifest
from bus_schema.envelope import Envelope, Kind
from bus_schema.identities import owner_of
from bus_schema.storage import RegisterArtifact
from mindbus.bus.claims import Claims
from mindbus.bus.delivery import Carrier
from mindbus.bus.speaker import Speaker
from mindbus.bus.topology import commands_exchange, commands_queue, rungs_of
from mindbus.bus.transport import properties_of
from mindbus.files import FileStore
from mindbus.sql.database import Database
from storage_service.blobs import Blobs
from storage_service.objects import ObjectStore
from storage_service.registration import Registrar, Registry
from storage_service.service import StorageService, open_storage
from storage_service.staging import folder_of
from tests.crashes.gates import Gates, Process
from tests.crashes.invariants import Invariants
from tests.crashes.memory_broker import Delivery, MemoryBroker, Message
from tests.crashes.memory_database import Connection, MemoryDatabase
from tests.crashes.memory_ledger import OutboxLedger
from tests.crashes.memory_objects import Bucket, MemoryObjects
from tests.crashes.memory_registry import MemoryRegistry
from tests.crashes.promoting import S3Blobs
from tests.crashes.simulation import SimulatedLoop
from workers.storage import StorageWorker

NOON = datetime(2026, 3, 14, 12, tzinfo=UTC)
ROOT_URL = "s3://bucket"


@dataclass(slots=True)
class Clock:
    """Everybody's."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class Upload:
    """What an agent stages, with the command that it sends."""

    key: str
    content: bytes
    artifact_id: str
    message_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class Design:
    """What the processes are made of; a mutant replaces a part."""

    registrar: Callable[[Registry, Blobs], Registrar] = lambda registry, blobs: Registrar(
        registry, blobs, ROOT_URL, 1024
    )
    registry: Callable[[Connection, Clock], MemoryRegistry] = MemoryRegistry
    blobs: Callable[[ObjectStore], Any] = S3Blobs
    ledger: Callable[[Connection, MemoryBroker], OutboxLedger] = OutboxLedger
    carrier: type[Carrier] = Carrier


AS_BUILT = Design()


@dataclass(eq=False, slots=True)
class Storage:
    """A process of storage."""

    process: Process
    worker: StorageWorker
    ledger: OutboxLedger
    broker: MemoryBroker
    carrier: Carrier

    async def carry(self, delivery: Delivery) -> None:
        """Handle one delivery, as Service does."""
        try:
            await self.carrier.carry(delivery)
        except Exception:  # noqa: BLE001  # as in Service: what the runtime cannot settle goes back
            await delivery.requeue()

    async def relay(self) -> None:
        """Publish what the outbox holds."""
        await self.ledger.relay()

    async def clean(self) -> None:
        """Remove the staged files that are needed no more."""
        async with self.ledger.entry("storage", None):
            await self.worker.clean()


class World:
    """What outlives every process."""

    def __init__(self, design: Design = AS_BUILT) -> None:
        self.design = design
        self.loop = SimulatedLoop()  # type: ignore[abstract]  # it has neither sockets nor signals nor subprocesses
        self.clock = Clock()
        self.gates = Gates(self.loop)
        self.bucket = Bucket(self.clock)
        self.database = MemoryDatabase()
        self.broker = MemoryBroker(self.gates)
        self.invariants = Invariants(self.bucket, self.database, self.broker)
        self.gates.look = self.invariants.look
        self.broker.hear = self.invariants.hear

    def stage(self, upload: Upload) -> None:
        """An agent uploads, then sends its command."""
        self.bucket.write(upload.key, upload.content)
        self.invariants.asked.add(upload.message_id)
        self.broker.waiting.append(upload.message)

    def close(self) -> None:
        """Let nothing of an unfinished story linger."""
        self.gates.kill_all()
        self.loop.run_ready()

    def start(self, name: str) -> Storage:
        """A fresh process."""
        connection = Connection(self.database, self.gates)
        registry = self.design.registry(connection, self.clock)
        blobs = self.design.blobs(MemoryObjects(self.bucket, self.gates))
        registrar = self.design.registrar(registry, blobs)
        storage = replace(_nowhere(), registry=registry, registrar=registrar, blobs=blobs, clock=self.clock)
        worker = StorageWorker(storage)
        worker.ledger = ledger = self.design.ledger(connection, self.broker)
        speaker = Speaker("storage", name, "svc.storage", f"reply.storage.{name}", _NO_CLAIMS)
        carrier = self.design.carrier(worker, speaker, self.broker, rungs_of("1s"), commands_queue("storage"), {})
        return Storage(Process(name), worker, ledger, self.broker, carrier)


_NO_CLAIMS = Claims(FileStore(None, "", ROOT_URL))


@cache
def _nowhere() -> StorageService:
    """Storage with all its parts, those that are not doubled over a database that nobody opens."""
    return open_storage(Database("sqlite+aiosqlite://", "storage"), FileStore(None, "", "file:"), Clock())


@cache
def an_upload(artifact: str, by: str, message_id: str, upload_id: str, content: bytes = b"findings") -> Upload:
    """A valid one."""
    owner = owner_of(by)
    key = f"staging/{NOON:%Y/%m/%d}/{folder_of(owner)}/{upload_id * 32}"
    manifest = Manifest(
        id=artifact,
        trace_id="run_1",
        created_by=by,
        created_at=NOON,
        artifact_type="research_report",
        content_type="text/markdown",
        uri=f"{ROOT_URL}/{key}",
        size_bytes=len(content),
        checksum=f"sha256:{hashlib.sha256(content).hexdigest()}",
        owner=owner,
    )
    command = RegisterArtifact(manifest=manifest)
    envelope = Envelope(
        id=message_id,
        source="/mb/test/1",
        type=command.wire.type,
        time=NOON,
        correlationid=message_id,
        mbkind=Kind.COMMAND,
        mbrequester=by,
        mbreplyto="reply.test.1",
        data=command.model_dump(mode="json"),
    )
    exchange = commands_exchange("storage")
    message = Message(envelope.to_wire(), properties_of(envelope), exchange, command.wire.routing_key)
    return Upload(key, content, artifact, message_id, message)
