"""All of storage over one database, one file store."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from mindbus.files import FileStore
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service.agent_data import AgentData
from storage_service.backends import open_blobs
from storage_service.blobs import Blobs
from storage_service.catalog import Catalog
from storage_service.dialogues.fragments import Fragments
from storage_service.dialogues.messages import Messages
from storage_service.lineage import LineageReader
from storage_service.models import MIGRATIONS
from storage_service.presigning import Presigner
from storage_service.registration import Registrar, Registry
from storage_service.registry import SqlRegistry
from storage_service.timeline import Timeline
from storage_service.traces import Traces
from storage_service.uploads import Uploads

MAX_ARTIFACT_BYTES = 5 * 1024**3
# Far longer than a copy takes, so that no other instance's copy under way is swept.
_TEMPORARY_FOR = timedelta(days=1)
_SWEEP_BATCH = 200


@dataclass(frozen=True, slots=True)
class StorageService:
    """What the storage worker listens for."""

    database: Database
    registry: Registry
    registrar: Registrar
    catalog: Catalog
    lineage: LineageReader
    traces: Traces
    messages: Messages
    fragments: Fragments
    timeline: Timeline
    agent_data: AgentData
    blobs: Blobs
    uploads: Uploads
    clock: Callable[[], datetime]

    async def start(self) -> None:
        """Bring the tables up to date, remove what dead processes left half-written."""
        await upgrade(self.database, MIGRATIONS)
        if removed := await self.blobs.sweep_temporary(self.clock() - _TEMPORARY_FOR):
            logger().info("temporary files swept", count=removed)

    async def clean(self) -> None:
        """Remove staged files whose artifacts are committed; what cannot be removed now is tried again later."""
        removed = []
        for upload in await self.registry.spent_uploads(_SWEEP_BATCH):
            try:
                await self.blobs.discard(upload)
            except OSError as trouble:
                logger().warning("staged file stays", upload=upload, reason=str(trouble))
            else:
                removed.append(upload)
        if removed:
            await self.registry.forget_uploads(removed)


def open_storage(
    database: Database,
    files: FileStore,
    clock: Callable[[], datetime],
    max_artifact_bytes: int = MAX_ARTIFACT_BYTES,
    presigner: Presigner | None = None,
) -> StorageService:
    """Put the parts together."""
    blobs = open_blobs(files)
    registry = SqlRegistry(database, clock)
    return StorageService(
        database=database,
        registry=registry,
        registrar=Registrar(registry, blobs, files.url, max_artifact_bytes),
        catalog=Catalog(database),
        lineage=LineageReader(database),
        traces=Traces(database, clock),
        messages=Messages(database),
        fragments=Fragments(database),
        timeline=Timeline(database),
        agent_data=AgentData(database, clock),
        blobs=blobs,
        uploads=Uploads(files.url, max_artifact_bytes, clock, presigner),
        clock=clock,
    )
