"""Access to the bytes of artifacts by addresses that storage signs, for who has no access to the file store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Protocol, TypeVar

from bus_schema.artifacts import Manifest
from bus_schema.uploads import PresignedGet, PresignedPut
from mindbus.files.presigned import AddressExpired, BytesRefused, PresignedTransfer
from mindbus.logs import logger
from mindbus.sdk.access import Pieces
from mindbus.sdk.entry import Entry
from mindbus.sdk.failures import BytesMissing, NothingSigned, StorageAway, StorageStumbled
from mindbus.sdk.progress import Progress, nobody, told
from mindbus.sdk.sources import CHUNK_BYTES, chunks_of

_TRIES = 3
_WAIT_S = 0.2

T = TypeVar("T")


class Signing(Protocol):
    """Storage, as far as signed addresses are concerned."""

    async def address_to_stage(self, manifest: Manifest) -> PresignedPut | None:
        """Where to send the bytes. Raises StorageAway, ArtifactRefused."""
        ...

    async def address_to_read(self, artifact_id: str, trace: str | None) -> PresignedGet | None:
        """Where to read them. Raises StorageAway, ArtifactNotFound, ArtifactRefused."""
        ...


class PresignedAccess:
    """Sends and fetches without credentials; an address is asked for when it is needed, kept nowhere."""

    def __init__(self, storage: Signing, courier: PresignedTransfer | None = None) -> None:
        self._storage, self._courier = storage, courier or PresignedTransfer()

    def address(self, key: str) -> str:
        """As in Access: the key alone, since whoever has no access need not know where the store is."""
        return key

    async def stage(self, entry: Entry, source: Path, progress: Progress = nobody) -> None:
        """As in Access; an address is for these bytes alone, so what is there already is what was to be sent."""
        try:
            await self._send(entry, source, progress)
        except BytesRefused as refused:
            raise StorageStumbled(str(refused)) from refused
        except OSError as trouble:
            raise StorageAway(f"file store: {trouble}") from trouble

    async def shelter(self, entry: Entry, source: Path) -> None:
        """As in Access; the buffer has not let go of them."""

    async def unstage(self, entry: Entry) -> None:
        """As in Access: nothing is signed to remove what lies in staging, so storage collects it."""

    async def open(self, manifest: Manifest, trace: str | None, start: int = 0, length: int | None = None) -> Pieces:
        """As in Access; a fresh address is asked for whenever one has expired."""

        async def address() -> str:
            signed = await self._storage.address_to_read(manifest.id, trace)
            if signed is None:
                raise NothingSigned(NothingSigned.__doc__)
            return signed.url

        end = manifest.size_bytes if length is None else min(start + length, manifest.size_bytes)
        pieces = SignedPieces(self._courier, address, manifest.id, (start, end))
        await pieces.begin()
        return pieces

    async def _send(self, entry: Entry, source: Path, progress: Progress) -> None:
        """Twice at most: an address that is refused may have been on its way for too long, a fresh one has not."""
        try:
            await self._send_once(entry, source, progress)
        except AddressExpired as expired:
            logger().warning("signed address refused", artifact_id=entry.artifact_id, reason=str(expired))
            await self._send_once(entry, source, progress)

    async def _send_once(self, entry: Entry, source: Path, progress: Progress) -> None:
        signed = await self._storage.address_to_stage(entry.manifest)
        if signed is None:
            raise StorageAway(NothingSigned.__doc__)
        content = told(chunks_of(source), "send", progress, entry.manifest.size_bytes)
        await self._courier.send(signed.url, signed.headers, content)


class SignedPieces:
    """Pieces of an object, taken up where they broke off, under a fresh address each time."""

    def __init__(
        self, courier: PresignedTransfer, address: Callable[[], Awaitable[str]], artifact_id: str, part: tuple[int, int]
    ) -> None:
        self._courier, self._address, self._artifact_id = courier, address, artifact_id
        self._at, self._end = part
        self._under_way = AsyncExitStack()
        self._stream: AsyncIterator[bytes] | None = None

    async def begin(self) -> None:
        """Connect, so that what is missing is known at once. Raises BytesMissing, StorageAway."""
        if self._at < self._end:
            await self._patiently(self._streaming)

    async def read(self) -> bytes:
        """As in Pieces."""
        if self._at >= self._end:
            return b""
        piece = await self._patiently(self._next)
        self._at += len(piece)
        return piece

    async def close(self) -> None:
        """As in Pieces."""
        self._stream = None
        # What broke off may break once more when it is put away.
        with suppress(OSError):
            await self._under_way.aclose()

    async def _next(self) -> bytes:
        stream, arrived = await self._streaming(), bytearray()
        try:
            while len(arrived) < CHUNK_BYTES and (piece := await anext(stream, b"")):
                arrived += piece
        except OSError:
            if not arrived:
                raise
            # What has arrived is good; the rest is read on from there.
            await self.close()
        return bytes(arrived)

    async def _streaming(self) -> AsyncIterator[bytes]:
        if self._stream is None:
            fetching = self._courier.fetch(await self._address(), self._at, self._end)
            self._stream = await self._under_way.enter_async_context(fetching)
        return self._stream

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        for tries in count(1):
            try:
                return await work()
            except FileNotFoundError as missing:
                raise BytesMissing(f"{BytesMissing.__doc__} ({self._artifact_id})") from missing
            except OSError as trouble:
                await self.close()
                if tries == _TRIES:
                    raise StorageAway(f"file store: {trouble}") from trouble
                logger().info("reading on under a fresh address", artifact_id=self._artifact_id, reason=str(trouble))
            await asyncio.sleep(_WAIT_S * tries)
        raise AssertionError("unreachable: it counts for ever")
