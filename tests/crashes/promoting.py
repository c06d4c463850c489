"""Promotion over an object store's conditions, with nothing else."""

import hashlib
from contextlib import suppress
from datetime import datetime

from storage_service.blobs import Declared, Labels
from storage_service.objects import NO_LABELS, Exists, ObjectStore
from storage_service.refusals import BytesDiffer, StagedFileMissing


class S3Blobs:
    """Reads what is staged, then copies that very version."""

    def __init__(self, objects: ObjectStore) -> None:
        self.objects = objects

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        """As in Blobs."""
        staged = await self.objects.head(upload)
        if staged is None:
            raise StagedFileMissing
        digest = hashlib.sha256()
        try:
            async for piece in self.objects.read(upload, if_match=staged.etag):
                digest.update(piece)
            if digest.hexdigest() != declared.sha256:
                raise BytesDiffer(declared_sha256=declared.sha256)
            with suppress(Exists):
                await self.objects.copy(upload, key, NO_LABELS, if_match=staged.etag, if_absent=True)
        except FileNotFoundError as missing:
            raise StagedFileMissing from missing

    async def discard(self, upload: str) -> None:
        """As in Blobs."""
        await self.objects.delete(upload)

    async def sweep_temporary(self, before: datetime) -> int:
        """As in Blobs."""
        return 0
