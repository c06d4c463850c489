"""A folder of the buffer: its entries, and a lock that admits one process."""

import os
from contextlib import suppress
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from bus_schema.artifacts import Manifest
from mindbus.files.disk import Disk, lock_file
from mindbus.logs import logger


class BufferEntry(BaseModel):
    """A buffered artifact; written before anything leaves this machine, so that a repetition is the same message.

    `upload_key` is where it is staged, the manifest's `uri` the address of that key. Where the file store is on the
    same disk, the bytes are moved there rather than copied.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    manifest: Manifest
    upload_key: str
    buffered_at: AwareDatetime

    @property
    def artifact_id(self) -> str:
        """The artifact's id, the same however often it is sent."""
        return self.manifest.id

    @property
    def needs(self) -> frozenset[str]:
        """Ids of the artifacts that must be registered first."""
        inputs = self.manifest.context.input_artifacts if self.manifest.context else ()
        return frozenset({*inputs, *filter(None, (self.manifest.supersedes,))})


def bytes_path(folder: Path, artifact_id: str) -> Path:
    """Path of an entry's bytes, unless they have been moved to their staging key."""
    return folder / f"{artifact_id}.bytes"


def entry_path(folder: Path, artifact_id: str) -> Path:
    """Path of the entry itself; it is written only after its bytes."""
    return folder / f"{artifact_id}.json"


_LOCK = ".lock"
FAILED = "failed"
REASON = ".reason.txt"


class DamagedEntry(ValueError):
    """A buffered artifact does not match its entry; it is set aside."""


class BufferFolder:
    """The entries in one folder while its lock is held; the lock ends with its process."""

    def __init__(self, path: Path, lock: int, disk: Disk) -> None:
        self.path, self._lock, self._disk = path, lock, disk

    @classmethod
    def claim(cls, path: Path, disk: Disk) -> "BufferFolder | None":
        """Lock a folder; None where a living process holds it."""
        with suppress(FileNotFoundError):
            lock = lock_file(path / _LOCK)
            if lock is None:
                return None
            # Its owner may have removed the folder meanwhile.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), (path / _LOCK).stat()):
                    return cls(path, lock, disk)
            os.close(lock)
        return None

    def load(self) -> list[BufferEntry]:
        """Entries of a dead process; partly received bytes are removed, damaged entries set aside."""
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

    def add(self, part: Path, entry: BufferEntry) -> None:
        """Make received bytes an entry, atomically."""
        self._disk.publish(part, bytes_path(self.path, entry.artifact_id))
        self.save(entry)

    def save(self, entry: BufferEntry) -> None:
        self._disk.save(entry_path(self.path, entry.artifact_id), entry.model_dump_json().encode())

    def drop(self, artifact_id: str) -> None:
        self._disk.remove(entry_path(self.path, artifact_id))
        self._disk.remove(bytes_path(self.path, artifact_id))

    def set_aside(self, artifact_id: str, reason: str) -> None:
        """Move an entry that cannot be registered to the `failed` folder, with the reason."""
        failed = self.path.parent / FAILED
        self._disk.make_folder(failed)
        self._disk.save(failed / f"{artifact_id}{REASON}", reason.encode())
        # The bytes first: an entry that lost its bytes is set aside again, bytes without an entry are removed.
        self._disk.move(bytes_path(self.path, artifact_id), failed)
        self._disk.move(entry_path(self.path, artifact_id), failed)
        logger().error("buffered artifact set aside", artifact_id=artifact_id, folder=str(failed), reason=reason)

    def is_empty(self) -> bool:
        return all(path.name == _LOCK for path in self.path.iterdir())

    def close(self) -> None:
        """Unlock the folder, and remove it where it is empty."""
        if self.is_empty():
            (self.path / _LOCK).unlink()
            # Another instance may have locked it just now; then that instance removes it.
            with suppress(OSError):
                self.path.rmdir()
        self.unlock()

    def unlock(self) -> None:
        """Release the lock, as the end of the process would."""
        os.close(self._lock)

    def _is_half_set_aside(self, artifact_id: str) -> bool:
        failed = self.path.parent / FAILED
        return bytes_path(failed, artifact_id).exists() and not entry_path(failed, artifact_id).exists()

    def _read(self, path: Path) -> BufferEntry:
        entry = BufferEntry.model_validate_json(path.read_bytes())
        if entry.artifact_id != path.stem:
            raise DamagedEntry(f"it is the entry of {entry.artifact_id}")
        if self._is_half_set_aside(path.stem):
            raise DamagedEntry("it was being set aside")
        # Missing bytes have been moved to their staging key; storage may have them already.
        with suppress(FileNotFoundError):
            size = bytes_path(self.path, path.stem).stat().st_size
            if size != entry.manifest.size_bytes:
                raise DamagedEntry(f"its bytes are {size}, not {entry.manifest.size_bytes}")
        return entry
