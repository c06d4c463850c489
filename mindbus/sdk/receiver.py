"""Receiver of new artifacts: sources become entries of the buffer, staged at once where they are small."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from bus_schema.artifacts import Manifest
from bus_schema.identities import owner_of
from bus_schema.ids import mint
from mindbus.files.keys import new_staging_key
from mindbus.sdk.access import ArtifactAccess
from mindbus.sdk.buffer import Buffer
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import ArtifactConflict
from mindbus.sdk.transfers import (
    NewArtifact,
    Progress,
    chunks_of,
    guess_content_type,
    no_progress,
    size_of,
    with_progress,
)

# Small bytes are received in one go: handing over to a thread takes longer than hashing them.
_RECEIVED_AT_ONCE_BYTES = 64 * 1024


class ArtifactReceiver:
    """Makes sources of one participant entries of its buffer, which survive a crash from then on."""

    def __init__(self, buffer: Buffer, access: ArtifactAccess, identity: str, clock: Callable[[], datetime]) -> None:
        self._buffer, self._access, self._identity, self._clock = buffer, access, identity, clock
        self._finishing = asyncio.Lock()

    async def receive(self, artifact: NewArtifact, progress: Progress, *, stages: bool) -> tuple[BufferEntry, bool]:
        """The entry, and whether it has been staged; it is where `stages`, if that takes no time.

        Raises BufferFull, ArtifactConflict; OSError where the source or the disk fails.
        """
        source = artifact["source"]
        if isinstance(source, bytes) and len(source) <= _RECEIVED_AT_ONCE_BYTES:
            async with self._finishing:
                received = await asyncio.to_thread(self._receive_at_once, artifact, source, stages)
            progress("receive", len(source), len(source))
            return received
        return await self._receive_in_pieces(artifact, progress), False

    async def receive_all(self, artifacts: Sequence[NewArtifact]) -> dict[str, BufferEntry | ArtifactConflict]:
        """The entry of each by id, or that its id waits with other bytes. Raises BufferFull, OSError."""
        received: dict[str, BufferEntry | ArtifactConflict] = {}
        small: list[tuple[NewArtifact, bytes]] = []
        for artifact in artifacts:
            source = artifact["source"]
            if isinstance(source, bytes) and len(source) <= _RECEIVED_AT_ONCE_BYTES:
                small.append((artifact, source))
                continue
            try:
                entry = await self._receive_in_pieces(artifact, no_progress)
                received[entry.artifact_id] = entry
            except ArtifactConflict as conflict:
                received[artifact.get("artifact_id") or ""] = conflict

        def receive_small() -> None:
            for artifact, content in small:
                try:
                    entry, _ = self._receive_at_once(artifact, content, False)
                    received[entry.artifact_id] = entry
                except ArtifactConflict as conflict:
                    received[artifact.get("artifact_id") or ""] = conflict

        async with self._finishing:
            await asyncio.to_thread(receive_small)
        return received

    def _receive_at_once(self, artifact: NewArtifact, content: bytes, stages: bool) -> tuple[BufferEntry, bool]:
        content_type = _content_type_of(artifact)
        entry, sha256 = self._buffer.receive(content, lambda *found: self._entry(artifact, content_type, *found))
        entry = _require_same(entry, sha256)
        is_staged = stages and self._buffer.is_ready(entry)
        return entry, is_staged and self._access.stage_at_once(entry, self._buffer.bytes_of(entry))

    async def _receive_in_pieces(self, artifact: NewArtifact, progress: Progress) -> BufferEntry:
        source, content_type = artifact["source"], _content_type_of(artifact)
        incoming = await asyncio.to_thread(self._buffer.begin)
        try:
            async for chunk in with_progress(chunks_of(source), "receive", progress, size_of(source)):
                await asyncio.to_thread(incoming.write, chunk)
            async with self._finishing:
                entry = await asyncio.to_thread(
                    incoming.finish, lambda *found: self._entry(artifact, content_type, *found)
                )
        except BaseException:
            await asyncio.to_thread(incoming.abandon)
            raise
        return _require_same(entry, incoming.sha256)

    def _entry(self, artifact: NewArtifact, content_type: str, sha256: str, size_bytes: int) -> BufferEntry:
        now, before, owner = self._clock(), artifact.get("supersedes"), owner_of(self._identity)
        key = new_staging_key(owner, now)
        manifest = Manifest(
            id=artifact.get("artifact_id") or mint("art"),
            version=before.version + 1 if before else 1,
            supersedes=before.artifact_id if before else None,
            trace_id=artifact["trace"],
            step_id=artifact.get("step"),
            created_by=self._identity,
            created_at=now,
            artifact_type=artifact["artifact_type"],
            content_type=content_type,
            uri=self._access.address(key),
            size_bytes=size_bytes,
            checksum=f"sha256:{sha256}",
            retention=artifact.get("retention", "infinite"),
            owner=owner,
            visibility=artifact.get("visibility", "trace"),
            context=artifact.get("context"),
        )
        return BufferEntry(manifest=manifest, upload_key=key, buffered_at=now)


def _content_type_of(artifact: NewArtifact) -> str:
    return artifact.get("content_type") or guess_content_type(artifact["source"])


def _require_same(entry: BufferEntry, sha256: str) -> BufferEntry:
    """Raises ArtifactConflict where an artifact of this id waits with other bytes."""
    if entry.manifest.sha256 != sha256:
        raise ArtifactConflict(f"{entry.artifact_id} waits in the buffer with other bytes", entry.manifest.ref)
    return entry
