"""The object store as storage uses it: single requests with the store's own conditions, a probe of its guarantees."""

import asyncio
import errno
import hashlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Protocol

from storage_service.blobs import TEMPORARY

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


_AT_ONCE = 3
# Prepares a write; awaiting the result performs it.
Begin = Callable[[str], Awaitable[Awaitable[None]]]
_ONE, _OTHER = b"one", b"two, which is longer"


class UnsoundStore(OSError):
    """The object store does not return what was just written to it; no artifact is safe there, use another."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, self.__doc__)


class ProbedStore(ObjectStore, Protocol):
    """Requests that only the probe makes."""

    async def put_claiming(self, key: str, content: bytes, sha256: str) -> None:
        """Write with a digest that may be wrong. Raises OSError where the store refuses."""

    async def begin_parts(self, key: str, content: bytes) -> str:
        """Begin a multipart upload of one part; returns what `complete_parts` needs."""

    async def complete_parts(self, key: str, begun: str) -> None:
        """Complete the upload, unless there is an object. Raises ObjectExists."""

    async def put_signed(self, key: str, content: bytes, signed_for: bytes) -> bool:
        """Write to an address signed for other bytes; whether the store accepted it."""


@dataclass(frozen=True, slots=True)
class StoreProbe:
    """One probe of a store, under keys of its own that are swept after a crash."""

    objects: ProbedStore

    async def probe(self) -> Guarantees:
        """Raises UnsoundStore; OSError where the store cannot be reached."""
        folder = f"{TEMPORARY}/probe-{secrets.token_hex(8)}"
        try:
            await self._require_sound(folder)
            return await self._probe_guarantees(folder)
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        finally:
            async for remnant in self.objects.list(folder):
                await self.objects.delete(remnant.key)

    async def _probe_guarantees(self, folder: str) -> Guarantees:
        async with asyncio.TaskGroup() as group:
            looks = {
                "puts_once": self._keeps_once(folder, "put", self._putting),
                "copies_once": self._keeps_once(folder, "copy", self._copying),
                "completes_once": self._keeps_once(folder, "parts", self._completing),
                "copies_what_was_seen": self._copies_listed_etag(folder),
                "checks_sha256": self._checks_sha256(folder),
                "checks_what_was_signed": self._checks_signature(folder),
                "lists_what_was_written": self._lists(f"{folder}/sound"),
            }
            seen = {name: group.create_task(look) for name, look in looks.items()}
        return Guarantees(**{name: look.result() for name, look in seen.items()})

    async def _require_sound(self, folder: str) -> None:
        key = f"{folder}/sound"
        await self.objects.put(key, _ONE, NO_LABELS, if_absent=False)
        await self.objects.put(key, _OTHER, NO_LABELS, if_absent=False)
        stored = await self.objects.head(key)
        if stored is None or stored.size_bytes != len(_OTHER) or await self._content(key) != _OTHER:
            raise UnsoundStore
        await self.objects.copy(key, f"{key}-copied", NO_LABELS, if_match=stored.etag, if_absent=False)
        if await self._content(f"{key}-copied") != _OTHER:
            raise UnsoundStore

    async def _keeps_once(self, folder: str, name: str, begin: Begin) -> bool:
        """Whether an existing object stays unchanged, and exactly one of several concurrent writes succeeds."""
        existing, raced = f"{folder}/{name}-taken", f"{folder}/{name}-raced"
        await self.objects.put(existing, _OTHER, NO_LABELS, if_absent=False)
        if await _was_written(await begin(existing)) or await self._content(existing) != _OTHER:
            return False
        begun = [await begin(raced) for _ in range(_AT_ONCE)]
        return sum(await asyncio.gather(*map(_was_written, begun))) == 1

    async def _putting(self, key: str) -> Awaitable[None]:
        return self.objects.put(key, _ONE, NO_LABELS, if_absent=True)

    async def _completing(self, key: str) -> Awaitable[None]:
        return self.objects.complete_parts(key, await self.objects.begin_parts(key, _ONE))

    async def _copying(self, key: str) -> Awaitable[None]:
        source = await self.objects.head(f"{PurePosixPath(key).parent}/sound")
        if source is None:
            raise UnsoundStore
        return self.objects.copy(source.key, key, NO_LABELS, if_match=source.etag, if_absent=True)

    async def _copies_listed_etag(self, folder: str) -> bool:
        source, target = f"{folder}/seen", f"{folder}/seen-copied"
        await self.objects.put(source, _ONE, NO_LABELS, if_absent=False)
        seen = await self.objects.head(source)
        await self.objects.put(source, _OTHER, NO_LABELS, if_absent=False)
        if seen is None:
            return False
        try:
            await self.objects.copy(source, target, NO_LABELS, if_match=seen.etag, if_absent=True)
        except (ObjectChanged, OSError):
            return await self.objects.head(target) is None
        return False

    async def _checks_sha256(self, folder: str) -> bool:
        """Whether it rejects bytes of another digest, and reports the digest of others."""
        wrong_key, right_key = f"{folder}/claimed-wrong", f"{folder}/claimed"
        if await _was_written(self.objects.put_claiming(wrong_key, _ONE, hashlib.sha256(_OTHER).hexdigest())):
            return False
        await self.objects.put_claiming(right_key, _ONE, hashlib.sha256(_ONE).hexdigest())
        stored = await self.objects.head(right_key)
        return stored is not None and stored.sha256 == hashlib.sha256(_ONE).hexdigest()

    async def _checks_signature(self, folder: str) -> bool:
        other_contents = (_OTHER, _ONE[::-1])
        accepted = [
            await self.objects.put_signed(f"{folder}/signed-{number}", other, _ONE)
            for number, other in enumerate(other_contents)
        ]
        return not any(accepted) and await self.objects.put_signed(f"{folder}/signed", _ONE, _ONE)

    async def _lists(self, key: str) -> bool:
        return key in [stored.key async for stored in self.objects.list(key)]

    async def _content(self, key: str) -> bytes:
        return b"".join([piece async for piece in self.objects.read(key)])


async def _was_written(writing: Awaitable[None]) -> bool:
    """False where the write failed: a store without the condition may reject the whole request."""
    try:
        await writing
    except (ObjectExists, OSError):
        return False
    return True
