"""Storage: the worker, composed of the routers in this folder."""

from config.settings import FleetSettings
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.files.store import open_files
from mindbus.middleware import RetryOn
from mindbus.run_dir import last_gateway_url
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.leadership import single_writer
from storage_service.maintenance.survey import rules_of
from storage_service.service import StorageService, open_storage
from storage_service.uploads import AddressSigner, FolderPresigner, open_presigner
from workers.storage.artifacts import ArtifactHandlers, UploadHandlers
from workers.storage.dialogues import DialogueHandlers
from workers.storage.maintenance import StorageErasure, StorageMaintenance
from workers.storage.model_calls import ModelCallHandlers
from workers.storage.records import FactHandlers, TaskHandlers, UserHandlers


class StorageWorker(Worker):
    """The only writer of manifests, messages and events, and the only judge of who may read them."""

    name = "storage"
    start_stage = 0
    stops_last = True
    # It signs the addresses of the others and has nobody to ask.
    direct_files = True
    middleware = (RetryOn(OSError),)

    def __init__(self, storage: StorageService) -> None:
        self.storage = storage
        if storage.database.is_sqlite:
            # What is at work at once is committed at once; PostgreSQL commits one manifest after the other.
            self.concurrency = 32
        self.inbox = inbox = SqlInbox(storage.database)
        self.leadership = single_writer(storage.database)
        self.maintenance = StorageMaintenance(storage)
        self.include(
            ArtifactHandlers(storage),
            UploadHandlers(storage),
            ModelCallHandlers(storage),
            DialogueHandlers(storage),
            UserHandlers(storage),
            TaskHandlers(storage),
            FactHandlers(storage),
            self.maintenance,
            StorageErasure(storage, inbox),
        )

    async def start(self) -> None:
        await self.storage.start()

    async def stop(self) -> None:
        await self.storage.database.dispose()


def open_storage_worker(context: WorkerContext) -> StorageWorker:
    """The storage worker over the database and the file store that the settings name."""
    settings = context.settings_as(FleetSettings)
    files = open_files(settings)
    presigner: AddressSigner | None
    if files.local_root is None:
        presigner = open_presigner(files, context.clock, settings.s3_public_endpoint_url)
    else:
        presigner = FolderPresigner(
            files.local_root, lambda: settings.gateway_public_url or last_gateway_url(settings), context.clock
        )
    database = Database(settings.database_of("storage"), schema="storage")
    return StorageWorker(open_storage(database, files, context.clock, presigner=presigner, rules=rules_of(settings)))
