"""Blobs in a folder of this machine."""

import asyncio
import errno
import hashlib
import io
import os
import stat
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial, wraps
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Concatenate, ParamSpec, TypeVar

from bus_schema.uploads import PackPlace
from mindbus.files.disk import JobThreads, WriteBehindFile
from mindbus.files.keys import OBJECTS
from mindbus.files.packs import MAX_PACKED_BYTES, PACKS
from storage_service.blobs import (
    ORPHANS,
    STAGING,
    TEMPORARY,
    ContentGeneration,
    Declared,
    Labels,
    ObjectDamaged,
    StoredFile,
    content_of,
    copy_declared,
)
from storage_service.errors import NotAPlainFile, StagedFileMissing
from storage_service.local_folders import NEW, PLAIN, Folders, move_file, require_single_name
from storage_service.packs import PackFolder

_PAGE = 500
_NOT_PLAIN = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR)
_READ_ONLY = 0o440

P = ParamSpec("P")
T = TypeVar("T")


# Larger ones have a thread of their own for as long as it takes.
_SHORT_BYTES = 256 * 1024


def _in_thread(
    method: Callable[Concatenate["LocalBlobs", P], T],
) -> Callable[Concatenate["LocalBlobs", P], Coroutine[Any, Any, T]]:
    @wraps(method)
    async def run(self: "LocalBlobs", /, *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *arguments, **options)

    return run


