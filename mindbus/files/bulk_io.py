"""Hashing and disk writes that overlap with the copying of large files."""

import hashlib
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Self

# Handing over less takes longer than hashing it.
_THREAD_BYTES = 64 * 1024
_WRITE_BEHIND_BYTES = 8 * 1024 * 1024


class BackgroundSha256:
    """SHA-256 in a thread of its own, while the caller reads and writes the next piece; a context manager.

    At most one piece waits; it must not change.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._thread = ThreadPoolExecutor(1, "sha256")
        self._last: Future[None] | None = None

    def update(self, piece: bytes) -> None:
        """Hash a piece; blocks only while the piece before is still being hashed."""
        self._settle()
        if len(piece) < _THREAD_BYTES:
            self._digest.update(piece)
        else:
            self._last = self._thread.submit(self._digest.update, piece)

    def hexdigest(self) -> str:
        """Digest of all pieces so far."""
        self._settle()
        return self._digest.hexdigest()

    def close(self) -> None:
        """End the thread; idempotent."""
        self._thread.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _settle(self) -> None:
        if self._last is not None:
            self._last.result()
            self._last = None


class WriteBehindFile:
    """A file whose pages are written back while it grows, so that the final fsync is short."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._flushed = self._written = 0

    def write(self, piece: bytes) -> None:
        """Raises OSError."""
        self._file.write(piece)
        self._written += len(piece)
        if self._written - self._flushed >= _WRITE_BEHIND_BYTES:
            self._write_back()

    def _write_back(self) -> None:
        self._file.flush()
        if hasattr(os, "posix_fadvise"):
            # POSIX_FADV_DONTNEED starts the write-back of dirty pages and keeps them in memory until then.
            length = self._written - self._flushed
            os.posix_fadvise(self._file.fileno(), self._flushed, length, os.POSIX_FADV_DONTNEED)
        self._flushed = self._written
