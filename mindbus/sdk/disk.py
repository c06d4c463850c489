"""File operations that survive a power cut."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import IO


class Disk:
    """Each method is atomic, and durable when it returns; `remove` is atomic only."""

    def make_folder(self, path: Path) -> None:
        """Make a folder and its parents."""
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            _sync_folder(folder.parent)

    def sync(self, file: IO[bytes]) -> None:
        """Flush and fsync."""
        file.flush()
        os.fsync(file.fileno())

    def publish(self, part: Path, final: Path) -> None:
        """Rename a finished file."""
        part.replace(final)
        _sync_folder(final.parent)

    def save(self, path: Path, content: bytes) -> None:
        """Write or replace a small file."""
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)

    def move(self, path: Path, folder: Path) -> None:
        """Move a file into another folder, if it exists."""
        with suppress(FileNotFoundError):
            path.replace(folder / path.name)
            _sync_folder(folder)
            _sync_folder(path.parent)

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists, without a sync.

        What a power cut brings back is registered or removed once more, to no effect.
        """
        path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
