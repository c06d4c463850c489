"""Which kind of blobs a file store gets."""

from mindbus.files import FileStore
from storage_service.blobs import Blobs
from storage_service.fsspec_blobs import FsspecBlobs
from storage_service.local_blobs import LocalBlobs


def open_blobs(files: FileStore) -> Blobs:
    """Those of a folder can refuse links, which no other store has."""
    return FsspecBlobs(files) if files.local_root is None else LocalBlobs(files.local_root)
