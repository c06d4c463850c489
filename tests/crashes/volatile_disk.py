"""A folder of which a power cut takes whatever was not synced; every change to it, and every sync, is an effect."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any
from unittest.mock import patch

# By path; that of a folder ends with a slash.
Files = Mapping[str, bytes]
Note = Callable[[str], None]
_TEMPORARY = "objects/.tmp"
_CUT, _NAMES_ALONE = "cut", "cut, names alone"


@dataclass(eq=False, slots=True)
class _Inode:
    """The part of a file, or of a folder, that is on the disk."""

    is_folder: bool = False
    content: bytes = b""
    names: dict[str, "_Inode"] = field(default_factory=dict)


class VolatileDisk:
    """The folder. `note` is called with the name of each effect, before and after it, while no other happens.

    While it is `watched`, no sync reaches the machine's own disk, which would only take time.
    """

    def __init__(self, root: Path, note: Note) -> None:
        self.root, self.note = root, note
        self.lock = RLock()
        self._inodes: dict[int, _Inode] = {}
        self._on_disk = _Inode()

    def adopt(self, found: Mapping[str, Files] | None = None) -> None:
        """Count all that is there now as synced, or what was when a process was killed, of which `found` tells."""
        numbers = self._numbers()
        for path, number in numbers.items():
            self._inodes[number] = _Inode((self.root / path).is_dir(), _content_of(self.root / path))
        for path, number in numbers.items():
            self._inodes[number].names = self._names(path)
        self._on_disk = self._inodes[numbers["."]]
        if found is not None:
            inodes = {path: self._inodes[number] for path, number in numbers.items()}
            self._doubt(inodes, found[_CUT], found[_NAMES_ALONE])

    def found(self) -> Mapping[str, Files]:
        """The files as a process finds them after each way to die now.

        A kill takes nothing. A power cut leaves what was synced, and of the rest any part: nothing, the names alone,
        the bytes alone, their first half, their last half.
        """
        numbers = self._numbers()
        unknown = [path for path, number in numbers.items() if number not in self._inodes]
        assert not unknown, f"made past the disk, so that no crash before or after it is looked at: {unknown}"
        now = dict[str, tuple[_Inode, bytes]]()
        for path, number in numbers.items():
            inode = self._inodes[number]
            now[f"{path}/" if inode.is_folder else path] = inode, _content_of(self.root / path)
        del now["./"]
        contents = dict(now.values())
        synced = dict(_walk(self._on_disk, ""))
        ways: dict[str, Files] = {
            "killed": {path: content for path, (_, content) in now.items()},
            _CUT: {path: inode.content for path, inode in synced.items()},
            _NAMES_ALONE: {path: inode.content for path, (inode, _) in now.items()},
        }
        for way, part in _PARTS.items():
            ways[way] = {
                path: part(inode.content, contents.get(inode, inode.content)) for path, inode in synced.items()
            }
        return ways

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While within, changes of the folder are noted."""
        with ExitStack() as patches:
            for name, noted in _EFFECTS.items():
                patches.enter_context(patch.object(os, name, noted(self, getattr(os, name))))
            yield

    def open(self, act: Callable[..., int], path: Any, flags: int, *rest: Any, **options: Any) -> int:
        """As os.open."""
        if not flags & os.O_CREAT or (where := self._at(path, options)) is None:
            return act(path, flags, *rest, **options)

        assert flags & os.O_EXCL, f"{where} may be another's"

        def make() -> int:
            descriptor = act(path, flags, *rest, **options)
            self._inodes[os.fstat(descriptor).st_ino] = _Inode()
            return descriptor

        descriptor: int = self._effect("create", where, make)
        return descriptor

    def mkdir(self, act: Callable[..., None], path: Any, *rest: Any, **options: Any) -> None:
        """As os.mkdir."""
        if (where := self._at(path, options)) is None:
            act(path, *rest, **options)
            return

        def make() -> None:
            act(path, *rest, **options)
            self._inodes[os.stat(path, dir_fd=options.get("dir_fd")).st_ino] = _Inode(True)

        self._effect("mkdir", where, make)

    def change(self, name: str, act: Callable[..., Any], path: Any, *rest: Any, **options: Any) -> Any:
        """As os.unlink, rmdir, rename, link, which are named after where they lead."""
        if (where := self._at(rest[0] if rest else path, options)) is None:
            return act(path, *rest, **options)
        return self._effect(name, where, lambda: act(path, *rest, **options))

    def pwrite(self, act: Callable[..., int], descriptor: int, data: bytes, offset: int) -> int:
        """As os.pwrite."""
        if (where := self._path_of(descriptor)) is None:
            return act(descriptor, data, offset)
        written: int = self._effect("write", where, lambda: act(descriptor, data, offset))
        return written

    def fsync(self, _act: Callable[..., None], descriptor: int) -> None:
        """As os.fsync, but that the disk is this one."""
        if (where := self._path_of(descriptor)) is None:
            return
        inode = self._inodes[os.fstat(descriptor).st_ino]
        if (self.root / where).is_dir():

            def harden() -> None:
                inode.names = self._names(where)

            self._effect("fsync folder", f"{where}/", harden)
        else:

            def harden() -> None:
                inode.content = (self.root / where).read_bytes()

            self._effect("fsync", where, harden)

    def _doubt(self, inodes: Mapping[str, _Inode], synced: Files, contents: Files) -> None:
        """Count as not synced all names but those of `synced`, all bytes but `contents`, which are of any name."""
        for path, inode in inodes.items():
            inode.content, inode.names = contents.get(path, b""), {}
        for path, content in synced.items():
            folder, at = self._on_disk, ""
            *parents, name = path.split("/")
            for parent in parents:
                at = f"{at}/{parent}".lstrip("/")
                folder = folder.names.setdefault(parent, inodes.get(at, _Inode(True)))
            if name:
                # Another file may have taken the place of this one since.
                is_it = path in inodes and inodes[path].content == content
                folder.names[name] = inodes[path] if is_it else _Inode(content=content)

    def _effect(self, name: str, where: str, act: Callable[[], Any]) -> Any:
        area = _TEMPORARY if where.startswith(f"{_TEMPORARY}/") else where.partition("/")[0]
        with self.lock:
            self.note(f"before {name} {area}".rstrip(" ."))
            result = act()
            self.note(f"after {name} {area}".rstrip(" ."))
        return result

    def _at(self, path: Any, options: Mapping[str, Any]) -> str | None:
        folder = options.get("dst_dir_fd", options.get("dir_fd"))
        if folder is None:
            return None
        within = self._path_of(folder)
        return None if within is None else os.path.normpath(f"{within}/{path}")

    def _path_of(self, descriptor: int) -> str | None:
        status = os.fstat(descriptor)
        if status.st_dev != self.root.stat().st_dev:
            return None
        return next((path for path, number in self._numbers().items() if number == status.st_ino), None)

    def _numbers(self) -> dict[str, int]:
        """The inode of everything in the folder by its path."""
        numbers = {".": self.root.stat().st_ino}
        folders = [""]
        while folders:
            folder = folders.pop()
            with os.scandir(self.root / folder) as entries:
                for entry in entries:
                    numbers[f"{folder}{entry.name}"] = entry.inode()
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
        return numbers

    def _names(self, folder: str) -> dict[str, _Inode]:
        if not (self.root / folder).is_dir():
            return {}
        with os.scandir(self.root / folder) as entries:
            return {entry.name: self._inodes[entry.inode()] for entry in entries}


