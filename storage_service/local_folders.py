"""Folders of a store on disk, opened without following a link; files with one name alone; moves between disks."""

import errno
import os
import re
import stat
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from storage_service.blobs import CHUNK_BYTES, ORPHANS, StoredFile
from storage_service.errors import NotAPlainFile

# Without O_NONBLOCK, opening a pipe without a writer would hang for ever.
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def move_file(source: tuple[int, str], target: tuple[int, str]) -> None:
    """Move a file between folders, complete at every moment; on another disk it is copied and the source left."""
    try:
        os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target)


def _copy(source: tuple[int, str], target: tuple[int, str]) -> None:
    """Copy to another file system, under a temporary name first."""
    part = f".{uuid.uuid4().hex}.part"
    # A link or a pipe is not kept.
    if not stat.S_ISREG(os.stat(source[1], dir_fd=source[0], follow_symlinks=False).st_mode):
        return
    with (
        os.fdopen(os.open(source[1], PLAIN, dir_fd=source[0]), "rb", buffering=0) as reader,
        os.fdopen(os.open(part, NEW, 0o440, dir_fd=target[0]), "wb") as writer,
    ):
        while chunk := reader.read(CHUNK_BYTES):
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())
    os.rename(part, target[1], src_dir_fd=target[0], dst_dir_fd=target[0])


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# The longest name in a key is an owner's.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]{0,127}")
# Deeper than any key; nested folders in staging could otherwise use up all descriptors.
_MAX_DEPTH = 8
_DIGEST_CHARS = 64
_OWNERSHIP_CHECKS = 8
_GONE_OR_SHUT = (FileNotFoundError, NotADirectoryError, PermissionError)


def require_single_name(staged: int, name: str, folder: int) -> None:
    """Check that the file has this name alone. Raises NotAPlainFile, FileNotFoundError."""
    # A second name may be a hard link to a file that its creator could not read. An attacker who removes the first
    # name for the moment in which names are counted has to restore it for the next check, again and again.
    for number in range(_OWNERSHIP_CHECKS):
        opened = os.fstat(staged)
        if not stat.S_ISREG(opened.st_mode) or opened.st_nlink > 1:
            raise NotAPlainFile
        # Once: an attacker who is waited for each time keeps step.
        if number == _OWNERSHIP_CHECKS // 2:
            _await_changes(folder)
        if not os.path.samestat(opened, os.stat(name, dir_fd=folder, follow_symlinks=False)):
            raise FileNotFoundError(errno.ENOENT, "it has been replaced", name)


def _await_changes(folder: int) -> None:
    """Return once no name is being made or removed in a folder.

    While the journal of the disk keeps an unlink(2) waiting, the name is still found though no link counts it; reading
    the folder waits for the lock that unlink(2) holds.
    """
    with os.scandir(folder) as entries:
        next(entries, None)


class Folders:
    """Folders under one root, orphans possibly under another."""

    def __init__(self, root: Path, orphans: Path | None = None) -> None:
        self.root = root
        self.orphans = orphans
        # Folders whose names this process has brought to the disk.
        self._durable: set[str] = set()

    @contextmanager
    def open_folders(self, path: str, *, make: bool = False) -> Iterator[list[int]]:
        """Descriptors of every folder from the root to `path`. Raises FileNotFoundError where one is missing."""
        root, names = self._within(path)
        if make:
            root.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            folders = [_open(stack, str(root), None)]
            for depth, name in enumerate(names, 1):
                try:
                    folder = _open(stack, name, folders[-1])
                except FileNotFoundError:
                    if not make:
                        raise
                    self._durable.discard(_path(path, len(names) - depth))
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o750, dir_fd=folders[-1])
                    folder = _open(stack, name, folders[-1])
                folders.append(folder)
            yield folders

    @contextmanager
    def holding(self, key: str, *, make: bool = False) -> Iterator[tuple[list[int], str]]:
        """The folders of a file, as `open_folders` yields them, and its name."""
        path, _, name = key.rpartition("/")
        with self.open_folders(path, make=make) as folders:
            yield folders, name

    def sync(self, key: str, folders: list[int]) -> None:
        """Bring the name of a file to the disk, and those of its folders, which `holding` has opened.

        They may have been made by a process that died before they reached the disk; once is enough for each.
        """
        parent = key.rpartition("/")[0]
        os.fsync(folders[-1])
        for above, folder in enumerate(reversed(folders[:-1])):
            path = _path(parent, above)
            if path not in self._durable:
                os.fsync(folder)
                # That of a single content comes and goes.
                if len(path.rpartition("/")[2]) < _DIGEST_CHARS:
                    self._durable.add(path)

    def walk(self, path: str) -> Iterator[StoredFile]:
        """Every file under a folder whose name is valid in a key."""
        with ExitStack() as stack:
            try:
                folders = stack.enter_context(self.open_folders(path))
            except FileNotFoundError:
                return
            yield from _walk(folders[-1], path, _MAX_DEPTH)

    def prune(self, path: str, before: datetime) -> int:
        """Remove old empty folders under this one, and old files whose name no key can have; returns their number."""
        try:
            with self.open_folders(path) as folders:
                return _prune(folders[-1], before.timestamp(), _MAX_DEPTH)
        except FileNotFoundError:
            return 0

    def _within(self, path: str) -> tuple[Path, list[str]]:
        first, *names = path.split("/")
        if first == ORPHANS and self.orphans is not None:
            return self.orphans, names
        return self.root, [first, *names]


def _path(path: str, above: int) -> str:
    """The folder so many levels above."""
    return path.rsplit("/", above)[0]


def _open(stack: ExitStack, name: str, within: int | None) -> int:
    # The root itself comes from the settings and may be a link.
    flags = _FOLDER if within is not None else _FOLDER & ~os.O_NOFOLLOW
    descriptor = os.open(name, flags, dir_fd=within)
    stack.callback(os.close, descriptor)
    return descriptor


def _entries(folder: int) -> list[tuple[str, os.stat_result]]:
    entries = []
    for name in os.listdir(folder):
        with suppress(FileNotFoundError):
            entries.append((name, os.stat(name, dir_fd=folder, follow_symlinks=False)))
    return entries


def _walk(folder: int, path: str, depth: int) -> Iterator[StoredFile]:
    for name, status in _entries(folder):
        if not _PLAIN_NAME.fullmatch(name):
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield StoredFile(f"{path}/{name}", status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
        elif depth:
            with ExitStack() as stack:
                try:
                    inner = _open(stack, name, folder)
                except _GONE_OR_SHUT:
                    continue
                yield from _walk(inner, f"{path}/{name}", depth - 1)


def _prune(folder: int, before: float, depth: int) -> int:
    removed = 0
    for name, status in _entries(folder):
        is_old = status.st_mtime < before
        if not stat.S_ISDIR(status.st_mode):
            if is_old and not _PLAIN_NAME.fullmatch(name):
                os.unlink(name, dir_fd=folder)
                removed += 1
        elif depth:
            with suppress(*_GONE_OR_SHUT), ExitStack() as stack:
                removed += _prune(_open(stack, name, folder), before, depth - 1)
            # A folder that is not empty stays.
            with suppress(OSError):
                if is_old:
                    os.rmdir(name, dir_fd=folder)
                    removed += 1
    return removed
