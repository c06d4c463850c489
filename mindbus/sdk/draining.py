"""Registers what waits in the buffer, whenever storage is heard of."""

import asyncio
from collections import Counter
from collections.abc import Callable

from mindbus.logs import logger
from mindbus.sdk.buffer import Buffer
from mindbus.sdk.degradation import Degradation
from mindbus.sdk.entry import Entry
from mindbus.sdk.failures import ArtifactRefused, StorageAway, StorageStumbled
from mindbus.sdk.registering import Registrar


class Drain:
    """Empties the buffer round by round; nothing in it can hold up the rest."""

    def __init__(self, buffer: Buffer, registrar: Registrar, policy: Degradation, at_work: set[str]) -> None:
        self._buffer, self._registrar, self._policy = buffer, registrar, policy
        self._at_work = at_work
        self._stumbles: Counter[str] = Counter()
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

    def _next(self, tried: set[str]) -> Entry | None:
        waiting = {entry.artifact_id: entry for entry in self._buffer.entries()}
        ready = [
            entry
            for artifact_id, entry in waiting.items()
            if artifact_id not in tried | self._at_work and not entry.needs & waiting.keys()
        ]
        # What failed before comes last, or one artifact on which storage chokes would starve the others.
        return min(ready, key=self._order, default=None)

    def _order(self, entry: Entry) -> tuple[object, ...]:
        return self._stumbles[entry.artifact_id], entry.manifest.version, entry.buffered_at, entry.artifact_id

    async def _register(self, entry: Entry) -> None:
        self._at_work.add(entry.artifact_id)
        try:
            registration = await self._registrar.register(entry.artifact_id)
        except StorageStumbled as stumble:
            await self._stumbled(entry, stumble)
        except StorageAway as away:
            self._is_away = True
            self._stumbles[entry.artifact_id] += 1
            logger().info("storage is away, the buffer waits", reason=str(away), waiting=len(self._buffer.entries()))
        except ArtifactRefused as refused:
            logger().error("buffered artifact refused", artifact_id=entry.artifact_id, reason=str(refused))
        except OSError as trouble:
            self._stumbles[entry.artifact_id] += 1
            logger().error("buffer trouble", artifact_id=entry.artifact_id, reason=str(trouble))
        else:
            del self._stumbles[entry.artifact_id]
            logger().info("buffered artifact registered", artifact_id=entry.artifact_id, outcome=registration.outcome)
        finally:
            self._at_work.discard(entry.artifact_id)

    async def _stumbled(self, entry: Entry, stumble: StorageStumbled) -> None:
        self._stumbles[entry.artifact_id] += 1
        logger().warning("storage stumbled", artifact_id=entry.artifact_id, reason=str(stumble))
        if self._stumbles[entry.artifact_id] >= self._policy.stumbles:
            await self._registrar.give_up(entry.artifact_id, f"storage failed over it: {stumble}")
