"""Registration of buffered artifacts: the policy while storage is away, one artifact, all that wait."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count, groupby
from typing import TypeVar

from bus_schema.replies import Code
from bus_schema.storage import MAX_REGISTERED, Registration
from mindbus.files.keys import new_staging_key
from mindbus.logs import logger
from mindbus.sdk.access import ArtifactAccess
from mindbus.sdk.buffer import Buffer, BufferLimits
from mindbus.sdk.buffer_folder import BufferEntry
from mindbus.sdk.errors import ArtifactRejected, StagedCopyLost, StorageAway, StorageFailed
from mindbus.sdk.requests import RetryPolicy
from mindbus.sdk.storage_link import StorageLink
from mindbus.sdk.transfers import Progress, Put, no_progress

_MAX_RESTAGED = 2
# Storage reads all the bytes of a message before it answers.
_MAX_BATCH_BYTES = 64 * 1024**2
# Between two looks for what an instance that died has left, while nothing waits for storage.
_LOOK_S = 5.0

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


# Errors of one artifact: it waits on, or has been set aside.
NotRegistered = StorageAway | ArtifactRejected


def batches_of(entries: Sequence[BufferEntry]) -> Iterator[list[BufferEntry]]:
    """Entries of one trace each, as many as one message registers; none needs another of its batch."""
    for _trace, group in groupby(sorted(entries, key=_trace_of), _trace_of):
        batch: list[BufferEntry] = []
        size_bytes = 0
        for entry in group:
            size_bytes += entry.manifest.size_bytes
            if batch and (len(batch) == MAX_REGISTERED or size_bytes > _MAX_BATCH_BYTES):
                yield batch
                batch, size_bytes = [], entry.manifest.size_bytes
            batch.append(entry)
        yield batch


def outcome_of(entry: BufferEntry, answer: Registration | NotRegistered) -> Put | ArtifactRejected:
    """The answer to whoever has put an entry."""
    if isinstance(answer, ArtifactRejected):
        return answer
    return Put(entry.manifest, answer.outcome if isinstance(answer, Registration) else "pending")


class BufferRegistrar:
    """Stages, registers, then drops an entry; each step may be the last before a crash and can be repeated."""

    def __init__(
        self, buffer: Buffer, access: ArtifactAccess, storage: StorageLink, clock: Callable[[], datetime]
    ) -> None:
        self._buffer, self._access, self._storage, self._clock = buffer, access, storage, clock

    async def register(
        self, artifact_id: str, progress: Progress = no_progress, *, is_staged: bool = False
    ) -> Registration:
        """Raises StorageAway, after which the entry waits on; ArtifactRejected, after which it is set aside."""
        try:
            registration = await self._stage_and_register(self._buffer.entry(artifact_id), progress, is_staged)
        except ArtifactRejected as error:
            await self.give_up(artifact_id, str(error))
            raise
        except StorageAway:
            await self.shelter(artifact_id)
            raise
        await asyncio.to_thread(self._buffer.drop, artifact_id)
        return registration

    async def register_all(self, entries: Sequence[BufferEntry]) -> dict[str, Registration | NotRegistered]:
        """Register up to a hundred entries of one trace in one message; each is then as after `register`.

        Raises StorageAway where storage answers nothing.
        """
        try:
            await self._stage_all(entries)
            answers = await self._storage.register_all([entry.manifest for entry in entries])
        except StorageAway:
            for entry in entries:
                await self.shelter(entry.artifact_id)
            raise
        outcomes = {entry.artifact_id: answer for entry, answer in zip(entries, answers, strict=True)}
        registered = [each for each, answer in outcomes.items() if isinstance(answer, Registration)]
        await asyncio.to_thread(self._buffer.drop, *registered)
        return {artifact_id: await self._end(artifact_id, answer) for artifact_id, answer in outcomes.items()}

    async def give_up(self, artifact_id: str, reason: str) -> None:
        entry = await self.shelter(artifact_id)
        await asyncio.to_thread(self._buffer.set_aside, artifact_id, reason)
        await self._access.unstage(entry)

    async def shelter(self, artifact_id: str) -> BufferEntry:
        """Bring the bytes of an entry that has to wait to where they are safe for any time."""
        entry = self._buffer.entry(artifact_id)
        await self._access.shelter(entry, self._buffer.bytes_of(entry))
        return entry

    async def _stage_all(self, entries: Sequence[BufferEntry]) -> None:
        def stage_at_once() -> list[BufferEntry]:
            return [each for each in entries if not self._access.stage_at_once(each, self._buffer.bytes_of(each))]

        for entry in await asyncio.to_thread(stage_at_once):
            await self._access.stage(entry, self._buffer.bytes_of(entry))

    async def _end(
        self, artifact_id: str, answer: Registration | StagedCopyLost | NotRegistered
    ) -> Registration | NotRegistered:
        """Leave an entry of a batch as after `register`."""
        if isinstance(answer, ArtifactRejected):
            await self.give_up(artifact_id, str(answer))
        elif isinstance(answer, StorageAway):
            await self.shelter(artifact_id)
        elif isinstance(answer, StagedCopyLost):
            try:
                return await self.register(artifact_id)
            except (StorageAway, ArtifactRejected) as error:
                return error
        return answer

    async def _stage_and_register(self, entry: BufferEntry, progress: Progress, is_staged: bool) -> Registration:
        size_bytes = entry.manifest.size_bytes
        for attempt in count(1):
            if attempt > 1 or not is_staged:
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
        self._waits = asyncio.Event()

    def wake(self) -> None:
        """Something has begun to wait for storage."""
        self._waits.set()

    async def step(self, heartbeat: Callable[[], Awaitable[None]], after_each: Callable[[], None]) -> None:
        """One round, then a wait: for the next heartbeat of storage, as long as anything waits for it."""
        try:
            await asyncio.to_thread(self._buffer.adopt)
            await self.round(after_each)
        except OSError as error:
            logger().error("buffer cannot be drained", buffer=str(self._buffer.root), reason=str(error))
        self._waits.clear()
        if self._buffer.entries() or await self._begins_to_wait():
            await heartbeat()
            await self._policy.sleep(self._policy.chance() * self._policy.spread_s)

    async def round(self, after_each: Callable[[], None] = lambda: None) -> None:
        """Register all that can be registered now; ends early when storage is away again."""
        self._is_away = False
        tried: set[str] = set()

        async def work() -> None:
            while not self._is_away and (batch := self._next(tried)):
                tried.update(entry.artifact_id for entry in batch)
                await self._register(batch)
                after_each()

        await asyncio.gather(*(work() for _ in range(self._policy.drained_at_once)))

    async def _begins_to_wait(self) -> bool:
        """Whether something has begun to wait; False after a while, since an instance that died may have left some."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                return await self._waits.wait()
        return False

    def _next(self, tried: set[str]) -> list[BufferEntry]:
        """Entries to be registered together; one that failed before is registered alone, or it might fail them all."""
        waiting = {entry.artifact_id: entry for entry in self._buffer.entries()}
        ready = [
            entry
            for artifact_id, entry in waiting.items()
            if artifact_id not in tried | self._at_work and not entry.needs & waiting.keys()
        ]
        if not ready:
            return []
        # What failed before comes last, or one artifact on which storage fails would starve the others.
        first, *others = sorted(ready, key=self._order)
        if self._failures[first.artifact_id]:
            return [first]
        alike = [
            each for each in others if _trace_of(each) == _trace_of(first) and not self._failures[each.artifact_id]
        ]
        return next(batches_of([first, *alike]))

    def _order(self, entry: BufferEntry) -> tuple[object, ...]:
        return self._failures[entry.artifact_id], entry.manifest.version, entry.buffered_at, entry.artifact_id

    async def _register(self, entries: Sequence[BufferEntry]) -> None:
        artifact_ids = [entry.artifact_id for entry in entries]
        self._at_work.update(artifact_ids)
        try:
            for artifact_id, outcome in (await self._outcomes_of(entries)).items():
                await self._note(artifact_id, outcome)
        finally:
            self._at_work.difference_update(artifact_ids)

    async def _outcomes_of(self, entries: Sequence[BufferEntry]) -> Mapping[str, Registration | Exception]:
        try:
            if len(entries) > 1:
                return await self._registrar.register_all(entries)
            return {entries[0].artifact_id: await self._registrar.register(entries[0].artifact_id)}
        except Exception as error:  # noqa: BLE001  # whatever is wrong with one of them, the others are registered
            return {entry.artifact_id: error for entry in entries}

    async def _note(self, artifact_id: str, outcome: Registration | Exception) -> None:
        if isinstance(outcome, Registration):
            del self._failures[artifact_id]
            logger().info("buffered artifact registered", artifact_id=artifact_id, outcome=outcome.outcome)
            return
        reason = str(outcome)
        if isinstance(outcome, ArtifactRejected):
            logger().error("buffered artifact rejected", artifact_id=artifact_id, reason=reason)
            return
        self._failures[artifact_id] += 1
        if isinstance(outcome, StorageFailed):
            logger().warning("storage failed over an artifact", artifact_id=artifact_id, reason=reason)
            if self._failures[artifact_id] >= self._policy.max_failures:
                await self._registrar.give_up(artifact_id, f"storage failed over it: {reason}")
        elif isinstance(outcome, StorageAway):
            self._is_away = True
            logger().info("storage is away, the buffer waits", reason=reason, waiting=len(self._buffer.entries()))
        else:
            logger().error("buffered artifact not registered", artifact_id=artifact_id, reason=repr(outcome))


def _trace_of(entry: BufferEntry) -> str:
    return entry.manifest.trace_id
