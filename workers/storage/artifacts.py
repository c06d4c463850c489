"""Artifacts: registration, queries and versions; signed addresses for participants without access to the store."""

from bus_schema.artifacts import Manifest
from bus_schema.delegation import is_of_fleet
from bus_schema.identities import Principal
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
    RegisterArtifacts,
    Registration,
    RegistrationItem,
    RegistrationReport,
    SearchArtifacts,
    SetTraceMembers,
    Versions,
)
from bus_schema.uploads import ClaimAddress, ClaimUpload, FoundManifest, OpenClaim, RequestClaim, RequestUpload, Upload
from mindbus.bus.context import MessageContext
from mindbus.bus.handlers import Publish, on_command
from mindbus.errors import MindBusError, TemporaryFailure
from storage_service.acl import is_talk_of_another
from storage_service.registration import Registered, RegistrationError
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
    async def register_all(
        self, command: RegisterArtifacts, context: MessageContext
    ) -> tuple[RegistrationReport | Publish, ...]:
        registered = await self._storage.registrar.register_all(command.manifests, principal_of(context))
        items = [
            _failure(manifest.id, outcome) if isinstance(outcome, Exception) else _item(outcome)
            for manifest, outcome in zip(command.manifests, registered, strict=True)
        ]
        new = [each.manifest for each in registered if isinstance(each, Registered) and each.is_new]
        return RegistrationReport(items=tuple(items)), *map(_event, new)

    @on_command
    async def get(self, query: GetArtifact, context: MessageContext) -> FoundManifest:
        manifest = await self._storage.catalog.get(query.artifact_id, principal_of(context))
        return await self._storage.uploads.with_address(manifest, signed=query.presigned)

    @on_command
    async def get_many(self, query: GetArtifacts, context: MessageContext) -> FoundManifests:
        found = await self._storage.catalog.get_many(query.artifact_ids, principal_of(context))
        packed = {each.id: each.packed for each in found if each.packed}
        return FoundManifests(items=found, packed=packed)

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
    """Principal of a request; a guest who names the trace of another's dialogue asks within none."""
    is_guest = not (context.is_operator or is_of_fleet(context.owner))
    trace_id = context.trace_id
    may_enter = not is_guest or trace_id is None or not is_talk_of_another(trace_id, context.owner)
    return Principal(context.requester, trace_id if may_enter else None, is_guest=is_guest)


def _registration(manifest: Manifest, outcome: str) -> Registration:
    return Registration(artifact_id=manifest.id, version=manifest.version, sha256=manifest.sha256, outcome=outcome)


def _item(registered: Registered) -> RegistrationItem:
    manifest = registered.manifest
    return RegistrationItem(
        artifact_id=manifest.id,
        status="registered" if registered.is_new else "already_exists",
        version=manifest.version,
        sha256=manifest.sha256,
    )


def _failure(artifact_id: str, error: RegistrationError) -> RegistrationItem:
    """The item of an artifact that was not registered; what fails at the store, or for a time, may be tried again."""
    known = error if isinstance(error, MindBusError) else TemporaryFailure(f"{type(error).__name__}: {error}")
    return RegistrationItem(
        artifact_id=artifact_id,
        status="failed" if known.retryable else "refused",
        code=known.code,
        error=str(known),
        details=known.details,
    )


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
