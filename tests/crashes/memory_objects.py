"""An object store in memory that keeps the conditions which S3 keeps."""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from storage_service.objects import NO_LABELS, Changed, Exists, Stored
from tests.crashes.gates import Gates

_PIECE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Kept:
    """An object's bytes, with what the store knows of them."""

    content: bytes
    etag: str
    modified: datetime
    labels: Mapping[str, str]


@dataclass(slots=True)
class Bucket:
    """What outlives every process; `clock` is the store's own."""

    clock: Callable[[], datetime]
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

    async def head(self, key: str) -> Stored | None:
        """As in ObjectStore."""
        return await self.gates.effect("head", lambda: self._stored(key), _away)

    async def read(self, key: str, *, if_match: str | None = None, start: int = 0) -> AsyncIterator[bytes]:
        """As in ObjectStore."""
        kept = await self.gates.effect("get", lambda: self._require(key, if_match), _away)
        # What is read once is read to its end: a store never mixes two versions in one answer.
        for at in range(start, len(kept.content), _PIECE_BYTES):
            yield kept.content[at : at + _PIECE_BYTES]

    async def put(self, key: str, content: bytes, labels: Mapping[str, str], *, if_absent: bool) -> None:
        """As in ObjectStore."""

        def put() -> None:
            self._check_absent(key, if_absent)
            self.bucket.write(key, content, labels)

        await self.gates.effect("put", put, _away)

    async def copy(
        self, source: str, target: str, labels: Mapping[str, str], *, if_match: str, if_absent: bool
    ) -> None:
        """As in ObjectStore."""

        def copy() -> None:
            kept = self._require(source, if_match)
            self._check_absent(target, if_absent)
            self.bucket.write(target, kept.content, labels)

        await self.gates.effect("copy", copy, _away)

    async def delete(self, key: str) -> None:
        """As in ObjectStore."""
        await self.gates.effect("delete", lambda: self.bucket.kept.pop(key, None), _away)

    async def list(self, prefix: str) -> AsyncIterator[Stored]:
        """As in ObjectStore: a listing is of no single moment, so what goes meanwhile may be in it or not."""
        for key in await self.gates.effect("list", lambda: self.bucket.keys(prefix), _away):
            if key in self.bucket.kept:
                yield self._stored_without_labels(key)

    async def abort_uploads(self, before: datetime) -> int:
        """As in ObjectStore; nothing is ever half uploaded here."""
        return 0

    def _stored(self, key: str) -> Stored | None:
        kept = self.bucket.kept.get(key)
        return None if kept is None else Stored(key, len(kept.content), kept.etag, kept.modified, kept.labels)

    def _stored_without_labels(self, key: str) -> Stored:
        kept = self.bucket.kept[key]
        return Stored(key, len(kept.content), kept.etag, kept.modified)

    def _require(self, key: str, if_match: str | None) -> Kept:
        kept = self.bucket.kept.get(key)
        if kept is None:
            raise FileNotFoundError(key)
        if if_match is not None and kept.etag != if_match:
            raise Changed(key)
        return kept

    def _check_absent(self, key: str, if_absent: bool) -> None:
        if if_absent and key in self.bucket.kept:
            raise Exists(key)
