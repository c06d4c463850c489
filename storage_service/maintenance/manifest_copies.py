"""Keys in the store; copies of manifests there, from which a lost database is rebuilt; clean-up of staged files."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from bus_schema.artifacts import ArtifactId, Manifest
from bus_schema.identities import Identity
from mindbus.files.keys import OBJECTS, object_key
from mindbus.logs import logger
from storage_service.blobs import ORPHANS, Blobs

MANIFESTS = "manifests"
CLAIMS = "claims"
SHARDS = tuple(f"{number:02x}" for number in range(256))
_BATCH = 200
_AT_ONCE = 8

_OBJECT = re.compile(rf"{OBJECTS}/([0-9a-f]{{2}})/([0-9a-f]{{2}})/([0-9a-f]{{64}})/([1-9][0-9]{{0,8}})")
_COPY = re.compile(rf"{MANIFESTS}/[0-9a-f]{{2}}/(art_[A-Za-z0-9_-]{{1,64}})\.json")
_ORPHAN = re.compile(rf"{ORPHANS}/([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})/.+")
_CLAIM = re.compile(rf"{CLAIMS}/([0-9]{{4}})/([0-9]{{2}})/([0-9]{{2}})/.+")


@dataclass(frozen=True, slots=True)
class ContentGeneration:
    sha256: str
    generation: int

    @property
    def key(self) -> str:
        return object_key(self.sha256, self.generation)


def content_of(key: str) -> ContentGeneration | None:
    match = _OBJECT.fullmatch(key)
    if match is None:
        return None
    content = ContentGeneration(match[3], int(match[4]))
    return content if content.key == key else None


def copy_key(artifact_id: str) -> str:
    """Key of the copy of a manifest; spread by digest, since ids minted together begin alike."""
    return f"{MANIFESTS}/{hashlib.sha256(artifact_id.encode()).hexdigest()[:2]}/{artifact_id}.json"


def artifact_of(key: str) -> str | None:
    match = _COPY.fullmatch(key)
    return match[1] if match is not None and copy_key(match[1]) == key else None


def orphan_key(key: str, day: date) -> str:
    """Key of a file among the orphans of a day."""
    return f"{ORPHANS}/{day.isoformat()}/{key}"


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

    async def copy_of(self, artifact_id: str) -> ManifestCopy:
        """The copy of an artifact's row. Raises LookupError."""

    async def forget_uploads(self, uploads: Sequence[str]) -> None:
        """Delete the rows of removed files."""


async def clean(registry: SpentUploads, blobs: Blobs) -> None:
    """Copy manifests into the store, then remove their staged files; failures are tried again later."""

    async def settle(spent: SpentUpload) -> str | None:
        try:
            await write_copy(registry, blobs, spent.artifact_id)
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


async def write_copy(registry: SpentUploads, blobs: Blobs, artifact_id: str) -> None:
    """Write the copy of a manifest as the database has it now, if it has it. Raises OSError."""
    try:
        copied = await registry.copy_of(artifact_id)
    except LookupError:
        # Erased meanwhile.
        return
    await blobs.write(copy_key(artifact_id), copied.to_bytes())
