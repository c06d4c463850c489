"""Bytes by digest: what storage asks of the place where they lie."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from storage_service.refusals import BytesDiffer

CHUNK_BYTES = 1024 * 1024
OBJECTS = "objects/sha256"
TEMPORARY = "objects/.tmp"


@dataclass(frozen=True, slots=True)
class Declared:
    """The bytes that a manifest promises."""

    sha256: str
    size_bytes: int


class ObjectDamaged(OSError):
    """A stored object has another size than its bytes; restore it from a backup, then retry."""


class Blobs(Protocol):
    """Staged uploads become objects here; an object, once it is seen under its key, is whole and never changes."""

    async def promote(self, upload: str, key: str, declared: Declared) -> None:
        """Publish the staged bytes under `key`, if they are what was declared; again is as good as once.

        The staged bytes are read even where the object exists: to know a digest is no right to what it stands for.
        Raises StagedFileMissing, NotAPlainFile, BytesDiffer; OSError where the store fails.
        """

    async def discard(self, upload: str) -> None:
        """Remove a staged upload; gone already is as good. Raises OSError."""

    async def sweep_temporary(self, before: datetime) -> int:
        """Remove the half-written leftovers of processes that died before then. Raises OSError."""


def object_key(sha256: str, generation: int) -> str:
    """The permanent key of one generation of a content."""
    return f"{OBJECTS}/{sha256[:2]}/{sha256[2:4]}/{sha256}/{generation}"


def copy_declared(read: Callable[[int], bytes], write: Callable[[bytes], object], declared: Declared) -> None:
    """Copy, hashing the very bytes that are written, never reading beyond one byte more than declared.

    Raises BytesDiffer.
    """
    digest = hashlib.sha256()
    left = declared.size_bytes + 1
    while left and (chunk := read(min(CHUNK_BYTES, left))):
        write(chunk)
        digest.update(chunk)
        left -= len(chunk)
    if left != 1 or digest.hexdigest() != declared.sha256:
        size = declared.size_bytes + 1 - left if left else f"more than {declared.size_bytes}"
        raise BytesDiffer(
            declared_sha256=declared.sha256,
            staged_sha256=digest.hexdigest() if left else None,
            declared_size_bytes=declared.size_bytes,
            staged_size_bytes=size,
        )
