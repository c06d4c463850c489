"""Local files: private ones, durable operations, threads for them, hashing and write-back that overlap with copying."""

import asyncio
import fcntl
import hashlib
import os
import resource
import secrets
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, Self, TypeVar

T = TypeVar("T")

# Handing over less takes longer than hashing it.
_THREAD_BYTES = 64 * 1024
_WRITE_BEHIND_BYTES = 8 * 1024 * 1024
# Erlang's own default, above which the tables of a broker that inherits the limit grow; what macOS allows.
_OPEN_FILES = (65_536, 10_240)


def keep_private(folder: Path) -> None:
    """Make a folder that only this user can enter, and have all that this process makes from now on be theirs alone.

    A folder of somebody else's, such as a mounted one, keeps its mode.
    """
    os.umask(0o077)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        with suppress(PermissionError):
            folder.chmod(0o700)


def allow_many_open_files() -> None:
    """Raise the soft limit of open files, often 1,024 with connections included, as far as this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in _OPEN_FILES:
        wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return


def write_private(file: Path, text: str) -> None:
    """Write a file with mode 0600 atomically: a reader sees all of it or the one before."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{socket.gethostname()}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as sink:
        sink.write(text)
    part.replace(file)


def write_private_once(file: Path, text: str) -> tuple[str, bool]:
    """Write a file with mode 0600, unless it is there; what it holds then, and whether that is new."""
    if file.exists():
        return file.read_text(encoding="utf-8").strip(), False
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    write_private(part, text)
    try:
        # Of several processes that start at once, one makes the file of all.
        os.link(part, file)
    except FileExistsError:
        return file.read_text(encoding="utf-8").strip(), False
    finally:
        part.unlink()
    return text, True


def lock_file(file: Path) -> int | None:
    """An exclusive lock as a file descriptor, None where another holds it; whoever inherits it holds the lock, too.

    Raises FileNotFoundError where there is no such folder.
    """
    lock = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def private(path: str | Path, flags: int) -> int:
    """Opener of a new file with mode 0600."""
    return os.open(path, flags, 0o600)


class Disk:
    """Files of this user alone. Each method is atomic, and durable when it returns; `remove` is atomic only."""

    def make_folder(self, path: Path) -> None:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)

    def sync(self, file: IO[bytes]) -> None:
        file.flush()
        os.fsync(file.fileno())

    def publish(self, part: Path, final: Path) -> None:
        part.replace(final)
        sync_folder(final.parent)

    def save(self, path: Path, content: bytes) -> None:
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        with open(part, "wb", opener=private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(path.parent)

    def move(self, path: Path, folder: Path) -> None:
        with suppress(FileNotFoundError):
            path.replace(folder / path.name)
            sync_folder(folder)
            sync_folder(path.parent)

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists, without a sync.

        What a power cut brings back is registered or removed once more, to no effect.
        """
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make durable which files a folder has."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class JobThreads:
    """A few threads for short jobs on files; each takes its share of the jobs that wait, rather than one at a time.

    Many small files come at once, and handing one over to a thread and back takes as long as what is done to it.
    `finish` is called after each share, before any of its jobs returns; if it fails, all of them do.
    """

    def __init__(self, name: str, threads: int = 4, finish: Callable[[], None] | None = None) -> None:
        self._pool = ThreadPoolExecutor(threads, name)
        self._finish = finish
        self._idle = threads
        self._waiting: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._is_due = False

    async def run(self, job: Callable[[], T]) -> T:
        """The result of the job, which a cancellation does not stop."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._waiting.append((job, done))
        if not self._is_due and self._idle:
            # Together with those that come in the same turn of the loop.
            self._is_due = True
            loop.call_soon(self._hand_over, loop)
        return await done

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_due = False
        while self._waiting and self._idle:
            share = -(-len(self._waiting) // self._idle)
            jobs, self._waiting = self._waiting[:share], self._waiting[share:]
            self._idle -= 1
            loop.run_in_executor(self._pool, _run_all, jobs, self._finish).add_done_callback(
                partial(self._settle, loop, jobs)
            )

    def _settle(
        self,
        loop: asyncio.AbstractEventLoop,
        jobs: list[tuple[Callable[[], Any], "asyncio.Future[Any]"]],
        ended: "asyncio.Future[list[tuple[Any, BaseException | None]]]",
    ) -> None:
        self._idle += 1
        self._hand_over(loop)
        for (_job, done), (result, error) in zip(jobs, ended.result(), strict=True):
            if done.done():
                continue
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)


def _run_all(
    jobs: list[tuple[Callable[[], Any], Any]], finish: Callable[[], None] | None
) -> list[tuple[Any, BaseException | None]]:
    ended: list[tuple[Any, BaseException | None]] = []
    for job, _done in jobs:
        try:
            ended.append((job(), None))
        except BaseException as error:  # noqa: BLE001  # it is the caller's
            ended.append((None, error))
    try:
        if finish is not None:
            finish()
    except Exception as error:  # noqa: BLE001  # it is the callers'
        return [(None, earlier or error) for _result, earlier in ended]
    return ended


class BackgroundSha256:
    """SHA-256 in a thread of its own, while the caller reads and writes the next piece; a context manager.

    At most one piece waits; it must not change. Small pieces need no thread.
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._thread: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None

    def update(self, piece: bytes) -> None:
        """Hash a piece; blocks only while the piece before is still being hashed."""
        self._settle()
        if len(piece) < _THREAD_BYTES:
            self._digest.update(piece)
        else:
            self._thread = self._thread or ThreadPoolExecutor(1, "sha256")
            self._last = self._thread.submit(self._digest.update, piece)

    def hexdigest(self) -> str:
        self._settle()
        return self._digest.hexdigest()

    def close(self) -> None:
        if self._thread is not None:
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
