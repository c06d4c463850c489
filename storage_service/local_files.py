"""Files of a folder, as those who look after a store need them."""

import asyncio
import errno
import hashlib
import os
import stat
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO

from storage_service.blobs import OBJECTS, TEMPORARY, Declared, Found, Labels, ObjectDamaged
from storage_service.carrying import NEW, PLAIN, carry
from storage_service.folders import Folders

_PAGE = 500


class LocalFiles:
    """Lists, moves, reads what lies in a folder; every change is on the disk before it is told."""

    def __init__(self, root: Path, orphans: Path | None = None) -> None:
        self.root = root
        self.folders = Folders(root, orphans)

    async def listing(self, folder: str) -> AsyncIterator[Found]:
        """As in Blobs."""
        walk = self.folders.walk(folder)
        while page := await asyncio.to_thread(lambda: list(islice(walk, _PAGE))):
            for found in page:
                yield found

    async def size_bytes(self, key: str) -> int | None:
        """As in Blobs."""
        return await asyncio.to_thread(self._size_bytes, key)

    async def labels(self, _key: str) -> Labels | None:
        """As in Blobs; a file has none."""
        return None

    async def digest(self, key: str) -> Declared:
        """As in Blobs."""
        return await asyncio.to_thread(self._digest, key)

    async def move(self, key: str, target: str) -> bool:
        """As in Blobs."""
        return await asyncio.to_thread(self._move, key, target)

    async def delete(self, key: str) -> None:
        """As in Blobs."""
        await asyncio.to_thread(self._delete, key)

    async def write(self, key: str, content: bytes) -> None:
        """As in Blobs."""
        await asyncio.to_thread(self._write_whole, key, content)

    async def read(self, key: str) -> bytes:
        """As in Blobs."""
        return await asyncio.to_thread(self._read, key)

    def _size_bytes(self, key: str) -> int | None:
        folder, name = _split(key)
        with suppress(FileNotFoundError), self.folders.reached(folder) as folders:
            status = os.stat(name, dir_fd=folders[-1], follow_symlinks=False)
            return status.st_size if stat.S_ISREG(status.st_mode) else None
        return None

    def _digest(self, key: str) -> Declared:
        with self._opened(key) as reader:
            digest = hashlib.file_digest(reader, "sha256")  # type: ignore[arg-type]  # typed for buffered readers alone
            return Declared(digest.hexdigest(), reader.tell())

    def _read(self, key: str) -> bytes:
        with self._opened(key) as reader:
            return reader.read()

    def _delete(self, key: str) -> None:
        folder, name = _split(key)
        with suppress(FileNotFoundError), self.folders.reached(folder) as folders:
            os.unlink(name, dir_fd=folders[-1])
            _drop_empty(key, folders)

    def _move(self, key: str, target: str) -> bool:
        folder, name = _split(key)
        target_folder, target_name = _split(target)
        with ExitStack() as stack:
            try:
                folders = stack.enter_context(self.folders.reached(folder))
                os.stat(name, dir_fd=folders[-1], follow_symlinks=False)
            except FileNotFoundError:
                return self._size_bytes(target) is not None
            targets = stack.enter_context(self.folders.made(target_folder))
            if not _is_in(targets[-1], target_name):
                carry((folders[-1], name), (targets[-1], target_name))
            for made in reversed(targets):
                os.fsync(made)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folders[-1])
            os.fsync(folders[-1])
            _drop_empty(key, folders)
            return _is_in(targets[-1], target_name)

    def _write_whole(self, key: str, content: bytes) -> None:
        folder, name = _split(key)
        part = uuid.uuid4().hex
        with self.folders.made(TEMPORARY) as temporary, self.folders.made(folder) as folders:
            try:
                with os.fdopen(os.open(part, NEW, 0o640, dir_fd=temporary[-1]), "wb") as target:
                    target.write(content)
                    target.flush()
                    os.fsync(target.fileno())
                os.rename(part, name, src_dir_fd=temporary[-1], dst_dir_fd=folders[-1])
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=temporary[-1])
            for made in reversed(folders):
                os.fsync(made)

    @contextmanager
    def _opened(self, key: str) -> Iterator[IO[bytes]]:
        folder, name = _split(key)
        with self.folders.reached(folder) as folders:
            reader = os.fdopen(os.open(name, PLAIN, dir_fd=folders[-1]), "rb", buffering=0)
        with reader:
            if not stat.S_ISREG(os.fstat(reader.fileno()).st_mode):
                raise ObjectDamaged(errno.EIO, ObjectDamaged.__doc__, key)
            yield reader


def _split(key: str) -> tuple[str, str]:
    path = PurePosixPath(key)
    return str(path.parent), path.name


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
