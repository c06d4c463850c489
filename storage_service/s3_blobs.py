"""Blobs in an object store."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from datetime import datetime

from mindbus.logs import logger
from storage_service.blobs import TEMPORARY, Declared, Labels, NotGuaranteed, ObjectVanished, StoredFile
from storage_service.object_store import NO_LABELS, Guarantees, ObjectChanged, ObjectExists, ObjectStore
from storage_service.s3_promotion import Promotion

# Larger objects are copied within the store; several smaller ones may be in memory at once.
WHOLE_BYTES = 2 * 1024 * 1024


class S3Blobs:
    """Blobs over an ObjectStore; its conditions are used where a probe has shown that it keeps them."""

    def __init__(
        self,
        objects: ObjectStore,
        guarantees: Guarantees | None = None,
        whole_bytes: int = WHOLE_BYTES,
        probe: Callable[[], Awaitable[Guarantees]] | None = None,
        must_write_once: bool = False,
    ) -> None:
        self.objects = objects
        self.guarantees = guarantees or Guarantees()
        self._whole_bytes = whole_bytes
        self._probe, self._must_write_once = probe, must_write_once

    async def prepare(self) -> None:
        """Probe the store; until then no guarantee is assumed."""
        if self._probe is not None:
            self.guarantees = await self._probe()
            logger().info("object store probed", **asdict(self.guarantees))
        if self._must_write_once and not self.guarantees.writes_once:
            raise NotGuaranteed(f"{NotGuaranteed.__doc__} (seen: {asdict(self.guarantees)})")

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> None:
        metadata = {
            "artifact-id": labels.artifact_id,
            "created-by": labels.created_by,
            "sha256": declared.sha256,
            "size-bytes": str(declared.size_bytes),
        }
        promotion = Promotion(self.objects, self.guarantees, upload, key, declared, metadata)
        if declared.size_bytes <= self._whole_bytes:
            await promotion.whole()
        else:
            await promotion.within_the_store()

    async def discard(self, upload: str) -> None:
        await self.objects.delete(upload)

    async def sweep_temporary(self, before: datetime) -> int:
        """Remove old temporary objects and multipart uploads that were never completed."""
        removed = 0
        async for stored in self.objects.list(f"{TEMPORARY}/"):
            if stored.modified < before:
                await self.objects.delete(stored.key)
                removed += 1
        return removed + await self.objects.abort_uploads(before)

    async def listing(self, folder: str) -> AsyncIterator[StoredFile]:
        async for stored in self.objects.list(f"{folder.rstrip('/')}/"):
            yield StoredFile(stored.key, stored.size_bytes, stored.modified)

    async def size_bytes(self, key: str) -> int | None:
        stored = await self.objects.head(key)
        return None if stored is None else stored.size_bytes

    async def labels(self, key: str) -> Labels | None:
        stored = await self.objects.head(key)
        if stored is None or not {"artifact-id", "created-by"} <= stored.labels.keys():
            return None
        return Labels(artifact_id=stored.labels["artifact-id"], created_by=stored.labels["created-by"])

    async def digest(self, key: str) -> Declared:
        digest, size_bytes = hashlib.sha256(), 0
        async for piece in self.objects.read(key):
            await asyncio.to_thread(digest.update, piece)
            size_bytes += len(piece)
        return Declared(digest.hexdigest(), size_bytes)

    async def move(self, key: str, target: str) -> bool:
        stored = await self.objects.head(key)
        if stored is None:
            return await self.objects.head(target) is not None
        is_conditional = self.guarantees.copies_once
        try:
            if not is_conditional and await self.objects.head(target) is not None:
                raise ObjectExists(target)
            await self.objects.copy(key, target, stored.labels, if_match=stored.etag, if_absent=is_conditional)
        except ObjectExists:
            pass  # An earlier attempt has copied it.
        except (ObjectChanged, FileNotFoundError) as error:
            raise ObjectVanished(key) from error
        await self.objects.delete(key)
        return True

    async def delete(self, key: str) -> None:
        await self.objects.delete(key)

    async def write(self, key: str, content: bytes) -> None:
        await self.objects.put(key, content, NO_LABELS, if_absent=False)

    async def read(self, key: str) -> bytes:
        return b"".join([piece async for piece in self.objects.read(key)])
