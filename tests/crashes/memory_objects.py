"""An object store in memory that keeps the conditions which S3 keeps."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from storage_service.object_store import NO_LABELS, Guarantees, ObjectChanged, ObjectExists, StoredObject
from tests.crashes.gates import Gates

_PIECE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """An object's bytes, with what the store knows of them."""

    content: bytes
    etag: str
    modified: datetime
    labels: Mapping[str, str]

    def stored(self, key: str, guarantees: Guarantees, labels: Mapping[str, str] = NO_LABELS) -> StoredObject:
        """As the store describes it; it knows a digest where it has checked one."""
        sha256 = hashlib.sha256(self.content).hexdigest() if guarantees.checks_sha256 else None
        return StoredObject(key, len(self.content), self.etag, self.modified, labels, sha256)


@dataclass(slots=True)
class Bucket:
    """What outlives every process; `clock` is the store's own, conditions beyond its guarantees it ignores."""

    clock: Callable[[], datetime]
    guarantees: Guarantees
    kept: dict[str, Kept] = field(default_factory=dict)

    def write(self, key: str, content: bytes, labels: Mapping[str, str] = NO_LABELS) -> None:
        """Put an object there, as somebody does who is no process of storage."""
        # As with S3, equal bytes have equal ETags.
        etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
        self.kept[key] = Kept(content, etag, self.clock(), MappingProxyType(dict(labels)))

    def keys(self, prefix: str) -> list[str]:
        """In order."""
        return sorted(key for key in self.kept if key.startswith(prefix))


def _away() -> OSError:
    return OSError("the object store answered 503")


class MemoryObjects:
    """One process's way to the bucket."""

    def __init__(self, bucket: Bucket, gates: Gates) -> None:
        self.bucket, self.gates = bucket, gates

    async def head(self, key: str) -> StoredObject | None:
        """As in ObjectStore."""
        return await self.gates.effect("head", lambda: self._stored(key), _away)

    async def read(self, key: str, *, if_match: str | None = None, start: int = 0) -> AsyncGenerator[bytes, None]:
        """As in ObjectStore."""
        kept = await self.gates.effect("get", lambda: self._require(key, if_match), _away)
        # What is read once is read to its end: a store never mixes two versions in one answer.
        for at in range(start, len(kept.content), _PIECE_BYTES):
            yield kept.content[at : at + _PIECE_BYTES]

    async def put(self, key: str, content: bytes, labels: Mapping[str, str], *, if_absent: bool) -> None:
        """As in ObjectStore."""

        def put() -> None:
            if if_absent and self.bucket.guarantees.puts_once:
                self._require_absent(key)
            self.bucket.write(key, content, labels)

        await self.gates.effect("put", put, _away)

    async def copy(
        self, source: str, target: str, labels: Mapping[str, str], *, if_match: str, if_absent: bool
    ) -> None:
        """As in ObjectStore."""

        def copy() -> None:
            kept = self._require(source, if_match if self.bucket.guarantees.copies_what_was_seen else None)
            if if_absent and self.bucket.guarantees.copies_once:
                self._require_absent(target)
            self.bucket.write(target, kept.content, labels)

        await self.gates.effect("copy", copy, _away)

    async def delete(self, key: str) -> None:
        """As in ObjectStore."""
        await self.gates.effect("delete", lambda: self.bucket.kept.pop(key, None), _away)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """As in ObjectStore: a listing is of no single moment, so what goes meanwhile may be in it or not."""
        for key in await self.gates.effect("list", lambda: self.bucket.keys(prefix), _away):
            if (kept := self.bucket.kept.get(key)) is not None:
                yield kept.stored(key, self.bucket.guarantees)

    async def abort_uploads(self, before: datetime) -> int:
        """As in ObjectStore; nothing is ever half uploaded here."""
        return 0

    def _stored(self, key: str) -> StoredObject | None:
        kept = self.bucket.kept.get(key)
        return None if kept is None else kept.stored(key, self.bucket.guarantees, kept.labels)

    def _require(self, key: str, if_match: str | None) -> Kept:
        kept = self.bucket.kept.get(key)
        if kept is None:
            raise FileNotFoundError(key)
        if if_match is not None and kept.etag != if_match:
            raise ObjectChanged(key)
        return kept

    def _require_absent(self, key: str) -> None:
        if key in self.bucket.kept:
            raise ObjectExists(key)
