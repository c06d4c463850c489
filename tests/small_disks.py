"""A disk of a few megabytes, in memory, that a test may fill, or have fail."""

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


class FailingDisk(SmallDisk):
    """One with a journal, which turns read-only as after an error of the hardware, until it is repaired."""

    def __init__(self, folder: Path, image: Path) -> None:
        super().__init__(folder)
        self._image = image

    def mount(self) -> None:
        """Raises CalledProcessError where that is not allowed."""
        _run("mount", "-o", "loop", str(self._image), str(self.folder))

    def fail(self) -> None:
        """Whatever is written from now on fails, into open files, too."""
        _run("mount", "-o", "remount,abort", str(self.folder))

    def repair(self) -> None:
        """Take it out, repair it, put it in again. Raises CalledProcessError while somebody has files open on it."""
        _run("umount", str(self.folder))
        # 1: errors were corrected.
        repaired = subprocess.run(["e2fsck", "-p", str(self._image)], capture_output=True, text=True, check=False)
        assert repaired.returncode <= 1, repaired.stdout
        self.mount()


@contextmanager
def failing_disk_at(folder: Path, size_mb: int) -> Iterator[FailingDisk]:
    """Mounted there for a while; skips where that is not allowed."""
    with small_disk_at(folder.with_name(f"{folder.name}.image"), size_mb + 1) as memory:
        image = memory.folder / "disk"
        folder.mkdir()
        try:
            with image.open("wb") as blocks:
                blocks.truncate(size_mb * 1024**2)
            _run("mkfs.ext4", "-q", "-m", "0", str(image))
            disk = FailingDisk(folder, image)
            disk.mount()
        except (FileNotFoundError, subprocess.CalledProcessError) as refused:
            folder.rmdir()
            pytest.skip(f"no disk with a journal can be mounted here: {refused}")
        try:
            yield disk
        finally:
            _run("umount", "-l", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, capture_output=True, text=True, check=True)


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
