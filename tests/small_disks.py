"""A disk of a few megabytes, in memory, that a test may fill."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_BLOCK_BYTES = 4096


class SmallDisk:
    """A file system of its own; what fills it is one file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self, leaving_bytes: int = 0) -> None:
        """Leave no more room than that."""
        with self._ballast.open("wb", buffering=0) as ballast:
            while self._free_bytes() > leaving_bytes:
                size = max(_BLOCK_BYTES, (self._free_bytes() - leaving_bytes) // 2)
                try:
                    ballast.write(bytes(size))
                except OSError as full:
                    if full.errno != errno.ENOSPC:
                        raise
                    return

    def clear(self) -> None:
        """Make room."""
        self._ballast.unlink()

    def _free_bytes(self) -> int:
        found = os.statvfs(self.folder)
        return found.f_bfree * found.f_frsize


@contextmanager
def small_disk_at(folder: Path, size_mb: int) -> Iterator[SmallDisk]:
    """Mounted there for a while; skips where that is not allowed."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        pytest.skip(f"no disk can be mounted here: {missing}")
    if mounted.returncode != 0:
        pytest.skip(f"no disk may be mounted here: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
