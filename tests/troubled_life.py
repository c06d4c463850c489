"""The life of one artifact in an object store that fails at one moment of it."""

import asyncio
import dataclasses
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from bus_schema.artifacts import Manifest
from bus_schema.ids import mint
from bus_schema.storage import RegisterArtifact
from mindbus.errors import TemporaryFailure
from mindbus.files.s3_store import S3Files, UploadParts
from mindbus.sdk.access import DirectAccess
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import StorageAway
from mindbus.sql.database import Database
from storage_service.maintenance.manifest_copies import copy_key
from storage_service.object_store import Guarantees
from storage_service.s3_blobs import S3Blobs
from storage_service.s3_objects import S3Objects
from storage_service.service import StorageService
from tests.lax_objects import ALL
from tests.maintenance_kit import Keeper, counts
from tests.object_proxy import Asked, Fault
from tests.seaweed import Place
from tests.storage_kit import RESEARCHER, Depot

# What its owner tries, each of them some tries of botocore's own.
# More than a trouble lasts that nothing below asks again about.
_TRIES = 8
_SIZE_BYTES = 30_000
_LARGE = -1
_ALL_SMALL = 1024**2


@dataclass(frozen=True)
class Way:
    """How an artifact gets into the store."""

    guarantees: Guarantees
    whole_bytes: int
    is_staged_in_parts: bool = False


WAYS = {
    "small": Way(ALL, _ALL_SMALL),
    "small, nothing guaranteed": Way(Guarantees(), _ALL_SMALL),
    "large": Way(ALL, _LARGE),
    "large, in parts": Way(ALL, _LARGE, is_staged_in_parts=True),
    "large, nothing guaranteed": Way(Guarantees(), _LARGE),
}


@dataclass(frozen=True)
class Moment:
    """A request of a life: the first of its kind in a part of that life."""

    part: str
    operation: str


@dataclass(frozen=True)
class Trouble:
    """What befalls the store at a moment, so many times."""

    moment: Moment
    fault: Fault
    times: int


@dataclass
class Life:
    """From staging to the last orphan; whoever is refused tries again, as the SDK, the runtime, the clockwork do."""

    folder: Path
    database: Database
    place: Place
    way: Way
    trouble: Trouble | None = None
    part: str = "before"
    moments: list[Moment] = field(default_factory=list)
    troubled: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def is_short(self) -> bool:
        """Whether it has gone on for long enough after its trouble when the artifact is there."""
        return self.trouble is not None and self.trouble.moment.part not in ("expiring", "deleting")

    @property
    def prefix(self) -> str:
        """By which its requests are known."""
        return self.place.url.rpartition("/")[2]

    def fault_of(self, asked: Asked) -> Fault | None:
        """Of one of its requests."""
        moment = Moment(self.part, asked.operation)
        self.moments.append(moment)
        if self.trouble is None or moment != self.trouble.moment or self.troubled == self.trouble.times:
            return None
        self.troubled += 1
        return self.trouble.fault

    async def live(self, through: str) -> None:
        """All of it; the store is reached through this address, but looked at from beside."""
        place = replace(self.place, account=replace(self.place.account, endpoint_url=through))
        files = S3Files(place.bucket(), place.url, UploadParts(_SIZE_BYTES, at_once=2, whole_bytes=self._staged_whole))
        depot = Depot(self.folder, self.database, files, arrange=lambda storage: self._arranged(storage, files))
        keeper, content = Keeper(depot), os.urandom(_SIZE_BYTES)
        key = depot.upload_key()
        manifest = depot.manifest(content, uri=files.uri(key), retention="2d")

        await self._stage(files, BufferEntry(manifest=manifest, upload_key=key, buffered_at=depot.clock()), content)
        stored = await self._register(depot, manifest)
        await self._clean(depot)
        await self._collect("collecting", keeper, days=1, hours=2)
        assert await self._keys() == sorted([stored.uri, copy_key(manifest.id)])
        assert await self._content(stored.uri) == content
        assert await self._uploads() == []
        if self.is_short:
            return
        await self._collect("expiring", keeper, days=2)
        assert [found for found in await self._keys() if not found.startswith(("orphans/", "manifests/"))] == []
        await self._collect("deleting", keeper, days=9)
        assert await self._keys() == [copy_key(manifest.id)]

    async def _stage(self, files: S3Files, entry: BufferEntry, content: bytes) -> None:
        source = self.folder / f"{entry.artifact_id}.bytes"
        await asyncio.to_thread(source.write_bytes, content)
        await self._patiently("staging", lambda: DirectAccess(files).stage(entry, source))

    async def _register(self, depot: Depot, manifest: Manifest) -> Manifest:
        command, message_id = RegisterArtifact(manifest=manifest), mint("msg")
        await self._patiently("registering", lambda: depot.handle(command, RESEARCHER, message_id=message_id))
        stored = await depot.get(manifest.id)
        assert stored.checksum == manifest.checksum
        return stored

    async def _clean(self, depot: Depot) -> None:
        async def clean() -> None:
            await depot.worker.maintenance.clean()
            if await depot.rows("spent_uploads"):
                raise OSError("a staged file stays")

        await self._patiently("cleaning", clean)

    async def _collect(self, part: str, keeper: Keeper, **passes: float) -> None:
        async def collect() -> None:
            await keeper.collect()
            if counts(await keeper.collect(dry_run=True)) or await keeper.depot.rows("removals"):
                raise OSError("garbage stays")

        keeper.depot.clock.advance(**passes)
        await self._patiently(part, collect)

    async def _patiently(self, part: str, work: Callable[[], Awaitable[object]]) -> None:
        self.part = part
        for tries_left in reversed(range(_TRIES)):
            try:
                await work()
            except (StorageAway, TemporaryFailure, OSError) as trouble:
                self.errors[f"{part}: {type(trouble).__name__}"] += 1
                if not tries_left:
                    raise
            else:
                return

    def _arranged(self, storage: StorageService, files: S3Files) -> StorageService:
        blobs = S3Blobs(S3Objects(files.bucket), self.way.guarantees, self.way.whole_bytes)
        storage.maintenance.blobs = blobs
        return dataclasses.replace(storage, blobs=blobs, registrar=replace(storage.registrar, blobs=blobs))

    @property
    def _staged_whole(self) -> int:
        return 0 if self.way.is_staged_in_parts else _SIZE_BYTES

    async def _keys(self) -> list[str]:
        return [found.key async for found in S3Objects(self.place.bucket()).list("")]

    async def _content(self, key: str) -> bytes:
        return b"".join([piece async for piece in S3Objects(self.place.bucket()).read(key)])

    async def _uploads(self) -> list[str]:
        bucket = self.place.bucket()
        found = await bucket.run(bucket.call("list_multipart_uploads", Prefix=bucket.path("")))
        return [upload["Key"] for upload in found.get("Uploads", ())]
