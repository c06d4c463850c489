"""Many bytes on their way: hashed, brought to the disk while they are still being copied."""

import hashlib
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Self

# To hand over less takes longer than to hash it.
_WORTH_A_THREAD_BYTES = 64 * 1024
_WRITTEN_BEHIND_BYTES = 8 * 1024 * 1024


class Sha256Aside:
    """Hashes in a thread of its own, so that its caller writes one piece, reads the next meanwhile; `with` it.

    At most one piece waits; it must not change.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._thread = ThreadPoolExecutor(1, "sha256")
        self._last: Future[None] | None = None

    def update(self, piece: bytes) -> None:
        """Goes on at once, unless the piece before is still being hashed."""
        self._settle()
        if len(piece) < _WORTH_A_THREAD_BYTES:
            self._digest.update(piece)
        else:
            self._last = self._thread.submit(self._digest.update, piece)

    def hexdigest(self) -> str:
        """Of all pieces so far."""
        self._settle()
        return self._digest.hexdigest()

    def close(self) -> None:
        """End the thread; again is as good as once."""
        self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _settle(self) -> None:
        if self._last is not None:
            self._last.result()
            self._last = None


class EagerFile:
    """Has the disk write along, so that little is left to wait for where the file must be safe in the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._asked_for = self._written = 0

    def write(self, piece: bytes) -> None:
        """Raises OSError."""
        self._file.write(piece)
        self._written += len(piece)
        if self._written - self._asked_for >= _WRITTEN_BEHIND_BYTES:
            self._urge()

    def _urge(self) -> None:
        self._file.flush()
        if hasattr(os, "posix_fadvise"):
            # The kernel begins to write what it is told is not needed; pages not yet written it keeps in memory.
            length = self._written - self._asked_for
            os.posix_fadvise(self._file.fileno(), self._asked_for, length, os.POSIX_FADV_DONTNEED)
        self._asked_for = self._written
