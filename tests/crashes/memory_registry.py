"""The registry in memory."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from bus_schema.artifacts import Manifest, retention_of
from bus_schema.identities import Principal
from mindbus.files.keys import object_key
from storage_service.blobs import ContentGeneration
from storage_service.errors import Forked, NoSuchArtifact, NoSuchInput, NotTheNextVersion
from storage_service.maintenance.manifest_copies import ManifestCopy, SpentUpload
from storage_service.registry import PINNED_FOR, CommitFailure, Overtaken, PinLost, Prepared
from storage_service.tables import DELETING, GONE, LIVE, PINNED
from tests.crashes.memory_database import Blob, Connection, Row, Tables, at_hand


class MemoryRegistry:
    """What SqlRegistry does, where everybody may read everything."""

    def __init__(self, connection: Connection, clock: Callable[[], datetime]) -> None:
        self.connection, self.clock = connection, clock

    async def find(self, artifact_ids: Collection[str], *, within: bool = False) -> Mapping[str, Manifest]:
        """As in Registry."""
        tables = await at_hand().tables() if within else await self.connection.read()
        return {each: tables.manifests[each].manifest for each in artifact_ids if each in tables.manifests}

    async def logical_id(self, manifest: Manifest, principal: Principal) -> str:
        """As in Registry."""
        if manifest.supersedes is None:
            return manifest.id
        manifests = (await self.connection.read()).manifests
        if manifest.supersedes not in manifests:
            raise NoSuchArtifact(artifact_id=manifest.supersedes)
        predecessor = manifests[manifest.supersedes]
        if manifest.version != predecessor.manifest.version + 1:
            raise NotTheNextVersion(version=manifest.version, superseded_version=predecessor.manifest.version)
        if _is_superseded(manifests, manifest.supersedes):
            raise Forked(artifact_id=manifest.supersedes)
        return predecessor.logical_id

    async def require_entry(self, manifest: Manifest, principal: Principal) -> None:
        """As in Registry; here nobody is a guest."""

    async def require_inputs(self, manifest: Manifest, principal: Principal) -> None:
        """As in Registry."""
        wanted = set(manifest.context.input_artifacts) if manifest.context else set()
        if wanted and (missing := sorted(wanted - set((await self.connection.read()).manifests))):
            raise NoSuchInput(missing=missing)

    async def pin(self, sha256s: Collection[str]) -> Mapping[str, ContentGeneration]:
        """As in Registry."""

        def pin(tables: Tables) -> Mapping[str, ContentGeneration]:
            return {sha256: self._pin(tables, sha256) for sha256 in sha256s}

        return await self.connection.write("pin", pin)

    def _pin(self, tables: Tables, sha256: str) -> ContentGeneration:
        blob = tables.blobs.get(sha256, Blob())
        if blob.state in (GONE, DELETING):
            blob = replace(blob, generation=blob.generation + 1, state=PINNED)
        tables.blobs[sha256] = replace(blob, pinned_until=self.clock() + PINNED_FOR)
        return ContentGeneration(sha256, blob.generation)

    async def commit(self, prepared: Sequence[Prepared]) -> Sequence[Manifest | CommitFailure]:
        """As in Registry."""
        tables = await at_hand().tables()
        return [self._commit(tables, each) for each in prepared]

    def _commit(self, tables: Tables, prepared: Prepared) -> Manifest | CommitFailure:
        manifest, generation = prepared.manifest, prepared.generation
        blob = tables.blobs[manifest.sha256]
        if blob.state not in (PINNED, LIVE) or blob.generation != generation:
            return PinLost(PinLost.__doc__)
        if manifest.id in tables.manifests:
            return Overtaken(manifest.id)
        if manifest.supersedes is not None and _is_superseded(tables.manifests, manifest.supersedes):
            return Forked(artifact_id=manifest.supersedes)
        key = object_key(manifest.sha256, generation)
        told = manifest.model_copy(update={"uri": key, "status": "completed"})
        kept, now = retention_of(manifest.retention), self.clock()
        until = None if kept is None else now + kept
        tables.drawn += 1
        tables.manifests[manifest.id] = Row(told, prepared.logical_id, generation, tables.drawn, now, until)
        tables.blobs[manifest.sha256] = replace(blob, state=LIVE, size_bytes=manifest.size_bytes)
        tables.spent[prepared.upload] = manifest.id
        return told

    async def spend(self, upload: str, artifact_id: str) -> None:
        """As in Registry."""
        (await at_hand().tables()).spent[upload] = artifact_id

    async def has_expired(self, artifact_id: str) -> bool:
        """As in Registry."""
        row = (await self.connection.read()).manifests.get(artifact_id)
        return row is not None and row.expired_at is not None

    async def spent_uploads(self, limit: int) -> Sequence[SpentUpload]:
        """As in Spending."""
        return [SpentUpload(*spent) for spent in (await self.connection.read()).spent.items()][:limit]

    async def copies_of(self, artifact_ids: Collection[str]) -> Mapping[str, ManifestCopy]:
        """As in Spending."""
        manifests = (await self.connection.read()).manifests
        return {artifact_id: manifests[artifact_id].copy for artifact_id in artifact_ids if artifact_id in manifests}

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        """As in Registry."""

        def forget(tables: Tables) -> None:
            for upload in uploads:
                tables.spent.pop(upload, None)

        await self.connection.write("forget", forget)


def _is_superseded(manifests: dict[str, Row], artifact_id: str) -> bool:
    return any(row.manifest.supersedes == artifact_id for row in manifests.values())
