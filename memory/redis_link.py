"""Connection to a Redis that may be away."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import OutOfMemoryError, ReadOnlyError, ResponseError
from redis.exceptions import TimeoutError as NoAnswer

from memory.errors import RedisAway, WrongRedis
from mindbus.logs import logger

T = TypeVar("T")
_UNAVAILABLE = (NotConnected, NoAnswer, OutOfMemoryError, ReadOnlyError, OSError)
_CONNECT_WITHIN_S = 1.0
_ANSWER_WITHIN_S = 2.0
_ASK_AGAIN_S = 1.0
_CONNECTIONS = 32


class RedisLink:
    """Runs commands with short timeouts; while Redis is away it is tried once a second and fails at once otherwise.

    Failures are raised as `away`, the kind of RedisAway that the caller's own callers know.
    """

    def __init__(self, url: str, unavailable: Callable[[str], Exception] = RedisAway) -> None:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=_ANSWER_WITHIN_S * 2,
            socket_connect_timeout=_CONNECT_WITHIN_S,
            socket_timeout=_ANSWER_WITHIN_S,
            # A connection from the pool may be dead since Redis was restarted; a second try gets a new one.
            retry=Retry(NoBackoff(), 1),
        )
        self.client: Any = Redis.from_pool(pool)
        self._away, self._away_until = unavailable, 0.0

    async def ask(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run commands on the client. Raises the link's RedisAway."""
        if time.monotonic() < self._away_until:
            raise self._away("asked a moment ago")
        try:
            answer = await work(self.client)
        except _UNAVAILABLE as error:
            if not self._away_until:
                logger().warning("redis is away", reason=str(error))
            self._away_until = time.monotonic() + _ASK_AGAIN_S
            raise self._away(str(error)) from error
        if self._away_until:
            logger().info("redis is back")
            self._away_until = 0.0
        return answer

    async def call(self, command: str, *arguments: Any) -> Any:
        """Run one command. Raises the link's RedisAway."""
        return await self.ask(lambda redis: getattr(redis, command)(*arguments))

    async def run(self, script: str, keys: Sequence[str], *arguments: Any) -> Any:
        """Run a Lua script, atomically. Raises the link's RedisAway."""
        return await self.call("eval", script, len(keys), *keys, *arguments)

    async def setting(self, name: str) -> str:
        """Value of a Redis setting. Raises RedisAway, and WrongRedis where CONFIG is not allowed."""
        try:
            response = await self.call("config_get", name)
        except ResponseError as error:
            raise WrongRedis(f"{WrongRedis.__doc__} It does not let CONFIG GET {name} be asked: {error}") from error
        value = response.get(name, response.get(name.encode(), ""))
        return value.decode() if isinstance(value, bytes) else str(value)

    async def set(self, name: str, value: str) -> None:
        """Change a Redis setting. Raises RedisAway, and WrongRedis where CONFIG is not allowed."""
        try:
            await self.call("config_set", name, value)
        except ResponseError as error:
            raise WrongRedis(f"{WrongRedis.__doc__} Set {name} to {value} in its configuration.") from error

    async def open(self, things: str) -> None:
        """Check that Redis evicts nothing; one that is away is checked by nobody. Raises WrongRedis."""
        try:
            policy = await self.setting("maxmemory-policy")
        except RedisAway as error:
            logger().warning(f"{things} are unavailable", reason=str(error))
            return
        if policy != "noeviction":
            raise WrongRedis(
                f"{WrongRedis.__doc__} Its maxmemory-policy is {policy}, which may evict {things}; set it to"
                " noeviction, or name another Redis in MINDBUS_REDIS_URL."
            )

    async def wait(self) -> None:
        while True:
            try:
                await self.call("ping")
            except RedisAway:
                await asyncio.sleep(_ASK_AGAIN_S)
            else:
                return

    async def close(self) -> None:
        await self.client.aclose()
