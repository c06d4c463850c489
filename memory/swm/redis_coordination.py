"""The Redis of locks with counters."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from memory.redis_link import RedisAway, RedisLink
from memory.swm.refusals import CoordinationAway
from mindbus.logs import logger

T = TypeVar("T")


class Coordination:
    """It must evict nothing: a lock that goes by itself guards nothing."""

    def __init__(self, url: str) -> None:
        self._link = RedisLink(url)

    async def open(self) -> None:
        """Raises WrongRedis where it would evict; one that is away is looked at by whoever uses it first."""
        try:
            await self._link.require_noeviction("locks with counters")
        except RedisAway as away:
            logger().warning("locks, counters are unavailable", reason=str(away))

    async def run(self, script: str, keys: Sequence[str], *arguments: Any) -> Any:
        """All of it at once. Raises CoordinationAway."""
        return await self.ask(lambda redis: redis.eval(script, len(keys), *keys, *arguments))

    async def ask(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Raises CoordinationAway."""
        try:
            return await self._link.ask(work)
        except RedisAway as away:
            raise CoordinationAway(reason=str(away)) from away

    async def close(self) -> None:
        """Close every connection."""
        await self._link.close()
