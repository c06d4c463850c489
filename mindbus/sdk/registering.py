"""One buffered artifact's way into storage."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from itertools import count

from bus_schema.replies import Code
from bus_schema.storage import Registration
from mindbus.sdk.access import Access
from mindbus.sdk.buffer import Buffer
from mindbus.sdk.entry import Entry
from mindbus.sdk.failures import ArtifactRefused, StagedCopyLost, StorageAway
from mindbus.sdk.progress import Progress, nobody
from mindbus.sdk.staging import new_upload_key
from mindbus.sdk.storage_link import StorageLink

_STAGED_ANEW_AT_MOST = 2


class Registrar:
    """Stages, registers, only then forgets; every step may be the last one before a crash, each is repeatable."""

    def __init__(self, buffer: Buffer, access: Access, storage: StorageLink, clock: Callable[[], datetime]) -> None:
        self._buffer, self._access, self._storage, self._clock = buffer, access, storage, clock

    async def register(self, artifact_id: str, progress: Progress = nobody) -> Registration:
        """Raises StorageAway, after which the entry waits on; ArtifactRefused, after which it is set aside."""
        try:
            registration = await self._stage_and_register(self._buffer.entry(artifact_id), progress)
        except ArtifactRefused as refused:
            await self.give_up(artifact_id, str(refused))
            raise
        except StorageAway:
            await self.shelter(artifact_id)
            raise
        await asyncio.to_thread(self._buffer.drop, artifact_id)
        return registration

    async def give_up(self, artifact_id: str, reason: str) -> None:
        """Set it aside with the reason."""
        entry = await self.shelter(artifact_id)
        await asyncio.to_thread(self._buffer.set_aside, artifact_id, reason)
        await self._access.unstage(entry)

    async def shelter(self, artifact_id: str) -> Entry:
        """It has to wait: bring its bytes where they are safe for as long as it takes."""
        entry = self._buffer.entry(artifact_id)
        await self._access.shelter(entry, self._buffer.bytes_of(entry))
        return entry

    async def _stage_and_register(self, entry: Entry, progress: Progress) -> Registration:
        size_bytes = entry.manifest.size_bytes
        for tries in count(1):
            await self._access.stage(entry, self._buffer.bytes_of(entry), progress)
            progress("register", 0, size_bytes)
            try:
                registration = await self._storage.register(entry.manifest)
            except StagedCopyLost as lost:
                if tries > _STAGED_ANEW_AT_MOST:
                    raise ArtifactRefused(Code.CHECKSUM_MISMATCH, f"staged {tries} times: {lost}") from lost
            else:
                progress("register", size_bytes, size_bytes)
                return registration
            await self._access.unstage(await self.shelter(entry.artifact_id))
            entry = await self._staged_anew(entry)
        raise AssertionError("unreachable: it counts for ever")

    async def _staged_anew(self, entry: Entry) -> Entry:
        key = new_upload_key(entry.manifest.owner, self._clock())
        manifest = entry.manifest.model_copy(update={"uri": self._access.address(key)})
        entry = Entry(manifest=manifest, upload_key=key, buffered_at=entry.buffered_at)
        # Under its new address it must be known here before it is known there.
        await asyncio.to_thread(self._buffer.save, entry)
        return entry
