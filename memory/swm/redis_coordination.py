"""The Redis of locks with counters."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from bus_schema.swm import Lock, LockInfo
from memory.redis_link import RedisAway, RedisLink
from memory.swm.errors import CoordinationAway, CounterFull, LockNotHeld
from memory.swm.stores import MAX_VALUE, Addition, Clock, LockRequest
from mindbus.logs import logger

T = TypeVar("T")


class CoordinationRedis:
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


_LOCK_KEY = "swm_lock:"

# Time is ours, in ms: one instance leads, so that it is the only one who says what time it is.
_TAKE = """
local held = redis.call('HMGET', KEYS[1], 'ticket', 'token', 'fencing', 'expires')
local expires, now = tonumber(held[4] or '0'), tonumber(ARGV[1])
for unheard = 6, #ARGV do
    if held[2] == ARGV[unheard] then expires = 0 end
end
if expires > now then
    if held[1] ~= ARGV[2] then return {'', '0', held[4]} end
    return {held[2], held[3], held[4]}
end
local fencing = redis.call('HINCRBY', KEYS[1], 'fencing', 1)
redis.call('HSET', KEYS[1], 'ticket', ARGV[2], 'token', ARGV[3], 'holder', ARGV[4], 'expires', ARGV[5])
return {ARGV[3], tostring(fencing), ARGV[5]}
"""
_RENEW = """
local held = redis.call('HMGET', KEYS[1], 'token', 'fencing', 'expires')
if held[1] ~= ARGV[2] or tonumber(held[3] or '0') <= tonumber(ARGV[1]) then return {} end
redis.call('HSET', KEYS[1], 'expires', ARGV[3])
return {held[1], held[2], ARGV[3]}
"""
# A lock that was released ends at 0; to release it again is no loss.
_RELEASE = """
local held = redis.call('HMGET', KEYS[1], 'token', 'expires')
local expires = tonumber(held[2] or '0')
if held[1] ~= ARGV[2] or (expires > 0 and expires <= tonumber(ARGV[1])) then return 0 end
redis.call('HSET', KEYS[1], 'expires', '0')
return 1
"""


class RedisLocks:
    """A LockStore for the one instance that leads."""

    def __init__(self, coordination: CoordinationRedis, clock: Clock) -> None:
        self._redis, self._clock = coordination, clock
        # Tokens with the ends of their leases: of which nobody has heard, for want of an answer.
        self._unheard: dict[str, datetime] = {}

    async def take(self, want: LockRequest) -> Lock | datetime:
        """As in LockStore; what Redis carries out when its asker has been refused long ago is nobody's lock."""
        now, new = self._clock(), secrets.token_hex(16)
        self._unheard = {token: until for token, until in self._unheard.items() if until > now}
        arguments = (_ms(now), want.ticket, new, want.holder, _ms(now + want.lease), *self._unheard)
        try:
            token, fencing, expires = await self._redis.run(_TAKE, [_LOCK_KEY + want.name], *arguments)
        except (CoordinationAway, asyncio.CancelledError):
            self._unheard[new] = now + want.lease
            raise
        return _parse_lock((token, fencing, expires)) if token else _from_ms(expires)

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        """As in LockStore."""
        now = self._clock()
        found = await self._redis.run(_RENEW, [_LOCK_KEY + name], _ms(now), token, _ms(now + lease))
        if not found:
            raise LockNotHeld(name=name)
        return _parse_lock(found)

    async def release(self, name: str, token: str) -> None:
        """As in LockStore."""
        if not await self._redis.run(_RELEASE, [_LOCK_KEY + name], _ms(self._clock()), token):
            raise LockNotHeld(name=name)

    async def info(self, name: str) -> LockInfo:
        """As in LockStore."""
        holder, fencing, expires = await self._redis.ask(
            lambda redis: redis.hmget(_LOCK_KEY + name, "holder", "fencing", "expires")
        )
        if expires is None or int(expires) <= _ms(self._clock()):
            return LockInfo(name=name, fencing=int(fencing or 0))
        return LockInfo(name=name, holder=holder.decode(), fencing=int(fencing), expires=_from_ms(expires))


def _parse_lock(found: Sequence[Any]) -> Lock:
    token, fencing, expires = found
    return Lock(token=token.decode(), fencing=int(fencing), expires=_from_ms(expires))


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _from_ms(ms: bytes) -> datetime:
    return datetime.fromtimestamp(int(ms) / 1000, UTC)


OPERATIONS_KEPT = timedelta(days=1)
_COUNTER_KEY = "swm_counter:"
_OPERATION = "swm_counter_op:"

_ADD = """
local made = redis.call('GET', KEYS[2])
if made then return made end
local value = tonumber(redis.call('GET', KEYS[1]) or '0') + tonumber(ARGV[1])
if math.abs(value) > tonumber(ARGV[3]) then return '' end
local text = string.format('%.0f', value)
redis.call('SET', KEYS[1], text)
redis.call('SET', KEYS[2], text, 'PX', ARGV[2])
return text
"""


class RedisCounters:
    """A CounterStore; an operation is known for a day."""

    def __init__(self, coordination: CoordinationRedis) -> None:
        self._redis = coordination

    async def add(self, addition: Addition) -> int:
        """As in CounterStore."""
        # No name has a bar in it.
        keys = [_COUNTER_KEY + addition.name, f"{_OPERATION}{addition.name}|{addition.operation_id}"]
        value = await self._redis.run(_ADD, keys, addition.by, round(OPERATIONS_KEPT.total_seconds() * 1000), MAX_VALUE)
        if not value:
            raise CounterFull(name=addition.name)
        return int(value)

    async def value(self, name: str) -> int:
        """As in CounterStore."""
        return int(await self._redis.ask(lambda redis: redis.get(_COUNTER_KEY + name)) or 0)

    async def forget_old(self) -> None:
        """As in CounterStore: Redis does it."""

    async def clear(self) -> int:
        """As in CounterStore."""
        operations = await self._redis.ask(lambda redis: _drop(redis, f"{_OPERATION}*"))
        counters = await self._redis.ask(lambda redis: _drop(redis, f"{_COUNTER_KEY}*"))
        logger().info("counters cleared", counters=counters, operations=operations)
        return counters


async def _drop(redis: Any, pattern: str) -> int:
    return sum([await redis.delete(key) async for key in redis.scan_iter(match=pattern, count=1000)])
