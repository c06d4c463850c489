"""Access to a file store that is a folder on this machine."""

import asyncio
import errno
import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from mindbus.files.store import FileStore
from mindbus.logs import logger
from mindbus.sdk.access import DirectAccess
from mindbus.sdk.entry import Entry
from mindbus.sdk.progress import Progress


class FolderAccess(DirectAccess):
    """Stages by moving, which takes no time; by copying where the buffer is on another disk.

    Neither move is brought to the disk at once: a power cut may leave the bytes at either place, where they are looked
    for.
    """

    def __init__(self, files: FileStore, root: Path) -> None:
        super().__init__(files)
        self._root = root

    async def shelter(self, entry: Entry, source: Path) -> None:
        """As in Access: storage sweeps up what is staged for long."""
        try:
            await asyncio.to_thread(self._bring_back, self._root / entry.upload_key, source)
        except OSError as trouble:
            logger().warning("staged file stays", upload=entry.upload_key, reason=str(trouble))

    def _bring_back(self, staged: Path, source: Path) -> None:
        if staged.exists() and not source.exists():
            _moved(staged, source)

    def _stage(self, entry: Entry, source: Path, progress: Progress) -> None:
        staged = self._root / entry.upload_key
        places = chain((source, staged), self._orphans(entry.upload_key))
        found = next((place for place in places if place.exists()), None)
        if found is None:
            # Storage may have it; else storage is the one to say no.
            return
        # It may have waited longer than storage leaves alone what is staged.
        os.utime(found)
        if found != staged and not _moved(found, staged):
            super()._stage(entry, found, progress)

    def _orphans(self, key: str) -> Iterator[Path]:
        """What storage set aside since nobody had registered it for a day, perhaps while its producer was down."""
        for place in (self._root / "orphans", self._root.parent / "orphans"):
            yield from place.glob(f"*/{key}")


def _moved(source: Path, target: Path) -> bool:
    """Whether both lie on one disk, so that it was possible."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.replace(target)
    except OSError as trouble:
        if trouble.errno != errno.EXDEV:
            raise
        return False
    return True
