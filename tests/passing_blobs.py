"""Blobs that pass everything on, for a test to change one method of."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from bus_schema.uploads import PackPlace
from storage_service.blobs import Blobs, Declared, Labels, StoredFile


@dataclass
class PassingBlobs:
    blobs: Blobs

    async def prepare(self) -> None:
        await self.blobs.prepare()

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> PackPlace | None:
        return await self.blobs.promote(upload, key, declared, labels)

    async def discard(self, upload: str) -> None:
        await self.blobs.discard(upload)

    async def sweep_temporary(self, before: datetime) -> int:
        return await self.blobs.sweep_temporary(before)

    def listing(self, folder: str) -> AsyncIterator[StoredFile]:
        return self.blobs.listing(folder)

    async def size_bytes(self, key: str) -> int | None:
        return await self.blobs.size_bytes(key)

    async def labels(self, key: str) -> Labels | None:
        return await self.blobs.labels(key)

    async def digest(self, key: str) -> Declared:
        return await self.blobs.digest(key)

    async def move(self, key: str, target: str) -> bool:
        return await self.blobs.move(key, target)

    async def delete(self, key: str) -> None:
        await self.blobs.delete(key)

    async def write(self, key: str, content: bytes) -> None:
        await self.blobs.write(key, content)

    async def read(self, key: str) -> bytes:
        return await self.blobs.read(key)
