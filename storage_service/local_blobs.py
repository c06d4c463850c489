"""Blobs in a folder of this machine."""

import asyncio
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO

from storage_service.blobs import TEMPORARY, Declared, ObjectDamaged, copy_declared
from storage_service.refusals import NotAPlainFile, StagedFileMissing

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a pipe that nobody writes to would hang for ever.
_UPLOAD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_PLAIN = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR)
_READ_ONLY = 0o440


class LocalBlobs:
    """Objects as read-only files, linked into place whole; links in staging are never followed."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def promote(self, upload: str, key: str, declared: Declared) -> None:
        """As in Blobs; copying and hashing run in a thread."""
        await asyncio.to_thread(self._promote, upload, key, declared)

    async def discard(self, upload: str) -> None:
        """As in Blobs."""
        await asyncio.to_thread(self._discard, upload)

    async def sweep_temporary(self, before: datetime) -> int:
        """As in Blobs."""
        return await asyncio.to_thread(self._sweep_temporary, before)

    def _promote(self, upload: str, key: str, declared: Declared) -> None:
        part = uuid.uuid4().hex
        with self._staged(upload) as staged, self._made_folder(TEMPORARY) as temporary:
            try:
                self._write(staged, temporary[-1], part, declared)
                with self._made_folder(str(Path(key).parent)) as folders:
                    self._publish(temporary[-1], part, folders[-1], Path(key).name)
                    # The object may have been linked by one who died before its folders reached the disk.
                    for folder in reversed(folders):
                        os.fsync(folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=temporary[-1])

    def _write(self, staged: IO[bytes], temporary: int, part: str, declared: Declared) -> None:
        with os.fdopen(os.open(part, _NEW, 0o600, dir_fd=temporary), "wb") as target:
            copy_declared(staged.read, target.write, declared)
            target.flush()
            os.fchmod(target.fileno(), _READ_ONLY)
            os.fsync(target.fileno())

    def _publish(self, temporary: int, part: str, folder: int, name: str) -> None:
        # A link, unlike a rename, never replaces: an object that exists has the same bytes, its key says so.
        with suppress(FileExistsError):
            os.link(part, name, src_dir_fd=temporary, dst_dir_fd=folder, follow_symlinks=False)
        expected = os.stat(part, dir_fd=temporary, follow_symlinks=False)
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or found.st_size != expected.st_size:
            raise ObjectDamaged(errno.EIO, ObjectDamaged.__doc__, name)

    def _discard(self, upload: str) -> None:
        with suppress(FileNotFoundError), self._folder(str(Path(upload).parent)) as folders:
            os.unlink(Path(upload).name, dir_fd=folders[-1])

    def _sweep_temporary(self, before: datetime) -> int:
        removed = 0
        with self._made_folder(TEMPORARY) as folders:
            for name in os.listdir(folders[-1]):
                with suppress(FileNotFoundError):
                    if os.stat(name, dir_fd=folders[-1], follow_symlinks=False).st_mtime < before.timestamp():
                        os.unlink(name, dir_fd=folders[-1])
                        removed += 1
        return removed

    @contextmanager
    def _staged(self, upload: str) -> Iterator[IO[bytes]]:
        try:
            with self._folder(str(Path(upload).parent)) as folders:
                staged = os.fdopen(os.open(Path(upload).name, _UPLOAD, dir_fd=folders[-1]), "rb", buffering=0)
        except FileNotFoundError as missing:
            raise StagedFileMissing from missing
        except OSError as other:
            if other.errno in _NOT_PLAIN:
                raise NotAPlainFile from other
            raise
        with staged:
            status = os.fstat(staged.fileno())
            # A second name may be a hard link to a file that its maker could not read.
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise NotAPlainFile
            yield staged

    @contextmanager
    def _folder(self, path: str) -> Iterator[list[int]]:
        """Descriptors of every folder from the root to `path`, reached without following a single link."""
        with ExitStack() as stack:
            folders = [self._opened(stack, str(self.root), None)]
            for name in path.split("/"):
                folders.append(self._opened(stack, name, folders[-1]))
            yield folders

    @contextmanager
    def _made_folder(self, path: str) -> Iterator[list[int]]:
        """The same, made where it is missing."""
        with ExitStack() as stack:
            folders = [self._opened(stack, str(self.root), None)]
            for name in path.split("/"):
                with suppress(FileExistsError):
                    os.mkdir(name, 0o750, dir_fd=folders[-1])
                folders.append(self._opened(stack, name, folders[-1]))
            yield folders

    @staticmethod
    def _opened(stack: ExitStack, name: str, within: int | None) -> int:
        # The root itself comes from the settings and may be a link.
        flags = _FOLDER if within is not None else _FOLDER & ~os.O_NOFOLLOW
        descriptor = os.open(name, flags, dir_fd=within)
        stack.callback(os.close, descriptor)
        return descriptor