class LocalBlobs:
    """Read-only files, linked into place whole, and packs for small objects; links in staging are never followed.

    Every change is on the disk before a method returns.
    """

    def __init__(self, root: Path, orphans: Path | None = None, *, has_packs: bool = True) -> None:
        self.root = root
        self.folders = Folders(root, orphans)
        self._packs, self._max_packed_bytes = PackFolder(self.folders), MAX_PACKED_BYTES if has_packs else -1
        self._jobs = JobThreads("blobs")

    async def prepare(self) -> None:
        """Nothing to probe: link(2) is exclusive in every folder."""

    async def promote(self, upload: str, key: str, declared: Declared, _labels: Labels) -> PackPlace | None:
        if declared.size_bytes <= self._max_packed_bytes and (content := content_of(key)) is not None:
            new = partial(self._read_new, upload, content, declared)
            return await self._packs.add(content, new) or content.packed
        publish = partial(self._promote, upload, key, declared)
        await (self._jobs.run(publish) if declared.size_bytes <= _SHORT_BYTES else asyncio.to_thread(publish))
        return None

    def _read_new(self, upload: str, content: ContentGeneration, declared: Declared) -> bytes | None:
        """The staged bytes, if they are as declared; None where the object is there already."""
        new = io.BytesIO()
        with self._open_staged(upload) as staged:
            copy_declared(staged.read, new.write, declared)
        published_bytes = self._size_bytes(content.key)
        if published_bytes not in (None, declared.size_bytes):
            raise ObjectDamaged(content.key)
        if published_bytes is None and content.packed is not None:
            # Its record is lost. Its place never changes, but a file is looked for as well.
            self._replace(content.file_key, new.getvalue())
            return None
        return new.getvalue() if published_bytes is None else None

    def _promote(self, upload: str, key: str, declared: Declared) -> None:
        with self._open_staged(upload) as staged, self._part() as (temporary, part):
            self._write(staged, temporary, part, declared)
            with self.folders.holding(key, make=True) as (folders, name):
                _publish(temporary, part, folders[-1], name)
                self.folders.sync(key, folders)

    async def discard(self, upload: str) -> None:
        await self._jobs.run(partial(self._discard, upload))

    def _discard(self, upload: str) -> None:
        with suppress(FileNotFoundError), self.folders.holding(upload) as (folders, name):
            os.unlink(name, dir_fd=folders[-1])

    @_in_thread
    def sweep_temporary(self, before: datetime) -> int:
        removed = 0
        with self.folders.open_folders(TEMPORARY, make=True) as folders:
            for name in os.listdir(folders[-1]):
                with suppress(FileNotFoundError):
                    if os.stat(name, dir_fd=folders[-1], follow_symlinks=False).st_mtime < before.timestamp():
                        os.unlink(name, dir_fd=folders[-1])
                        removed += 1
        removed += sum(self.folders.prune(folder, before) for folder in (STAGING, ORPHANS, "claims"))
        return removed + self._packs.sweep()

    async def listing(self, folder: str) -> AsyncIterator[StoredFile]:
        walk = chain(
            () if folder == PACKS else self.folders.walk(folder),
            self._packs.listing() if folder in (OBJECTS, PACKS) else (),
        )
        while page := await asyncio.to_thread(lambda: list(islice(walk, _PAGE))):
            for file in page:
                yield file

    async def size_bytes(self, key: str) -> int | None:
        return await asyncio.to_thread(self._size_bytes, key)

    async def labels(self, _key: str) -> Labels | None:
        """None: a file has no labels."""
        return None

    @_in_thread
    def digest(self, key: str) -> Declared:
        with self._open(key) as reader:
            digest = hashlib.file_digest(reader, "sha256")  # type: ignore[arg-type]  # typed for buffered readers alone
            return Declared(digest.hexdigest(), reader.seek(0, io.SEEK_END))

    @_in_thread
    def move(self, key: str, target: str) -> bool:
        if (content := _packed_content(key)) is None:
            return self._move(key, _file_key(target))
        packed = self._packs.read(content)
        if packed is not None and self._size_bytes(target) is None:
            self._replace(target, packed)
        # One that a crash has left half erased cannot be read any more.
        self._packs.erase(content)
        return packed is not None or self._move(content.file_key, target)

    def _move(self, key: str, target: str) -> bool:
        with ExitStack() as stack:
            try:
                folders, name = stack.enter_context(self.folders.holding(key))
                os.stat(name, dir_fd=folders[-1], follow_symlinks=False)
            except FileNotFoundError:
                return self._size_bytes(target) is not None
            targets, target_name = stack.enter_context(self.folders.holding(target, make=True))
            if not _is_in(targets[-1], target_name):
                move_file((folders[-1], name), (targets[-1], target_name))
            self.folders.sync(target, targets)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folders[-1])
            os.fsync(folders[-1])
            _drop_empty(key, folders)
            return _is_in(targets[-1], target_name)

    @_in_thread
    def delete(self, key: str) -> None:
        if (content := _packed_content(key)) is not None:
            self._packs.erase(content)
        with suppress(FileNotFoundError), self.folders.holding(_file_key(key)) as (folders, name):
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folders[-1])
            # Also where a process that died has removed it: a power cut must not bring back what is forgotten.
            os.fsync(folders[-1])
            _drop_empty(key, folders)

    async def write(self, key: str, content: bytes) -> None:
        await self._jobs.run(partial(self._replace, key, content))

    def _replace(self, key: str, content: bytes) -> None:
        with self._part() as (temporary, part), self.folders.holding(key, make=True) as (folders, name):
            with os.fdopen(os.open(part, NEW, 0o640, dir_fd=temporary), "wb") as target:
                target.write(content)
                target.flush()
                os.fsync(target.fileno())
            os.rename(part, name, src_dir_fd=temporary, dst_dir_fd=folders[-1])
            self.folders.sync(key, folders)

    @_in_thread
    def read(self, key: str) -> bytes:
        with self._open(key) as reader:
            return reader.read()

    def _size_bytes(self, key: str) -> int | None:
        if (content := _packed_content(key)) is not None and (packed := self._packs.read(content)) is not None:
            return len(packed)
        with suppress(FileNotFoundError), self.folders.holding(_file_key(key)) as (folders, name):
            status = os.stat(name, dir_fd=folders[-1], follow_symlinks=False)
            return status.st_size if stat.S_ISREG(status.st_mode) else None
        return None

    def _write(self, staged: IO[bytes], temporary: int, part: str, declared: Declared) -> None:
        with os.fdopen(os.open(part, NEW, 0o600, dir_fd=temporary), "wb") as target:
            copy_declared(staged.read, WriteBehindFile(target).write, declared)
            target.flush()
            os.fchmod(target.fileno(), _READ_ONLY)
            os.fsync(target.fileno())

    @contextmanager
    def _part(self) -> Iterator[tuple[int, str]]:
        """The folder and the name of a temporary file, removed at the end if it is still there."""
        part = uuid.uuid4().hex
        with self.folders.open_folders(TEMPORARY, make=True) as folders:
            try:
                yield folders[-1], part
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=folders[-1])

    @contextmanager
    def _open(self, key: str) -> Iterator[IO[bytes]]:
        if (content := _packed_content(key)) is not None and (packed := self._packs.read(content)) is not None:
            yield io.BytesIO(packed)
            return
        with self.folders.holding(_file_key(key)) as (folders, name):
            reader = os.fdopen(os.open(name, PLAIN, dir_fd=folders[-1]), "rb", buffering=0)
        with reader:
            if not stat.S_ISREG(os.fstat(reader.fileno()).st_mode):
                raise ObjectDamaged(key)
            yield reader

    @contextmanager
    def _open_staged(self, upload: str) -> Iterator[IO[bytes]]:
        try:
            with self.folders.holding(upload) as (folders, name):
                staged = os.fdopen(os.open(name, PLAIN, dir_fd=folders[-1]), "rb", buffering=0)
                try:
                    require_single_name(staged.fileno(), name, folders[-1])
                except BaseException:
                    staged.close()
                    raise
        except FileNotFoundError as error:
            raise StagedFileMissing from error
        except OSError as error:
            if error.errno in _NOT_PLAIN:
                raise NotAPlainFile from error
            raise
        with staged:
            yield staged


def _packed_content(key: str) -> ContentGeneration | None:
    return content_of(key) if key.startswith(f"{PACKS}/") else None


def _file_key(key: str) -> str:
    """The key of a file: of a packed object, where it is once it has been brought back from the orphans."""
    content = _packed_content(key)
    return content.file_key if content else key


def _publish(temporary: int, part: str, folder: int, name: str) -> None:
    # A link, unlike a rename, never replaces: an object that exists has the same bytes, its key says so.
    with suppress(FileExistsError):
        os.link(part, name, src_dir_fd=temporary, dst_dir_fd=folder, follow_symlinks=False)
    expected = os.stat(part, dir_fd=temporary, follow_symlinks=False)
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or status.st_size != expected.st_size:
        raise ObjectDamaged(name)


def _is_in(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _drop_empty(key: str, folders: list[int]) -> None:
    # The folder of a content is its own; a registration that has just opened it is tried again.
    if key.startswith(f"{OBJECTS}/"):
        with suppress(OSError):
            os.rmdir(PurePosixPath(key).parent.name, dir_fd=folders[-2])
