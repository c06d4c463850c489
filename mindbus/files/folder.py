"""The file store in a folder of this machine."""

import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import fsspec

from mindbus.files.keys import validate_key


class FolderFiles:
    def __init__(self, root: Path, url: str) -> None:
        self.fs: Any = fsspec.filesystem("file", auto_mkdir=True)
        self.root = str(root).rstrip("/")
        self.url = url.rstrip("/")

    @property
    def local_root(self) -> Path | None:
        return Path(self.root)

    def uri(self, key: str) -> str:
        return f"{self.url}/{validate_key(key)}"

    def open_read(self, key: str) -> IO[bytes]:
        return cast("IO[bytes]", self.fs.open(self._path(key), "rb"))

    def put(self, key: str, content: bytes) -> None:
        path = self._new_path(key)
        part = Path(f"{path}.{secrets.token_hex(8)}.part")
        part.write_bytes(content)
        part.replace(path)

    def upload(self, key: str, source: Path, progress: Callable[[int], None] | None = None) -> None:
        self.fs.put_file(str(source), self._new_path(key))
        if progress is not None:
            progress(self.size_bytes(key))

    def size_bytes(self, key: str) -> int:
        return int(self.fs.size(self._path(key)))

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError):
            self.fs.rm_file(self._path(key))

    def _path(self, key: str) -> str:
        return f"{self.root}/{validate_key(key)}"

    def _new_path(self, key: str) -> str:
        path = self._path(key)
        self.fs.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        return path
