"""The file store in a folder of this machine."""

import secrets
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import fsspec

from mindbus.keys import checked


class FolderFiles:
    """As FileStore; files under one root."""

    def __init__(self, root: Path, url: str) -> None:
        self.fs: Any = fsspec.filesystem("file", auto_mkdir=True)
        self.root = str(root).rstrip("/")
        self.url = url.rstrip("/")

    @property
    def local_root(self) -> Path | None:
        """As in FileStore."""
        return Path(self.root)

    def uri(self, key: str) -> str:
        """As in FileStore."""
        return f"{self.url}/{checked(key)}"

    def open_read(self, key: str) -> IO[bytes]:
        """As in FileStore."""
        return cast("IO[bytes]", self.fs.open(self._path(key), "rb"))

    def put(self, key: str, content: bytes) -> None:
        """As in FileStore."""
        path = self._path(key)
        self.fs.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        part = Path(f"{path}.{secrets.token_hex(8)}.part")
        part.write_bytes(content)
        part.replace(path)

    def upload(self, key: str, source: Path, tell: Callable[[int], None] | None = None) -> None:
        """As in FileStore."""
        path = self._path(key)
        self.fs.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        self.fs.put_file(str(source), path)
        if tell is not None:
            tell(self.size_bytes(key))

    def exists(self, key: str) -> bool:
        """As in FileStore."""
        return bool(self.fs.exists(self._path(key)))

    def size_bytes(self, key: str) -> int:
        """As in FileStore."""
        return int(self.fs.size(self._path(key)))

    def delete(self, key: str) -> None:
        """As in FileStore."""
        if self.exists(key):
            self.fs.rm_file(self._path(key))

    def _path(self, key: str) -> str:
        return f"{self.root}/{checked(key)}"
