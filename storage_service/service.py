"""All of storage over one database, one file store."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bus_schema.identities import Principal
from bus_schema.storage_maintenance import StorageStats
from mindbus.files.store import FileStore
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service.acl import Traces
from storage_service.blobs import Blobs
from storage_service.catalog import Catalog
from storage_service.dialogues import Dialogues
from storage_service.local_blobs import LocalBlobs
from storage_service.maintenance.erasure import ErasedRows, Eraser
from storage_service.maintenance.manifest_copies import clean
from storage_service.maintenance.service import MaintenanceService, StorageStatistics
from storage_service.maintenance.sql_registry import SqlMaintenanceRegistry
from storage_service.maintenance.survey import TEMPORARY_KEPT, MaintenanceRules
from storage_service.model_calls import ModelCalls
from storage_service.quotas import ByteQuota, TokenCounts
from storage_service.records import AgentData, Facts, Users
from storage_service.registration import ArtifactRegistrar
from storage_service.registry import Registry, SqlRegistry
from storage_service.tables import MIGRATIONS
from storage_service.tasks import Tasks
from storage_service.timeline import Timeline
from storage_service.uploads import AddressSigner, Uploads


class NoBlobs(TypeError):
    """Storage keeps artifacts in a folder or in an object store."""


def open_blobs(files: FileStore, orphans: Path | None = None, *, must_write_once: bool = False) -> Blobs:
    """The blob store over a file store; `orphans` may be another folder."""
    if files.local_root is not None:
        return LocalBlobs(files.local_root, orphans)
    # Imported here: S3 is an extra, and slow to import.
    from mindbus.files.s3_store import S3Files
    from storage_service.object_store import StoreProbe
    from storage_service.s3_blobs import S3Blobs
    from storage_service.s3_objects import S3Objects, S3ProbedObjects

    if not isinstance(files, S3Files):
        raise NoBlobs(NoBlobs.__doc__)
    conformance = StoreProbe(S3ProbedObjects(files))
    return S3Blobs(S3Objects(files.bucket), probe=conformance.probe, must_write_once=must_write_once)


MAX_ARTIFACT_BYTES = 5 * 1024**3
_NO_RULES = MaintenanceRules()


@dataclass(frozen=True, slots=True)
class StorageService:
    """The parts of storage, for the storage worker."""

    database: Database
    registry: Registry
    registrar: ArtifactRegistrar
    catalog: Catalog
    traces: Traces
    dialogues: Dialogues
    timeline: Timeline
    agent_data: AgentData
    users: Users
    tasks: Tasks
    facts: Facts
    blobs: Blobs
    uploads: Uploads
    model_calls: ModelCalls
    tokens: TokenCounts
    maintenance: MaintenanceService
    eraser: Eraser
    clock: Callable[[], datetime]

    async def start(self) -> None:
        """Migrate the database, probe the store, remove partial files of dead processes."""
        await upgrade(self.database, MIGRATIONS)
        await self.blobs.prepare()
        if removed := await self.blobs.sweep_temporary(self.clock() - TEMPORARY_KEPT):
            logger().info("temporary files swept", count=removed)

    async def prune_timeline(self) -> None:
        """Delete the events whose time is over."""
        kept = self.maintenance.rules.timeline_kept
        if kept is not None and (deleted := await self.timeline.prune(self.clock() - kept)):
            logger().info("events deleted from the timeline", events=deleted, kept_days=kept.days)

    async def stats(self, principal: Principal) -> StorageStats:
        """Statistics of the store and the timeline, with how long each thing is kept. Raises NotAnOperator."""
        stats = await self.maintenance.stats(principal)
        events, oldest = await self.timeline.extent()
        return stats.model_copy(
            update={"events": events, "oldest_event": oldest, "kept_days": self.maintenance.rules.kept_days}
        )

    async def clean(self) -> None:
        """Copy committed manifests into the store, remove their staged files, then erased files."""
        async with self.maintenance.copying:
            await clean(self.registry, self.blobs)
        await self.maintenance.erase()


def open_storage(
    database: Database,
    files: FileStore,
    clock: Callable[[], datetime],
    max_artifact_bytes: int = MAX_ARTIFACT_BYTES,
    presigner: AddressSigner | None = None,
    rules: MaintenanceRules = _NO_RULES,
) -> StorageService:
    """Compose storage over a database and a file store."""
    blobs = open_blobs(files, rules.orphans, must_write_once=rules.must_write_once)
    registry = SqlRegistry(database, clock)
    quota = ByteQuota(database, rules.quota_bytes) if rules.quota_bytes else None
    registrar = ArtifactRegistrar(registry, blobs, files.url, max_artifact_bytes, quota)
    maintenance_registry = SqlMaintenanceRegistry(database, clock, rules.retention)
    return StorageService(
        database=database,
        registry=registry,
        registrar=registrar,
        catalog=Catalog(database),
        traces=Traces(database, clock),
        dialogues=Dialogues(database),
        timeline=Timeline(database),
        agent_data=AgentData(database, clock),
        users=Users(database, clock),
        tasks=Tasks(database, clock),
        facts=Facts(database),
        blobs=blobs,
        uploads=Uploads(files.url, max_artifact_bytes, clock, presigner),
        model_calls=ModelCalls(files, registrar, clock),
        tokens=TokenCounts(database, clock),
        maintenance=MaintenanceService(
            registry=maintenance_registry,
            manifests=registry,
            blobs=blobs,
            statistics=StorageStatistics(database, blobs),
            clock=clock,
            rules=rules,
        ),
        eraser=Eraser(maintenance_registry, ErasedRows(database, clock), blobs),
        clock=clock,
    )
