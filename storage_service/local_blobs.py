"""Blobs in a folder of this machine."""

import asyncio
import errno
import hashlib
import os
import stat
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import wraps
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Concatenate, ParamSpec, TypeVar

from mindbus.files.disk import WriteBehindFile
from mindbus.files.keys import OBJECTS
from storage_service.blobs import (
    ORPHANS,
    STAGING,
    TEMPORARY,
    Declared,
    Labels,
    ObjectDamaged,
    StoredFile,
    copy_declared,
)
from storage_service.errors import NotAPlainFile, StagedFileMissing
from storage_service.local_folders import NEW, PLAIN, Folders, move_file

_PAGE = 500
_NOT_PLAIN = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR)
_READ_ONLY = 0o440
_OWNERSHIP_CHECKS = 6

P = ParamSpec("P")
T = TypeVar("T")


def _in_thread(
    method: Callable[Concatenate["LocalBlobs", P], T],
) -> Callable[Concatenate["LocalBlobs", P], Coroutine[Any, Any, T]]:
    @wraps(method)
    async def run(self: "LocalBlobs", /, *arguments: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *arguments, **options)

    return run


class LocalBlobs:
    """Read-only files, linked into place whole; links in staging are never followed.

    Every change is on the disk before a method returns.
    """

    def __init__(self, root: Path, orphans: Path | None = None) -> None:
        self.root = root
        self.folders = Folders(root, orphans)

    async def prepare(self) -> None:
        """Nothing to probe: link(2) is exclusive in every folder."""

    @_in_thread
    def promote(self, upload: str, key: str, declared: Declared, _labels: Labels) -> None:
        with self._open_staged(upload) as staged, self._part() as (temporary, part):
            self._write(staged, temporary, part, declared)
            with self.folders.holding(key, make=True) as (folders, name):
                _publish(temporary, part, folders[-1], name)
                # The object may have been linked by a process that died before its folders reached the disk.
                _sync(folders)

    @_in_thread
    def discard(self, upload: str) -> None:
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
        return removed + sum(self.folders.prune(folder, before) for folder in (STAGING, ORPHANS, "claims"))

    async def listing(self, folder: str) -> AsyncIterator[StoredFile]:
        walk = self.folders.walk(folder)
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
            return Declared(digest.hexdigest(), reader.tell())

    @_in_thread
    def move(self, key: str, target: str) -> bool:
        with ExitStack() as stack:
            try:
                folders, name = stack.enter_context(self.folders.holding(key))
                os.stat(name, dir_fd=folders[-1], follow_symlinks=False)
            except FileNotFoundError:
                return self._size_bytes(target) is not None
            targets, target_name = stack.enter_context(self.folders.holding(target, make=True))
            if not _is_in(targets[-1], target_name):
                move_file((folders[-1], name), (targets[-1], target_name))
            _sync(targets)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folders[-1])
            os.fsync(folders[-1])
            _drop_empty(key, folders)
            return _is_in(targets[-1], target_name)

    @_in_thread
    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError), self.folders.holding(key) as (folders, name):
            os.unlink(name, dir_fd=folders[-1])
            _drop_empty(key, folders)

    @_in_thread
    def write(self, key: str, content: bytes) -> None:
        with self._part() as (temporary, part), self.folders.holding(key, make=True) as (folders, name):
            with os.fdopen(os.open(part, NEW, 0o640, dir_fd=temporary), "wb") as target:
                target.write(content)
                target.flush()
                os.fsync(target.fileno())
            os.rename(part, name, src_dir_fd=temporary, dst_dir_fd=folders[-1])
            _sync(folders)

    @_in_thread
    def read(self, key: str) -> bytes:
        with self._open(key) as reader:
            return reader.read()

    def _size_bytes(self, key: str) -> int | None:
        with suppress(FileNotFoundError), self.folders.holding(key) as (folders, name):
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
        with self.folders.holding(key) as (folders, name):
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
                    _require_single_name(staged.fileno(), name, folders[-1])
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


def _publish(temporary: int, part: str, folder: int, name: str) -> None:
    # A link, unlike a rename, never replaces: an object that exists has the same bytes, its key says so.
    with suppress(FileExistsError):
        os.link(part, name, src_dir_fd=temporary, dst_dir_fd=folder, follow_symlinks=False)
    expected = os.stat(part, dir_fd=temporary, follow_symlinks=False)
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode) or status.st_size != expected.st_size:
        raise ObjectDamaged(name)


def _require_single_name(staged: int, name: str, folder: int) -> None:
    """Check that the file has this name alone. Raises NotAPlainFile, FileNotFoundError."""
    # A second name may be a hard link to a file that its creator could not read. An attacker who removes the first
    # name for the moment in which names are counted has to restore it for the next check, again and again.
    for _ in range(_OWNERSHIP_CHECKS):
        opened = os.fstat(staged)
        if not stat.S_ISREG(opened.st_mode) or opened.st_nlink > 1:
            raise NotAPlainFile
        if not os.path.samestat(opened, os.stat(name, dir_fd=folder, follow_symlinks=False)):
            raise FileNotFoundError(errno.ENOENT, "it has been replaced", name)


def _sync(folders: list[int]) -> None:
    for folder in reversed(folders):
        os.fsync(folder)


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
