"""Real places for bytes behind gates."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from bus_schema.uploads import PackPlace
from storage_service.blobs import Declared, Labels, StoredFile
from storage_service.object_store import ObjectStore, StoredObject
from tests.crashes.gates import Gates
from tests.passing_blobs import PassingBlobs


def _away() -> OSError:
    return OSError("the store is away")


@dataclass
class GatedBlobs(PassingBlobs):
    """A folder, where to publish is one effect."""

    gates: Gates

    async def promote(self, upload: str, key: str, declared: Declared, labels: Labels) -> PackPlace | None:
        act = partial(self.blobs.promote, upload, key, declared, labels)
        return await self.gates.real_effect("copy", act, _away)

    async def discard(self, upload: str) -> None:
        await self.gates.real_effect("delete", partial(self.blobs.discard, upload), _away)

    async def move(self, key: str, target: str) -> bool:
        return await self.gates.real_effect("move", partial(self.blobs.move, key, target), _away)

    async def delete(self, key: str) -> None:
        await self.gates.real_effect("delete", partial(self.blobs.delete, key), _away)

    async def write(self, key: str, content: bytes) -> None:
        await self.gates.real_effect("put", partial(self.blobs.write, key, content), _away)

    async def listing(self, folder: str) -> AsyncIterator[StoredFile]:
        async def listed() -> list[StoredFile]:
            return [found async for found in self.blobs.listing(folder)]

        for found in await self.gates.real_effect("list", listed, _away):
            yield found


@dataclass
class GatedObjects:
    """An object store, where each request is an effect."""

    objects: ObjectStore
    gates: Gates

    async def head(self, key: str) -> StoredObject | None:
        """As in ObjectStore."""
        return await self.gates.real_effect("head", partial(self.objects.head, key), _away)

    async def read(self, key: str, *, if_match: str | None = None, start: int = 0) -> AsyncGenerator[bytes, None]:
        """As in ObjectStore."""

        async def content() -> bytes:
            return b"".join([piece async for piece in self.objects.read(key, if_match=if_match, start=start)])

        yield await self.gates.real_effect("get", content, _away)

    async def put(self, key: str, content: bytes, labels: Mapping[str, str], *, if_absent: bool) -> None:
        """As in ObjectStore."""
        act = partial(self.objects.put, key, content, labels, if_absent=if_absent)
        await self.gates.real_effect("put", act, _away)

    async def copy(
        self, source: str, target: str, labels: Mapping[str, str], *, if_match: str, if_absent: bool
    ) -> None:
        """As in ObjectStore."""
        act = partial(self.objects.copy, source, target, labels, if_match=if_match, if_absent=if_absent)
        await self.gates.real_effect("copy", act, _away)

    async def delete(self, key: str) -> None:
        """As in ObjectStore."""
        await self.gates.real_effect("delete", partial(self.objects.delete, key), _away)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """As in ObjectStore."""

        async def listed() -> list[StoredObject]:
            return [stored async for stored in self.objects.list(prefix)]

        for stored in await self.gates.real_effect("list", listed, _away):
            yield stored

    async def abort_uploads(self, before: datetime) -> int:
        """As in ObjectStore."""
        return await self.objects.abort_uploads(before)
