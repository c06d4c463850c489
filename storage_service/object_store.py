"""The object store as storage uses it: single requests with the store's own conditions."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Protocol

NO_LABELS: Mapping[str, str] = MappingProxyType({})


class ObjectExists(Exception):
    """There is an object under this key already; it is unchanged."""


class ObjectChanged(Exception):
    """The object no longer has this ETag; read it again."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as the store describes it; its ETag tells versions apart, it is no digest.

    `labels` are the object's metadata: artifact-id, sha256, size-bytes, created-by. `sha256` is the digest
    that the store itself computed; `composite`, the checksum of an object written in parts, identifies these bytes,
    too, but cannot be compared with their digest.
    """

    key: str
    size_bytes: int
    etag: str
    modified: datetime
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)
    sha256: str | None = None
    composite: str | None = None


@dataclass(frozen=True, slots=True)
class Guarantees:
    """Guarantees that a probe has shown; storage makes up for those that are missing."""

    puts_once: bool = False
    copies_once: bool = False
    completes_once: bool = False
    copies_what_was_seen: bool = False
    checks_sha256: bool = False
    checks_what_was_signed: bool = False
    lists_what_was_written: bool = False

    @property
    def writes_once(self) -> bool:
        """Whether no object is overwritten, nor copied from another version than requested."""
        return self.puts_once and self.copies_once and self.copies_what_was_seen


class ObjectStore(Protocol):
    """Objects by key. Where the store or the connection fails, every method raises OSError, so that it is retried."""

    async def head(self, key: str) -> StoredObject | None:
        """The object, or None."""

    def read(self, key: str, *, if_match: str | None = None, start: int = 0) -> AsyncGenerator[bytes, None]:
        """Its bytes from `start`, in pieces. Raises ObjectChanged, FileNotFoundError."""

    async def put(self, key: str, content: bytes, labels: Mapping[str, str], *, if_absent: bool) -> None:
        """Write a small object. Raises ObjectExists."""

    async def copy(
        self, source: str, target: str, labels: Mapping[str, str], *, if_match: str, if_absent: bool
    ) -> None:
        """Copy the version of this ETag within the store, in parts where it is large.

        Raises ObjectExists, ObjectChanged, FileNotFoundError.
        """

    async def delete(self, key: str) -> None:
        """Remove an object, if it exists."""

    def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Objects by prefix, in order of keys, without labels."""

    async def abort_uploads(self, before: datetime) -> int:
        """Abort the multipart uploads begun before a moment; returns their number."""
