"""Copies of manifests beside the bytes: what a lost database is rebuilt from."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from bus_schema.artifacts import ArtifactId, Manifest
from bus_schema.identities import Identity
from mindbus.logs import logger
from storage_service.maintenance.keys import copy_key


class NotACopy(ValueError):
    """This is no copy of a manifest, or one of a newer MindBus; look at it by hand."""


class ManifestCopy(BaseModel):
    """A manifest as it is told, with what only the database knows of it; `members` are those of its trace."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    manifest: Manifest
    logical_id: ArtifactId
    generation: int
    committed_at: AwareDatetime
    expired_at: AwareDatetime | None = None
    members: tuple[Identity, ...] = ()

    def to_bytes(self) -> bytes:
        """As it lies in the store."""
        return self.model_dump_json(exclude_none=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "ManifestCopy":
        """Raises NotACopy."""
        try:
            return cls.model_validate_json(content)
        except ValidationError as wrong:
            raise NotACopy(f"{NotACopy.__doc__} {wrong.errors()[0]['msg']}") from wrong


_BATCH = 200
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class SpentUpload:
    """A staged file whose artifact is committed."""

    upload: str
    artifact_id: str


class SpentUploads(Protocol):
    """What cleaning reads and writes, each method one effect."""

    async def spent_uploads(self, limit: int) -> Sequence[SpentUpload]:
        """Staged files that wait to be removed, oldest first."""

    async def copy_of(self, artifact_id: str) -> ManifestCopy:
        """All that the database knows of an artifact. Raises LookupError."""

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        """Those files are removed."""


class CopyStore(Protocol):
    """The part of Blobs that cleaning needs."""

    async def write(self, key: str, content: bytes) -> None:
        """As in Blobs."""

    async def discard(self, upload: str) -> None:
        """As in Blobs."""


async def clean(registry: SpentUploads, blobs: CopyStore) -> None:
    """Copy the manifest into the store, then remove the staged file; what fails now is tried again later."""

    async def settle(spent: SpentUpload) -> str | None:
        try:
            await write_copy(registry.copy_of, blobs.write, spent.artifact_id)
            await blobs.discard(spent.upload)
        except OSError as trouble:
            logger().warning("staged file stays", upload=spent.upload, reason=str(trouble))
            return None
        return spent.upload

    waiting = await registry.spent_uploads(_BATCH)
    for first in range(0, len(waiting), _AT_ONCE):
        settled = await asyncio.gather(*map(settle, waiting[first : first + _AT_ONCE]))
        if removed := [upload for upload in settled if upload is not None]:
            await registry.forget_uploads(removed)


async def write_copy(
    copy_of: Callable[[str], Awaitable[ManifestCopy]],
    write: Callable[[str, bytes], Awaitable[None]],
    artifact_id: str,
) -> None:
    """Have the store remember a manifest as the database knows it now, if it does. Raises OSError."""
    try:
        copied = await copy_of(artifact_id)
    except LookupError:
        # Cleared meanwhile.
        return
    await write(copy_key(artifact_id), copied.to_bytes())
