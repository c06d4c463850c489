"""Which kind of blobs a file store gets."""

from mindbus.files import FileStore
from storage_service.blobs import Blobs
from storage_service.fsspec_blobs import FsspecBlobs
from storage_service.local_blobs import LocalBlobs


def open_blobs(files: FileStore) -> Blobs:
    """Those of a folder can refuse links, which no other store has."""
    if files.local_root is None:
        return FsspecBlobs(files)  # type: ignore[return-value]  # it lists nothing
    return LocalBlobs(files.local_root)
