"""Registration of buffered artifacts: the policy while storage is away, one artifact, all that wait."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import TypeVar

from bus_schema.replies import Code
from bus_schema.storage import Registration
from mindbus.files.keys import new_staging_key
from mindbus.logs import logger
from mindbus.sdk.access import ArtifactAccess
from mindbus.sdk.buffer import Buffer, BufferLimits
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import ArtifactRejected, StagedCopyLost, StorageAway, StorageFailed
from mindbus.sdk.requests import RetryPolicy
from mindbus.sdk.storage_link import StorageLink
from mindbus.sdk.transfers import Progress, no_progress

_MAX_RESTAGED = 2

T = TypeVar("T")


@dataclass(frozen=True)
class StoragePolicy(RetryPolicy):
    """Three attempts, then the buffer, then the next heartbeat of storage (spec 003 §12.3); the same for all agents."""

    drained_at_once: int = 3
    max_failures: int = 5
    # All agents hear the same heartbeat; they must not all come at the same moment.
    spread_s: float = 1.0
    limits: BufferLimits = field(default_factory=BufferLimits)
    chance: Callable[[], float] = field(default=random.random)

    async def retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Raises StorageAway after the last attempt."""
        return await self.run(work, StorageAway)


class BufferRegistrar:
    """Stages, registers, then drops an entry; each step may be the last before a crash and can be repeated."""

    def __init__(
        self, buffer: Buffer, access: ArtifactAccess, storage: StorageLink, clock: Callable[[], datetime]
    ) -> None:
        self._buffer, self._access, self._storage, self._clock = buffer, access, storage, clock

    async def register(self, artifact_id: str, progress: Progress = no_progress) -> Registration:
        """Raises StorageAway, after which the entry waits on; ArtifactRejected, after which it is set aside."""
        try:
            registration = await self._stage_and_register(self._buffer.entry(artifact_id), progress)
        except ArtifactRejected as error:
            await self.give_up(artifact_id, str(error))
            raise
        except StorageAway:
            await self.shelter(artifact_id)
            raise
        await asyncio.to_thread(self._buffer.drop, artifact_id)
        return registration

    async def give_up(self, artifact_id: str, reason: str) -> None:
        entry = await self.shelter(artifact_id)
        await asyncio.to_thread(self._buffer.set_aside, artifact_id, reason)
        await self._access.unstage(entry)

    async def shelter(self, artifact_id: str) -> BufferEntry:
        """Bring the bytes of an entry that has to wait to where they are safe for any time."""
        entry = self._buffer.entry(artifact_id)
        await self._access.shelter(entry, self._buffer.bytes_of(entry))
        return entry

    async def _stage_and_register(self, entry: BufferEntry, progress: Progress) -> Registration:
        size_bytes = entry.manifest.size_bytes
        for attempt in count(1):
            await self._access.stage(entry, self._buffer.bytes_of(entry), progress)
            progress("register", 0, size_bytes)
            try:
                registration = await self._storage.register(entry.manifest)
            except StagedCopyLost as error:
                if attempt > _MAX_RESTAGED:
                    raise ArtifactRejected(Code.CHECKSUM_MISMATCH, f"staged {attempt} times: {error}") from error
            else:
                progress("register", size_bytes, size_bytes)
                return registration
            await self._access.unstage(await self.shelter(entry.artifact_id))
            entry = await self._with_new_key(entry)
        raise AssertionError("unreachable: it counts for ever")

    async def _with_new_key(self, entry: BufferEntry) -> BufferEntry:
        key = new_staging_key(entry.manifest.owner, self._clock())
        manifest = entry.manifest.model_copy(update={"uri": self._access.address(key)})
        entry = BufferEntry(manifest=manifest, upload_key=key, buffered_at=entry.buffered_at)
        # The buffer must know the new address before storage does.
        await asyncio.to_thread(self._buffer.save, entry)
        return entry


class BufferDrain:
    """Registers what waits in the buffer, round by round; no entry can hold up the others."""

    def __init__(self, buffer: Buffer, registrar: BufferRegistrar, policy: StoragePolicy, at_work: set[str]) -> None:
        self._buffer, self._registrar, self._policy = buffer, registrar, policy
        self._at_work = at_work
        self._failures: Counter[str] = Counter()
        self._is_away = False

    async def round(self, after_each: Callable[[], None] = lambda: None) -> None:
        """Register all that can be registered now; ends early when storage is away again."""
        self._is_away = False
        tried: set[str] = set()

        async def work() -> None:
            while not self._is_away and (entry := self._next(tried)):
                tried.add(entry.artifact_id)
                await self._register(entry)
                after_each()

        await asyncio.gather(*(work() for _ in range(self._policy.drained_at_once)))

    def _next(self, tried: set[str]) -> BufferEntry | None:
        waiting = {entry.artifact_id: entry for entry in self._buffer.entries()}
        ready = [
            entry
            for artifact_id, entry in waiting.items()
            if artifact_id not in tried | self._at_work and not entry.needs & waiting.keys()
        ]
        # What failed before comes last, or one artifact on which storage fails would starve the others.
        return min(ready, key=self._order, default=None)

    def _order(self, entry: BufferEntry) -> tuple[object, ...]:
        return self._failures[entry.artifact_id], entry.manifest.version, entry.buffered_at, entry.artifact_id

    async def _register(self, entry: BufferEntry) -> None:
        artifact_id = entry.artifact_id
        self._at_work.add(artifact_id)
        try:
            registration = await self._registrar.register(artifact_id)
        except StorageFailed as error:
            self._failures[artifact_id] += 1
            logger().warning("storage failed over an artifact", artifact_id=artifact_id, reason=str(error))
            if self._failures[artifact_id] >= self._policy.max_failures:
                await self._registrar.give_up(artifact_id, f"storage failed over it: {error}")
        except StorageAway as error:
            self._is_away = True
            self._failures[artifact_id] += 1
            logger().info("storage is away, the buffer waits", reason=str(error), waiting=len(self._buffer.entries()))
        except ArtifactRejected as error:
            logger().error("buffered artifact rejected", artifact_id=artifact_id, reason=str(error))
        except OSError as error:
            self._failures[artifact_id] += 1
            logger().error("buffered artifact not registered", artifact_id=artifact_id, reason=str(error))
        else:
            del self._failures[artifact_id]
            logger().info("buffered artifact registered", artifact_id=artifact_id, outcome=registration.outcome)
        finally:
            self._at_work.discard(artifact_id)
