"""A process of storage, whatever its parts are, and the world that outlives it."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from bus_schema.identities import Principal
from bus_schema.storage_maintenance import Audit, CollectGarbage
from mindbus.bus.claims import Claims
from mindbus.bus.inbox import Inbox
from mindbus.bus.outcomes import address_results
from mindbus.bus.sender import Sender
from mindbus.bus.topology import commands_queue, rungs_of
from mindbus.bus.transport import Transport
from mindbus.files.store import FolderFiles
from mindbus.runtime.processor import Processor
from storage_service.service import StorageService
from tests.crashes.gates import Gates, Process
from tests.crashes.invariants import Invariants
from tests.crashes.memory_broker import Delivery, MemoryBroker
from tests.crashes.uploads import NOON, Upload
from workers.storage.artifacts import ArtifactHandlers
from workers.storage.maintenance import StorageMaintenance
from workers.storage.worker import StorageWorker

ROOT_URL = "s3://bucket"
# Nothing is ever looked for there.
NOWHERE = Path("/nowhere")
OPERATOR = Principal("user.local")
Work = Callable[[], Coroutine[Any, Any, None]]


class AuditTroubled(Exception):
    """An artifact is not what it should be, or was not for a while."""


@dataclass(slots=True)
class Clock:
    """Everybody's."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


class Worker(StorageWorker):
    """The real one, with a inbox and a service that are given to it."""

    def __init__(self, service: StorageService, inbox: Inbox) -> None:
        self.storage, self.inbox = service, inbox
        self.maintenance = StorageMaintenance(service)
        self.include(ArtifactHandlers(service), self.maintenance)


class RelayingInbox(Inbox, Protocol):
    """A inbox whose outbox is emptied when the story says so."""

    async def relay(self, transport: Transport) -> None: ...


@dataclass(eq=False, slots=True)
class Storage:
    """A process of storage."""

    process: Process
    processor: Processor
    inbox: RelayingInbox
    worker: StorageWorker

    async def carry(self, delivery: Delivery) -> None:
        """Handle one delivery, as Service does."""
        try:
            await self.processor.process(delivery)
        except Exception:  # noqa: BLE001  # as in Service: what the runtime cannot settle goes back
            await delivery.requeue()

    async def relay(self) -> None:
        """Publish what the outbox holds."""
        await self.inbox.relay(self.processor.transport)

    async def clean(self) -> None:
        """Do what follows a commit."""
        await self._tick(self.worker.maintenance.clean)

    async def tell(self) -> None:
        """Tell what the care of the store has done."""
        await self._tick(self.worker.maintenance.publish_notices)

    async def collect(self) -> None:
        """Collect garbage."""
        report = await self.worker.storage.maintenance.collect(CollectGarbage(), OPERATOR)
        assert report.refusal is None

    async def audit(self) -> None:
        """Look whether every artifact has its bytes."""
        page = await self.worker.storage.maintenance.audit(Audit(limit=1000), OPERATOR)
        if page.missing or page.damaged or page.restored:
            raise AuditTroubled(page)

    async def _tick(self, method: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        async with self.inbox.unit_of_work(self.worker.name) as unit:
            outgoing = await address_results(await method(), self.processor.sender, None)
            if outgoing:
                await unit.publish(outgoing)


class World(Protocol):
    """What outlives every process."""

    @property
    def gates(self) -> Gates: ...
    @property
    def broker(self) -> MemoryBroker: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def invariants(self) -> Invariants: ...

    def stage(self, upload: Upload) -> None:
        """An agent uploads, then sends its command."""

    def start(self, name: str) -> Storage:
        """A fresh process."""

    def works(self, storage: Storage) -> Mapping[str, Work]:
        """What there is for a process to do, apart from messages."""


def make_storage(
    name: str,
    service: StorageService,
    inbox: RelayingInbox,
    broker: MemoryBroker,
    kind: type[Processor] = Processor,
) -> Storage:
    """A process as the fleet would make it."""
    worker = Worker(service, inbox)
    claims = Claims(FolderFiles(NOWHERE, NOWHERE.as_uri()))
    sender = Sender("storage", name, "svc.storage", f"reply.storage.{name}", claims)
    processor = kind(worker, sender, broker, rungs_of("1s"), commands_queue("storage"), {})
    return Storage(Process(name), processor, inbox, worker)
