"""Answers for artifacts: registers them, finds them, says who may read them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from sqlalchemy.exc import OperationalError

from bus_schema.artifacts import Manifest
from bus_schema.storage import (
    ArtifactRegistered,
    GetArtifact,
    GetLineage,
    GetVersions,
    Lineage,
    ManifestPage,
    RegisterArtifact,
    Registration,
    SearchArtifacts,
    SetTraceMembers,
    Versions,
)
from bus_schema.uploads import (
    ClaimAddress,
    ClaimUpload,
    FoundManifest,
    OpenClaim,
    RequestClaim,
    RequestUpload,
    Upload,
)
from mindbus.bus.failures import Refused, TemporaryFailure
from mindbus.bus.handlers import Told, every, on_command
from mindbus.bus.handling import Handling
from mindbus.bus.worker import Worker
from mindbus.logs import logger
from mindbus.sql.leadership import single_writer
from mindbus.sql.ledger import SqlLedger
from storage_service.acl import Asker
from storage_service.refusals import Refusal
from storage_service.registry import PinLost
from storage_service.service import StorageService

_SOON = timedelta(seconds=1)


class StorageWorker(Worker):
    """The only one who writes manifests, the only one who decides who reads them."""

    name = "storage"

    def __init__(self, storage: StorageService) -> None:
        self.storage = storage
        self.ledger = SqlLedger(storage.database)
        self.leadership = single_writer(storage.database)

    async def start(self) -> None:
        """Migrate before the first message."""
        await self.storage.start()

    async def stop(self) -> None:
        """Let go of the database."""
        await self.storage.database.dispose()

    @on_command
    async def register(self, command: RegisterArtifact, handling: Handling) -> Registration | tuple[Registration, Told]:
        with _answering(handling, command.manifest.id) as asker:
            registered = await self.storage.registrar.register(command.manifest, asker)
        if registered.is_new:
            return _registration(registered.manifest, "registered"), _told(registered.manifest)
        return _registration(registered.manifest, "already_exists")

    @on_command
    async def get(self, query: GetArtifact, handling: Handling) -> FoundManifest:
        with _answering(handling, query.artifact_id) as asker:
            manifest = await self.storage.catalog.get(query.artifact_id, asker)
            return await self.storage.uploads.addressed(manifest, signed=query.presigned)

    @on_command
    async def search(self, query: SearchArtifacts, handling: Handling) -> ManifestPage:
        with _answering(handling) as asker:
            return await self.storage.catalog.search(query, asker)

    @on_command
    async def versions(self, query: GetVersions, handling: Handling) -> Versions:
        with _answering(handling, query.artifact_id) as asker:
            return await self.storage.catalog.versions(query.artifact_id, asker)

    @on_command
    async def lineage(self, query: GetLineage, handling: Handling) -> Lineage:
        with _answering(handling, query.artifact_id) as asker:
            return await self.storage.lineage.lineage(query, asker)

    @on_command
    async def set_trace_members(self, command: SetTraceMembers, handling: Handling) -> None:
        with _answering(handling) as asker:
            await self.storage.traces.add_members(command.trace_id, command.members, asker)

    @on_command
    async def request_upload(self, query: RequestUpload, handling: Handling) -> Upload:
        with _answering(handling) as asker:
            return await self.storage.uploads.request(query, asker)

    @on_command
    async def request_claim(self, query: RequestClaim, handling: Handling) -> ClaimUpload:
        with _answering(handling):
            return await self.storage.uploads.request_claim(query)

    @on_command
    async def open_claim(self, query: OpenClaim, handling: Handling) -> ClaimAddress:
        with _answering(handling):
            return await self.storage.uploads.open_claim(query.key)

    @every(seconds=2)
    async def clean(self) -> None:
        await self.storage.clean()


@contextmanager
def _answering(handling: Handling, artifact_id: str | None = None) -> Iterator[Asker]:
    """Who asks; every no of storage is written down, then put into the bus's words."""
    asker = Asker(handling.requester, handling.trace_id)
    try:
        yield asker
    except Refusal as no:
        logger().warning(
            "storage refused",
            type=handling.envelope.type,
            message_id=handling.message_id,
            requester=asker.identity,
            trace_id=asker.trace_id,
            artifact_id=artifact_id,
            refusal=type(no).__name__,
            is_denied=no.is_denied,
            details=no.details,
        )
        raise Refused(no.code, str(no), no.details) from no
    except PinLost as lost:
        raise TemporaryFailure(str(lost), _SOON) from lost
    except (OSError, OperationalError) as trouble:
        raise TemporaryFailure(f"{type(trouble).__name__}: {trouble}") from trouble


def _registration(manifest: Manifest, outcome: str) -> Registration:
    return Registration(artifact_id=manifest.id, version=manifest.version, sha256=manifest.sha256, outcome=outcome)


def _told(manifest: Manifest) -> Told:
    event = ArtifactRegistered(
        artifact=manifest.ref,
        trace_id=manifest.trace_id,
        step_id=manifest.step_id,
        artifact_type=manifest.artifact_type,
        created_by=manifest.created_by,
        owner=manifest.owner,
        visibility=manifest.visibility,
        retention=manifest.retention,
        supersedes=manifest.supersedes,
    )
    return Told(event, trace=manifest.trace_id, step=manifest.step_id)
