"""Snapshots: named arrays of a growing sequence in one file, read memory-mapped."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MAGIC = b"mbarrays"
_PAGE = 4096
# Room for what is appended after reading; the hole takes no space on disk.
_ROOM = 1.5

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Arrays, whose first axis may have room for more items than were written, and facts about them as JSON."""

    arrays: Arrays = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> "Snapshot":
        """Part that `joined` has put under this name."""
        prefix = f"{name}."
        inside = {key.removeprefix(prefix): value for key, value in self.arrays.items() if key.startswith(prefix)}
        return Snapshot(inside, self.facts[name])

    @classmethod
    def joined(cls, parts: Mapping[str, "Snapshot"], facts: dict[str, Any]) -> "Snapshot":
        """One snapshot of several parts, with facts of its own."""
        arrays = {f"{name}.{key}": value for name, part in parts.items() for key, value in part.arrays.items()}
        return cls(arrays, {**facts, **{name: part.facts for name, part in parts.items()}})

    def write(self, path: Path) -> None:
        """Replace the file at once: a reader finds the old snapshot or the new one. Raises OSError."""
        new = path.with_name(f"{path.name}.new")
        layout, end = _layout(self.arrays)
        header = json.dumps({"arrays": layout, "facts": self.facts, "end": end}).encode()
        try:
            with new.open("wb") as file:
                for (_, _, _, offset), array in zip(layout.values(), self.arrays.values(), strict=True):
                    file.seek(offset)
                    file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
                file.truncate(end)
                file.seek(end)
                file.write(header + len(header).to_bytes(8, "little") + _MAGIC)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)
        finally:
            new.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> "Snapshot":
        """Map the arrays; what is changed in them stays in memory. Raises OSError, ValueError if it is no snapshot."""
        header = _header(path)
        arrays: Arrays = {}
        for name, (kind, shape, capacity, offset) in header["arrays"].items():
            whole = (capacity, *shape[1:])
            if not np.prod(whole):
                arrays[name] = np.zeros(whole, dtype=kind)
            else:
                # Copy-on-write: items are appended in memory, the file stays as it is.
                arrays[name] = np.memmap(path, dtype=kind, mode="c", offset=offset, shape=whole)
        return cls(arrays, header["facts"])


def private_bytes(array: NDArray[Any]) -> int:
    """Memory of an array, 0 of one that is mapped from a file."""
    return 0 if isinstance(array, np.memmap) else array.nbytes


def padded(array: NDArray[Any], items: int, value: float = 0) -> NDArray[Any]:
    """The array with room for so many items along its first axis."""
    room = [(0, items - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, room, constant_values=value)


def _layout(arrays: Arrays) -> tuple[dict[str, tuple[str, Sequence[int], int, int]], int]:
    """Of each array its type, shape, items there is room for and offset in bytes; the end of the last."""
    layout: dict[str, tuple[str, Sequence[int], int, int]] = {}
    offset = 0
    for name, array in arrays.items():
        capacity = int(_ROOM * len(array))
        layout[name] = (array.dtype.str, array.shape, capacity, offset)
        row = array.dtype.itemsize * int(np.prod(array.shape[1:]))
        offset += -(-row * capacity // _PAGE) * _PAGE
    return layout, offset


def _header(path: Path) -> Any:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(_MAGIC) - 8))
        tail = file.read()
        length = int.from_bytes(tail[:8], "little")
        if tail[8:] != _MAGIC or length > size:
            raise ValueError(f"{path} is no snapshot of arrays")
        file.seek(size - len(tail) - length)
        header = json.loads(file.read(length))
    if header["end"] + length + len(tail) != size:
        raise ValueError(f"{path} is not whole")
    return header
