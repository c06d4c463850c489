"""Probe of the guarantees of an object store, by trying each."""

import asyncio
import errno
import hashlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from storage_service.blobs import TEMPORARY
from storage_service.object_store import NO_LABELS, Guarantees, ObjectChanged, ObjectExists, ObjectStore

_AT_ONCE = 3
# Prepares a write; awaiting the result performs it.
Begin = Callable[[str], Awaitable[Awaitable[None]]]
_ONE, _OTHER = b"one", b"two, which is longer"


class UnsoundStore(OSError):
    """The object store does not return what was just written to it; no artifact is safe there, use another."""


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
            return await self._seen(folder)
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        finally:
            async for left in self.objects.list(folder):
                await self.objects.delete(left.key)

    async def _seen(self, folder: str) -> Guarantees:
        async with asyncio.TaskGroup() as group:
            looks = {
                "puts_once": self._keeps_once(folder, "put", self._putting),
                "copies_once": self._keeps_once(folder, "copy", self._copying),
                "completes_once": self._keeps_once(folder, "parts", self._completing),
                "copies_what_was_seen": self._copies_what_was_seen(folder),
                "checks_sha256": self._checks_sha256(folder),
                "checks_what_was_signed": self._checks_what_was_signed(folder),
                "lists_what_was_written": self._lists(f"{folder}/sound"),
            }
            seen = {name: group.create_task(look) for name, look in looks.items()}
        return Guarantees(**{name: look.result() for name, look in seen.items()})

    async def _require_sound(self, folder: str) -> None:
        key = f"{folder}/sound"
        await self.objects.put(key, _ONE, NO_LABELS, if_absent=False)
        await self.objects.put(key, _OTHER, NO_LABELS, if_absent=False)
        found = await self.objects.head(key)
        if found is None or found.size_bytes != len(_OTHER) or await self._content(key) != _OTHER:
            raise UnsoundStore(errno.EIO, UnsoundStore.__doc__)
        await self.objects.copy(key, f"{key}-copied", NO_LABELS, if_match=found.etag, if_absent=False)
        if await self._content(f"{key}-copied") != _OTHER:
            raise UnsoundStore(errno.EIO, UnsoundStore.__doc__)

    async def _keeps_once(self, folder: str, name: str, begin: Begin) -> bool:
        """Whether an existing object stays unchanged, and exactly one of several concurrent writes succeeds."""
        taken, raced = f"{folder}/{name}-taken", f"{folder}/{name}-raced"
        await self.objects.put(taken, _OTHER, NO_LABELS, if_absent=False)
        if await _was_written(await begin(taken)) or await self._content(taken) != _OTHER:
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
            raise UnsoundStore(errno.EIO, UnsoundStore.__doc__)
        return self.objects.copy(source.key, key, NO_LABELS, if_match=source.etag, if_absent=True)

    async def _copies_what_was_seen(self, folder: str) -> bool:
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
        wrong, right = f"{folder}/claimed-wrong", f"{folder}/claimed"
        if await _was_written(self.objects.put_claiming(wrong, _ONE, hashlib.sha256(_OTHER).hexdigest())):
            return False
        await self.objects.put_claiming(right, _ONE, hashlib.sha256(_ONE).hexdigest())
        found = await self.objects.head(right)
        return found is not None and found.sha256 == hashlib.sha256(_ONE).hexdigest()

    async def _checks_what_was_signed(self, folder: str) -> bool:
        others = (_OTHER, _ONE[::-1])
        taken = [
            await self.objects.put_signed(f"{folder}/signed-{number}", other, _ONE)
            for number, other in enumerate(others)
        ]
        return not any(taken) and await self.objects.put_signed(f"{folder}/signed", _ONE, _ONE)

    async def _lists(self, key: str) -> bool:
        return key in [each.key async for each in self.objects.list(key)]

    async def _content(self, key: str) -> bytes:
        return b"".join([piece async for piece in self.objects.read(key)])


async def _was_written(writing: Awaitable[None]) -> bool:
    """False where the write failed: a store without the condition may reject the whole request."""
    try:
        await writing
    except (ObjectExists, OSError):
        return False
    return True
