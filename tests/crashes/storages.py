"""A process of storage, whatever its parts are, and the world that outlives it."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from mindbus.bus.claims import Claims
from mindbus.bus.delivery import Carrier
from mindbus.bus.ledger import Ledger
from mindbus.bus.speaker import Speaker
from mindbus.bus.topology import commands_queue, rungs_of
from mindbus.bus.transport import Transport
from mindbus.folder_files import FolderFiles
from storage_service.service import StorageService
from tests.crashes.gates import Gates, Process
from tests.crashes.invariants import Invariants
from tests.crashes.memory_broker import Delivery, MemoryBroker
from tests.crashes.uploads import NOON, Upload
from workers.storage.worker import StorageWorker

ROOT_URL = "s3://bucket"
# Nothing is ever looked for there.
NOWHERE = Path("/nowhere")
Work = Callable[[], Coroutine[Any, Any, None]]


@dataclass(slots=True)
class Clock:
    """Everybody's."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now


class RelayingLedger(Ledger, Protocol):
    """A ledger whose outbox is emptied when the story says so."""

    async def relay(self, transport: Transport) -> None: ...


@dataclass(eq=False, slots=True)
class Storage:
    """A process of storage."""

    process: Process
    worker: StorageWorker
    ledger: RelayingLedger
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
        await self.ledger.relay(self.broker)

    async def clean(self) -> None:
        """Remove the staged files that are needed no more."""
        async with self.ledger.entry("storage", None):
            await self.worker.clean()


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
    name: str, storage: StorageService, ledger: RelayingLedger, broker: MemoryBroker, carrier: type[Carrier] = Carrier
) -> Storage:
    """Put a process together, as the fleet does."""
    worker = StorageWorker(storage)
    worker.ledger = ledger
    claims = Claims(FolderFiles(NOWHERE, NOWHERE.as_uri()))
    speaker = Speaker("storage", name, "svc.storage", f"reply.storage.{name}", claims)
    carried = carrier(worker, speaker, broker, rungs_of("1s"), commands_queue("storage"), {})
    return Storage(Process(name), worker, ledger, broker, carried)
