"""Folders of a store on disk, reached without following a link."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from storage_service.blobs import ORPHANS, Found

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# No key has longer names: an owner's is the longest.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]{0,127}")
# Deeper than any key; whoever may write to staging could nest folders until every descriptor is used up.
_MAX_DEPTH = 8
_GONE_OR_SHUT = (FileNotFoundError, NotADirectoryError, PermissionError)


class Folders:
    """Everything under one root, orphans perhaps under another."""

    def __init__(self, root: Path, orphans: Path | None = None) -> None:
        self.root = root
        self.orphans = orphans

    @contextmanager
    def reached(self, path: str) -> Iterator[list[int]]:
        """Descriptors of every folder from the root to `path`. Raises FileNotFoundError."""
        root, names = self._within(path)
        with ExitStack() as stack:
            folders = [_opened(stack, str(root), None)]
            for name in names:
                folders.append(_opened(stack, name, folders[-1]))
            yield folders

    @contextmanager
    def made(self, path: str) -> Iterator[list[int]]:
        """The same, made where it is missing."""
        root, names = self._within(path)
        root.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            folders = [_opened(stack, str(root), None)]
            for name in names:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o750, dir_fd=folders[-1])
                folders.append(_opened(stack, name, folders[-1]))
            yield folders

    def walk(self, path: str) -> Iterator[Found]:
        """Every entry under a folder that is no folder itself; what no key can name is left out."""
        with ExitStack() as stack:
            try:
                folders = stack.enter_context(self.reached(path))
            except FileNotFoundError:
                return
            yield from _walked(folders[-1], path, _MAX_DEPTH)

    def prune(self, path: str, before: datetime) -> int:
        """Remove old empty folders under this one, as well as old files that no key can name; how many."""
        try:
            with self.reached(path) as folders:
                return _pruned(folders[-1], before.timestamp(), _MAX_DEPTH)
        except FileNotFoundError:
            return 0

    def _within(self, path: str) -> tuple[Path, list[str]]:
        first, *rest = path.split("/")
        if first == ORPHANS and self.orphans is not None:
            return self.orphans, rest
        return self.root, [first, *rest]


def _opened(stack: ExitStack, name: str, within: int | None) -> int:
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


def _walked(folder: int, path: str, depth: int) -> Iterator[Found]:
    for name, status in _entries(folder):
        if not _PLAIN_NAME.fullmatch(name):
            continue
        if not stat.S_ISDIR(status.st_mode):
            yield Found(f"{path}/{name}", status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))
        elif depth:
            with ExitStack() as stack:
                try:
                    inner = _opened(stack, name, folder)
                except _GONE_OR_SHUT:
                    continue
                yield from _walked(inner, f"{path}/{name}", depth - 1)


def _pruned(folder: int, before: float, depth: int) -> int:
    removed = 0
    for name, status in _entries(folder):
        is_old = status.st_mtime < before
        if not stat.S_ISDIR(status.st_mode):
            if is_old and not _PLAIN_NAME.fullmatch(name):
                os.unlink(name, dir_fd=folder)
                removed += 1
        elif depth:
            with suppress(*_GONE_OR_SHUT), ExitStack() as stack:
                removed += _pruned(_opened(stack, name, folder), before, depth - 1)
            # A folder that is not empty stays.
            with suppress(OSError):
                if is_old:
                    os.rmdir(name, dir_fd=folder)
                    removed += 1
    return removed
