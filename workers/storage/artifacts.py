"""Answers for artifacts: registers them, finds them, says who may read them."""

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
from bus_schema.uploads import FoundManifest
from mindbus.bus.handlers import Told, on_command
from mindbus.bus.handling import Handling
from storage_service.service import StorageService
from workers.storage.answering import answering


class ArtifactDesk:
    """The part of storage that decides what exists, who reads it."""

    storage: StorageService

    @on_command
    async def register(self, command: RegisterArtifact, handling: Handling) -> Registration | tuple[Registration, Told]:
        with answering(handling, command.manifest.id) as asker:
            registered = await self.storage.registrar.register(command.manifest, asker)
        if registered.is_new:
            return _registration(registered.manifest, "registered"), _told(registered.manifest)
        return _registration(registered.manifest, "already_exists")

    @on_command
    async def get(self, query: GetArtifact, handling: Handling) -> FoundManifest:
        with answering(handling, query.artifact_id) as asker:
            manifest = await self.storage.catalog.get(query.artifact_id, asker)
            return await self.storage.uploads.addressed(manifest, signed=query.presigned)

    @on_command
    async def search(self, query: SearchArtifacts, handling: Handling) -> ManifestPage:
        with answering(handling) as asker:
            return await self.storage.catalog.search(query, asker)

    @on_command
    async def versions(self, query: GetVersions, handling: Handling) -> Versions:
        with answering(handling, query.artifact_id) as asker:
            return await self.storage.catalog.versions(query.artifact_id, asker)

    @on_command
    async def lineage(self, query: GetLineage, handling: Handling) -> Lineage:
        with answering(handling, query.artifact_id) as asker:
            return await self.storage.lineage.lineage(query, asker)

    @on_command
    async def set_trace_members(self, command: SetTraceMembers, handling: Handling) -> None:
        with answering(handling) as asker:
            await self.storage.traces.add_members(command.trace_id, command.members, asker, command.retention)


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
