"""The file store behind artifacts, reached through fsspec."""

import re
import secrets
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

import fsspec

_KEY = re.compile(r"(?:[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*/)*[A-Za-z0-9_@=-][A-Za-z0-9_.@=-]*")


class NotAKey(ValueError):
    """A key is a relative path of plain names; build it from ids, never from what a message says."""


class StoreNotSupported(ValueError):
    """MINDBUS_ARTIFACTS_URL names a store that is not supported; use file:///absolute/path."""


class FileStore:
    """Files under one root, by key; every call blocks, so callers on the loop use a thread."""

    def __init__(self, fs: Any, root: str, url: str) -> None:
        self.fs = fs
        self.root = root.rstrip("/")
        self.url = url.rstrip("/")

    @property
    def local_root(self) -> Path | None:
        """The folder, where the store is one."""
        return Path(self.root) if self.url.startswith("file:") else None

    def path(self, key: str) -> str:
        """The file system's own path of a key. Raises NotAKey."""
        if not _KEY.fullmatch(key):
            raise NotAKey(f"{NotAKey.__doc__} Got: {key!r}")
        return f"{self.root}/{key}"

    def uri(self, key: str) -> str:
        """The address that manifests show."""
        self.path(key)
        return f"{self.url}/{key}"

    def open_read(self, key: str) -> IO[bytes]:
        """A reader. Raises FileNotFoundError."""
        return cast("IO[bytes]", self.fs.open(self.path(key), "rb"))

    def put(self, key: str, content: bytes) -> None:
        """Write a small file whole: a reader sees all of it or nothing."""
        path = self.path(key)
        self.fs.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        if self.local_root is None:
            self.fs.pipe_file(path, content)
            return
        part = Path(f"{path}.{secrets.token_hex(8)}.part")
        part.write_bytes(content)
        part.replace(path)

    def upload(self, key: str, source: Path) -> None:
        """Copy a local file to the store."""
        path = self.path(key)
        self.fs.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        self.fs.put_file(str(source), path)

    def exists(self, key: str) -> bool:
        """Whether there is such a file."""
        return bool(self.fs.exists(self.path(key)))

    def size_bytes(self, key: str) -> int:
        """Its size. Raises FileNotFoundError."""
        return int(self.fs.size(self.path(key)))

    def delete(self, key: str) -> None:
        """Remove it; gone already is as good."""
        if self.exists(key):
            self.fs.rm_file(self.path(key))


def open_file_store(url: str) -> FileStore:
    """Open the store that the settings name, once at start. Raises StoreNotSupported."""
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc or not parts.path.startswith("/"):
        raise StoreNotSupported(f"{StoreNotSupported.__doc__} Got: {parts.scheme or url}")
    root = Path(unquote(parts.path))
    root.mkdir(parents=True, exist_ok=True)
    return FileStore(fsspec.filesystem("file", auto_mkdir=True), str(root), url)
