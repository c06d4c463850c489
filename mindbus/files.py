"""The file store behind artifacts, reached through fsspec."""

from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import unquote, urlsplit

from mindbus.folder_files import FolderFiles
from mindbus.keys import NotAKey as NotAKey
from mindbus.settings import Settings


class StoreNotSupported(ValueError):
    """MINDBUS_ARTIFACTS_URL names no store that is supported; use file:///absolute/path or s3://bucket/prefix."""


class FileStore(Protocol):
    """Files under one root, by key; every call blocks, so callers on the loop use a thread.

    Keys that are no relative path of plain names raise NotAKey; where the store fails, every method raises OSError.
    """

    fs: Any
    root: str
    url: str

    @property
    def local_root(self) -> Path | None:
        """The folder, where the store is one."""

    def uri(self, key: str) -> str:
        """The address that manifests show."""

    def open_read(self, key: str) -> IO[bytes]:
        """A reader that can seek. Raises FileNotFoundError."""

    def put(self, key: str, content: bytes) -> None:
        """Write a small file whole: a reader sees all of it or nothing."""

    def upload(self, key: str, source: Path, tell: Callable[[int], None] | None = None) -> None:
        """Copy a local file to the store; a store of objects goes on with a large one where it was interrupted.

        `tell` hears how many bytes are there by now, from any thread.
        """

    def exists(self, key: str) -> bool:
        """Whether there is such a file."""

    def size_bytes(self, key: str) -> int:
        """Its size. Raises FileNotFoundError."""

    def delete(self, key: str) -> None:
        """Remove it; gone already is as good."""


def open_files(settings: Settings) -> FileStore:
    """Open the store that the settings name, once at start; nothing is sent yet. Raises StoreNotSupported."""
    url = settings.files_url
    if not url.startswith("s3:"):
        return open_folder(url)
    # Imported here: whoever keeps files in a folder need not pay for it.
    from mindbus.s3 import NotABucket, S3Account, open_bucket
    from mindbus.s3_files import S3Files
    from mindbus.s3_upload import Pieces

    account = S3Account(
        endpoint_url=settings.s3_endpoint_url,
        access_key=settings.s3_access_key,
        secret_key=settings.s3_secret_key,
        region=settings.s3_region,
    )
    try:
        return S3Files(open_bucket(url, account), url, Pieces(settings.s3_part_bytes, settings.s3_concurrency))
    except (NotABucket, ValueError) as wrong:
        raise StoreNotSupported(str(wrong)) from wrong


def open_folder(url: str) -> FileStore:
    """The store in a folder of this machine, which is made. Raises StoreNotSupported."""
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc or not parts.path.startswith("/"):
        raise StoreNotSupported(f"{StoreNotSupported.__doc__} Got: {parts.scheme or url}")
    root = Path(unquote(parts.path))
    root.mkdir(parents=True, exist_ok=True)
    return FolderFiles(root, url)
