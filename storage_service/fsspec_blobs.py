"""Blobs in any store that fsspec reaches."""

import asyncio
import errno
import uuid
from datetime import datetime

from mindbus.files import FileStore
from storage_service.blobs import TEMPORARY, Declared, Labels, ObjectDamaged, copy_declared
from storage_service.refusals import NotAPlainFile, StagedFileMissing


class FsspecBlobs:
    """Objects copied into place by the store itself, out of a part that only storage can write to."""

    def __init__(self, files: FileStore) -> None:
        self.files = files

    async def promote(self, upload: str, key: str, declared: Declared, _labels: Labels) -> None:
        """As in Blobs; copying and hashing run in a thread."""
        await asyncio.to_thread(self._promote, upload, key, declared)

    async def discard(self, upload: str) -> None:
        """As in Blobs."""
        await asyncio.to_thread(self.files.delete, upload)

    async def sweep_temporary(self, before: datetime) -> int:
        """As in Blobs."""
        return await asyncio.to_thread(self._sweep_temporary, before)

    def _promote(self, upload: str, key: str, declared: Declared) -> None:
        part = f"{self.files.root}/{TEMPORARY}/{uuid.uuid4().hex}"
        self.files.fs.makedirs(f"{self.files.root}/{TEMPORARY}", exist_ok=True)
        try:
            self._write(upload, part, declared)
            if not self.files.exists(key):
                self.files.fs.makedirs(f"{self.files.root}/{key.rpartition('/')[0]}", exist_ok=True)
                self.files.fs.cp_file(part, f"{self.files.root}/{key}")
            if self.files.size_bytes(key) != declared.size_bytes:
                raise ObjectDamaged(errno.EIO, ObjectDamaged.__doc__, key)
        finally:
            if self.files.fs.exists(part):
                self.files.fs.rm_file(part)

    def _write(self, upload: str, part: str, declared: Declared) -> None:
        try:
            staged = self.files.open_read(upload)
        except FileNotFoundError as missing:
            raise StagedFileMissing from missing
        except IsADirectoryError as folder:
            raise NotAPlainFile from folder
        with staged, self.files.fs.open(part, "wb") as target:
            copy_declared(staged.read, target.write, declared)

    def _sweep_temporary(self, before: datetime) -> int:
        folder = f"{self.files.root}/{TEMPORARY}"
        parts = self.files.fs.ls(folder, detail=False) if self.files.fs.exists(folder) else []
        old = [part for part in parts if self.files.fs.modified(part) < before]
        for part in old:
            self.files.fs.rm_file(part)
        return len(old)
