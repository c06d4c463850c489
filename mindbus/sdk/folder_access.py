"""Access to a file store that is a folder on this machine."""

import asyncio
import errno
import os
from pathlib import Path

from mindbus.files import FileStore
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
        origin = source if source.exists() else self._orphan(entry.upload_key)
        if staged.exists() and origin is not source:
            os.utime(staged)
        elif origin is not None:
            # It may have waited longer than storage leaves alone what is staged.
            os.utime(origin)
            if not _moved(origin, staged):
                super()._stage(entry, origin, progress)
        # Where it is nowhere, storage may have it; else storage is the one to say no.

    def _orphan(self, key: str) -> Path | None:
        """What storage set aside since nobody had registered it for a day, perhaps while its producer was down."""
        places = (self._root / "orphans", self._root.parent / "orphans")
        return next((orphan for place in places for orphan in place.glob(f"*/{key}")), None)


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
