"""Which kind of blobs a file store gets."""

from pathlib import Path

from mindbus.files.store import FileStore
from storage_service.blobs import Blobs
from storage_service.local_blobs import LocalBlobs


class NoBlobs(TypeError):
    """Storage keeps artifacts in a folder or in an object store, in nothing else."""


def open_blobs(files: FileStore, orphans: Path | None = None, *, must_write_once: bool = False) -> Blobs:
    """Those of a folder can refuse links, those of an object store have its conditions.

    The orphans of a folder may lie in another one.
    """
    if files.local_root is not None:
        return LocalBlobs(files.local_root, orphans)
    # Imported here: whoever keeps files in a folder need not pay for it.
    from mindbus.files.s3_store import S3Files
    from storage_service.conformance import Conformance
    from storage_service.s3_blobs import S3Blobs
    from storage_service.s3_objects import S3Objects
    from storage_service.s3_probed import S3ProbedObjects

    if not isinstance(files, S3Files):
        raise NoBlobs(NoBlobs.__doc__)
    conformance = Conformance(S3ProbedObjects(files))
    return S3Blobs(S3Objects(files.bucket), probe=conformance.probe, must_write_once=must_write_once)
