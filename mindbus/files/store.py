"""The file store behind artifacts, reached through fsspec: a folder of this machine or a bucket."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol, cast
from urllib.parse import unquote, urlsplit

from bus_schema.codes import Code
from mindbus.errors import MindBusError
from mindbus.files.disk import sync_folder
from mindbus.files.keys import validate_key
from mindbus.settings import Settings


class StoreNotSupported(MindBusError, ValueError, code=Code.INVALID):
    """MINDBUS_ARTIFACTS_URL names no store that is supported; use file:///absolute/path or s3://bucket/prefix."""


class FileStore(Protocol):
    """Files under one root, by key. Every call blocks; call from a thread where an event loop runs.

    A key that is no relative path of plain names raises InvalidKey; where the store fails, every method raises OSError.
    """

    @property
    def fs(self) -> Any:
        """The fsspec filesystem."""

    root: str
    url: str

    @property
    def local_root(self) -> Path | None:
        """The folder, or None for an object store."""

    def uri(self, key: str) -> str:
        """The address that manifests show."""

    def open_read(self, key: str) -> IO[bytes]:
        """A seekable reader. Raises FileNotFoundError."""

    def put(self, key: str, content: bytes) -> None:
        """Write a small file atomically: a reader sees all of it or nothing."""

    def upload(self, key: str, source: Path, progress: Callable[[int], None] | None = None) -> None:
        """Copy a local file to the store; an object store resumes an interrupted upload of a large one.

        `progress` is called with the bytes stored so far, from any thread.
        """

    def size_bytes(self, key: str) -> int:
        """Size of a file. Raises FileNotFoundError."""

    def delete(self, key: str) -> None:
        """Remove a file; no error where there is none."""


class FolderFiles:
    """The file store in a folder of this machine."""

    def __init__(self, root: Path, url: str) -> None:
        self.root = str(root).rstrip("/")
        self.url = url.rstrip("/")

    @cached_property
    def fs(self) -> Any:
        """The filesystem. fsspec is imported here: a client that sends small messages opens no file."""
        import fsspec

        return fsspec.filesystem("file", auto_mkdir=True)

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
        with open(part, "xb", opener=self._open_new) as file:
            file.write(content)
            # A message that points here is on disk once it is confirmed; so are these bytes, then.
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        sync_folder(part.parent)

    def upload(self, key: str, source: Path, progress: Callable[[int], None] | None = None) -> None:
        path = self._new_path(key)
        open(path, "wb", opener=self._open_new).close()
        self.fs.put_file(str(source), path)
        if progress is not None:
            progress(self.size_bytes(key))

    def size_bytes(self, key: str) -> int:
        return int(self.fs.size(self._path(key)))

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError):
            self.fs.rm_file(self._path(key))

    def _open_new(self, path: str, flags: int) -> int:
        """Opener of a new file for those alone who may enter the store, whatever this process's umask is."""
        return os.open(path, flags, os.stat(self.root).st_mode & 0o666)

    def _path(self, key: str) -> str:
        return f"{self.root}/{validate_key(key)}"

    def _new_path(self, key: str) -> str:
        path = self._path(key)
        parents = Path(path).parents
        missing = [folder for folder in parents if not folder.exists()]
        self.fs.makedirs(str(parents[0]), exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)
        return path


def open_files(settings: Settings) -> FileStore:
    """Open the store that the settings name; no request is sent yet. Raises StoreNotSupported."""
    url = settings.files_url
    if not url.startswith("s3:"):
        return open_folder(url)
    # Imported here: S3 is an extra, and slow to import.
    from mindbus.files.s3_bucket import InvalidBucket, S3Account, open_bucket
    from mindbus.files.s3_store import S3Files, UploadParts

    account = S3Account(
        endpoint_url=settings.s3_endpoint_url,
        access_key=settings.s3_access_key,
        secret_key=settings.s3_secret_key,
        region=settings.s3_region,
    )
    try:
        return S3Files(open_bucket(url, account), url, UploadParts(settings.s3_part_bytes, settings.s3_concurrency))
    except (InvalidBucket, ValueError) as error:
        raise StoreNotSupported(str(error)) from error


def open_folder(url: str) -> FileStore:
    """Open the store in a folder of this machine, creating the folder. Raises StoreNotSupported."""
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc or not parts.path.startswith("/"):
        raise StoreNotSupported(f"{StoreNotSupported.__doc__} Got: {parts.scheme or url}")
    root = Path(unquote(parts.path))
    root.mkdir(parents=True, exist_ok=True)
    return FolderFiles(root, url)


def has_direct_access(settings: Settings) -> bool:
    """Whether this process reads and writes the file store itself, rather than by presigned addresses.

    As the settings say; with `auto`, whether there are credentials for the object store, and without one whether this
    is no guest: who logs in to RabbitMQ with an account of `mindbus users` has no access to the data folder.
    A machine's role is not looked up, since that waits for the network on every other machine. Raises StoreError.
    """
    if settings.artifacts_access != "auto":
        return settings.artifacts_access == "direct"
    if settings.artifacts_url is None:
        return settings.own_identity is None
    return not settings.files_url.startswith("s3:") or settings.s3_access_key is not None or _has_aws_credentials()


def _has_aws_credentials() -> bool:
    # Imported here: S3 is an extra, and slow to import.
    from botocore.exceptions import BotoCoreError
    from botocore.session import get_session

    from mindbus.files.s3_errors import as_os_error

    try:
        providers = get_session().get_component("credential_provider")
        for machine_role in ("container-role", "iam-role"):
            providers.remove(machine_role)
        return providers.load_credentials() is not None
    except BotoCoreError as failure:
        raise as_os_error(failure, "AWS", "credentials") from failure
