"""Artifacts: registration, queries and versions; signed addresses for participants without access to the store."""

from bus_schema.artifacts import Manifest
from bus_schema.storage import (
    ArtifactRegistered,
    FoundManifests,
    GetArtifact,
    GetArtifacts,
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
from bus_schema.uploads import ClaimAddress, ClaimUpload, FoundManifest, OpenClaim, RequestClaim, RequestUpload, Upload
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, on_command
from mindbus.principal import Principal
from storage_service.service import StorageService


class ArtifactHandlers:
    """Handlers of artifacts: their existence, their versions, their readers."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def register(
        self, command: RegisterArtifact, context: MessageContext
    ) -> Registration | tuple[Registration, Publish]:
        registered = await self._storage.registrar.register(command.manifest, principal_of(context))
        if registered.is_new:
            return _registration(registered.manifest, "registered"), _event(registered.manifest)
        return _registration(registered.manifest, "already_exists")

    @on_command
    async def get(self, query: GetArtifact, context: MessageContext) -> FoundManifest:
        manifest = await self._storage.catalog.get(query.artifact_id, principal_of(context))
        return await self._storage.uploads.with_address(manifest, signed=query.presigned)

    @on_command
    async def get_many(self, query: GetArtifacts, context: MessageContext) -> FoundManifests:
        return FoundManifests(items=await self._storage.catalog.get_many(query.artifact_ids, principal_of(context)))

    @on_command
    async def search(self, query: SearchArtifacts, context: MessageContext) -> ManifestPage:
        return await self._storage.catalog.search(query, principal_of(context))

    @on_command
    async def versions(self, query: GetVersions, context: MessageContext) -> Versions:
        return await self._storage.catalog.versions(query.artifact_id, principal_of(context))

    @on_command
    async def lineage(self, query: GetLineage, context: MessageContext) -> Lineage:
        return await self._storage.catalog.lineage(query, principal_of(context))

    @on_command
    async def set_trace_members(self, command: SetTraceMembers, context: MessageContext) -> None:
        await self._storage.traces.add_members(
            command.trace_id, command.members, principal_of(context), command.retention
        )


class UploadHandlers:
    """Handlers of signed addresses, which go to the requester alone and are never logged."""

    def __init__(self, storage: StorageService) -> None:
        self._storage = storage

    @on_command
    async def request_upload(self, query: RequestUpload, context: MessageContext) -> Upload:
        return await self._storage.uploads.request(query, principal_of(context))

    @on_command
    async def request_claim(self, query: RequestClaim) -> ClaimUpload:
        return await self._storage.uploads.request_claim(query)

    @on_command
    async def open_claim(self, query: OpenClaim) -> ClaimAddress:
        return await self._storage.uploads.open_claim(query.key)


def principal_of(context: MessageContext) -> Principal:
    return Principal(context.requester, context.trace_id)


def _registration(manifest: Manifest, outcome: str) -> Registration:
    return Registration(artifact_id=manifest.id, version=manifest.version, sha256=manifest.sha256, outcome=outcome)


def _event(manifest: Manifest) -> Publish:
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
    return Publish(event, trace=manifest.trace_id, step=manifest.step_id)
