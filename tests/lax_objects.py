"""An object store in memory that keeps no more of its promises than it is told to."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from storage_service.object_store import Guarantees, ObjectChanged, ObjectExists, StoredObject

ALL = Guarantees(
    puts_once=True,
    copies_once=True,
    completes_once=True,
    copies_what_was_seen=True,
    checks_sha256=True,
    checks_what_was_signed=True,
    lists_what_was_written=True,
)
_PIECE_BYTES = 64 * 1024


def md5(content: bytes) -> str:
    """What most stores take for an ETag."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


class Refused(OSError):
    """The store does not do this."""


@dataclass
class LaxObjects:
    """As ProbedStore; `meanwhile` happens whenever another could get in between."""

    keeps: Guarantees = ALL
    etag_of: Callable[[bytes], str] = md5
    meanwhile: Callable[[str, str], None] = field(default=lambda _operation, _key: None)
    shows_what_was_written: bool = True

    def __post_init__(self) -> None:
        self.kept: dict[str, tuple[bytes, StoredObject]] = {}

    def write(self, key: str, content: bytes, labels: Mapping[str, str] | None = None) -> None:
        """As somebody else does."""
        sha256 = hashlib.sha256(content).hexdigest() if self.keeps.checks_sha256 else None
        now = datetime.now(UTC)
        stored = StoredObject(key, len(content), self.etag_of(content), now, dict(labels or {}), sha256)
        self.kept[key] = content, stored

    def content(self, key: str) -> bytes | None:
        """What lies there."""
        return self.kept[key][0] if key in self.kept else None

    async def head(self, key: str) -> StoredObject | None:
        await self._turn("head", key)
        if not self.shows_what_was_written or key not in self.kept:
            return None
        return self.kept[key][1]

    async def read(self, key: str, *, if_match: str | None = None, start: int = 0) -> AsyncGenerator[bytes, None]:
        await self._turn("read", key)
        content = self._version(key, if_match)
        for at in range(start, len(content), _PIECE_BYTES):
            yield content[at : at + _PIECE_BYTES]
            await self._turn("piece", key)

    async def put(self, key: str, content: bytes, labels: Mapping[str, str], *, if_absent: bool) -> None:
        await self._turn("put", key)
        if if_absent and self.keeps.puts_once and key in self.kept:
            raise ObjectExists(key)
        self.write(key, content, labels)

    async def copy(
        self, source: str, target: str, labels: Mapping[str, str], *, if_match: str, if_absent: bool
    ) -> None:
        await self._turn("copy", source)
        content = self._version(source, if_match if self.keeps.copies_what_was_seen else None)
        if if_absent and self.keeps.copies_once and target in self.kept:
            raise ObjectExists(target)
        self.write(target, content, labels)
        await self._turn("copied", target)

    async def delete(self, key: str) -> None:
        await self._turn("delete", key)
        self.kept.pop(key, None)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        if not self.keeps.lists_what_was_written:
            return
        for key in sorted(key for key in self.kept if key.startswith(prefix)):
            if key in self.kept:
                yield replace(self.kept[key][1], labels={})

    async def abort_uploads(self, before: datetime) -> int:
        return 0

    async def put_claiming(self, key: str, content: bytes, sha256: str) -> None:
        if self.keeps.checks_sha256 and hashlib.sha256(content).hexdigest() != sha256:
            raise Refused
        self.write(key, content)

    async def begin_parts(self, key: str, content: bytes) -> str:
        return content.decode()

    async def complete_parts(self, key: str, begun: str) -> None:
        await self._turn("complete", key)
        if self.keeps.completes_once and key in self.kept:
            raise ObjectExists(key)
        self.write(key, begun.encode())

    async def put_signed(self, key: str, content: bytes, signed_for: bytes) -> bool:
        if self.keeps.checks_what_was_signed and content != signed_for:
            return False
        self.write(key, content)
        return True

    async def _turn(self, operation: str, key: str) -> None:
        self.meanwhile(operation, key)
        await asyncio.sleep(0)

    def _version(self, key: str, if_match: str | None) -> bytes:
        if key not in self.kept:
            raise FileNotFoundError(key)
        content, stored = self.kept[key]
        if if_match is not None and stored.etag != if_match:
            raise ObjectChanged(key)
        return content