def _content_of(path: Path) -> bytes:
    return b"" if path.is_dir() else path.read_bytes()


def _walk(folder: _Inode, path: str) -> Iterator[tuple[str, _Inode]]:
    for name, inode in folder.names.items():
        yield f"{path}{name}{'/' if inode.is_folder else ''}", inode
        yield from _walk(inode, f"{path}{name}/")


def _middle(synced: bytes, now: bytes) -> int:
    """The middle of that in which the two differ."""
    first = next((at for at, (one, other) in enumerate(zip(synced, now, strict=False)) if one != other), len(synced))
    return (first + len(now)) // 2


def _first_half(synced: bytes, now: bytes) -> bytes:
    middle = _middle(synced, now)
    return now[:middle] + synced[middle:]


def _last_half(synced: bytes, now: bytes) -> bytes:
    middle = _middle(synced, now)
    return synced[:middle].ljust(middle, b"\0") + now[middle:]


_PARTS: Mapping[str, Callable[[bytes, bytes], bytes]] = {
    "cut, bytes alone": lambda _synced, now: now,
    "cut, first half": lambda synced, now: now if synced == now else _first_half(synced, now),
    "cut, last half": lambda synced, now: now if synced == now else _last_half(synced, now),
}


def _bound(method: Callable[..., Any]) -> Callable[[VolatileDisk, Callable[..., Any]], Callable[..., Any]]:
    return lambda disk, act: partial(method, disk, act)


def _changing(name: str) -> Callable[[VolatileDisk, Callable[..., Any]], Callable[..., Any]]:
    return lambda disk, act: partial(disk.change, name, act)


_EFFECTS: Mapping[str, Callable[[VolatileDisk, Callable[..., Any]], Callable[..., Any]]] = {
    "open": _bound(VolatileDisk.open),
    "mkdir": _bound(VolatileDisk.mkdir),
    "pwrite": _bound(VolatileDisk.pwrite),
    "fsync": _bound(VolatileDisk.fsync),
    **{name: _changing(name) for name in ("unlink", "rmdir", "rename", "link")},
}
