"""What the SDK asks of the storage service, over the bus."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from pydantic import ValidationError

from bus_schema.artifacts import ArtifactRef, Manifest
from bus_schema.envelope import explain
from bus_schema.replies import Code
from bus_schema.storage import GetArtifact, RegisterArtifact, Registration, SearchArtifacts
from bus_schema.uploads import FoundManifest, PresignedGet, PresignedPut, RequestUpload
from mindbus.bus.client import Client
from mindbus.errors import BusUnavailable, NoReply, ReplyError
from mindbus.sdk.aside import aside
from mindbus.sdk.failures import (
    ArtifactConflict,
    ArtifactNotFound,
    ArtifactRefused,
    StagedCopyLost,
    StorageAway,
    StorageStumbled,
)

# What storage needs for a copy besides the answering: it hashes all that it publishes.
_PATIENCE_S = 6.0
_SLOWEST_COPY_BYTES_PER_S = 20e6


class StorageLink(Protocol):
    """Storage, as far as artifacts are concerned."""

    async def register(self, manifest: Manifest) -> Registration:
        """Raises StorageAway, StagedCopyLost, ArtifactRefused."""
        ...

    async def manifest(self, artifact_id: str, trace: str | None) -> Manifest:
        """Raises StorageAway, ArtifactNotFound, ArtifactRefused."""
        ...

    async def made_by(self, owner: str, trace: str, step: str | None) -> tuple[Manifest, ...]:
        """What an agent has made in a step. Raises StorageAway, ArtifactRefused."""
        ...


class StorageOnBus:
    """Storage, wherever it listens."""

    def __init__(self, bus: Client) -> None:
        self._bus = bus
        # An answer goes to whoever asked first, so another process must not ask under the same message id.
        self._scope = secrets.token_hex(8)

    async def register(self, manifest: Manifest) -> Registration:
        """As in StorageLink; asked again, it is the same message as long as the staged copy is the same."""
        timeout_s = _PATIENCE_S + manifest.size_bytes / _SLOWEST_COPY_BYTES_PER_S
        command = RegisterArtifact(manifest=manifest)
        with _understanding():
            return await aside(
                f"{self._scope}/{manifest.uri}",
                lambda: self._bus.request(command, timeout_s=timeout_s, trace=manifest.trace_id, step=manifest.step_id),
            )

    async def manifest(self, artifact_id: str, trace: str | None) -> Manifest:
        """As in StorageLink."""
        return await self._found(artifact_id, trace)

    async def address_to_read(self, artifact_id: str, trace: str | None) -> PresignedGet | None:
        """As in Signing."""
        found = await self._found(artifact_id, trace, presigned=True)
        return found.presigned_url

    async def address_to_stage(self, manifest: Manifest) -> PresignedPut | None:
        """As in Signing."""
        query = RequestUpload(
            content_type=manifest.content_type,
            size_bytes=manifest.size_bytes,
            checksum=manifest.checksum,
            uri=manifest.uri,
        )
        with _understanding():
            upload = await aside(secrets.token_hex(8), lambda: self._bus.request(query, timeout_s=_PATIENCE_S))
        return upload.presigned_put

    async def made_by(self, owner: str, trace: str, step: str | None) -> tuple[Manifest, ...]:
        """As in StorageLink; the newest are beyond what one page holds only where a step has hundreds of attempts."""
        query = SearchArtifacts(trace_id=trace, agent=owner, step_id=step, limit=200)
        with _understanding():
            page = await aside(
                secrets.token_hex(8), lambda: self._bus.request(query, timeout_s=_PATIENCE_S, trace=trace)
            )
        return page.items

    async def _found(self, artifact_id: str, trace: str | None, *, presigned: bool = False) -> FoundManifest:
        try:
            query = GetArtifact(artifact_id=artifact_id, presigned=presigned)
        except ValidationError as invalid:
            raise ArtifactRefused(Code.INVALID, explain(invalid)) from invalid
        try:
            with _understanding():
                return await aside(
                    secrets.token_hex(8), lambda: self._bus.request(query, timeout_s=_PATIENCE_S, trace=trace)
                )
        except ArtifactRefused as refused:
            if refused.code is Code.NOT_FOUND:
                raise ArtifactNotFound(f"{ArtifactNotFound.__doc__} ({artifact_id})") from refused
            raise


@contextmanager
def _understanding() -> Iterator[None]:
    try:
        yield
    except BusUnavailable as away:
        raise StorageAway(str(away)) from away
    except NoReply as silence:
        raise StorageAway(str(silence)) from silence
    except ReplyError as no:
        raise _meaning(no) from no


def _meaning(no: ReplyError) -> Exception:
    if no.code in (Code.UNAVAILABLE, Code.EXPIRED):
        return StorageAway(no.message)
    if no.code is Code.INTERNAL:
        return StorageStumbled(no.message)
    if no.code in (Code.FILE_NOT_FOUND, Code.CHECKSUM_MISMATCH):
        return StagedCopyLost(no.message)
    if no.code is Code.CONFLICT:
        return ArtifactConflict(no.message, _existing(no))
    return ArtifactRefused(no.code, no.message)


def _existing(conflict: ReplyError) -> ArtifactRef | None:
    try:
        return ArtifactRef.model_validate(conflict.details.get("existing"))
    except ValidationError:
        return None
