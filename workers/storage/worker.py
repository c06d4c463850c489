"""Storage: one worker made of the desks in this folder."""

from config.settings import FleetSettings
from mindbus.bus.handlers import every
from mindbus.bus.worker import Worker, WorkerContext
from mindbus.files.store import open_files
from mindbus.sql.database import Database
from mindbus.sql.inbox import SqlInbox
from mindbus.sql.leadership import single_writer
from storage_service.maintenance.rules import rules_of
from storage_service.presigner import open_presigner
from storage_service.service import StorageService, open_storage
from workers.storage.artifacts import ArtifactDesk
from workers.storage.care import CareDesk
from workers.storage.data import DataDesk
from workers.storage.dialogues import DialogueDesk
from workers.storage.uploads import UploadDesk


class StorageWorker(ArtifactDesk, UploadDesk, DialogueDesk, CareDesk, DataDesk, Worker):
    """The only one who writes manifests, messages, events; the only one who decides who reads them."""

    name = "storage"
    start_stage = 0
    stops_last = True

    def __init__(self, storage: StorageService) -> None:
        self.storage = storage
        self.inbox = self.remembered = SqlInbox(storage.database)
        self.leadership = single_writer(storage.database)

    async def start(self) -> None:
        """Migrate before the first message."""
        await self.storage.start()

    async def stop(self) -> None:
        """Let go of the database."""
        await self.storage.database.dispose()

    @every(seconds=2)
    async def clean(self) -> None:
        await self.storage.clean()


def open_storage_worker(context: WorkerContext) -> StorageWorker:
    """The storage worker over the database and the file store that the settings name."""
    settings = context.settings_as(FleetSettings)
    files = open_files(settings)
    presigner = open_presigner(files, context.clock, settings.s3_public_endpoint_url)
    database = Database(settings.database_of("storage"), schema="storage")
    return StorageWorker(open_storage(database, files, context.clock, presigner=presigner, rules=rules_of(settings)))
