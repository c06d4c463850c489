"""Packs: many small objects of the store in one file, as records of a header and the bytes."""

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bus_schema.uploads import PackPlace
from mindbus.files.keys import object_key, validate_key

PACKS = "packs"
# A larger object has a file of its own, which costs little beside its bytes.
MAX_PACKED_BYTES = 64 * 1024
# Mark, generation, size and sha256 of the bytes that follow; big-endian.
_HEADER = struct.Struct(">4sIQ32s")
_STORED, _ERASED = b"MBP1", b"MBP0"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class PackRecord:
    """One object in a pack; an erased one keeps its size alone."""

    offset: int
    size_bytes: int
    generation: int
    sha256: str
    is_erased: bool = False

    @property
    def end(self) -> int:
        """Offset of the next record."""
        return self.offset + _HEADER.size + self.size_bytes

    def to_bytes(self, content: bytes) -> bytes:
        """The record as stored."""
        return _HEADER.pack(_STORED, self.generation, self.size_bytes, bytes.fromhex(self.sha256)) + content


def record_at(pack: int, offset: int) -> PackRecord | None:
    """The record at an offset of an open pack; None where there is none, or not all of it."""
    header = os.pread(pack, _HEADER.size, offset)
    if len(header) < _HEADER.size:
        return None
    mark, generation, size_bytes, digest = _HEADER.unpack(header)
    record = PackRecord(offset, size_bytes, generation, digest.hex(), mark == _ERASED)
    return record if mark in (_STORED, _ERASED) and record.end <= os.fstat(pack).st_size else None


def records_of(pack: int) -> Iterator[PackRecord]:
    """All records of an open pack, up to one that a process that died has left unfinished."""
    offset = 0
    while (record := record_at(pack, offset)) is not None:
        yield record
        offset = record.end


def read_packed(pack: int, offset: int, sha256: str, generation: int) -> bytes | None:
    """The bytes of an object; None where it is not there, or is being erased."""
    record = record_at(pack, offset)
    if record is None or (record.sha256, record.generation) != (sha256, generation):
        return None
    content = os.pread(pack, record.size_bytes, offset + _HEADER.size)
    # Erasure begins with the header, so that these are the bytes if the header is still there.
    return content if record_at(pack, offset) == record else None


def is_whole(pack: int, record: PackRecord) -> bool:
    """Whether the bytes of a record are those that its header names."""
    content = os.pread(pack, record.size_bytes, record.offset + _HEADER.size)
    return hashlib.sha256(content).hexdigest() == record.sha256


def read_pack(root: Path, packed: PackPlace, sha256: str, generation: int) -> bytes:
    """The bytes of an object in a store on disk. Raises FileNotFoundError, OSError."""
    path = root / PACKS / packed.pack
    pack = os.open(path, _READ)
    try:
        content = read_packed(pack, packed.offset, sha256, generation)
    finally:
        os.close(pack)
    if content is None:
        raise FileNotFoundError(f"{path}@{packed.offset}")
    return content


def packed_place(packed: PackPlace, sha256: str, generation: str) -> str:
    """The place of an object in a pack, as one text."""
    return f"{PACKS}/{packed.pack}/{packed.offset}/{sha256}/{generation}"


def read_place(root: Path, place: str) -> bytes:
    """The bytes at such a place, or in the file that was brought back for them. Raises OSError."""
    _packs, pack, offset, sha256, generation = place.split("/")
    with suppress(FileNotFoundError):
        return read_pack(root, PackPlace(pack=pack, offset=int(offset)), sha256, int(generation))
    return (root / validate_key(object_key(sha256, generation))).read_bytes()


def erase_record(pack: int, record: PackRecord) -> None:
    """Overwrite a record with zeros, durably; its size stays, so that the records behind it are found."""
    os.pwrite(pack, _HEADER.pack(_ERASED, 0, record.size_bytes, bytes(32)), record.offset)
    os.pwrite(pack, bytes(record.size_bytes), record.offset + _HEADER.size)
    os.fsync(pack)
