"""Packs of a store on disk, as storage writes them: append-only but for erasure, one sync for all that come at once."""

import ctypes
import fcntl
import os
import secrets
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace

from bus_schema.uploads import PackPlace
from mindbus.files.disk import JobThreads
from mindbus.files.packs import PACKS, PackRecord, erase_record, is_whole, read_packed, record_at, records_of
from storage_service.blobs import ContentGeneration, StoredFile
from storage_service.local_folders import NEW, PLAIN, Folders

# A full one is closed. Small enough to be copied by a backup, large enough that there are few.
_PACK_BYTES = 64 * 1024**2
_RECENT = 1000
_CHANGE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
# From <linux/falloc.h>.
_KEEP_SIZE, _PUNCH_HOLE = 1, 2


class _OpenPack:
    """A pack that this process appends to; its lock says so to others, as long as the process lives."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name, self.descriptor, self.size_bytes = name, descriptor, 0
        self.close = weakref.finalize(self, os.close, descriptor)

    def append(self, content: ContentGeneration, data: bytes) -> PackPlace:
        """Write a record, not yet durable. Raises OSError, after which no other must be appended."""
        record = PackRecord(self.size_bytes, len(data), content.generation, content.sha256)
        stored = record.to_bytes(data)
        if (written := os.pwrite(self.descriptor, stored, record.offset)) < len(stored):
            # The disk is full: the rest of it fails with the reason.
            os.pwrite(self.descriptor, stored[written:], record.offset + written)
        self.size_bytes = record.end
        return PackPlace(pack=self.name, offset=record.offset)


class PackFolder:
    """Packs in one folder. A process appends to its own alone, never to one of a process before it.

    So whatever a crash has left unfinished is the end of a pack, behind all that a manifest points at.
    """

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._thread = JobThreads("packs", threads=1, finish=self._sync)
        self._current: _OpenPack | None = None
        self._unsynced: list[_OpenPack] = []
        # Registrations of the same bytes at once, or again after one that failed, share a record.
        self._recent: OrderedDict[tuple[str, int], PackPlace] = OrderedDict()

    async def add(self, content: ContentGeneration, read: Callable[[], bytes | None]) -> PackPlace | None:
        """Append the bytes that `read` returns, in another thread; on the disk when this returns. None without bytes.

        Raises OSError, and what `read` raises.
        """

        def append() -> PackPlace | None:
            data = read()
            return None if data is None else self._append(content, data)

        return await self._thread.run(append)

    def read(self, content: ContentGeneration) -> bytes | None:
        """The bytes of a packed object; None where it is not there any more."""
        with suppress(FileNotFoundError), self._open(content, PLAIN) as (pack, packed):
            return read_packed(pack, packed.offset, content.sha256, content.generation)
        return None

    def erase(self, content: ContentGeneration) -> None:
        """Overwrite a packed object, if it is there, and give its space back; durable when this returns."""
        with suppress(FileNotFoundError), self._open(content, _CHANGE) as (pack, packed):
            record = record_at(pack, packed.offset)
            # One that is half erased, even to the middle of its header, is erased again.
            if record is not None and (record.is_erased or _is_of(record, content) or not is_whole(pack, record)):
                modified = os.fstat(pack)
                erase_record(pack, record)
                _give_back(pack, record)
                # The age of a pack is that of its last record.
                os.utime(pack, ns=(modified.st_atime_ns, modified.st_mtime_ns))

    def listing(self) -> Iterator[StoredFile]:
        """Every object in the packs, by its key there."""
        for file in self._folders.walk(PACKS):
            name = file.key.rpartition("/")[2]
            with suppress(FileNotFoundError), self._open_pack(name, PLAIN) as pack:
                for record in records_of(pack):
                    if not record.is_erased:
                        place = PackPlace(pack=name, offset=record.offset)
                        content = ContentGeneration(record.sha256, record.generation, place)
                        yield StoredFile(content.key, record.size_bytes, file.modified)

    def sweep(self) -> int:
        """Remove packs that nobody appends to and that hold no object; returns their number."""
        removed = 0
        for file in list(self._folders.walk(PACKS)):
            with suppress(FileNotFoundError), self._open_pack(file.key.rpartition("/")[2], _CHANGE) as pack:
                if _lock(pack) and all(record.is_erased for record in records_of(pack)):
                    with self._folders.holding(file.key) as (folders, name):
                        os.unlink(name, dir_fd=folders[-1])
                        # Of an erasure that a crash cut short, the bytes may still be on the disk.
                        os.fsync(folders[-1])
                    removed += 1
        return removed

    def _append(self, content: ContentGeneration, data: bytes) -> PackPlace:
        name = (content.sha256, content.generation)
        packed = self._recent.get(name)
        if packed is None or self.read(replace(content, packed=packed)) is None:
            packed = self._recent[name] = self._write(content, data)
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)
        return packed

    def _write(self, content: ContentGeneration, data: bytes) -> PackPlace:
        pack = self._current or self._new()
        if pack not in self._unsynced:
            self._unsynced.append(pack)
        # After an error its end is not known.
        self._current = None
        packed = pack.append(content, data)
        if pack.size_bytes < _PACK_BYTES:
            self._current = pack
        return packed

    def _sync(self) -> None:
        """Bring all that has been appended to the disk; a pack that cannot be synced is not used any more."""
        unsynced, self._unsynced = self._unsynced, []
        current, self._current = self._current, None
        recent, self._recent = self._recent, OrderedDict()
        for pack in unsynced:
            os.fsync(pack.descriptor)
            if pack is not current:
                pack.close()
        self._current, self._recent = current, recent

    def _new(self) -> _OpenPack:
        while True:
            key = f"{PACKS}/{time.strftime('%Y%m%d', time.gmtime())}-{secrets.token_hex(8)}.pack"
            with self._folders.holding(key, make=True) as (folders, name):
                pack = _OpenPack(name, os.open(name, NEW, 0o640, dir_fd=folders[-1]))
                # Another process may have taken it for an abandoned one and removed it.
                if _lock(pack.descriptor) and os.fstat(pack.descriptor).st_nlink:
                    self._folders.sync(key, folders)
                    return pack

    @contextmanager
    def _open(self, content: ContentGeneration, flags: int) -> Iterator[tuple[int, PackPlace]]:
        if content.packed is None:
            raise FileNotFoundError(content.key)
        with self._open_pack(content.packed.pack, flags) as pack:
            yield pack, content.packed

    @contextmanager
    def _open_pack(self, name: str, flags: int) -> Iterator[int]:
        with self._folders.open_folders(PACKS) as folders:
            pack = os.open(name, flags, dir_fd=folders[-1])
        with closing(os.fdopen(pack, "rb", buffering=0)):
            yield pack


def _is_of(record: PackRecord, content: ContentGeneration) -> bool:
    return (record.sha256, record.generation) == (content.sha256, content.generation)


def _lock(pack: int) -> bool:
    """Lock a pack; False where the process that appends to it holds the lock."""
    with suppress(BlockingIOError):
        fcntl.flock(pack, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _give_back(pack: int, record: PackRecord) -> None:
    """Free the blocks of an erased record but for its header, where the file system can."""
    fallocate = getattr(ctypes.CDLL(None), "fallocate64", None)
    if fallocate is not None:
        begin = ctypes.c_int64(record.end - record.size_bytes)
        fallocate(pack, _KEEP_SIZE | _PUNCH_HOLE, begin, ctypes.c_int64(record.size_bytes))
