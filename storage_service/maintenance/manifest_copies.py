"""Keys in the store; copies of manifests there, from which a lost database is rebuilt; clean-up of staged files."""

import asyncio
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from bus_schema.artifacts import ArtifactId, Manifest
from bus_schema.identities import Identity
from bus_schema.uploads import PackPlace
from mindbus.logs import logger
from storage_service.blobs import ORPHANS, Blobs, ContentGeneration, content_of

MANIFESTS = "manifests"
CLAIMS = "claims"
SHARDS = tuple(f"{number:02x}" for number in range(256))
_BATCH = 200
_AT_ONCE = 32

_COPY = re.compile(rf"{MANIFESTS}/[0-9a-f]{{2}}/(art_[A-Za-z0-9_-]{{1,64}})\.json")
_ORPHAN = re.compile(rf"{ORPHANS}/([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})/.+")
_CLAIM = re.compile(rf"{CLAIMS}/([0-9]{{4}})/([0-9]{{2}})/([0-9]{{2}})/.+")


def copy_key(artifact_id: str) -> str:
    """Key of the copy of a manifest; spread by digest, since ids minted together begin alike."""
    return f"{MANIFESTS}/{hashlib.sha256(artifact_id.encode()).hexdigest()[:2]}/{artifact_id}.json"


def artifact_of(key: str) -> str | None:
    match = _COPY.fullmatch(key)
    return match[1] if match is not None and copy_key(match[1]) == key else None


def orphan_key(key: str, day: date) -> str:
    """Key of a file, or of a packed object, among the orphans of a day."""
    content = content_of(key)
    return f"{ORPHANS}/{day.isoformat()}/{content.file_key if content else key}"


def orphan_date(key: str) -> date | None:
    match = _ORPHAN.fullmatch(key)
    return _day(match[1]) if match else None


def claim_date(key: str) -> date | None:
    match = _CLAIM.fullmatch(key)
    return _day("-".join(match.groups())) if match else None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


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
    packed: PackPlace | None = None

    @property
    def content(self) -> ContentGeneration:
        """The content that its artifact has, and where its bytes were put."""
        return ContentGeneration(self.manifest.sha256, self.generation, self.packed)

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


@dataclass(frozen=True, slots=True)
class SpentUpload:
    """A staged file whose artifact is committed."""

    upload: str
    artifact_id: str


class SpentUploads(Protocol):
    """The database as the clean-up sees it."""

    async def spent_uploads(self, limit: int) -> Sequence[SpentUpload]:
        """Staged files to be removed, oldest first."""

    async def copies_of(self, artifact_ids: Collection[str]) -> Mapping[str, ManifestCopy]:
        """Copies of the rows of artifacts by id; an erased one has none."""

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        """Delete the rows of removed files."""


async def clean(registry: SpentUploads, blobs: Blobs) -> None:
    """Copy manifests into the store, then remove their staged files; failures are tried again later."""
    while waiting := await registry.spent_uploads(_BATCH):
        copies = await registry.copies_of({spent.artifact_id for spent in waiting})
        removed: list[str | None] = []
        for first in range(0, len(waiting), _AT_ONCE):
            settling = [
                _settle(blobs, spent, copies.get(spent.artifact_id)) for spent in waiting[first : first + _AT_ONCE]
            ]
            removed += await asyncio.gather(*settling)
        if uploads := [upload for upload in removed if upload is not None]:
            await registry.forget_uploads(uploads)
        if len(uploads) < _BATCH:
            return


async def _settle(blobs: Blobs, spent: SpentUpload, copied: ManifestCopy | None) -> str | None:
    """The staged file that has been removed; None where it stays."""
    try:
        if copied is not None:
            await blobs.write(copy_key(spent.artifact_id), copied.to_bytes())
        await blobs.discard(spent.upload)
    except OSError as error:
        logger().warning("staged file stays", upload=spent.upload, reason=str(error))
        return None
    return spent.upload


async def write_copy(registry: SpentUploads, blobs: Blobs, artifact_id: str) -> None:
    """Write the copy of a manifest as the database has it now, if it has it. Raises OSError."""
    for copied in (await registry.copies_of([artifact_id])).values():
        await blobs.write(copy_key(artifact_id), copied.to_bytes())
