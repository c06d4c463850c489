"""The blob store as storage uses it: staged uploads, objects by digest, small files."""

import errno
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol

from bus_schema.replies import Code
from bus_schema.uploads import PackPlace
from mindbus.errors import MindBusError
from mindbus.files.disk import BackgroundSha256
from mindbus.files.keys import OBJECTS, object_key
from mindbus.files.packs import PACKS
from storage_service.errors import ContentMismatch

CHUNK_BYTES = 1024 * 1024
TEMPORARY = "objects/.tmp"
STAGING = "staging"
ORPHANS = "orphans"
_PAGE = 500
_CONTENT = r"([0-9a-f]{64})/([1-9][0-9]{0,8})"
_OBJECT = re.compile(rf"{OBJECTS}/[0-9a-f]{{2}}/[0-9a-f]{{2}}/{_CONTENT}")
_PACKED = re.compile(rf"{PACKS}/([A-Za-z0-9_-]{{1,64}}\.pack)/(0|[1-9][0-9]{{0,17}})/{_CONTENT}")


@dataclass(frozen=True, slots=True)
class ContentGeneration:
    """One generation of a content, and its place: a pack, or a file of its own."""

    sha256: str
    generation: int
    packed: PackPlace | None = None

    @property
    def key(self) -> str:
        """Key of the bytes where they are."""
        if self.packed is None:
            return self.file_key
        return f"{PACKS}/{self.packed.pack}/{self.packed.offset}/{self.sha256}/{self.generation}"

    @property
    def file_key(self) -> str:
        """Key of the bytes as a file of their own, which is the manifest's `uri` wherever they are."""
        return object_key(self.sha256, self.generation)


def content_of(key: str) -> ContentGeneration | None:
    """The content of an object's key, None of any other key."""
    if match := _OBJECT.fullmatch(key):
        content = ContentGeneration(match[1], int(match[2]))
    elif match := _PACKED.fullmatch(key):
        content = ContentGeneration(match[3], int(match[4]), PackPlace(pack=match[1], offset=int(match[2])))
    else:
        return None
    return content if content.key == key else None


@dataclass(frozen=True, slots=True)
class Declared:
    """Digest and size of the bytes that a manifest declares."""

    sha256: str
    size_bytes: int

    def mismatch(self, staged_sha256: str | None, staged_size_bytes: int | str) -> ContentMismatch:
        """The error of staged bytes that are others."""
        return ContentMismatch(
            declared_sha256=self.sha256,
            staged_sha256=staged_sha256,
            declared_size_bytes=self.size_bytes,
            staged_size_bytes=staged_size_bytes,
        )


@dataclass(frozen=True, slots=True)
class Labels:
    """Artifact and producer that an object was published for: all that is left of a manifest without the database."""

    artifact_id: str
    created_by: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in the store; `modified` is by the store's own clock."""

    key: str
    size_bytes: int
    modified: datetime


class NotGuaranteed(MindBusError, code=Code.INVALID):
    """The store overwrites objects: set MINDBUS_ARTIFACTS_WRITE_ONCE to verified, or use another store."""


class BlobError(OSError):
    """A file of the store is not as it should be; the docstring of the class is the message."""

    number: ClassVar[int] = errno.EIO

    def __init__(self, key: str) -> None:
        super().__init__(self.number, self.__doc__, key)


class ObjectDamaged(BlobError):
    """A stored object has another size than its bytes; restore it from a backup, then retry."""


class ObjectVanished(BlobError):
    """An object has disappeared; try again."""

    number = errno.EAGAIN


class Blobs(Protocol):
    """A store in which staged uploads become objects; an object is complete when it appears and never changes.

    A store on disk keeps small objects in packs. The key of a packed object names its place there, and serves for all
    methods; brought back from the orphans, it is a file of its own, and found there. Where the store fails, every
    method raises OSError.
    """

    async def prepare(self) -> None:
        """Probe the guarantees of the store, once at start. Raises NotGuaranteed where they are too few."""

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> PackPlace | None:
        """Publish the staged bytes under `key`, if they are as declared, or in a pack; idempotent.

        The key of a packed object stands for bytes that have been published there.
        The staged bytes are read even where the object exists: knowing a digest gives no right to its content.
        Raises StagedFileMissing, NotAPlainFile, ContentMismatch.
        """

    async def discard(self, upload: str) -> None:
        """Remove a staged upload, if it exists."""

    async def sweep_temporary(self, before: datetime) -> int:
        """Remove partial files and empty folders older than `before`, by the store's clock; returns their number."""

    def listing(self, folder: str) -> AsyncIterator[StoredFile]:
        """Files under a folder, in any order, while it may change; packed objects are among all objects."""

    async def size_bytes(self, key: str) -> int | None:
        """Size of a file, or None."""

    async def labels(self, key: str) -> Labels | None:
        """Labels of an object, or None."""

    async def digest(self, key: str) -> Declared:
        """Digest and size of a file, by reading it. Raises FileNotFoundError."""

    async def move(self, key: str, target: str) -> bool:
        """Move a file, complete at every moment; whether it is at `target` now.

        Idempotent; an existing target is kept.
        """

    async def delete(self, key: str) -> None:
        """Remove a file, if it exists."""

    async def write(self, key: str, content: bytes) -> None:
        """Write or replace a small file, atomically."""

    async def read(self, key: str) -> bytes:
        """Content of a small file. Raises FileNotFoundError."""


async def pages_of(files: AsyncIterator[StoredFile]) -> AsyncGenerator[list[StoredFile], None]:
    """Files of a listing, some hundred at a time."""
    page: list[StoredFile] = []
    async for file in files:
        page.append(file)
        if len(page) == _PAGE:
            yield page
            page = []
    if page:
        yield page


def copy_declared(read: Callable[[int], bytes], write: Callable[[bytes], object], declared: Declared) -> None:
    """Copy while hashing the bytes that are written, reading at most one byte more than declared.

    Raises ContentMismatch.
    """
    remaining = declared.size_bytes + 1
    with BackgroundSha256() as digest:
        while remaining and (chunk := read(min(CHUNK_BYTES, remaining))):
            digest.update(chunk)
            write(chunk)
            remaining -= len(chunk)
        sha256 = digest.hexdigest()
    if not remaining:
        raise declared.mismatch(None, f"more than {declared.size_bytes}")
    if remaining != 1 or sha256 != declared.sha256:
        raise declared.mismatch(sha256, declared.size_bytes + 1 - remaining)
