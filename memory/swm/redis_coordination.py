"""Locks and counters in a Redis that evicts nothing."""

import asyncio
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bus_schema.swm import Lock, LockInfo
from memory.errors import CoordinationAway, CounterFull, LockNotHeld
from memory.redis_link import RedisLink
from memory.swm.coordination import MAX_VALUE, OPERATIONS_KEPT, Clock, LockRequest
from mindbus.logs import logger

_LOCK_KEY = "swm_lock:"

# Times are this process's, in ms: one instance leads, so that there is one clock.
_TAKE = """
local held = redis.call('HMGET', KEYS[1], 'ticket', 'token', 'fencing', 'expires')
local expires, now = tonumber(held[4] or '0'), tonumber(ARGV[1])
for unanswered = 6, #ARGV do
    if held[2] == ARGV[unanswered] then expires = 0 end
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
# A released lock expires at 0; releasing it again is no error.
_RELEASE = """
local held = redis.call('HMGET', KEYS[1], 'token', 'expires')
local expires = tonumber(held[2] or '0')
if held[1] ~= ARGV[2] or (expires > 0 and expires <= tonumber(ARGV[1])) then return 0 end
redis.call('HSET', KEYS[1], 'expires', '0')
return 1
"""

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


class RedisCoordination:
    """CoordinationStore of the instance that leads, in a Redis that evicts nothing: an evicted lock guards nothing."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._link, self._clock = RedisLink(url, lambda reason: CoordinationAway(reason=reason)), clock
        # Tokens whose TAKE was not answered, with the ends of their leases.
        self._unanswered: dict[str, datetime] = {}

    async def open(self) -> None:
        """Raises WrongRedis."""
        await self._link.open("locks with counters")

    async def close(self) -> None:
        await self._link.close()

    async def take(self, request: LockRequest) -> Lock | datetime:
        """A lock that Redis grants after its requester was refused is treated as free."""
        now, new = self._clock(), secrets.token_hex(16)
        self._unanswered = {token: until for token, until in self._unanswered.items() if until > now}
        arguments = (_ms(now), request.ticket, new, request.holder, _ms(now + request.lease), *self._unanswered)
        try:
            token, fencing, expires = await self._link.run(_TAKE, [_LOCK_KEY + request.name], *arguments)
        except (CoordinationAway, asyncio.CancelledError):
            self._unanswered[new] = now + request.lease
            raise
        return _parse_lock((token, fencing, expires)) if token else _from_ms(expires)

    async def renew(self, name: str, token: str, lease: timedelta) -> Lock:
        now = self._clock()
        lock = await self._link.run(_RENEW, [_LOCK_KEY + name], _ms(now), token, _ms(now + lease))
        if not lock:
            raise LockNotHeld(name=name)
        return _parse_lock(lock)

    async def release(self, name: str, token: str) -> None:
        if not await self._link.run(_RELEASE, [_LOCK_KEY + name], _ms(self._clock()), token):
            raise LockNotHeld(name=name)

    async def lock_info(self, name: str) -> LockInfo:
        holder, fencing, expires = await self._link.call("hmget", _LOCK_KEY + name, "holder", "fencing", "expires")
        if expires is None or int(expires) <= _ms(self._clock()):
            return LockInfo(name=name, fencing=int(fencing or 0))
        return LockInfo(name=name, holder=holder.decode(), fencing=int(fencing), expires=_from_ms(expires))

    async def add(self, counter: str, by: int, operation_id: str) -> int:
        # Names contain no bar.
        keys = [_COUNTER_KEY + counter, f"{_OPERATION}{counter}|{operation_id}"]
        value = await self._link.run(_ADD, keys, by, round(OPERATIONS_KEPT.total_seconds() * 1000), MAX_VALUE)
        if not value:
            raise CounterFull(name=counter)
        return int(value)

    async def value(self, counter: str) -> int:
        return int(await self._link.call("get", _COUNTER_KEY + counter) or 0)

    async def forget_old(self) -> None:
        """Nothing to do: operations expire."""

    async def clear_counters(self) -> int:
        operations = await self._link.ask(lambda redis: _drop(redis, f"{_OPERATION}*"))
        counters = await self._link.ask(lambda redis: _drop(redis, f"{_COUNTER_KEY}*"))
        logger().info("counters cleared", counters=counters, operations=operations)
        return counters


def _parse_lock(fields: Sequence[Any]) -> Lock:
    token, fencing, expires = fields
    return Lock(token=token.decode(), fencing=int(fencing), expires=_from_ms(expires))


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _from_ms(ms: bytes) -> datetime:
    return datetime.fromtimestamp(int(ms) / 1000, UTC)


async def _drop(redis: Any, pattern: str) -> int:
    return sum([await redis.delete(key) async for key in redis.scan_iter(match=pattern, count=1000)])
