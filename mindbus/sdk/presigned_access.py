"""Access to the bytes of artifacts by presigned addresses, for processes without access to the file store."""

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
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import BytesMissing, PresigningUnavailable, StorageAway, StorageFailed
from mindbus.sdk.transfers import CHUNK_BYTES, ByteStream, Progress, chunks_of, no_progress, with_progress

_ATTEMPTS = 3
_RETRY_S = 0.2

T = TypeVar("T")


class UploadSigner(Protocol):
    """The part of storage that signs addresses."""

    async def address_to_stage(self, manifest: Manifest) -> PresignedPut | None:
        """The address for the bytes, or None where storage signs nothing. Raises StorageAway, ArtifactRejected."""

    async def address_to_read(self, artifact_id: str, trace: str | None) -> PresignedGet | None:
        """The address to read from, or None where storage signs nothing.

        Raises StorageAway, ArtifactNotFound, ArtifactRejected."""


class PresignedAccess:
    """ArtifactAccess without credentials; an address is requested when it is needed, and kept nowhere."""

    needs_place = False

    def __init__(self, storage: UploadSigner, transfer: PresignedTransfer | None = None) -> None:
        self._storage, self._transfer = storage, transfer or PresignedTransfer()

    def address(self, key: str) -> str:
        """The key alone: this process need not know where the store is."""
        return key

    async def stage(self, entry: BufferEntry, source: Path, progress: Progress = no_progress) -> None:
        """An address is for these bytes alone, so what is staged already is the same."""
        try:
            try:
                await self._send(entry, source, progress)
            except AddressExpired as error:
                logger().warning("signed address refused", artifact_id=entry.artifact_id, reason=str(error))
                await self._send(entry, source, progress)
        except BytesRefused as error:
            raise StorageFailed(str(error)) from error
        except OSError as error:
            raise StorageAway(f"file store: {error}") from error

    def stage_at_once(self, entry: BufferEntry, source: Path) -> bool:
        """False: the bytes are sent."""
        return False

    async def shelter(self, entry: BufferEntry, source: Path) -> None:
        """Nothing to do: the buffer keeps the bytes."""

    async def unstage(self, entry: BufferEntry) -> None:
        """Nothing to do: storage collects what is staged."""

    async def open(
        self, manifest: Manifest, trace: str | None, start: int = 0, length: int | None = None
    ) -> ByteStream:
        """A new address is requested whenever one has expired."""

        async def address() -> str:
            signed = await self._storage.address_to_read(manifest.id, trace)
            if signed is None:
                raise PresigningUnavailable
            return signed.url

        end = manifest.size_bytes if length is None else min(start + length, manifest.size_bytes)
        pieces = PresignedByteStream(self._transfer, address, manifest.id, (start, end))
        await pieces.begin()
        return pieces

    async def _send(self, entry: BufferEntry, source: Path, progress: Progress) -> None:
        signed = await self._storage.address_to_stage(entry.manifest)
        if signed is None:
            raise StorageAway(PresigningUnavailable.__doc__)
        content = with_progress(chunks_of(source), "send", progress, entry.manifest.size_bytes)
        await self._transfer.send(signed.url, signed.headers, content)


class PresignedByteStream:
    """ByteStream of an object, resumed where it broke off, each time with a new address."""

    def __init__(
        self,
        transfer: PresignedTransfer,
        address: Callable[[], Awaitable[str]],
        artifact_id: str,
        part: tuple[int, int],
    ) -> None:
        self._transfer, self._address, self._artifact_id = transfer, address, artifact_id
        self._at, self._end = part
        self._response = AsyncExitStack()
        self._stream: AsyncIterator[bytes] | None = None

    async def begin(self) -> None:
        """Connect, so that a missing object is known at once. Raises BytesMissing, StorageAway."""
        if self._at < self._end:
            await self._retry(self._streaming)

    async def read(self) -> bytes:
        if self._at >= self._end:
            return b""
        piece = await self._retry(self._next)
        self._at += len(piece)
        return piece

    async def close(self) -> None:
        self._stream = None
        # Closing a broken response may fail again.
        with suppress(OSError):
            await self._response.aclose()

    async def _next(self) -> bytes:
        stream, arrived = await self._streaming(), bytearray()
        try:
            while len(arrived) < CHUNK_BYTES and (piece := await anext(stream, b"")):
                arrived += piece
        except OSError:
            if not arrived:
                raise
            # Keep what has arrived; the rest is read from there.
            await self.close()
        return bytes(arrived)

    async def _streaming(self) -> AsyncIterator[bytes]:
        if self._stream is None:
            fetching = self._transfer.fetch(await self._address(), self._at, self._end)
            self._stream = await self._response.enter_async_context(fetching)
        return self._stream

    async def _retry(self, work: Callable[[], Awaitable[T]]) -> T:
        for attempt in count(1):
            try:
                return await work()
            except FileNotFoundError as error:
                raise BytesMissing(f"{BytesMissing.__doc__} ({self._artifact_id})") from error
            except OSError as error:
                await self.close()
                if attempt == _ATTEMPTS:
                    raise StorageAway(f"file store: {error}") from error
                logger().info("reading on under a fresh address", artifact_id=self._artifact_id, reason=str(error))
            await asyncio.sleep(_RETRY_S * attempt)
        raise AssertionError("unreachable: it counts for ever")
