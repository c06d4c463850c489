"""Bytes by digest: what storage asks of the place where they lie."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from bus_schema.replies import Code
from mindbus.errors import MindBusError
from mindbus.files.bulk_io import BackgroundSha256
from storage_service.errors import ContentMismatch

CHUNK_BYTES = 1024 * 1024
OBJECTS = "objects/sha256"
TEMPORARY = "objects/.tmp"
STAGING = "staging"
ORPHANS = "orphans"


@dataclass(frozen=True, slots=True)
class Declared:
    """The bytes that a manifest promises."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Labels:
    """Whose artifact an object was published for: what is left of a manifest where the database is lost."""

    artifact_id: str
    created_by: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it lies in the store; `modified` is by the store's own clock."""

    key: str
    size_bytes: int
    modified: datetime


class NotGuaranteed(MindBusError):
    """The store writes over what is there: set MINDBUS_ARTIFACTS_WRITE_ONCE to verified, or use another store."""

    code = Code.INVALID


class ObjectDamaged(OSError):
    """A stored object has another size than its bytes; restore it from a backup, then retry."""


class Blobs(Protocol):
    """Staged uploads become objects here; an object, once it is seen under its key, is whole and never changes.

    Where the store fails, every method raises OSError.
    """

    async def prepare(self) -> None:
        """Find out what the store keeps, once at start. Raises NotGuaranteed where that is too little."""

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        """Publish the staged bytes under `key`, if they are what was declared; again is as good as once.

        The staged bytes are read even where the object exists: to know a digest is no right to what it stands for.
        Raises StagedFileMissing, NotAPlainFile, ContentMismatch.
        """

    async def discard(self, upload: str) -> None:
        """Remove a staged upload; gone already is as good."""

    async def sweep_temporary(self, before: datetime) -> int:
        """Remove what was left half-written or empty before then, by the store's clock; how many things."""

    def listing(self, folder: str) -> AsyncIterator[StoredFile]:
        """Everything under a folder, in any order, while it may change; a file that is gone by then is left out."""

    async def size_bytes(self, key: str) -> int | None:
        """How large it is; None where there is none."""

    async def labels(self, key: str) -> Labels | None:
        """Whom it was published for, where the store keeps that."""

    async def digest(self, key: str) -> Declared:
        """What its bytes are, read anew. Raises FileNotFoundError."""

    async def move(self, key: str, target: str) -> bool:
        """Have it under `target` instead, whole at every moment; whether it is there now.

        Again is as good as once; a target that is there already is kept.
        """

    async def delete(self, key: str) -> None:
        """Remove it; gone already is as good."""

    async def write(self, key: str, content: bytes) -> None:
        """Keep a small file, whole or not at all, instead of any that is there."""

    async def read(self, key: str) -> bytes:
        """A small file's content. Raises FileNotFoundError."""


def object_key(sha256: str, generation: int) -> str:
    """The permanent key of one generation of a content."""
    return f"{OBJECTS}/{sha256[:2]}/{sha256[2:4]}/{sha256}/{generation}"


def copy_declared(read: Callable[[int], bytes], write: Callable[[bytes], object], declared: Declared) -> None:
    """Copy, hashing the very bytes that are written, never reading beyond one byte more than declared.

    Raises ContentMismatch.
    """
    left = declared.size_bytes + 1
    with BackgroundSha256() as digest:
        while left and (chunk := read(min(CHUNK_BYTES, left))):
            digest.update(chunk)
            write(chunk)
            left -= len(chunk)
        sha256 = digest.hexdigest()
    if left != 1 or sha256 != declared.sha256:
        size = declared.size_bytes + 1 - left if left else f"more than {declared.size_bytes}"
        raise ContentMismatch(
            declared_sha256=declared.sha256,
            staged_sha256=sha256 if left else None,
            declared_size_bytes=declared.size_bytes,
            staged_size_bytes=size,
        )
