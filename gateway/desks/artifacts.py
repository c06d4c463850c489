"""Artifacts: find, look at, read, trace back."""

from contextlib import AbstractAsyncContextManager
from typing import Literal, Unpack

from bus_schema.artifacts import Manifest
from bus_schema.storage import GetLineage, GetVersions, Lineage, ManifestPage, SearchArtifacts, Versions
from mindbus.bus.client import Client
from mindbus.sdk.artifacts import Artifacts, ReadOptions
from mindbus.sdk.preview import MOST_BYTES, Preview, preview
from mindbus.sdk.reader import ArtifactReader


class ArtifactDesk:
    """As its user may see them: storage decides, what is denied looks like what is not there."""

    bus: Client
    shelf: Artifacts

    async def artifacts(self, wanted: SearchArtifacts) -> ManifestPage:
        """Manifests in the order in which they were registered."""
        return await self.bus.request(wanted, trace=wanted.trace_id)

    async def artifact(self, artifact_id: str, trace: str | None = None) -> Manifest:
        """Raises ArtifactNotFound, StorageAway."""
        return await self.shelf.manifest(artifact_id, trace=trace)

    def open_artifact(
        self, artifact_id: str, **wanted: Unpack[ReadOptions]
    ) -> AbstractAsyncContextManager[ArtifactReader]:
        """Its bytes in pieces. Raises as `artifact` does; ArtifactUnreadable, NoSuchRange."""
        return self.shelf.open(artifact_id, **wanted)

    async def artifact_bytes(self, artifact_id: str, max_bytes: int, trace: str | None = None) -> bytes:
        """Its bytes at once. Raises as `open_artifact` does; ArtifactTooLong."""
        return await self.shelf.get(artifact_id, max_bytes=max_bytes, trace=trace)

    async def preview(self, artifact_id: str, lines: int = 40, trace: str | None = None) -> Preview:
        """What it looks like; of a long one the beginning."""
        async with self.shelf.open(artifact_id, trace=trace, length=MOST_BYTES) as reader:
            return preview(reader.manifest, b"".join([piece async for piece in reader]), lines)

    async def versions(self, artifact_id: str, trace: str | None = None) -> Versions:
        """All versions of it, oldest first."""
        return await self.bus.request(GetVersions(artifact_id=artifact_id), trace=trace)

    async def lineage(
        self,
        artifact_id: str,
        direction: Literal["up", "down", "both"] = "up",
        depth: int = 10,
        trace: str | None = None,
    ) -> Lineage:
        """What it was made from, what was made from it."""
        wanted = GetLineage(artifact_id=artifact_id, direction=direction, depth=depth)
        return await self.bus.request(wanted, trace=trace)
