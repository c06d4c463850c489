"""A Redis that may be away."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import OutOfMemoryError, ReadOnlyError, ResponseError
from redis.exceptions import TimeoutError as NoAnswer

from bus_schema.replies import Code
from mindbus.errors import MindBusError
from mindbus.logs import logger

T = TypeVar("T")
_AWAY = (NotConnected, NoAnswer, OutOfMemoryError, ReadOnlyError, OSError)
_CONNECT_WITHIN_S = 1.0
_ANSWER_WITHIN_S = 2.0
_ASK_AGAIN_S = 1.0
_CONNECTIONS = 32


class RedisAway(Exception):
    """Redis does not answer; start it, or wait for it."""


class WrongRedis(MindBusError):
    """This Redis is set up for something else; see what it says, then change its settings, or name another."""

    code = Code.INVALID


class RedisLink:
    """Asks with little patience; while Redis is away it is asked once a second, so that nobody waits in vain."""

    def __init__(self, url: str, ask_again_s: float = _ASK_AGAIN_S) -> None:
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
        self._ask_again_s = ask_again_s
        self._away_until = 0.0

    async def ask(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Raises RedisAway."""
        if time.monotonic() < self._away_until:
            raise RedisAway(RedisAway.__doc__)
        try:
            answer = await work(self.client)
        except _AWAY as trouble:
            if not self._away_until:
                logger().warning("redis is away", reason=str(trouble))
            self._away_until = time.monotonic() + self._ask_again_s
            raise RedisAway(f"{RedisAway.__doc__} ({trouble})") from trouble
        if self._away_until:
            logger().info("redis is back")
            self._away_until = 0.0
        return answer

    async def setting(self, name: str) -> str:
        """What CONFIG says. Raises RedisAway, WrongRedis where nobody may ask."""
        try:
            found = await self.ask(lambda redis: redis.config_get(name))
        except ResponseError as refused:
            raise WrongRedis(f"{WrongRedis.__doc__} It does not let CONFIG GET {name} be asked: {refused}") from refused
        return _text(found.get(name, found.get(name.encode(), "")))

    async def set(self, name: str, value: str) -> None:
        """Change a setting. Raises RedisAway, WrongRedis where it does not let us."""
        try:
            await self.ask(lambda redis: redis.config_set(name, value))
        except ResponseError as refused:
            raise WrongRedis(f"{WrongRedis.__doc__} Set {name} to {value} in its configuration.") from refused

    async def require_noeviction(self, things: str) -> None:
        """Raises RedisAway, WrongRedis where it may evict these things."""
        policy = await self.setting("maxmemory-policy")
        if policy != "noeviction":
            raise WrongRedis(
                f"{WrongRedis.__doc__} Its maxmemory-policy is {policy}, which may evict {things}; set it to"
                " noeviction, or name another Redis in MINDBUS_REDIS_URL."
            )

    async def close(self) -> None:
        """Close every connection."""
        await self.client.aclose()


async def wait_for_redis(link: RedisLink) -> None:
    """Until it answers."""
    while True:
        try:
            await link.ask(lambda redis: redis.ping())
        except RedisAway:
            await asyncio.sleep(_ASK_AGAIN_S)
        else:
            return


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
