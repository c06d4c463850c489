"""Blobs in a folder of this machine."""

import asyncio
import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO

from mindbus.files.bulk_io import WriteBehindFile
from storage_service.blobs import ORPHANS, STAGING, TEMPORARY, Declared, Labels, ObjectDamaged, copy_declared
from storage_service.carrying import NEW, PLAIN
from storage_service.local_files import LocalFiles
from storage_service.refusals import NotAPlainFile, StagedFileMissing

_NOT_PLAIN = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR)
_READ_ONLY = 0o440
_LOOKS = 6


class LocalBlobs(LocalFiles):
    """Objects as read-only files, linked into place whole; links in staging are never followed."""

    async def prepare(self) -> None:
        """As in Blobs: a link is made once or not at all, in every folder."""

    async def promote(self, upload: str, key: str, declared: Declared, _labels: Labels) -> None:
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
        with self._staged(upload) as staged, self.folders.made(TEMPORARY) as temporary:
            try:
                self._write(staged, temporary[-1], part, declared)
                with self.folders.made(str(Path(key).parent)) as folders:
                    self._publish(temporary[-1], part, folders[-1], Path(key).name)
                    # The object may have been linked by one who died before its folders reached the disk.
                    for folder in reversed(folders):
                        os.fsync(folder)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=temporary[-1])

    def _write(self, staged: IO[bytes], temporary: int, part: str, declared: Declared) -> None:
        with os.fdopen(os.open(part, NEW, 0o600, dir_fd=temporary), "wb") as target:
            copy_declared(staged.read, WriteBehindFile(target).write, declared)
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
        with suppress(FileNotFoundError), self.folders.reached(str(Path(upload).parent)) as folders:
            os.unlink(Path(upload).name, dir_fd=folders[-1])

    def _sweep_temporary(self, before: datetime) -> int:
        removed = 0
        with self.folders.made(TEMPORARY) as folders:
            for name in os.listdir(folders[-1]):
                with suppress(FileNotFoundError):
                    if os.stat(name, dir_fd=folders[-1], follow_symlinks=False).st_mtime < before.timestamp():
                        os.unlink(name, dir_fd=folders[-1])
                        removed += 1
        return removed + sum(self.folders.prune(folder, before) for folder in (STAGING, ORPHANS, "claims"))

    @contextmanager
    def _staged(self, upload: str) -> Iterator[IO[bytes]]:
        name = Path(upload).name
        try:
            with self.folders.reached(str(Path(upload).parent)) as folders:
                staged = os.fdopen(os.open(name, PLAIN, dir_fd=folders[-1]), "rb", buffering=0)
                try:
                    _require_own(staged.fileno(), name, folders[-1])
                except BaseException:
                    staged.close()
                    raise
        except FileNotFoundError as missing:
            raise StagedFileMissing from missing
        except OSError as other:
            if other.errno in _NOT_PLAIN:
                raise NotAPlainFile from other
            raise
        with staged:
            yield staged


def _require_own(staged: int, name: str, folder: int) -> None:
    """It is a file with this one name. Raises NotAPlainFile, FileNotFoundError."""
    # A second name may be a hard link to a file that its maker could not read. Whoever takes the first one away for
    # the moment in which names are counted has to put it back for the next, again and again.
    for _ in range(_LOOKS):
        opened = os.fstat(staged)
        if not stat.S_ISREG(opened.st_mode) or opened.st_nlink > 1:
            raise NotAPlainFile
        if not os.path.samestat(opened, os.stat(name, dir_fd=folder, follow_symlinks=False)):
            raise FileNotFoundError(errno.ENOENT, "it has been replaced", name)
