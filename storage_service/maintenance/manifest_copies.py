"""Copies of manifests in the store, from which a lost database is rebuilt, and the clean-up of staged files."""

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
    """The file is no copy of a manifest, or one of a newer MindBus; inspect it."""


class ManifestCopy(BaseModel):
    """A manifest with the other columns of its row; `members` are those of its trace."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    manifest: Manifest
    logical_id: ArtifactId
    generation: int
    committed_at: AwareDatetime
    expired_at: AwareDatetime | None = None
    members: tuple[Identity, ...] = ()

    def to_bytes(self) -> bytes:
        """The copy as stored: JSON."""
        return self.model_dump_json(exclude_none=True).encode()

    @classmethod
    def from_bytes(cls, content: bytes) -> "ManifestCopy":
        """Raises NotACopy."""
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            raise NotACopy(f"{NotACopy.__doc__} {error.errors()[0]['msg']}") from error


_BATCH = 200
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class SpentUpload:
    """A staged file whose artifact is committed."""

    upload: str
    artifact_id: str


class SpentUploads(Protocol):
    """The database as the clean-up sees it."""

    async def spent_uploads(self, limit: int) -> Sequence[SpentUpload]:
        """Staged files to be removed, oldest first."""

    async def copy_of(self, artifact_id: str) -> ManifestCopy:
        """The copy of an artifact's row. Raises LookupError."""

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        """Delete the rows of removed files."""


class CopyStore(Protocol):
    """The part of Blobs that the clean-up needs."""

    async def write(self, key: str, content: bytes) -> None:
        """Write or replace a small file, atomically."""

    async def discard(self, upload: str) -> None:
        """Remove a staged upload, if it exists."""


async def clean(registry: SpentUploads, blobs: CopyStore) -> None:
    """Copy manifests into the store, then remove their staged files; failures are tried again later."""

    async def settle(spent: SpentUpload) -> str | None:
        try:
            await write_copy(registry.copy_of, blobs.write, spent.artifact_id)
            await blobs.discard(spent.upload)
        except OSError as error:
            logger().warning("staged file stays", upload=spent.upload, reason=str(error))
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
    """Write the copy of a manifest as the database has it now, if it has it. Raises OSError."""
    try:
        copied = await copy_of(artifact_id)
    except LookupError:
        # Erased meanwhile.
        return
    await write(copy_key(artifact_id), copied.to_bytes())
