"""All of storage over one database, one file store."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from mindbus.files.store import FileStore
from mindbus.logs import logger
from mindbus.sql.database import Database
from mindbus.sql.migrations import upgrade
from storage_service.agent_data import AgentData
from storage_service.backends import open_blobs
from storage_service.blobs import Blobs
from storage_service.care.caretaker import Care
from storage_service.care.cleaning import clean
from storage_service.care.eraser import Eraser
from storage_service.care.rules import TEMPORARY_KEPT, CareRules
from storage_service.care.sql_erasing import SqlErasing
from storage_service.care.sql_registry import SqlCareRegistry
from storage_service.care.statistics import Statistics
from storage_service.catalog import Catalog
from storage_service.dialogues.fragments import Fragments
from storage_service.dialogues.messages import Messages
from storage_service.dialogues.roster import Roster
from storage_service.lineage import LineageReader
from storage_service.models import MIGRATIONS
from storage_service.presigning import Presigner
from storage_service.registration import Registrar, Registry
from storage_service.registry import SqlRegistry
from storage_service.timeline import Timeline
from storage_service.traces import Traces
from storage_service.uploads import Uploads

MAX_ARTIFACT_BYTES = 5 * 1024**3
_NO_RULES = CareRules()


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
    roster: Roster
    timeline: Timeline
    agent_data: AgentData
    blobs: Blobs
    uploads: Uploads
    care: Care
    eraser: Eraser
    clock: Callable[[], datetime]

    async def start(self) -> None:
        """Bring the tables up to date, look what the store keeps, remove what dead processes left half-written."""
        await upgrade(self.database, MIGRATIONS)
        await self.blobs.prepare()
        if removed := await self.blobs.sweep_temporary(self.clock() - TEMPORARY_KEPT):
            logger().info("temporary files swept", count=removed)

    async def clean(self) -> None:
        """Copy the manifests of what is committed into the store, remove its staged files, then what is forgotten."""
        async with self.care.copying:
            await clean(self.registry, self.blobs)
        await self.care.erase()


def open_storage(
    database: Database,
    files: FileStore,
    clock: Callable[[], datetime],
    max_artifact_bytes: int = MAX_ARTIFACT_BYTES,
    presigner: Presigner | None = None,
    rules: CareRules = _NO_RULES,
) -> StorageService:
    """Put the parts together."""
    blobs = open_blobs(files, rules.orphans, must_write_once=rules.must_write_once)
    registry = SqlRegistry(database, clock)
    care_registry = SqlCareRegistry(database, clock, rules.retention)
    return StorageService(
        database=database,
        registry=registry,
        registrar=Registrar(registry, blobs, files.url, max_artifact_bytes),
        catalog=Catalog(database),
        lineage=LineageReader(database),
        traces=Traces(database, clock),
        messages=Messages(database),
        fragments=Fragments(database),
        roster=Roster(database),
        timeline=Timeline(database),
        agent_data=AgentData(database, clock),
        blobs=blobs,
        uploads=Uploads(files.url, max_artifact_bytes, clock, presigner),
        care=Care(
            registry=care_registry,
            manifests=registry,
            blobs=blobs,
            statistics=Statistics(database, blobs),
            clock=clock,
            rules=rules,
        ),
        eraser=Eraser(care_registry, SqlErasing(database, clock), blobs),
        clock=clock,
    )
