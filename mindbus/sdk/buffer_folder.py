"""A folder of the buffer, with one writer."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from mindbus.logs import logger
from mindbus.sdk.disk import Disk
from mindbus.sdk.entry import Entry, bytes_path, entry_path

_LOCK = ".lock"
FAILED = "failed"


class DamagedEntry(ValueError):
    """A buffered artifact is not what its entry says; what there is of it is set aside."""


class BufferFolder:
    """The entries in one folder, for as long as its lock is held; the lock goes with the process that holds it."""

    def __init__(self, path: Path, lock: int, disk: Disk) -> None:
        self.path, self._lock, self._disk = path, lock, disk

    @classmethod
    def claim(cls, path: Path, disk: Disk) -> "BufferFolder | None":
        """Take a folder over, unless a living process has it."""
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever had it may have removed the folder while this one waited at its door.
            is_there = os.path.samestat(os.fstat(lock), (path / _LOCK).stat())
        except (BlockingIOError, FileNotFoundError):
            is_there = False
        if not is_there:
            os.close(lock)
            return None
        return cls(path, lock, disk)

    def load(self) -> list[Entry]:
        """What a dead process left behind; half-received bytes are swept, what cannot be read is set aside."""
        entries = []
        for path in sorted(self.path.glob("*.json")):
            try:
                entries.append(self._read(path))
            except (ValidationError, UnicodeDecodeError, DamagedEntry) as damage:
                self.set_aside(path.stem, f"not readable: {damage}")
        for path in [*self.path.glob("*.part"), *self.path.glob("*.bytes")]:
            if path.suffix == ".part" or not entry_path(self.path, path.stem).exists():
                self._disk.remove(path)
        return entries

    def add(self, part: Path, entry: Entry) -> None:
        """Make received bytes an entry: it exists once this returns, or does not."""
        self._disk.publish(part, bytes_path(self.path, entry.artifact_id))
        self.save(entry)

    def save(self, entry: Entry) -> None:
        """Write the entry down, or anew."""
        self._disk.save(entry_path(self.path, entry.artifact_id), entry.model_dump_json().encode())

    def drop(self, artifact_id: str) -> None:
        """Storage has it."""
        self._disk.remove(entry_path(self.path, artifact_id))
        self._disk.remove(bytes_path(self.path, artifact_id))

    def set_aside(self, artifact_id: str, reason: str) -> None:
        """Keep an entry that cannot be registered for somebody to look at, out of the others' way."""
        failed = self.path.parent / FAILED
        self._disk.make_folder(failed)
        self._disk.save(failed / f"{artifact_id}.reason.txt", reason.encode())
        # The bytes first: an entry that lost its bytes is set aside again, bytes without an entry are swept.
        self._disk.move(bytes_path(self.path, artifact_id), failed)
        self._disk.move(entry_path(self.path, artifact_id), failed)
        logger().error("buffered artifact set aside", artifact_id=artifact_id, folder=str(failed), reason=reason)

    def is_empty(self) -> bool:
        """Whether nothing is left but the lock."""
        return all(path.name == _LOCK for path in self.path.iterdir())

    def close(self) -> None:
        """Let go of it; an empty one disappears."""
        if self.is_empty():
            (self.path / _LOCK).unlink()
            # Another instance may have put its own lock there at this very moment; then the folder is its to remove.
            with suppress(OSError):
                self.path.rmdir()
        self.unlock()

    def unlock(self) -> None:
        """Leave it to others as it is, as the death of its process would."""
        os.close(self._lock)

    def _is_half_set_aside(self, artifact_id: str) -> bool:
        failed = self.path.parent / FAILED
        return bytes_path(failed, artifact_id).exists() and not entry_path(failed, artifact_id).exists()

    def _read(self, path: Path) -> Entry:
        entry = Entry.model_validate_json(path.read_bytes())
        if entry.artifact_id != path.stem:
            raise DamagedEntry(f"it is the entry of {entry.artifact_id}")
        if self._is_half_set_aside(path.stem):
            raise DamagedEntry("it was being set aside")
        # Where there are no bytes, they have been moved to where they are staged; storage may have them already.
        with suppress(FileNotFoundError):
            size = bytes_path(self.path, path.stem).stat().st_size
            if size != entry.manifest.size_bytes:
                raise DamagedEntry(f"its bytes are {size}, not {entry.manifest.size_bytes}")
        return entry
